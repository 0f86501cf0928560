"""What create_datagram_endpoint() takes, refuses and gives back."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
from typing import Any

import pytest

from tests.net.peers import DatagramRecorder, datagram_pair, needs_ipv6, raiser, udp_socket

NOTHING: dict[str, Any] = {"local_addr": None, "remote_addr": None}


async def test_it_returns_when_connection_made_has_been_called(loop: Any, datagrams: Any) -> None:
    order: list[str] = []

    class Protocol(DatagramRecorder):
        def connection_made(self, transport: Any) -> None:
            order.append("made")
            loop.call_soon(order.append, "next turn")
            super().connection_made(transport)

    transport, protocol = await datagrams(Protocol)
    order.append("returned")
    assert order[0] == "made"
    assert "returned" in order
    assert protocol.transport is transport


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (NOTHING, ValueError, "unexpected address family"),
        ({"local_addr": "127.0.0.1"}, TypeError, "2-tuple is expected"),
        ({"remote_addr": ("127.0.0.1", 1, 2)}, TypeError, "2-tuple is expected"),
        ({"local_addr": ["127.0.0.1", 0]}, TypeError, "2-tuple is expected"),
        ({"local_addr": ("127.0.0.1", 0), "family": socket.AF_UNIX}, TypeError, "string is expected"),
        ({"remote_addr": b"path", "family": socket.AF_UNIX}, TypeError, "string is expected"),
        ({"local_addr": ("127.0.0.1", 0), "remote_addr": ("::1", 9)}, ValueError, "can not get address information"),
        ({"local_addr": ("127.0.0.1", 0), "family": socket.AF_INET6}, socket.gaierror, None),
    ],
)
async def test_what_does_not_go_together_is_refused(loop: Any, options: Any, error: Any, message: Any) -> None:
    with pytest.raises(error, match=message):
        await loop.create_datagram_endpoint(raiser(AssertionError), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"local_addr": ("127.0.0.1", 0)},
        {"remote_addr": ("127.0.0.1", 9)},
        {"family": socket.AF_INET},
        {"proto": 1},
        {"flags": 1},
        {"reuse_port": True},
        {"allow_broadcast": True},
    ],
    ids=lambda options: next(iter(options)),
)
async def test_a_socket_excludes_what_would_change_it(loop: Any, sockets: Any, options: Any) -> None:
    sock = sockets.enter_context(udp_socket())
    [(name, value)] = options.items()
    with pytest.raises(ValueError) as caught:
        await loop.create_datagram_endpoint(DatagramRecorder, sock=sock, **options)
    assert str(caught.value) == (
        f"socket modifier keyword arguments can not be used when sock is specified. ({name}={value})"
    )
    assert sock.fileno() >= 0


async def test_a_stream_socket_is_refused(loop: Any, sockets: Any) -> None:
    sock = sockets.enter_context(socket.socket())
    with pytest.raises(ValueError, match="A (UDP S|datagram s)ocket was expected, got <socket.socket"):
        await loop.create_datagram_endpoint(DatagramRecorder, sock=sock)
    assert sock.fileno() >= 0


async def test_reuse_address_is_no_longer_known(loop: Any) -> None:
    with pytest.raises(TypeError, match="reuse_address"):
        await loop.create_datagram_endpoint(DatagramRecorder, local_addr=("127.0.0.1", 0), reuse_address=True)


async def test_a_socket_is_taken_over(loop: Any, datagrams: Any) -> None:
    sock = udp_socket()
    name = sock.getsockname()
    transport, protocol = await datagrams(sock=sock)
    assert transport.get_extra_info("sockname") == name
    assert sock.gettimeout() == 0
    transport.close()
    await protocol.lost()
    assert sock.fileno() == -1


async def test_a_family_alone_gives_an_unbound_socket(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, protocol = await datagrams(family=socket.AF_INET)
    assert transport.get_extra_info("sockname") == ("0.0.0.0", 0)
    assert transport.get_extra_info("peername") is None
    transport.sendto(b"x", peer.getsockname())
    await asyncio.sleep(0)
    data, address = peer.recvfrom(10)
    peer.sendto(data, ("127.0.0.1", address[1]))
    assert await protocol.gets(1) == [b"x"]


async def test_local_and_remote_address(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, _ = await datagrams(local_addr=("127.0.0.1", 0), remote_addr=peer.getsockname())
    assert transport.get_extra_info("peername") == peer.getsockname()
    assert transport.get_extra_info("sockname")[0] == "127.0.0.1"


@needs_ipv6
async def test_names_are_tried_until_one_works(datagrams: Any, sockets: Any, monkeypatch: Any) -> None:
    peer = sockets.enter_context(udp_socket("::1"))
    port = peer.getsockname()[1]
    infos = [
        (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("203.0.113.1", 0)),  # TEST-NET-3: not an address of ours
        (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("::1", 0, 0, 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: infos)
    transport, _ = await datagrams(local_addr=("here.test", 0))
    assert transport.get_extra_info("sockname")[0] == "::1"
    transport.sendto(b"x", ("::1", port))
    await asyncio.sleep(0)
    assert peer.recv(10) == b"x"


async def test_the_first_error_is_raised_if_none_works(loop: Any, monkeypatch: Any) -> None:
    infos = [
        (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("203.0.113.1", 0)),
        (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("2001:db8::1", 0, 0, 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: infos)
    with pytest.raises(OSError) as caught:
        await loop.create_datagram_endpoint(DatagramRecorder, local_addr=("here.test", 0))
    assert caught.value.errno == errno.EADDRNOTAVAIL


async def test_no_addresses_for_a_name(loop: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    with pytest.raises(OSError, match="empty list"):
        await loop.create_datagram_endpoint(DatagramRecorder, remote_addr=("nowhere.test", 9))


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="this system has no SO_REUSEPORT")
async def test_reuse_port_lets_two_endpoints_share_an_address(loop: Any, datagrams: Any) -> None:
    first, _ = await datagrams(local_addr=("127.0.0.1", 0), reuse_port=True)
    address = first.get_extra_info("sockname")
    second, _ = await datagrams(local_addr=address, reuse_port=True)
    assert second.get_extra_info("sockname") == address
    with pytest.raises(OSError) as caught:
        await loop.create_datagram_endpoint(DatagramRecorder, local_addr=address)
    assert caught.value.errno == errno.EADDRINUSE


async def test_reuse_port_where_there_is_none(loop: Any, monkeypatch: Any) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT", raising=False)
    with pytest.raises(ValueError, match="reuse_port not supported by socket module"):
        await loop.create_datagram_endpoint(DatagramRecorder, local_addr=("127.0.0.1", 0), reuse_port=True)


async def test_with_broadcasts_allowed_the_socket_stays_unconnected(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    other = sockets.enter_context(udp_socket())
    transport, protocol = await datagrams(
        local_addr=("127.0.0.1", 0), remote_addr=peer.getsockname(), allow_broadcast=True
    )
    assert transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST)
    assert transport.get_extra_info("peername") is None
    transport.sendto(b"x")
    await asyncio.sleep(0)
    assert peer.recv(10) == b"x"
    with pytest.raises(ValueError, match="Invalid address"):
        transport.sendto(b"x", other.getsockname())
    other.sendto(b"anybody", transport.get_extra_info("sockname"))
    assert await protocol.gets(1) == [b"anybody"]


# Unix paths.


async def test_unix_endpoints_by_path(datagrams: Any, tmp_path: Any) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    first, one = await datagrams(local_addr=here, family=socket.AF_UNIX)
    second, two = await datagrams(local_addr=there, remote_addr=here, family=socket.AF_UNIX)
    assert first.get_extra_info("sockname") == here
    assert second.get_extra_info("peername") == here
    second.sendto(b"hello")
    await one.gets(1)
    assert one.got == [(b"hello", there)]
    first.sendto(b"back", there)
    await two.gets(1)
    assert two.got == [(b"back", here)]


async def test_a_socket_left_behind_is_removed(datagrams: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "stale")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stale:
        stale.bind(path)
    inode = os.stat(path).st_ino
    held = os.open(path, getattr(os, "O_PATH", os.O_RDONLY))  # or the number may be given out again
    try:
        await datagrams(local_addr=path, family=socket.AF_UNIX)
        assert os.stat(path).st_ino != inode
    finally:
        os.close(held)


async def test_what_is_no_socket_is_not_removed(loop: Any, tmp_path: Any) -> None:
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(OSError) as caught:
        await loop.create_datagram_endpoint(DatagramRecorder, local_addr=str(path), family=socket.AF_UNIX)
    assert caught.value.errno == errno.EADDRINUSE
    assert path.read_text() == "precious"


async def test_the_path_stays_when_the_endpoint_ends(datagrams: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "path")
    transport, protocol = await datagrams(local_addr=path, family=socket.AF_UNIX)
    transport.close()
    await protocol.lost()
    assert stat.S_ISSOCK(os.stat(path).st_mode)


async def test_a_remote_path_that_nobody_has(loop: Any, tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError):
        await loop.create_datagram_endpoint(
            DatagramRecorder, remote_addr=str(tmp_path / "nobody"), family=socket.AF_UNIX
        )


async def test_unnamed_unix_sockets(datagrams: Any, sockets: Any) -> None:
    near, far = datagram_pair()
    sockets.enter_context(far)
    transport, protocol = await datagrams(sock=near)
    far.send(b"x")
    await protocol.gets(1)
    assert protocol.got == [(b"x", None)]
    assert transport.get_extra_info("sockname") == ""


# Failures leave nothing behind: the fixture `loop` looks for descriptors.


@pytest.mark.asyncio_wrong("the socket it made stays open until it is collected")
@pytest.mark.parametrize("kind", [ZeroDivisionError, asyncio.CancelledError])
async def test_a_factory_that_raises_leaks_no_descriptor(loop: Any, kind: Any) -> None:
    with pytest.raises(kind):
        await loop.create_datagram_endpoint(raiser(kind), local_addr=("127.0.0.1", 0))


async def test_a_factory_that_raises_leaves_the_callers_socket(loop: Any, sockets: Any) -> None:
    sock = sockets.enter_context(udp_socket())
    with pytest.raises(ZeroDivisionError):
        await loop.create_datagram_endpoint(raiser(ZeroDivisionError), sock=sock)
    assert sock.fileno() >= 0


async def test_a_cancelled_call_closes_what_it_made(loop: Any) -> None:
    protocol = DatagramRecorder()
    task = loop.create_task(loop.create_datagram_endpoint(lambda: protocol, local_addr=("127.0.0.1", 0)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if protocol.log:
        await protocol.lost()


@pytest.mark.epoque_only("asyncio lets two transports have one descriptor, and the first one hears nothing any more")
async def test_a_socket_that_a_transport_uses_is_refused(loop: Any, datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams(sock=udp_socket())
    fd = transport.get_extra_info("socket").fileno()
    duplicate = socket.socket(fileno=fd)
    try:
        with pytest.raises(RuntimeError, match="is used by transport"):
            await loop.create_datagram_endpoint(DatagramRecorder, sock=duplicate)
    finally:
        duplicate.detach()
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"x", transport.get_extra_info("sockname"))
    assert await protocol.gets(1) == [b"x"]


async def test_debug_mode_tells_of_the_endpoint(loop: Any, datagrams: Any, caplog: Any) -> None:
    loop.set_debug(True)
    with caplog.at_level(logging.DEBUG, "asyncio"):
        transport, protocol = await datagrams(local_addr=("127.0.0.1", 0))
    told = [record.getMessage() for record in caplog.records if record.message.startswith("Datagram endpoint")]
    assert len(told) == 1
    assert told[0].startswith("Datagram endpoint local_addr=('127.0.0.1', 0) remote_addr=None created: (<")
    loop.set_debug(False)
