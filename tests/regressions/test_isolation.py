"""Contexts that must not leak, and transports that outlive their loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os

import pytest

from tests.net.peers import DatagramRecorder, Recorder, nonblocking_pair, settle

who = contextvars.ContextVar("who")


async def as_somebody_else(loop, function):
    async def act():
        who.set("a request")
        function()

    await loop.create_task(act())


class Witness(Recorder):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def note(self, event):
        self.seen.add((event, who.get()))
        super().note(event)


@pytest.mark.asyncio_wrong("callbacks run in the context of whoever called last")
async def test_pipes_do_not_lend_their_callers_context(loop):
    who.set("the maker")
    read_end, write_end = os.pipe()
    reader, reading = await loop.connect_read_pipe(Witness, os.fdopen(read_end, "rb", 0))
    writer, writing = await loop.connect_write_pipe(Witness, os.fdopen(write_end, "wb", 0))
    reader.pause_reading()
    writer.write(b"data")
    await settle()
    await as_somebody_else(loop, reader.resume_reading)
    await reading.receives(4)
    await as_somebody_else(loop, writer.close)
    await reading.lost()
    await writing.lost()
    assert {name for _, name in reading.seen | writing.seen} == {"the maker"}


@pytest.mark.asyncio_wrong("callbacks run in the context of whoever called last")
async def test_children_do_not_lend_their_callers_context(loop):
    seen = set()
    ended = loop.create_future()

    class Child(asyncio.SubprocessProtocol):
        def pipe_data_received(self, fd, data):
            seen.add(("data", who.get()))

        def pipe_connection_lost(self, fd, exc):
            seen.add(("pipe lost", who.get()))

        def process_exited(self):
            seen.add(("exited", who.get()))

        def connection_lost(self, exc):
            seen.add(("lost", who.get()))
            ended.set_result(None)

    who.set("the maker")
    transport, _ = await loop.subprocess_exec(Child, "cat")

    def write_and_close():
        transport.get_pipe_transport(0).write(b"data")
        transport.get_pipe_transport(0).close()

    await as_somebody_else(loop, write_and_close)
    await ended
    transport.close()
    assert seen == {(event, "the maker") for event in ("data", "pipe lost", "exited", "lost")}


@pytest.mark.asyncio_wrong("callbacks run in the context of whoever called last")
async def test_datagram_endpoints_do_not_lend_their_callers_context(loop, datagrams):
    class Endpoint(Witness, DatagramRecorder):
        pass

    who.set("the maker")
    transport, protocol = await datagrams(Endpoint)
    address = transport.get_extra_info("sockname")
    await as_somebody_else(loop, lambda: transport.sendto(b"to itself", address))
    await protocol.gets(1)
    await as_somebody_else(loop, transport.close)
    await protocol.lost()
    assert {name for _, name in protocol.seen} == {"the maker"}


ARGUMENTS = {
    "write": (b"x",),
    "writelines": ([b"x"],),
    "sendto": (b"x", ("127.0.0.1", 9)),
    "pause_reading": (),
    "resume_reading": (),
    "set_write_buffer_limits": (1,),
    "get_write_buffer_size": (),
    "write_eof": (),
    "get_extra_info": ("socket",),
    "get_protocol": (),
    "is_closing": (),
    "is_reading": (),
    "is_serving": (),
    "get_pipe_transport": (1,),
    "kill": (),
    "__repr__": (),
    "close": (),
    "abort": (),
}


async def make(loop, kind):
    if kind == "stream":
        near, far = nonblocking_pair()
        return (await loop.create_connection(asyncio.Protocol, sock=near))[0], far.close
    if kind == "server":
        return await loop.create_server(asyncio.Protocol, "127.0.0.1", 0), int
    if kind == "datagram":
        return (await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)))[0], int
    if kind == "child":
        return (await loop.subprocess_exec(asyncio.SubprocessProtocol, "sleep", "60"))[0], int
    read_end, write_end = os.pipe()
    if kind == "read pipe":
        pipe = await loop.connect_read_pipe(asyncio.Protocol, os.fdopen(read_end, "rb", 0))
        return pipe[0], lambda: os.close(write_end)
    pipe = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write_end, "wb", 0))
    return pipe[0], lambda: os.close(read_end)


STAYS_OPEN = pytest.mark.asyncio_wrong("it stays open, and warns")


@pytest.mark.parametrize(
    "kind",
    [
        "server",
        *(pytest.param(kind, marks=STAYS_OPEN) for kind in ("stream", "datagram", "child", "read pipe", "write pipe")),
    ],
)
def test_whatever_outlives_its_loop_raises_at_most_an_exception_and_leaves_nothing(loop, kind):
    thing, close_peer = loop.run_until_complete(make(loop, kind))
    loop.close()
    for name, arguments in [*ARGUMENTS.items(), ("close", ())]:
        if hasattr(thing, name):
            with contextlib.suppress(RuntimeError, NotImplementedError, ProcessLookupError):
                getattr(thing, name)(*arguments)
    close_peer()
