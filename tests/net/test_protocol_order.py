"""In which order a protocol hears of its connection, and how half-closed connections live on."""

from __future__ import annotations

import asyncio
import os
import socket
import time

import pytest

from tests.net.peers import (
    BufferedRecorder,
    DatagramRecorder,
    Echo,
    Recorder,
    datagram_pair,
    overriding,
    pattern,
    recv_all,
    recv_exactly,
    settle,
    tcp_pair,
    unix_pair,
)

both_protocols = pytest.mark.parametrize("protocol_class", [Recorder, BufferedRecorder])
both_kinds = pytest.mark.parametrize("kind", ["tcp", "unix"])


def keeping_open(base=Recorder):
    return type("KeepsOpen" + base.__name__, (base,), {"keep_open": True})


@both_kinds
@both_protocols
async def test_made_then_data_then_eof_then_lost(attach, kind, protocol_class):
    transport, protocol, peer = await attach(protocol_class, kind=kind)
    peer.send(b"one")
    await protocol.receives(3)
    peer.send(b"two")
    peer.close()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert protocol.data == b"onetwo"
    assert transport.is_closing()


@both_kinds
@both_protocols
async def test_what_the_peer_sent_before_connection_made_is_delivered_after_it(loop, kind, protocol_class):
    near, far = tcp_pair() if kind == "tcp" else unix_pair()
    far.send(b"early")
    far.close()
    _, protocol = await loop.create_connection(protocol_class, sock=near)
    assert protocol.log[0] == "made"
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert protocol.data == b"early"


def slow_to_begin(base, log):
    """Data are there, and the loop would look for them, before anybody but the protocol knows of the connection."""

    def connection_made(self, transport):
        base.connection_made(self, transport)
        time.sleep(0.001)

    def tell(name):
        return lambda self, *args: (log.append(name), getattr(base, name)(self, *args))

    names = ("data_received", "buffer_updated", "datagram_received")
    told = {name: tell(name) for name in names if hasattr(base, name)}
    return type("Slow" + base.__name__, (base,), {"connection_made": connection_made, **told})


@both_kinds
@both_protocols
async def test_who_waited_for_the_connection_runs_before_its_data_come(loop, kind, protocol_class):
    near, far = tcp_pair() if kind == "tcp" else unix_pair()
    log = []
    with far:
        far.send(b"early")
        transport, protocol = await loop.create_connection(slow_to_begin(protocol_class, log), sock=near)
        assert log == []
        await protocol.receives(5)
        assert len(log) == 1
        transport.abort()
        await protocol.lost()


async def test_who_waited_runs_before_data_come_although_not_all_was_sent(loop):
    """What the kernel does not take at once is watched for, but for writing only."""

    class Writing(Recorder):
        def connection_made(self, transport):
            super().connection_made(transport)
            transport.write(bytes(60_000))

    near, far = unix_pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with far:
        far.send(b"early")
        transport, protocol = await loop.create_connection(Writing, sock=near)
        assert "data" not in protocol.log
        await protocol.receives(5)
        transport.abort()
        await protocol.lost()


async def test_who_waited_for_a_datagram_endpoint_runs_before_its_datagrams_come(loop):
    near, far = datagram_pair()
    log = []
    with far:
        far.send(b"early")
        transport, protocol = await loop.create_datagram_endpoint(slow_to_begin(DatagramRecorder, log), sock=near)
        assert log == []
        await protocol.gets(1)
        transport.abort()


async def test_who_waited_for_a_pipe_runs_before_its_data_come(loop):
    reader, writer = os.pipe()
    os.write(writer, b"early")
    log = []
    with open(writer, "wb"), open(reader, "rb", 0) as pipe:
        transport, protocol = await loop.connect_read_pipe(slow_to_begin(Recorder, log), pipe)
        assert log == []
        await protocol.receives(5)
        transport.close()
        await protocol.lost()


@both_protocols
async def test_eof_alone_is_followed_by_the_end(attach, protocol_class):
    _, protocol, peer = await attach(protocol_class)
    peer.close()
    assert await protocol.lost() is None
    assert protocol.log == ["made", "eof", "lost"]


@both_protocols
async def test_large_transfer_arrives_whole_and_in_order(attach, protocol_class):
    _, protocol, peer = await attach(protocol_class)
    data = pattern(5_000_000)
    await asyncio.to_thread(peer.sendall, data)
    peer.close()
    await protocol.lost()
    assert protocol.data == data
    assert protocol.story == ["made", "data", "eof", "lost"]


async def test_data_is_exactly_bytes(attach):
    kinds = set()

    class Typed(Recorder):
        def data_received(self, data):
            kinds.add(type(data))
            super().data_received(data)

    _, protocol, peer = await attach(Typed)
    peer.send(b"a")
    await protocol.receives(1)
    await asyncio.to_thread(peer.sendall, bytes(1_000_000))
    await protocol.receives(1_000_001)
    assert kinds == {bytes}


async def test_received_data_stays_as_it_was(attach):
    kept = []

    class Keeper(Recorder):
        def data_received(self, data):
            kept.append(data)
            super().data_received(data)

    _, protocol, peer = await attach(Keeper)
    for number in range(50):
        peer.send(b"%04d" % number)
        await protocol.receives(4 * number + 4)
    assert b"".join(kept) == b"".join(b"%04d" % number for number in range(50))


async def test_bare_protocol_is_enough(attach):
    transport, _, peer = await attach(asyncio.Protocol)
    peer.send(b"nobody listens")
    peer.close()
    await settle()
    assert transport.is_closing()


@both_kinds
@both_protocols
async def test_true_from_eof_received_keeps_the_writing_side_open(attach, kind, protocol_class):
    transport, protocol, peer = await attach(keeping_open(protocol_class), kind=kind)
    peer.send(b"question")
    peer.shutdown(socket.SHUT_WR)
    await protocol.reaches("eof")
    await settle()
    assert protocol.story == ["made", "data", "eof"]
    assert not transport.is_closing()
    transport.write(b"answer" * 100_000)
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == b"answer" * 100_000
    assert await protocol.lost() is None
    assert protocol.log.count("eof") == 1


@pytest.mark.asyncio_wrong("resume_reading tells it again")
async def test_end_of_file_is_not_told_again_by_resume_reading(attach):
    transport, protocol, peer = await attach(keeping_open())
    peer.shutdown(socket.SHUT_WR)
    await protocol.reaches("eof")
    transport.pause_reading()
    transport.resume_reading()
    await settle()
    assert protocol.log == ["made", "eof"]


async def test_eof_received_may_write_and_close(attach):
    def answer(protocol):
        protocol.transport.write(b"goodbye")
        protocol.transport.close()
        return True

    _, protocol, peer = await attach(overriding(Recorder, eof_received=answer))
    peer.shutdown(socket.SHUT_WR)
    assert await asyncio.to_thread(recv_all, peer) == b"goodbye"
    assert await protocol.lost() is None
    assert protocol.log == ["made", "eof", "lost"]


async def test_what_eof_received_writes_is_sent_before_the_connection_closes(attach):
    def answer(protocol):
        protocol.transport.write(pattern(3_000_000))

    _, protocol, peer = await attach(overriding(Recorder, eof_received=answer))
    peer.shutdown(socket.SHUT_WR)
    assert await asyncio.to_thread(recv_all, peer) == pattern(3_000_000)
    assert await protocol.lost() is None


@both_kinds
async def test_write_eof_ends_our_side_and_reading_goes_on(attach, kind):
    transport, protocol, peer = await attach(kind=kind)
    assert transport.can_write_eof() is True
    transport.write(b"all I have to say")
    transport.write_eof()
    assert await asyncio.to_thread(recv_all, peer) == b"all I have to say"
    assert not transport.is_closing()
    peer.send(b"and my answer")
    peer.close()
    assert await protocol.lost() is None
    assert protocol.data == b"and my answer"


async def test_write_eof_waits_for_what_was_written_before(attach):
    transport, _, peer = await attach()
    data = pattern(5_000_000)
    transport.write(data)
    transport.write_eof()
    assert await asyncio.to_thread(recv_all, peer) == data


async def test_write_eof_twice_or_after_close_is_harmless(attach):
    transport, protocol, peer = await attach()
    transport.write_eof()
    transport.write_eof()
    transport.close()
    transport.write_eof()
    assert await asyncio.to_thread(recv_all, peer) == b""
    assert await protocol.lost() is None
    transport.write_eof()


async def test_close_after_write_eof_sends_everything(attach):
    transport, protocol, peer = await attach()
    data = pattern(5_000_000)
    transport.write(data)
    transport.write_eof()
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == data
    assert await protocol.lost() is None


async def test_half_closed_both_ways_ends_when_closed(attach):
    transport, protocol, peer = await attach(keeping_open())
    peer.shutdown(socket.SHUT_WR)
    await protocol.reaches("eof")
    transport.write_eof()
    assert await asyncio.to_thread(recv_all, peer) == b""
    await settle()
    assert protocol.log == ["made", "eof"]
    transport.close()
    assert await protocol.lost() is None


async def test_echo_serves_a_client_that_ends_its_side_first(attach):
    data = pattern(2_000_000)
    _, protocol, peer = await attach(keeping_open(Echo))

    def talk():
        peer.sendall(data[:1_000_000])
        first = recv_exactly(peer, 1_000_000)
        peer.sendall(data[1_000_000:1_100_000])
        peer.shutdown(socket.SHUT_WR)
        return first + recv_exactly(peer, 100_000)

    talking = asyncio.create_task(asyncio.to_thread(talk))
    assert await talking == data[:1_100_000]
    protocol.transport.close()


async def test_connection_lost_comes_from_the_loop_not_from_within_close(attach):
    transport, protocol, _ = await attach()
    transport.close()
    assert protocol.log == ["made"]
    await protocol.lost()


async def test_abort_tells_connection_lost_from_the_loop(attach):
    transport, protocol, _ = await attach()
    transport.abort()
    assert transport.is_closing()
    assert protocol.log == ["made"]
    assert await protocol.lost() is None


async def test_connection_made_runs_before_create_connection_returns(loop, serve):
    served = await serve(Echo)

    class Greeter(Recorder):
        def connection_made(self, transport):
            super().connection_made(transport)
            transport.write(b"hello")

    transport, protocol = await loop.create_connection(Greeter, *served.address)
    assert protocol.log[0] == "made"
    assert await protocol.receives(5) == b"hello"
    transport.close()
    await protocol.lost()


async def test_connections_side_by_side_keep_their_own_order(attach):
    attached = [await attach() for _ in range(20)]
    for number, (_, _, peer) in enumerate(attached):
        peer.send(b"%02d" % number)
        peer.close()
    for number, (_, protocol, _) in enumerate(attached):
        await protocol.lost()
        assert protocol.story == ["made", "data", "eof", "lost"]
        assert protocol.data == b"%02d" % number
