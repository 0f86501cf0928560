"""The moment a connection ends, and what belongs to whom by then."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket

import pytest

from tests.loops import on_kqueue, run
from tests.net.peers import (
    BufferedRecorder,
    Recorder,
    nonblocking_pair,
    overriding,
    recv_exactly,
    reset,
    settle,
    tcp_pair,
    turns,
    waiting,
)

ENDINGS = {
    "write": lambda transport: transport.write(b"secret"),
    "write much": lambda transport: transport.write(bytearray(200_000)),
    "write_eof": lambda transport: transport.write_eof(),
    "close": lambda transport: transport.close(),
    "abort": lambda transport: transport.abort(),
    "write and close": lambda transport: (transport.write(b"secret"), transport.close()),
    "write and abort": lambda transport: (transport.write(b"secret"), transport.abort()),
}


@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
@pytest.mark.parametrize("end", ["close", "abort"])
async def test_a_connection_closed_after_a_write_has_failed_delivers_nothing_more(loop, attach, kind, end):
    transport, protocol, peer = await attach(kind)
    transport.pause_reading()
    peer.send(b"unread")
    reset(peer)
    await settle()
    transport.resume_reading()
    transport.pause_reading()  # so that only the write can find out
    transport.write(b"x" * 100_000)
    getattr(transport, end)()
    await protocol.lost()
    assert protocol.log == ["made", "lost"]


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(name, marks=pytest.mark.asyncio_wrong("it raises EBADF")) if name == "write_eof" else name
        for name in ENDINGS
    ],
)
async def test_a_socket_that_its_owner_closes_takes_no_stranger_along(loop, action):
    """The number is given out again at once; neither the transport's bytes nor its end may reach the new owner."""
    near, far = nonblocking_pair()
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    number = near.fileno()
    near.close()
    stranger, its_peer = socket.socketpair()
    with far, stranger, its_peer:
        if stranger.fileno() != number:
            os.dup2(stranger.fileno(), number)
        ENDINGS[action](transport)
        await settle()
        transport.abort()
        await protocol.lost()
        assert waiting(its_peer) == []
        os.fstat(number)
        stranger.send(b"still open")
        assert recv_exactly(its_peer, 10) == b"still open"
        if stranger.fileno() != number:
            os.close(number)
    assert protocol.log.count("lost") == 1


async def test_a_socket_that_its_owner_closes_does_not_read_what_is_a_strangers(loop):
    near, far = nonblocking_pair()
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    number = near.fileno()
    with far, near.dup():
        near.close()
        stranger, its_peer = socket.socketpair()
        with stranger, its_peer:
            if stranger.fileno() != number:
                os.dup2(stranger.fileno(), number)
            its_peer.send(b"for the stranger")
            far.send(b"for us, by the duplicate")
            await settle()
            transport.abort()
            await protocol.lost()
            assert protocol.data == b""
            assert recv_exactly(stranger, 16) == b"for the stranger"
            if stranger.fileno() != number:
                os.close(number)


@pytest.mark.parametrize(
    "kind", ["socket", pytest.param("file", marks=pytest.mark.asyncio_wrong("resume_reading raises EPERM"))]
)
async def test_a_paused_transport_whose_socket_its_owner_has_closed_ends_when_it_resumes(loop, kind, tmp_path):
    near, far = nonblocking_pair()
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    number = near.fileno()
    transport.pause_reading()
    far.send(b"unread")
    await settle()
    stranger, its_peer = nonblocking_pair()
    with far, stranger, its_peer, open(tmp_path / "file", "wb") as file:
        near.close()
        os.dup2(stranger.fileno() if kind == "socket" else file.fileno(), number)
        its_peer.send(b"for the stranger")
        transport.resume_reading()
        assert isinstance(await protocol.lost(), OSError)
        await settle()
        assert protocol.log == ["made", "lost"]
        assert stranger.recv(100) == b"for the stranger"
        os.close(number)


@pytest.mark.asyncio_wrong("it writes to the number")
async def test_a_pipe_that_its_owner_closes_takes_no_stranger_along(loop):
    read_end, write_end = os.pipe()
    other_read, other_write = os.pipe()
    pipe = os.fdopen(write_end, "wb", 0)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, pipe)
    pipe.close()
    os.dup2(other_write, write_end)
    transport.write(b"secret")
    await settle()
    transport.abort()
    await settle()
    os.fstat(write_end)
    for number in (write_end, other_write):
        os.close(number)
    assert os.read(other_read, 100) == b""
    for number in (read_end, other_read):
        os.close(number)


@pytest.mark.asyncio_wrong("b''.join() refuses what has gaps")
async def test_buffers_of_every_shape_go_into_a_pipe_together(loop):
    read_end, write_end = os.pipe()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write_end, "wb", 0))
    wide = memoryview(bytes(range(8))).cast("I")
    transport.writelines(part for part in (memoryview(b"abcdef")[::2], b"", bytearray(b"x"), wide))
    transport.close()
    await settle()
    assert os.read(read_end, 100) == b"acex" + bytes(range(8))
    os.close(read_end)


@pytest.mark.asyncio_wrong("it refuses buffers with gaps")
async def test_a_buffer_with_gaps_is_sent_as_one_datagram(loop, sockets):
    near, far = (sockets.enter_context(sock) for sock in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    near.setblocking(False)
    with near, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            assert await loop.sock_sendto(sender, memoryview(b"abcdef")[::2], receiver.getsockname()) == 3
        receiver.settimeout(10)
        assert receiver.recv(10) == b"ace"


CALLS = {
    "write": lambda transport, choices: transport.write(choices.randbytes(choices.randint(0, 2000))),
    "much": lambda transport, choices: transport.write(bytearray(choices.randint(60_000, 900_000))),
    "lines": lambda transport, choices: transport.writelines([bytes(choices.randint(0, 300)) for _ in range(4)]),
    "close": lambda transport, choices: transport.close(),
    "abort": lambda transport, choices: transport.abort(),
    "eof": lambda transport, choices: transport.can_write_eof() and transport.write_eof(),
    "pause": lambda transport, choices: transport.pause_reading(),
    "resume": lambda transport, choices: transport.resume_reading(),
    "limits": lambda transport, choices: transport.set_write_buffer_limits(choices.choice([0, 1, 70_000, 10**6])),
}


@pytest.mark.asyncio_wrong("connection_lost comes twice, or an assertion of its own fails")
def test_whatever_is_called_from_whatever_callback_the_connection_ends_once(loop):
    for seed in range(150):
        run(loop, ending_once(loop, random.Random(seed)))


async def ending_once(loop, choices):
    calls = []

    def act(protocol):
        for name in choices.choices(list(CALLS), k=choices.randint(0, 2)):
            calls.append(name)
            with contextlib.suppress(RuntimeError):  # writing after write_eof
                CALLS[name](protocol.transport, choices)

    names = ["connection_made", "eof_received", "connection_lost", "pause_writing", "resume_writing"]
    base, delivery = choices.choice([(Recorder, "data_received"), (BufferedRecorder, "buffer_updated")])
    protocol = overriding(base, **dict.fromkeys([*names, delivery], act))()
    protocol.keep_open = choices.random() < 0.5
    near, far = tcp_pair() if choices.random() < 0.6 else nonblocking_pair()
    far.setblocking(False)
    transport, _ = await loop.create_connection(lambda: protocol, sock=near)
    ours = [lambda: act(protocol), lambda: None]
    peers = [
        lambda: far.send(bytes(choices.randint(1, 3000))),
        lambda: far.send(bytes(300_000)),
        lambda: far.recv(1 << 20),
        lambda: far.shutdown(choices.choice([socket.SHUT_RD, socket.SHUT_WR])),
        far.close,
        lambda: reset(far) if far.fileno() >= 0 and far.family != socket.AF_UNIX else None,
    ]
    for _ in range(choices.randint(1, 12)):
        try:
            choices.choice(ours + peers)()
        except OSError:
            pass
        await turns(choices.randint(0, 2))
    far.close()
    await turns(5)
    transport.abort()
    ended = len(protocol.log)
    await turns(5)
    assert protocol.log[0] == "made"
    assert protocol.log.count("made") == protocol.log.count("lost") == 1
    assert "data" not in protocol.log[ended:], calls
    assert near.fileno() == -1


@pytest.mark.asyncio_wrong("it calls buffer_updated of the protocol that has not given the buffer")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_a_protocol_that_hands_over_in_get_buffer_receives_nothing_more(loop, attach, kind):
    heir = Recorder()

    class Handing(BufferedRecorder):
        def get_buffer(self, sizehint):
            self.transport.set_protocol(heir)
            return super().get_buffer(sizehint)

    transport, protocol, peer = await attach(Handing, kind=kind)
    peer.send(b"for the heir")
    assert await heir.receives(12) == b"for the heir"
    assert protocol.log == ["made"]
    transport.close()
    await heir.lost()


@pytest.mark.skipif(on_kqueue, reason="kqueue forgets what is closed, and cannot tell")
@pytest.mark.asyncio_wrong("it closes the number, whosever it is")
async def test_a_number_closed_under_a_transport_and_given_out_again_stays_its_new_owners(loop, attach):
    transport, protocol, _ = await attach()
    await settle()  # it is watched
    number = transport.get_extra_info("socket").fileno()
    near, far = nonblocking_pair()
    with near, far:
        os.dup2(near.fileno(), number)
        transport.abort()
        assert isinstance(await protocol.lost(), OSError | None)
        os.write(number, b"alive")
        assert far.recv(5) == b"alive"
        os.close(number)
