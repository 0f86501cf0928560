"""How connections end: close, abort and reset, in every state, told exactly once and after all that came before."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from tests.net.peers import BufferedRecorder, Recorder, overriding, pattern, recv_all, reset, settle

HUGE = 20_000_000  # bytes: more than the kernel takes at once
GONE = (ConnectionResetError, BrokenPipeError)
both_kinds = pytest.mark.parametrize("kind", ["tcp", "unix"])
both_protocols = pytest.mark.parametrize("protocol_class", [Recorder, BufferedRecorder])


class KeepsOpen(Recorder):
    keep_open = True


@both_kinds
async def test_close_ends_the_connection_for_both_sides(attach, kind):
    transport, protocol, peer = await attach(kind=kind)
    assert not transport.is_closing()
    transport.close()
    assert transport.is_closing()
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]
    assert await asyncio.to_thread(recv_all, peer) == b""


@both_kinds
@pytest.mark.parametrize("size", [1, 1000, 200_000, HUGE])
async def test_all_that_was_written_before_close_arrives(attach, kind, size):
    transport, protocol, peer = await attach(kind=kind)
    transport.write(pattern(size))
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == pattern(size)
    assert await protocol.lost() is None


async def test_connection_lost_comes_after_the_last_byte_has_left(attach):
    transport, protocol, peer = await attach()
    transport.write(bytes(HUGE))
    transport.close()
    await settle()
    assert "lost" not in protocol.log
    await asyncio.to_thread(recv_all, peer)
    assert await protocol.lost() is None


@both_protocols
async def test_nothing_is_delivered_after_close(attach, protocol_class):
    transport, protocol, peer = await attach(protocol_class)
    peer.send(b"too late")
    transport.close()
    assert await protocol.lost() is None
    await settle()
    assert protocol.log == ["made", "lost"]


async def test_abort_drops_what_was_not_sent(attach):
    transport, protocol, peer = await attach()
    transport.write(pattern(HUGE))
    transport.abort()
    assert transport.is_closing()
    assert await protocol.lost() is None
    received = await asyncio.to_thread(recv_all, peer)
    assert len(received) < HUGE
    assert pattern(HUGE).startswith(received)


@pytest.mark.parametrize("pending", [0, HUGE])
@pytest.mark.parametrize("calls", ["close close", "abort abort", "abort close", "close abort", "close abort close"])
async def test_ending_again_is_harmless(attach, pending, calls):
    transport, protocol, peer = await attach()
    transport.write(bytes(pending))
    for call in calls.split():
        getattr(transport, call)()
    received = await asyncio.to_thread(recv_all, peer)
    assert await protocol.lost() is None
    if "abort" not in calls:
        assert len(received) == pending
    for call in calls.split():
        getattr(transport, call)()
    await settle()
    assert protocol.log.count("lost") == 1


@pytest.mark.parametrize("ending", ["close", "abort"])
@pytest.mark.parametrize(
    ("base", "callback"),
    [
        (Recorder, "connection_made"),
        (Recorder, "data_received"),
        (Recorder, "eof_received"),
        (KeepsOpen, "eof_received"),
        (Recorder, "connection_lost"),
        (BufferedRecorder, "get_buffer"),
        (BufferedRecorder, "buffer_updated"),
    ],
)
async def test_ending_inside_a_callback(attach, ending, base, callback):
    special = overriding(base, **{callback: lambda protocol: getattr(protocol.transport, ending)()})
    transport, protocol, peer = await attach(special)
    peer.send(b"hello")
    if callback == "eof_received" or callback == "connection_lost":
        await protocol.receives(5)
        peer.close()
    assert await protocol.lost() is None
    await settle()
    assert transport.is_closing()
    assert protocol.log.count("lost") == 1
    assert protocol.log[-1] == "lost"


async def test_after_close_in_data_received_no_more_data_comes(attach):
    transport, protocol, peer = await attach(overriding(Recorder, data_received=lambda p: p.transport.close()))
    peer.sendall(b"one")
    await protocol.receives(3)
    peer.sendall(b"two")
    await protocol.lost()
    assert protocol.log == ["made", "data", "lost"]


@both_protocols
async def test_reset_is_told_as_an_error(attach, protocol_class):
    transport, protocol, peer = await attach(protocol_class)
    reset(peer)
    assert isinstance(await protocol.lost(), ConnectionResetError)
    await settle()
    assert protocol.log == ["made", "lost"]
    assert transport.is_closing()


@both_protocols
async def test_data_that_arrived_before_a_reset_is_delivered_first(attach, protocol_class):
    _, protocol, peer = await attach(protocol_class)
    peer.sendall(pattern(100_000))
    reset(peer)
    assert isinstance(await protocol.lost(), ConnectionResetError)
    assert protocol.story == ["made", "data", "lost"]
    assert protocol.data == pattern(100_000)


@both_protocols
async def test_reset_while_paused_waits_behind_the_data(attach, protocol_class):
    transport, protocol, peer = await attach(protocol_class)
    transport.pause_reading()
    peer.sendall(b"last words")
    reset(peer)
    await settle()
    assert protocol.log == ["made"]
    transport.resume_reading()
    assert isinstance(await protocol.lost(), ConnectionResetError)
    assert protocol.story == ["made", "data", "lost"]
    assert protocol.data == b"last words"


async def test_reset_while_paused_is_noticed_by_a_write(attach):
    transport, protocol, peer = await attach()
    transport.pause_reading()
    reset(peer)
    await settle()
    transport.write(b"are you there?")
    assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert protocol.log == ["made", "lost"]


async def test_reset_while_writing_is_told_once(attach):
    transport, protocol, peer = await attach()
    transport.write(bytes(HUGE))
    reset(peer)
    assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert protocol.log == ["made", "pause", "lost"]
    assert transport.get_write_buffer_size() == 0


async def test_reset_while_writing_comes_after_the_data_that_arrived(attach):
    transport, protocol, peer = await attach()
    transport.write(bytes(HUGE))
    await settle()
    peer.sendall(b"last words")
    reset(peer)
    assert isinstance(await protocol.lost(), GONE)
    assert protocol.story == ["made", "pause", "data", "lost"]
    assert protocol.data == b"last words"


@pytest.mark.asyncio_wrong("a failing write drops what is still to be read")
@pytest.mark.parametrize("size", [1, 1_000_000])
async def test_data_that_arrived_before_a_write_into_a_reset_connection_is_delivered(attach, size):
    transport, protocol, peer = await attach()
    peer.sendall(b"last words")
    reset(peer)
    transport.write(bytes(size))  # in the same turn: nothing was read yet
    assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert protocol.data == b"last words"
    assert protocol.log[-1] == "lost"
    assert protocol.log.count("lost") == 1


async def test_reset_while_the_last_bytes_are_flushed_is_told_as_an_error(attach):
    transport, protocol, peer = await attach()
    transport.write(bytes(HUGE))
    transport.close()
    reset(peer)
    assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert protocol.log == ["made", "pause", "lost"]


async def test_reset_after_close_is_no_error(attach):
    transport, protocol, peer = await attach()
    transport.close()
    reset(peer)
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]


async def test_abort_after_a_reset_is_no_error(attach):
    transport, protocol, peer = await attach()
    transport.write(bytes(HUGE))
    reset(peer)
    transport.abort()
    assert await protocol.lost() is None
    await settle()
    assert protocol.log == ["made", "pause", "lost"]


async def test_reset_of_a_connection_whose_writing_side_is_closed(attach):
    transport, protocol, peer = await attach()
    transport.write_eof()
    reset(peer)
    assert isinstance(await protocol.lost(), ConnectionResetError)
    assert protocol.log == ["made", "lost"]


@pytest.mark.asyncio_wrong("write_eof() raises the kernel's error")
async def test_write_eof_into_a_reset_connection_is_quiet(attach):
    transport, protocol, peer = await attach()
    transport.pause_reading()
    reset(peer)
    await settle()
    transport.write_eof()
    transport.resume_reading()
    assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert protocol.log == ["made", "lost"]


async def test_peer_gone_for_good_is_noticed_by_writing_to_a_half_open_connection(attach):
    transport, protocol, peer = await attach(KeepsOpen)
    peer.close()
    await protocol.reaches("eof")
    while "lost" not in protocol.log:
        transport.write(b"are you there?")
        await settle(1)
    assert isinstance(protocol.lost_with[0], GONE)
    await settle()
    assert protocol.log == ["made", "eof", "lost"]


async def test_unix_peer_gone_for_good_is_noticed_by_writing(attach):
    transport, protocol, peer = await attach(kind="unix")
    transport.pause_reading()
    peer.close()
    transport.write(b"are you there?")
    assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert protocol.log == ["made", "lost"]


async def test_many_resets_at_once_are_each_told_once(attach):
    attached = [await attach() for _ in range(30)]
    for number, (transport, _, peer) in enumerate(attached):
        if number % 3 == 0:
            transport.write(bytes(5_000_000))
        elif number % 3 == 1:
            peer.send(b"last words")
        reset(peer)
    for _, protocol, _ in attached:
        assert isinstance(await protocol.lost(), GONE)
    await settle()
    assert all(protocol.log.count("lost") == 1 for _, protocol, _ in attached)
    assert all(protocol.data == b"last words" for _, protocol, _ in attached[1::3])


async def test_closing_one_connection_in_the_callback_of_another_is_safe(attach):
    """Both are ready in one turn; the second one is closed before its turn comes."""

    def end_the_others(protocol):
        for transport, other, _ in attached:
            if other is not protocol:
                transport.abort()

    attached = []
    for _ in range(10):
        attached.append(await attach(overriding(Recorder, data_received=end_the_others)))
    for _, _, peer in attached:
        peer.send(b"hello")
    await settle(10)
    reached = [protocol for _, protocol, _ in attached if "data" in protocol.log]
    assert len(reached) == 1
    assert all(protocol.log == ["made", "lost"] for _, protocol, _ in attached if protocol not in reached)


async def test_a_number_used_again_is_not_taken_for_the_connection_that_had_it(attach):
    old = await attach()
    old.peer.send(b"for the old one")
    old.transport.abort()
    await old.protocol.lost()
    fresh = [await attach() for _ in range(4)]
    for number, (_, _, peer) in enumerate(fresh):
        peer.send(b"%d" % number)
    for number, (_, protocol, _) in enumerate(fresh):
        assert await protocol.receives(1) == b"%d" % number
    assert old.protocol.log == ["made", "lost"]


async def test_start_tls_on_a_closed_transport_answers_with_none(attach):
    """aiohttp turns that into an error; a transport that is closed would look like a connection."""
    transport, protocol, _ = await attach()
    transport.close()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    secured = await asyncio.get_running_loop().start_tls(transport, protocol, context, server_hostname="localhost")
    assert secured is None
