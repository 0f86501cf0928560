"""pause_reading, resume_reading and is_reading in every state of a connection."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.net.peers import BufferedRecorder, Recorder, overriding, pattern, recv_all, settle

both_protocols = pytest.mark.parametrize("protocol_class", [Recorder, BufferedRecorder])
both_kinds = pytest.mark.parametrize("kind", ["tcp", "unix"])


def pausing(base, *callbacks):
    return overriding(base, **{name: lambda protocol: protocol.transport.pause_reading() for name in callbacks})


@both_kinds
@both_protocols
async def test_nothing_is_delivered_while_paused_and_everything_afterwards(attach, kind, protocol_class):
    transport, protocol, peer = await attach(protocol_class, kind=kind)
    transport.pause_reading()
    peer.send(b"one")
    await settle()
    peer.send(b"two")
    await settle()
    assert protocol.log == ["made"]
    transport.resume_reading()
    assert await protocol.receives(6) == b"onetwo"


@both_protocols
async def test_end_of_file_waits_behind_the_data_while_paused(attach, protocol_class):
    transport, protocol, peer = await attach(protocol_class)
    transport.pause_reading()
    peer.send(b"last words")
    peer.close()
    await settle()
    assert protocol.log == ["made"]
    transport.resume_reading()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert protocol.data == b"last words"


async def test_pause_in_connection_made_holds(attach):
    transport, protocol, peer = await attach(pausing(Recorder, "connection_made"))
    assert not transport.is_reading()
    peer.send(b"hello")
    await settle()
    assert protocol.log == ["made"]
    transport.resume_reading()
    assert await protocol.receives(5) == b"hello"


async def test_pause_and_resume_in_connection_made(attach):
    def both(protocol):
        protocol.transport.pause_reading()
        protocol.transport.resume_reading()

    transport, protocol, peer = await attach(overriding(Recorder, connection_made=both))
    assert transport.is_reading()
    peer.send(b"hello")
    assert await protocol.receives(5) == b"hello"


@pytest.mark.parametrize(("base", "callback"), [(Recorder, "data_received"), (BufferedRecorder, "buffer_updated")])
async def test_pause_within_the_delivery_of_data_stops_the_next_one(attach, base, callback):
    transport, protocol, peer = await attach(pausing(base, callback))
    data = pattern(2_000_000)
    sending = asyncio.create_task(asyncio.to_thread(peer.sendall, data))
    deliveries = 0
    while len(protocol.data) < len(data):
        deliveries += 1
        await protocol.reaches("data", deliveries)
        await settle()
        assert protocol.log.count("data") == deliveries
        assert not transport.is_reading()
        transport.resume_reading()
    await sending
    assert protocol.data == data


async def test_pause_and_resume_in_one_turn_lose_nothing(attach):
    transport, protocol, peer = await attach()
    peer.send(b"one")
    for _ in range(10):
        transport.pause_reading()
        transport.resume_reading()
    peer.send(b"two")
    assert await protocol.receives(6) == b"onetwo"


async def test_many_cycles_deliver_everything(attach):
    transport, protocol, peer = await attach()
    for number in range(1, 51):
        transport.pause_reading()
        peer.send(b"%02d" % number)
        if number % 2:
            await settle(1)
        transport.resume_reading()
        await protocol.receives(2 * number)
    assert protocol.data == b"".join(b"%02d" % number for number in range(1, 51))


@pytest.mark.parametrize("repeat", [1, 2, 3])
async def test_pausing_and_resuming_again_is_harmless(attach, repeat):
    transport, protocol, peer = await attach()
    for _ in range(repeat):
        transport.resume_reading()
        assert transport.is_reading()
    for _ in range(repeat):
        transport.pause_reading()
        assert not transport.is_reading()
    peer.send(b"hello")
    await settle()
    assert protocol.log == ["made"]
    for _ in range(repeat):
        transport.resume_reading()
        assert transport.is_reading()
    assert await protocol.receives(5) == b"hello"


async def test_is_reading_from_connection_made_to_connection_lost(attach):
    seen = []

    def look(protocol):
        seen.append(protocol.transport.is_reading())

    watching = overriding(Recorder, connection_made=look, data_received=look, eof_received=look, connection_lost=look)
    transport, protocol, peer = await attach(watching)
    peer.send(b"hello")
    await protocol.receives(5)
    peer.close()
    await protocol.lost()
    assert seen == [True, True, True, False]
    assert not transport.is_reading()


@pytest.mark.parametrize("ending", ["close", "abort"])
@pytest.mark.parametrize("lost", [False, True])
async def test_pausing_and_resuming_after_the_end_is_harmless(attach, ending, lost):
    transport, protocol, peer = await attach()
    peer.send(b"too late")
    getattr(transport, ending)()
    if lost:
        await protocol.lost()
    for method in (
        transport.resume_reading,
        transport.pause_reading,
        transport.pause_reading,
        transport.resume_reading,
    ):
        method()
        assert not transport.is_reading()
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]


async def test_resuming_while_the_last_bytes_are_flushed_delivers_nothing(attach):
    transport, protocol, peer = await attach()
    transport.write(bytes(20_000_000))
    transport.pause_reading()
    transport.close()
    transport.resume_reading()
    peer.send(b"too late")
    await settle()
    assert protocol.log == ["made", "pause"]


async def test_pause_in_eof_received_keeps_a_half_open_connection(attach):
    class KeepsOpen(Recorder):
        keep_open = True

    transport, protocol, peer = await attach(pausing(KeepsOpen, "eof_received"))
    peer.shutdown(1)
    await protocol.reaches("eof")
    transport.write(b"answer")
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == b"answer"


async def test_paused_reader_stops_the_sender(attach):
    transport, protocol, peer = await attach()
    transport.pause_reading()
    peer.setblocking(False)
    sent, stalls = 0, 0
    while stalls < 3:
        with contextlib.suppress(BlockingIOError):
            sent += peer.send(bytes(1 << 16))
            stalls = 0
            assert sent < 1 << 28, "a paused transport goes on reading"
            continue
        stalls += 1
        await settle(1)
    assert protocol.log == ["made"]
    transport.resume_reading()
    await protocol.receives(sent)
    assert len(protocol.data) == sent


async def test_writing_goes_on_while_reading_is_paused(attach):
    transport, protocol, peer = await attach()
    transport.pause_reading()
    transport.write(pattern(3_000_000))
    transport.write_eof()
    assert await asyncio.to_thread(recv_all, peer) == pattern(3_000_000)
    peer.send(b"thanks")
    transport.resume_reading()
    assert await protocol.receives(6) == b"thanks"
