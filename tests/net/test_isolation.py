"""Context variables: callbacks of a connection run in the context it was made in, whoever called its methods since."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import sys

import pytest

from tests.net.peers import BufferedRecorder, Factory, Recorder, recv_all, recv_exactly, settle

request = contextvars.ContextVar("request", default="nobody")
KEEPS_CALLERS = "later callbacks run in the context of whoever called the method"


def noting(base):
    """A protocol class that notes the value of `request` in each callback."""

    def wrap(name):
        def method(self, *args):
            self.seen.setdefault(name, []).append(request.get())
            return getattr(base, name)(self, *args)

        return method

    names = ["connection_made", "eof_received", "connection_lost", "pause_writing", "resume_writing"]
    names += ["data_received"] if issubclass(base, asyncio.Protocol) else ["get_buffer", "buffer_updated"]
    return type("Noting", (base,), {"__init__": _init(base), **{name: wrap(name) for name in names}})


def _init(base):
    def __init__(self):
        base.__init__(self)
        self.seen = {}

    return __init__


async def within(value, function, *args):
    """Call a function in a task whose `request` has this value."""

    async def call():
        request.set(value)
        return function(*args)

    return await asyncio.create_task(call())


async def made_by(attach, value, protocol_class=Recorder):
    async def make():
        request.set(value)
        return await attach(noting(protocol_class))

    return await asyncio.create_task(make())


@pytest.mark.parametrize("protocol_class", [Recorder, BufferedRecorder])
async def test_callbacks_see_the_context_of_create_connection(attach, protocol_class):
    _, protocol, peer = await made_by(attach, "maker", protocol_class)
    peer.send(b"hello")
    await protocol.receives(5)
    peer.close()
    await protocol.lost()
    assert {value for values in protocol.seen.values() for value in values} == {"maker"}
    assert len(protocol.seen) >= 4


@pytest.mark.asyncio_wrong(KEEPS_CALLERS)
@pytest.mark.parametrize("protocol_class", [Recorder, BufferedRecorder])
async def test_resume_reading_does_not_lend_its_callers_context(attach, protocol_class):
    transport, protocol, peer = await made_by(attach, "maker", protocol_class)
    await within("pauser", transport.pause_reading)
    peer.send(b"hello")
    await settle()
    await within("resumer", transport.resume_reading)
    await protocol.receives(5)
    peer.close()
    await protocol.lost()
    assert {value for values in protocol.seen.values() for value in values} == {"maker"}


@pytest.mark.asyncio_wrong(KEEPS_CALLERS)
async def test_write_does_not_lend_its_callers_context_to_resume_writing(attach):
    transport, protocol, peer = await made_by(attach, "maker")
    await within("writer", transport.write, bytes(20_000_000))
    await asyncio.to_thread(recv_exactly, peer, 20_000_000)
    await protocol.reaches("resume")
    assert protocol.seen["resume_writing"] == ["maker"]


@pytest.mark.asyncio_wrong(KEEPS_CALLERS)
@pytest.mark.parametrize("ending", ["close", "abort"])
async def test_ending_a_connection_does_not_lend_its_callers_context(attach, ending):
    transport, protocol, _ = await made_by(attach, "maker")
    await within("closer", getattr(transport, ending))
    await protocol.lost()
    assert protocol.seen["connection_lost"] == ["maker"]


@pytest.mark.asyncio_wrong(KEEPS_CALLERS)
async def test_close_that_has_to_wait_does_not_lend_its_callers_context(attach):
    transport, protocol, peer = await made_by(attach, "maker")
    await within("writer", transport.write, bytes(20_000_000))
    await within("closer", transport.close)
    await asyncio.to_thread(recv_all, peer)
    await protocol.lost()
    assert protocol.seen["connection_lost"] == ["maker"]


async def test_connections_of_a_server_see_the_context_of_create_server(loop, sockets):
    made = Factory(noting(Recorder))

    async def serve():
        request.set("server")
        return await loop.create_server(made, "127.0.0.1", 0)

    server = await asyncio.create_task(serve())
    client = sockets.enter_context(socket.create_connection(server.sockets[0].getsockname(), 10))
    client.send(b"hello")
    protocol = await made.nth()
    await protocol.receives(5)
    client.close()
    await protocol.lost()
    server.close()
    assert protocol.seen == {
        name: ["server"] for name in ("connection_made", "data_received", "eof_received", "connection_lost")
    }


async def test_what_one_connection_sets_is_not_seen_by_another(serve):
    class Setting(Recorder):
        def data_received(self, data):
            self.before = request.get()
            request.set(data.decode())
            super().data_received(data)

    served = await serve(Setting)
    for number in range(1, 4):
        client = served.connect()
        protocol = await served.made.nth(number)
        client.send(b"%d" % number)
        await protocol.receives(1)
        assert protocol.before == "nobody"
    assert request.get() == "nobody"


async def test_what_a_callback_sets_is_not_seen_by_the_caller(loop, attach):
    class Setting(Recorder):
        def connection_made(self, transport):
            request.set("protocol")
            super().connection_made(transport)

    await attach(Setting)
    assert request.get() == "nobody"


async def test_tasks_started_by_a_callback_inherit_the_context_of_the_connection(attach):
    class Starting(Recorder):
        def data_received(self, data):
            self.task = asyncio.create_task(self.work())
            super().data_received(data)

        async def work(self):
            return request.get()

    async def make():
        request.set("maker")
        return await attach(Starting)

    _, protocol, peer = await asyncio.create_task(make())
    peer.send(b"hello")
    await protocol.receives(5)
    assert await protocol.task == "maker"


async def test_server_started_later_serves_in_the_context_that_this_python_says(loop, serve):
    async def make():
        request.set("maker")
        return await serve(noting(Recorder), start_serving=False)

    async def start(served):
        request.set("starter")
        await served.server.start_serving()

    served = await asyncio.create_task(make())
    await asyncio.create_task(start(served))
    served.connect()
    protocol = await served.made.nth()
    assert protocol.seen["connection_made"] == ["maker" if sys.version_info >= (3, 15) else "starter"]
