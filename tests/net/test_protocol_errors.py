"""A protocol that raises loses its own connection, is reported once, and disturbs nobody else."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.loops import run
from tests.net.peers import (
    BufferedRecorder,
    Echo,
    Recorder,
    overriding,
    raiser,
    recv_all,
    recv_exactly,
    reset,
    settle,
    tcp_pair,
)

CALLBACKS = [
    (Recorder, "data_received"),
    (Recorder, "eof_received"),
    (BufferedRecorder, "get_buffer"),
    (BufferedRecorder, "buffer_updated"),
    (BufferedRecorder, "eof_received"),
]


class Unusual(BaseException):
    pass


ordinary_errors = pytest.mark.parametrize(
    "kind", [ZeroDivisionError, Unusual, asyncio.CancelledError, GeneratorExit, asyncio.InvalidStateError]
)


def provoke(peer, callback):
    if callback == "eof_received":
        peer.shutdown(1)
    else:
        peer.send(b"provocation")


async def still_works(neighbour):
    neighbour.peer.send(b"hello")
    assert await asyncio.to_thread(recv_exactly, neighbour.peer, 5) == b"hello"


@ordinary_errors
@pytest.mark.parametrize(("base", "callback"), CALLBACKS)
async def test_callback_that_raises_costs_its_connection_and_is_reported_once(attach, errors, base, callback, kind):
    neighbour = await attach(Echo)
    transport, protocol, peer = await attach(overriding(base, **{callback: raiser(kind)}))
    provoke(peer, callback)
    exc = await protocol.lost()
    assert type(exc) is kind
    assert transport.is_closing()
    with contextlib.suppress(ConnectionResetError):  # what get_buffer had no place for makes the kernel reset
        assert await asyncio.to_thread(recv_all, peer) == b""
    await settle()
    assert protocol.log.count("lost") == 1
    (context,) = errors
    assert context == {
        "message": f"Fatal error: protocol.{callback}() call failed.",
        "exception": exc,
        "transport": transport,
        "protocol": protocol,
    }
    await still_works(neighbour)


@pytest.mark.parametrize(("base", "callback"), CALLBACKS)
async def test_what_was_written_before_the_error_is_dropped_with_the_connection(attach, errors, base, callback):
    transport, protocol, peer = await attach(overriding(base, **{callback: raiser(ZeroDivisionError)}))
    transport.write(bytes(20_000_000))
    provoke(peer, callback)
    assert isinstance(await protocol.lost(), ZeroDivisionError)
    assert transport.get_write_buffer_size() == 0
    assert len(errors) == 1


async def test_os_error_of_a_protocol_costs_its_connection_too(attach, errors):
    neighbour = await attach(Echo)
    _, protocol, peer = await attach(overriding(Recorder, data_received=raiser(FileNotFoundError)))
    peer.send(b"provocation")
    assert isinstance(await protocol.lost(), FileNotFoundError)
    await still_works(neighbour)


@ordinary_errors
async def test_connection_lost_that_raises_is_reported_once_and_keeps_nothing_open(attach, errors, kind):
    neighbour = await attach(Echo)
    transport, protocol, peer = await attach(overriding(Recorder, connection_lost=raiser(kind)))
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == b""
    await settle()
    assert protocol.log == ["made", "lost"]
    assert [type(context["exception"]) for context in errors] == [kind]
    assert "connection_lost" in errors[0]["message"]
    await still_works(neighbour)


async def test_connection_made_that_raises_is_reported_once(loop, serve, errors):
    served = await serve(overriding(Echo, connection_made=raiser(ZeroDivisionError)))
    served.connect()
    await served.made.nth()
    await settle()
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError]
    served.connect()
    assert (await served.made.nth(2)).log == ["made"]


@ordinary_errors
@pytest.mark.asyncio_wrong("leaves the connection open with a protocol that was never set up")
async def test_connection_made_that_raises_costs_its_connection(serve, errors, kind):
    served = await serve(overriding(Echo, connection_made=raiser(kind)))
    client = served.connect()
    assert await asyncio.to_thread(recv_all, client) == b""
    protocol = await served.made.nth()
    assert type(await protocol.lost()) is kind
    (context,) = errors
    assert type(context["exception"]) is kind
    assert context["transport"] is protocol.transport
    assert context["protocol"] is protocol


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    ("base", "callback"), [*CALLBACKS, (Recorder, "connection_made"), (Recorder, "connection_lost")]
)
def test_interrupts_leave_the_loop_and_it_can_be_run_again(loop, sockets, base, callback, interrupt):
    """The neighbour is served afterwards, and nothing is reported: the interrupt went to the caller."""
    near, far = tcp_pair()
    other_near, other_far = tcp_pair()
    sockets.enter_context(far)
    sockets.enter_context(other_far)
    neighbour, _ = run(loop, loop.create_connection(Echo, sock=other_near))
    raised = []

    def interrupt_once(protocol):
        if not raised:
            raised.append(protocol)
            raise interrupt

    async def main():
        transport, _ = await loop.create_connection(overriding(base, **{callback: interrupt_once}), sock=near)
        if callback == "connection_lost":
            transport.close()
        provoke(far, callback)
        await loop.create_future()

    task = loop.create_task(main())
    with pytest.raises(interrupt):
        loop.run_forever()
    (protocol,) = raised
    task.cancel()
    other_far.send(b"hello")
    run(loop, settle())
    assert recv_exactly(other_far, 5) == b"hello"
    protocol.transport.abort()
    neighbour.abort()
    run(loop, settle())
    assert protocol.log.count("lost") == 1


def test_data_behind_an_interrupted_delivery_is_still_delivered(loop, sockets):
    near, far = tcp_pair()
    sockets.enter_context(far)

    class Interrupted(Recorder):
        def data_received(self, data):
            super().data_received(data)
            if data == b"stop":
                raise KeyboardInterrupt

    transport, protocol = run(loop, loop.create_connection(Interrupted, sock=near))
    far.send(b"stop")
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    far.send(b"go on")
    run(loop, protocol.receives(9))
    assert protocol.story == ["made", "data"]
    transport.abort()
    run(loop, settle())


@pytest.mark.asyncio_wrong("a failing write drops what is still to be read")
def test_connection_lost_is_told_although_the_last_delivery_was_interrupted(loop, sockets):
    near, far = tcp_pair()
    special = overriding(Recorder, data_received=raiser(KeyboardInterrupt))
    transport, protocol = run(loop, loop.create_connection(special, sock=near))

    def write_into_a_reset_connection():
        far.send(b"last words")
        reset(far)
        transport.write(bytes(1_000_000))  # fails before the data is read

    loop.call_soon(write_into_a_reset_connection)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    run(loop, protocol.lost())
    run(loop, settle())
    assert protocol.log == ["made", "data", "lost"]
