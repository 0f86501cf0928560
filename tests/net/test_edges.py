"""What was ready and has not been used up is delivered later, though the kernel may tell of it only once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import time

import pytest

from tests.net.peers import (
    LIMIT,
    BufferedRecorder,
    Recorder,
    overriding,
    pattern,
    recv_exactly,
    settle,
    started,
    tcp_pair,
)

both_kinds = pytest.mark.parametrize("kind", ["tcp", "unix"])


def drained(sock):
    """What a plain socket can receive by now."""
    received, limit = bytearray(), sock.gettimeout()
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            received += sock.recv(1_000_000)
    sock.settimeout(limit)
    return received


@both_kinds
async def test_a_buffer_smaller_than_what_has_arrived_is_filled_again(attach, kind):
    transport, protocol, peer = await attach(lambda: BufferedRecorder(10), kind=kind)
    peer.sendall(pattern(1000))
    assert await protocol.receives(1000) == pattern(1000)


@both_kinds
async def test_a_buffer_that_is_filled_exactly_and_then_the_end(attach, kind):
    transport, protocol, peer = await attach(lambda: BufferedRecorder(100), kind=kind)
    transport.pause_reading()
    peer.sendall(pattern(100))
    peer.close()
    transport.resume_reading()
    assert await protocol.lost() is None
    assert (bytes(protocol.data), protocol.story) == (pattern(100), ["made", "data", "eof", "lost"])


@both_kinds
async def test_a_buffer_of_items_larger_than_a_byte(attach, kind):
    class Wide(BufferedRecorder):
        def get_buffer(self, sizehint):
            return memoryview(self.buffer).cast("I")

    transport, protocol, peer = await attach(lambda: Wide(16), kind=kind)
    peer.sendall(pattern(1000))
    assert await protocol.receives(1000) == pattern(1000)


@both_kinds
async def test_a_buffer_that_says_it_is_larger_than_it_is(attach, kind):
    class Lying(bytearray):
        def __len__(self):
            return 65_536

    class Deceived(BufferedRecorder):
        def get_buffer(self, sizehint):
            self.buffer = Lying(10)
            return self.buffer

    transport, protocol, peer = await attach(Deceived, kind=kind)
    peer.sendall(pattern(1000))
    assert await protocol.receives(1000) == pattern(1000)


@both_kinds
async def test_get_buffer_that_pauses_leaves_the_data_for_later(attach, kind):
    class Hesitant(BufferedRecorder):
        def get_buffer(self, sizehint):
            if not self.hints:
                self.transport.pause_reading()
                self.note("hesitates")
            return super().get_buffer(sizehint)

    transport, protocol, peer = await attach(Hesitant, kind=kind)
    peer.sendall(b"hello")
    await protocol.reaches("hesitates")
    transport.resume_reading()
    assert await protocol.receives(5) == b"hello"


@both_kinds
def test_an_exception_that_leaves_the_loop_leaves_the_rest_for_the_next_run(loop, sockets, kind):
    sock, peer = tcp_pair() if kind == "tcp" else socket.socketpair()
    sockets.callback(peer.close)
    sock.setblocking(False)
    data = pattern(100_000)

    class Interrupted(BufferedRecorder):
        def get_buffer(self, sizehint):
            if len(self.hints) == 3:
                self.hints.append(sizehint)
                raise KeyboardInterrupt
            return super().get_buffer(sizehint)

    transport, protocol = loop.run_until_complete(loop.create_connection(Interrupted, sock=sock))
    peer.sendall(data)
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(protocol.receives(len(data)))
    assert loop.run_until_complete(protocol.receives(len(data))) == data
    transport.abort()
    loop.run_until_complete(protocol.lost())


@both_kinds
def test_an_exception_after_a_turn_inside_the_callback_leaves_the_rest_for_the_next_run(loop, sockets, kind):
    near, peer = tcp_pair() if kind == "tcp" else socket.socketpair()
    sockets.callback(peer.close)
    near.setblocking(False)

    class Nested(Recorder):
        def data_received(self, data):
            super().data_received(data)
            time.sleep(0.001)  # so that the turn looks at its descriptors
            loop.call_soon(int)
            loop._run_once()
            raise KeyboardInterrupt

    transport, protocol = loop.run_until_complete(loop.create_connection(Nested, sock=near))
    output = pattern(4_000_000)
    transport.set_write_buffer_limits(2 * len(output))  # or resume_writing could come within data_received
    transport.write(output)
    loop.run_until_complete(settle())
    received = drained(peer)
    peer.sendall(b"now it can be read and written at once")
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(asyncio.sleep(LIMIT))
    received += loop.run_until_complete(asyncio.to_thread(recv_exactly, peer, len(output) - len(received)))
    assert received == output
    transport.abort()
    loop.run_until_complete(protocol.lost())


async def test_data_and_the_end_that_come_together_when_the_data_pause(attach):
    transport, protocol, peer = await attach(
        overriding(Recorder, data_received=lambda protocol: protocol.transport.pause_reading())
    )
    peer.sendall(b"last words")
    peer.close()
    await protocol.reaches("data")
    await settle()
    assert protocol.story == ["made", "data"]
    transport.resume_reading()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]


@both_kinds
async def test_what_comes_while_only_writing_is_wanted_is_delivered_afterwards(attach, kind):
    transport, protocol, peer = await attach(kind=kind)
    output = pattern(32_000_000)  # more than the kernel takes, twice
    transport.write(output)
    await settle()
    transport.pause_reading()
    peer.sendall(b"hello")
    received = drained(peer)  # now it can be read and written at once
    await settle()
    transport.resume_reading()
    assert await protocol.receives(5) == b"hello"
    received += await asyncio.to_thread(recv_exactly, peer, len(output) - len(received))
    assert received == output


async def test_a_file_that_shrinks_while_there_is_room_for_more_of_it(attach, make_file):
    transport, protocol, peer = await attach()
    file = make_file(8_000_000)
    loop = asyncio.get_running_loop()
    sending = await started(loop, transport, file)
    await settle()
    passed = len(drained(peer))
    os.truncate(file.name, passed + 50_000)
    assert await sending == passed + 50_000


async def test_urgent_data_do_not_hold_back_what_comes_behind_them(attach):
    transport, protocol, peer = await attach()
    transport.pause_reading()
    peer.sendall(b"before")
    peer.send(b"!", socket.MSG_OOB)
    peer.sendall(b"behind")
    await settle()
    transport.resume_reading()
    assert await protocol.receives(12) == b"beforebehind"


async def test_urgent_data_that_come_while_nothing_is_paused(attach):
    transport, protocol, peer = await attach()
    for number in range(1, 20):
        peer.sendall(b"before")
        peer.send(b"!", socket.MSG_OOB)
        peer.sendall(b"behind")
        assert await protocol.receives(12 * number) == b"beforebehind" * number


@pytest.mark.skipif(not hasattr(socket, "send_fds"), reason="no socket.send_fds()")
async def test_descriptors_that_are_passed_along_do_not_hold_back_what_comes_behind_them(attach):
    transport, protocol, peer = await attach(kind="unix")
    transport.pause_reading()
    socket.send_fds(peer, [b"before"], [peer.fileno()])
    peer.sendall(b"behind")
    await settle()
    transport.resume_reading()
    assert await protocol.receives(12) == b"beforebehind"


class Moody(BufferedRecorder):
    """Has a buffer of another size each time, and pauses at times, before data come or after."""

    def __init__(self, chance):
        super().__init__()
        self.chance = chance

    def may_pause(self, event):
        if self.chance.random() < 0.1:
            self.transport.pause_reading()
            self.note(event)

    def get_buffer(self, sizehint):
        self.may_pause("hesitates")
        self.buffer = bytearray(self.chance.choice((1, 100, 5000, 300_000)))
        return self.buffer

    def buffer_updated(self, nbytes):
        super().buffer_updated(nbytes)
        self.may_pause("has enough")


class Streaming(Recorder):
    """Hands on what it gets to another one's record."""

    def __init__(self, moody):
        super().__init__()
        self.moody = moody

    def data_received(self, data):
        self.moody.data += data
        self.moody.note("data")
        self.moody.may_pause("has enough")

    def eof_received(self):
        return self.moody.eof_received()

    def connection_lost(self, exc):
        self.moody.connection_lost(exc)


@both_kinds
@pytest.mark.parametrize("seed", range(30))
async def test_all_that_was_sent_is_delivered_whatever_happens_meanwhile(attach, kind, seed):
    chance = random.Random(seed)
    transport, protocol, peer = await attach(lambda: Moody(chance), kind=kind)
    peer.setblocking(False)
    sent = bytearray()
    for _ in range(chance.randrange(5, 60)):
        action = chance.choice(("send", "send", "send", "urgent", "pause", "resume", "settle", "hand over", "write"))
        if action == "send":
            data = chance.choice((b"a", b"b" * 1000, b"c" * 262_144, b"d" * 400_000))
            with contextlib.suppress(BlockingIOError):
                sent += data[: peer.send(data)]
        elif action == "urgent" and kind == "tcp":
            with contextlib.suppress(BlockingIOError):
                peer.send(b"!", socket.MSG_OOB)
        elif action == "pause":
            transport.pause_reading()
        elif action == "resume":
            transport.resume_reading()
        elif action == "settle":
            await settle(chance.randrange(1, 4))
        elif action == "hand over":
            transport.set_protocol(chance.choice((protocol, Streaming(protocol))))
        elif action == "write":
            transport.write(bytes(chance.choice((10, 3_000_000))))
            if chance.random() < 0.5:
                drained(peer)
    transport.set_protocol(protocol)
    protocol.chance = random.Random(0)
    protocol.may_pause = lambda event: None
    transport.resume_reading()
    await protocol.until(lambda: len(protocol.data.replace(b"!", b"")) == len(sent))
    drained(peer)
    peer.close()
    await protocol.lost()
    assert protocol.data.replace(b"!", b"") == sent
