"""Protocols under TLS that raise, or use their transport, in every callback; and the context in which they run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import socket
import ssl
from typing import Any

import pytest

from tests.loops import run
from tests.net.peers import BufferedRecorder, Recorder, overriding, pattern, raiser, settle, tcp_pair
from tests.tls.far import Far, client_context, server_context

CALLBACKS = {
    Recorder: [
        "connection_made",
        "data_received",
        "eof_received",
        "connection_lost",
        "pause_writing",
        "resume_writing",
    ],
    BufferedRecorder: ["get_buffer", "buffer_updated"],
}
CASES = [pytest.param(kind, name, id=name) for kind, names in CALLBACKS.items() for name in names]
BIG = 2_000_000  # bytes; more than the kernel takes, with its buffer limited


def limit(transport: Any) -> None:
    with contextlib.suppress(OSError, AttributeError):  # it may have ended already
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)


async def exercise(transport: Any, far: Far) -> None:
    """Make each callback happen, as long as the connection lasts."""
    with far.sock, contextlib.suppress(OSError, EOFError):
        limit(transport)
        await far.send(b"data")
        await settle()
        transport.write(bytes(BIG))
        await far.receive(BIG)
        await settle()
        while transport.get_write_buffer_size():
            await far.read(1 << 16)
        with contextlib.suppress(ssl.SSLWantReadError):
            while far.ssl.read(1 << 16):
                pass
        await far.goodbye()
        await far.read_all()


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.asyncio_wrong("it is reported, and the connection goes on")
async def test_a_callback_that_raises_ends_its_connection_only(loop, secure, errors, kind, name):
    _, bystander, other = await secure()
    transport, protocol, far = await secure(overriding(kind, **{name: raiser(ZeroDivisionError)}))
    await exercise(transport, far)
    exc = await protocol.lost()
    assert [type(error["exception"]) for error in errors] == [ZeroDivisionError]
    assert name in errors[0]["message"] or name == "connection_lost"
    ends = name not in ("connection_lost", "pause_writing", "resume_writing")
    assert isinstance(exc, ZeroDivisionError) if ends else exc is None
    await other.send(b"alive")
    assert await bystander.receives(5) == b"alive"


class Interrupted(KeyboardInterrupt):
    pass


@pytest.mark.parametrize("kind_name", [(kind, name) for kind, names in CALLBACKS.items() for name in names], ids=str)
@pytest.mark.epoque_only("asyncio loses what was received, or the end of the connection")
def test_an_interrupt_leaves_the_loop_and_loses_nothing(loop, kind_name):
    kind, name = kind_name
    raised = []

    def interrupt(protocol: Any) -> None:
        if not raised:
            raised.append(name)
            raise Interrupted

    sock, other = tcp_pair()
    protocol = overriding(kind, **{name: interrupt})()

    async def main() -> None:
        far = Far(other, server_context(), server_side=True)
        shaking = asyncio.ensure_future(far.handshake())
        await loop.create_connection(lambda: protocol, sock=sock, ssl=client_context(), server_hostname="localhost")
        await shaking
        await far.send(b"data")
        await protocol.receives(4)
        limit(protocol.transport)
        loop.call_soon(protocol.transport.write, bytes(BIG))  # pause_writing is called from there
        assert len(await far.receive(BIG)) == BIG
        await far.goodbye()
        assert (await far.read_all(), far.end) == (b"", "close_notify")
        await protocol.lost()

    task = loop.create_task(main())
    interrupts = 0
    while not task.done():
        try:
            run(loop, asyncio.wait([task]), 10)
        except Interrupted:
            interrupts += 1
    other.close()
    task.result()
    assert interrupts == 1
    assert protocol.data == b"data"
    assert [event for event in protocol.story if event not in ("pause", "resume")] == ["made", "data", "eof", "lost"]


ACTIONS = {
    "close": lambda protocol: protocol.transport.close(),
    "abort": lambda protocol: protocol.transport.abort(),
    "pause": lambda protocol: pause(protocol.transport),
    "pause and resume": lambda protocol: (protocol.transport.pause_reading(), protocol.transport.resume_reading()),
    "write": lambda protocol: protocol.transport.write(b"written"),
    "write much": lambda protocol: protocol.transport.write(bytes(2_000_000)),
    "write and close": lambda protocol: (protocol.transport.write(b"written"), protocol.transport.close()),
    "write and abort": lambda protocol: (protocol.transport.write(b"written"), protocol.transport.abort()),
    "limits": lambda protocol: protocol.transport.set_write_buffer_limits(0),
    "hand over": lambda protocol: hand_over(protocol),
}


class Heir(Recorder):
    def __init__(self, first: Any) -> None:
        super().__init__()
        self.note = first.note
        self.data = first.data
        self.lost_with = first.lost_with
        self.transport = first.transport


def pause(transport: Any) -> None:
    transport.pause_reading()
    asyncio.get_running_loop().call_later(0.01, transport.resume_reading)


def hand_over(protocol: Any) -> None:
    if protocol.transport.get_protocol() is protocol:
        protocol.heir = Heir(protocol)
        protocol.transport.set_protocol(protocol.heir)


@pytest.mark.asyncio_wrong("data and end are told after close(); pause_writing comes late, or after connection_lost")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("kind", "name"), CASES)
async def test_a_callback_that_uses_its_transport(loop, secure, kind, name, action):
    acted = []

    def act(protocol: Any) -> None:
        if not acted:
            acted.append(action)
            ACTIONS[action](protocol)

    transport, protocol, far = await secure(overriding(kind, **{name: act}))
    await exercise(transport, far)
    await protocol.lost()
    assert acted
    assert protocol.log.count("lost") == 1
    assert protocol.log[-1] == "lost"
    if action in ("close", "abort") and name in ("connection_made", "data_received", "get_buffer", "buffer_updated"):
        assert protocol.story in (["made", "lost"], ["made", "data", "lost"])
    elif action in ("write", "write much", "pause", "limits", "hand over"):
        assert [event for event in protocol.story if event in ("made", "data", "eof")] == ["made", "data", "eof"]


@pytest.mark.asyncio_wrong("pause_writing comes late or not at all")
@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
async def test_a_connection_has_one_context(loop, secure, kind):
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: list[tuple[str, str]] = []

    def look(name: str) -> Any:
        def see(protocol: Any) -> None:
            seen.append((name, variable.get()))

        return see

    names = [*CALLBACKS[kind], *({*CALLBACKS[Recorder]} - {"data_received"} - {*CALLBACKS[kind]})]
    variable.set("ours")
    transport, protocol, far = await secure(overriding(kind, **{name: look(name) for name in names}))
    variable.set("of somebody who uses the transport")
    exercising = asyncio.ensure_future(exercise(transport, far))
    await settle()
    transport.pause_reading()
    await settle()
    transport.resume_reading()
    await exercising
    await protocol.lost()
    assert {name for name, _ in seen} == set(names)
    assert {value for name, value in seen if name != "pause_writing"} == {"ours"}


async def test_what_one_callback_sets_the_next_one_sees(secure):
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen = []
    transport, protocol, far = await secure(
        overriding(
            Recorder,
            connection_made=lambda _: variable.set("set in connection_made") and None,
            data_received=lambda _: seen.append(variable.get()),
            eof_received=lambda _: seen.append(variable.get()),
            connection_lost=lambda _: seen.append(variable.get()),
        )
    )
    await exercise(transport, far)
    await protocol.lost()
    assert set(seen) == {"set in connection_made"}
    assert variable.get() == "none"


@pytest.mark.parametrize("wrong", [b"", b"read only", None, 3, memoryview(bytearray(100))[::2]], ids=str)
@pytest.mark.asyncio_wrong("an exception of the ssl module ends the connection, or nothing does")
async def test_get_buffer_returns_nonsense(secure, errors, wrong):
    class Wrong(BufferedRecorder):
        def get_buffer(self, sizehint: int) -> Any:
            return wrong

    transport, protocol, far = await secure(Wrong)
    await far.send(b"data")
    assert await protocol.lost() is not None
    assert len(errors) == 1


@pytest.mark.asyncio_wrong("what does not fit is delivered out of order")
async def test_a_small_buffer_gets_everything(secure):
    transport, protocol, far = await secure(lambda: BufferedRecorder(7))
    await far.send(pattern(50_000))
    assert await protocol.receives(50_000) == pattern(50_000)
