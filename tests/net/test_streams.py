"""asyncio's streams on top of the transports: reading, writing, back-pressure and the end."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.net.peers import pattern, raiser, recv_all, recv_exactly, reset, settle, tcp_pair, unix_pair

LARGE = 5_000_000  # bytes: more than fits between the ends while nobody reads


@pytest.fixture
def stream(loop):
    """Open a stream over one end of a socket pair; gives reader, writer and the other end."""
    opened = []

    async def stream(pair=tcp_pair, **options):
        near, far = pair()
        reader, writer = await asyncio.open_connection(sock=near, **options)
        opened.append((writer, far))
        return reader, writer, far

    yield stream
    for writer, far in opened:
        if not writer.is_closing():
            writer.transport.abort()
        far.close()
    loop.run_until_complete(asyncio.sleep(0))


async def echo(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def test_echo_between_start_server_and_open_connection(loop):
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(pattern(LARGE))
        writer.write_eof()
        assert await reader.read() == pattern(LARGE)
        writer.close()
        await writer.wait_closed()


async def test_echo_over_a_unix_socket(loop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with await asyncio.start_unix_server(echo, "socket"):
        reader, writer = await asyncio.open_unix_connection("socket")
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        await writer.wait_closed()


async def test_many_clients_at_once_are_echoed(loop):
    async def talk(number):
        reader, writer = await asyncio.open_connection(*address)
        for round_ in range(10):
            writer.write(b"%02d:%02d\n" % (number, round_))
            assert await reader.readline() == b"%02d:%02d\n" % (number, round_)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        await asyncio.gather(*(talk(number) for number in range(50)))


@pytest.mark.parametrize("pair", [tcp_pair, unix_pair])
async def test_reading_in_every_way(stream, pair):
    reader, _, peer = await stream(pair)
    peer.send(b"line\nexactly|until;some")
    assert await reader.readline() == b"line\n"
    assert await reader.readexactly(7) == b"exactly"
    assert await reader.readuntil(b";") == b"|until;"
    assert await reader.read(100) == b"some"
    assert not reader.at_eof()
    peer.send(b"rest")
    peer.close()
    assert await reader.read() == b"rest"
    assert reader.at_eof()
    assert await reader.read(1) == b""


async def test_waiting_readers_are_woken_by_the_data_they_wait_for(stream):
    reader, _, peer = await stream()
    for method, arguments, pieces in [
        (reader.readline, (), [b"li", b"ne", b"\n"]),
        (reader.readexactly, (6,), [b"ab", b"cd", b"ef"]),
        (reader.readuntil, (b"END",), [b"xE", b"N", b"D"]),
        (reader.read, (5,), [b"now"]),
    ]:
        task = asyncio.create_task(method(*arguments))
        await settle()
        for piece in pieces:
            assert not task.done()
            peer.send(piece)
            await settle()
        assert await task == b"".join(pieces)


async def test_lines_can_be_iterated_over(stream):
    reader, _, peer = await stream()
    peer.send(b"one\ntwo\nthree")
    peer.close()
    assert [line async for line in reader] == [b"one\n", b"two\n", b"three"]


async def test_end_before_the_expected_data_is_incomplete(stream):
    reader, _, peer = await stream()
    peer.send(b"short")
    peer.close()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await reader.readexactly(10)
    assert (caught.value.partial, caught.value.expected) == (b"short", 10)
    reader, _, peer = await stream()
    peer.send(b"no end")
    peer.close()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await reader.readuntil(b"\n")
    assert (caught.value.partial, caught.value.expected) == (b"no end", None)


async def test_line_beyond_the_limit_is_an_error_and_reading_goes_on(stream):
    reader, _, peer = await stream(limit=10)
    peer.send(b"much too long a line\nshort\n")
    with pytest.raises(ValueError, match="Separator is found, but chunk is longer than limit"):
        await reader.readline()
    assert await reader.readline() == b"short\n"


async def test_separator_beyond_the_limit_overruns(stream):
    reader, _, peer = await stream(limit=10)
    peer.send(b"x" * 30)
    with pytest.raises(asyncio.LimitOverrunError, match="chunk exceed the limit") as caught:
        await reader.readuntil(b"|")
    assert 0 < caught.value.consumed <= 30
    assert (await reader.readexactly(30)) == b"x" * 30


async def test_reader_that_is_not_read_stops_the_sender_and_bounds_its_memory(stream):
    reader, writer, peer = await stream(limit=1000)
    sending = asyncio.create_task(asyncio.to_thread(peer.sendall, pattern(20_000_000)))
    while writer.transport.is_reading():
        await asyncio.sleep(0)
    await settle()
    assert not sending.done()
    assert len(reader._buffer) < 1_000_000
    assert await reader.readexactly(20_000_000) == pattern(20_000_000)
    await sending


async def test_drain_waits_for_a_slow_reader(stream):
    _, writer, peer = await stream()
    writer.write(pattern(20_000_000))
    drain = asyncio.create_task(writer.drain())
    await settle()
    assert not drain.done()
    assert await asyncio.to_thread(recv_exactly, peer, 20_000_000) == pattern(20_000_000)
    await drain


async def test_drain_returns_at_once_when_little_is_pending(stream):
    _, writer, peer = await stream()
    for _ in range(10):
        writer.write(b"hello")
        await writer.drain()
    assert await asyncio.to_thread(recv_exactly, peer, 50) == b"hello" * 10


async def test_several_drains_wait_together(stream):
    _, writer, peer = await stream()
    writer.write(bytes(20_000_000))
    drains = [asyncio.create_task(writer.drain()) for _ in range(3)]
    await settle()
    assert not any(drain.done() for drain in drains)
    await asyncio.to_thread(recv_exactly, peer, 20_000_000)
    await asyncio.gather(*drains)


async def test_drain_after_the_connection_was_lost_is_an_error(stream):
    reader, writer, peer = await stream()
    reset(peer)
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.write(b"nobody is there")
    with pytest.raises(ConnectionResetError):
        await writer.drain()


async def test_drain_that_waits_ends_when_the_connection_is_lost(stream):
    _, writer, peer = await stream()
    writer.write(bytes(20_000_000))
    drain = asyncio.create_task(writer.drain())
    await settle()
    reset(peer)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        await drain


async def test_waiting_reader_gets_the_reset(stream):
    reader, _, peer = await stream()
    task = asyncio.create_task(reader.readline())
    await settle()
    reset(peer)
    with pytest.raises(ConnectionResetError):
        await task
    assert isinstance(reader.exception(), ConnectionResetError)


async def test_data_before_a_reset_is_read_first(stream):
    reader, _, peer = await stream()
    task = asyncio.create_task(reader.readexactly(10))
    peer.send(b"last words")
    reset(peer)
    assert await task == b"last words"


async def test_wait_closed_waits_until_all_is_sent(stream):
    _, writer, peer = await stream()
    assert not writer.is_closing()
    writer.write(pattern(20_000_000))
    writer.close()
    assert writer.is_closing()
    waiting = asyncio.create_task(writer.wait_closed())
    await settle()
    assert not waiting.done()
    assert await asyncio.to_thread(recv_all, peer) == pattern(20_000_000)
    await waiting
    await writer.wait_closed()


async def test_wait_closed_tells_why_the_connection_ended(stream):
    _, writer, peer = await stream()
    reset(peer)
    with pytest.raises(ConnectionResetError):
        await writer.wait_closed()


async def test_half_close_lets_the_answer_come(stream):
    reader, writer, peer = await stream()
    assert writer.can_write_eof()
    writer.writelines([b"ques", b"tion"])
    writer.write_eof()
    assert await asyncio.to_thread(recv_all, peer) == b"question"
    peer.send(b"answer")
    peer.close()
    assert await reader.read() == b"answer"


async def test_peer_that_half_closes_still_gets_the_answer(stream):
    reader, writer, peer = await stream()
    peer.send(b"question")
    peer.shutdown(socket.SHUT_WR)
    assert await reader.read() == b"question"
    writer.write(b"answer")
    writer.close()
    assert await asyncio.to_thread(recv_all, peer) == b"answer"


async def test_extra_info_comes_through(stream):
    _, writer, peer = await stream()
    assert writer.get_extra_info("peername") == peer.getsockname()
    assert writer.get_extra_info("no such thing", 7) == 7


async def test_handler_of_a_server_may_be_a_plain_function(loop, sockets):
    seen = loop.create_future()
    async with await asyncio.start_server(lambda *ends: seen.set_result(ends), "127.0.0.1", 0) as server:
        client = sockets.enter_context(socket.create_connection(server.sockets[0].getsockname(), 10))
        reader, writer = await seen
        client.send(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        await writer.wait_closed()


@pytest.mark.since(3, 12)
async def test_handler_that_raises_is_reported_and_its_connection_closed(loop, sockets, errors):
    async def handler(reader, writer):
        raise ZeroDivisionError

    async with await asyncio.start_server(handler, "127.0.0.1", 0) as server:
        client = sockets.enter_context(socket.create_connection(server.sockets[0].getsockname(), 10))
        assert await asyncio.to_thread(recv_all, client) == b""
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError]
    assert errors[0]["message"] == "Unhandled exception in client_connected_cb"


class Attentive(asyncio.StreamReader):
    """A reader with methods of its own, as subclasses in the wild have them."""

    def __init__(self):
        super().__init__()
        self.fed = []

    def feed_data(self, data):
        self.fed.append(bytes(data))
        super().feed_data(data)

    def feed_eof(self):
        self.fed.append("eof")
        super().feed_eof()


async def test_reader_of_a_subclass_is_fed_through_its_own_methods(loop, attach):
    reader = Attentive()
    _, _, peer = await attach(lambda: asyncio.StreamReaderProtocol(reader))
    peer.send(b"hello\n")
    assert await reader.readline() == b"hello\n"
    peer.close()
    assert await reader.read() == b""
    assert reader.fed == [b"hello\n", "eof"]


async def test_protocol_of_a_subclass_gets_its_own_callbacks(loop, attach):
    class Counting(asyncio.StreamReaderProtocol):
        received = 0

        def data_received(self, data):
            self.received += len(data)
            super().data_received(data)

    reader = asyncio.StreamReader()
    _, protocol, peer = await attach(lambda: Counting(reader))
    peer.send(b"hello\n")
    assert await reader.readline() == b"hello\n"
    assert protocol.received == 6


async def test_exception_set_on_the_reader_is_raised_to_whoever_reads(stream):
    reader, _, peer = await stream()
    task = asyncio.create_task(reader.readline())
    await settle()
    reader.set_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await task
    peer.send(b"data after the exception")
    await settle()
    with pytest.raises(ZeroDivisionError):
        await reader.readline()


async def test_two_readers_at_once_are_refused(stream):
    reader, _, peer = await stream()
    task = asyncio.create_task(reader.readline())
    await settle()
    with pytest.raises(RuntimeError, match="already waiting for incoming data"):
        await reader.readexactly(1)
    peer.send(b"for the first\n")
    assert await task == b"for the first\n"


async def test_cancelled_reader_loses_nothing(stream):
    reader, _, peer = await stream()
    peer.send(b"he")
    task = asyncio.create_task(reader.readexactly(5))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    peer.send(b"llo")
    assert await reader.readexactly(5) == b"hello"


async def test_connect_failures_come_through(loop, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", raiser(socket.gaierror))
    with pytest.raises(socket.gaierror):
        await asyncio.open_connection("a.name", 80)
