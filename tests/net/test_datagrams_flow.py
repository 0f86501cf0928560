"""How much waits to be sent, who hears of it, and what becomes of it at the end."""

from __future__ import annotations

import logging
import socket
import sys
from typing import Any

import pytest

from tests.net.peers import LIMIT, settle, turns, udp_socket, waiting

HEADER = 8 if sys.version_info >= (3, 13) else 0  # bytes that asyncio counts for a datagram's header


async def test_water_marks(datagrams: Any) -> None:
    transport, _ = await datagrams()
    assert transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
    transport.set_write_buffer_limits(high=1000)
    assert transport.get_write_buffer_limits() == (250, 1000)
    transport.set_write_buffer_limits(low=50)
    assert transport.get_write_buffer_limits() == (50, 200)
    with pytest.raises(ValueError, match="must be >= low"):
        transport.set_write_buffer_limits(high=1, low=2)


async def filled(datagrams: Any, sockets: Any, path: Any) -> tuple[Any, Any, socket.socket, int]:
    """An endpoint whose peer, a Unix socket, has its queue full; how many datagrams of 1000 bytes it has."""
    peer = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    peer.bind(str(path / "peer"))
    peer.settimeout(LIMIT)
    transport, protocol = await datagrams(remote_addr=str(path / "peer"), family=socket.AF_UNIX)
    transport.set_write_buffer_limits(high=5000, low=2000)
    count = 0
    while "pause" not in protocol.log:
        assert count < 10_000
        transport.sendto(b"%04d" % count + bytes(996))
        count += 1
        await turns(1)
    return transport, protocol, peer, count


async def test_writing_is_paused_and_resumed(datagrams: Any, sockets: Any, tmp_path: Any) -> None:
    transport, protocol, peer, count = await filled(datagrams, sockets, tmp_path)
    assert transport.get_write_buffer_size() > 5000
    assert transport.get_write_buffer_size() % (1000 + HEADER) == 0
    assert "write=<polling" in repr(transport)
    received = []
    while len(received) < count:
        received += waiting(peer)
        await settle(1)
    assert [int(data[:4]) for data in received] == list(range(count))
    assert protocol.log == ["made", "pause", "resume"]
    assert transport.get_write_buffer_size() == 0 or sys.version_info < (3, 13, 1)


async def test_close_sends_what_is_queued_first(datagrams: Any, sockets: Any, tmp_path: Any) -> None:
    transport, protocol, peer, count = await filled(datagrams, sockets, tmp_path)
    transport.close()
    await settle()
    assert "lost" not in protocol.log
    received = []
    while len(received) < count:
        received += waiting(peer)
        await settle(1)
    assert await protocol.lost() is None
    assert waiting(peer) == []
    assert protocol.log == ["made", "pause", "resume", "lost"]


async def test_abort_drops_what_is_queued(datagrams: Any, sockets: Any, tmp_path: Any) -> None:
    transport, protocol, peer, count = await filled(datagrams, sockets, tmp_path)
    transport.abort()
    assert await protocol.lost() is None
    assert len(waiting(peer)) < count


@pytest.mark.asyncio_wrong("it spins: the kernel calls the socket writable all the while")
async def test_a_full_queue_of_an_unconnected_unix_peer_is_waited_for_without_spinning(
    loop: Any, datagrams: Any, sockets: Any, tmp_path: Any
) -> None:
    peer = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    peer.bind(str(tmp_path / "peer"))
    transport, protocol = await datagrams(local_addr=str(tmp_path / "me"), family=socket.AF_UNIX)
    transport.set_write_buffer_limits(high=20)
    count = 0
    while "pause" not in protocol.log:
        transport.sendto(b"%d" % count, str(tmp_path / "peer"))
        count += 1
        await turns(1)
    assert "write=<idle" in repr(transport)
    transport.close()
    received = []
    while len(received) < count:
        received += waiting(peer)
        await settle(1)
    assert received == [b"%d" % number for number in range(count)]
    assert await protocol.lost() is None


# The end.


async def test_what_was_sent_before_close_in_the_same_turn_leaves(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    transport.sendto(b"one", peer.getsockname())
    transport.sendto(b"two", peer.getsockname())
    transport.close()
    assert await protocol.lost() is None
    assert waiting(peer) == [b"one", b"two"]


async def test_what_was_sent_before_abort_in_the_same_turn_leaves(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    transport.sendto(b"one", peer.getsockname())
    transport.abort()
    assert await protocol.lost() is None
    assert waiting(peer) == [b"one"]


async def test_sending_after_the_end_is_dropped_and_warned_about(datagrams: Any, sockets: Any, caplog: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, protocol = await datagrams(remote_addr=peer.getsockname())
    transport.close()
    await protocol.lost()
    with caplog.at_level(logging.WARNING, "asyncio"):
        for _ in range(4):
            transport.sendto(b"x")
        assert not caplog.records
        transport.sendto(b"x")
    assert [record.message for record in caplog.records] == ["socket.send() raised exception."]
    assert waiting(peer) == []
