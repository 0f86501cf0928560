"""sock_sendall, sock_sendto and sock_connect."""

from __future__ import annotations

import array
import asyncio
import errno
import socket
import ssl
import sys

import pytest

from tests.net.peers import (
    answering,
    black_hole,
    listener,
    needs_ipv6,
    nonblocking_pair,
    pattern,
    raiser,
    recv_all,
    recv_exactly,
    reserved,
    reset,
    settle,
    tcp_pair,
)

HUGE = 20_000_000  # bytes: more than the kernel takes at once


@pytest.fixture
def pair(sockets):
    near, far = nonblocking_pair()
    sockets.enter_context(near)
    sockets.enter_context(far)
    return near, far


@pytest.fixture
def client(sockets):
    sock = sockets.enter_context(socket.socket())
    sock.setblocking(False)
    return sock


async def test_what_fits_is_sent_at_once(loop, pair):
    near, far = pair
    with pytest.raises(StopIteration):
        loop.sock_sendall(near, b"hello").send(None)
    assert far.recv(100) == b"hello"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
@pytest.mark.parametrize("size", [0, 5, HUGE])
async def test_everything_is_sent(loop, pair, kind, size):
    near, far = pair
    reading = asyncio.create_task(asyncio.to_thread(recv_exactly, far, size))
    assert await loop.sock_sendall(near, kind(pattern(size))) is None
    assert await reading == pattern(size)
    assert not loop.remove_writer(near)


@pytest.mark.asyncio_wrong("counts items for bytes")
@pytest.mark.parametrize("size", [16, 4_000_000])
async def test_views_of_wide_items_are_sent_as_their_bytes(loop, pair, size):
    near, far = pair
    for data in (memoryview(pattern(size)).cast("Q"), array.array("Q", pattern(size))):
        reading = asyncio.create_task(asyncio.to_thread(recv_exactly, far, size))
        await loop.sock_sendall(near, data)
        assert await reading == pattern(size)


@pytest.mark.parametrize("data", [None, "text", 42, [b"list"]])
async def test_objects_without_bytes_are_refused(loop, pair, data):
    with pytest.raises(TypeError):
        await loop.sock_sendall(pair[0], data)
    await loop.sock_sendall(pair[0], b"unharmed")
    assert pair[1].recv(100) == b"unharmed"


async def test_sending_cancelled_leaves_nothing_registered(loop, pair):
    near, far = pair
    task = asyncio.create_task(loop.sock_sendall(near, pattern(HUGE)))
    await settle()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not loop.remove_writer(near)
    near.close()
    received = await asyncio.to_thread(recv_all, far)
    assert pattern(HUGE).startswith(received)
    assert len(received) < HUGE


async def test_sending_cancelled_and_repeated_at_once_completes(loop, pair):
    near, far = pair
    first = asyncio.create_task(loop.sock_sendall(near, bytes(HUGE)))
    await settle()
    first.cancel()
    second = asyncio.create_task(loop.sock_sendall(near, b"x" * HUGE))  # before the cancellation was handled
    await settle()
    assert first.cancelled()
    reading = asyncio.create_task(asyncio.to_thread(recv_all, far))
    await second
    near.close()
    assert (await reading).lstrip(b"\0") == b"x" * HUGE


async def test_sending_to_a_peer_that_resets_is_an_error(loop, sockets):
    near, far = tcp_pair()
    sockets.enter_context(near)
    near.setblocking(False)
    task = asyncio.create_task(loop.sock_sendall(near, bytes(HUGE)))
    await settle()
    reset(far)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        await task
    assert not loop.remove_writer(near)


async def test_sending_to_a_closed_peer_is_an_error(loop, pair):
    pair[1].close()
    with pytest.raises(BrokenPipeError):
        await loop.sock_sendall(pair[0], b"nobody is there")


async def test_both_directions_at_once(loop, pair):
    near, far = pair
    peer = asyncio.create_task(asyncio.to_thread(lambda: (recv_exactly(far, HUGE), far.sendall(b"answer"))[0]))
    answer = asyncio.create_task(loop.sock_recv(near, 100))
    await loop.sock_sendall(near, pattern(HUGE))
    assert await peer == pattern(HUGE)
    assert await answer == b"answer"


async def test_datagrams_are_sent_to_an_address(loop, sockets):
    near, far = (sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
    for sock in (near, far):
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
    for kind in (bytes, bytearray, memoryview):
        assert await loop.sock_sendto(near, kind(b"hello"), far.getsockname()) == 5
        assert await loop.sock_recvfrom(far, 100) == (b"hello", near.getsockname())


async def test_datagrams_wait_for_room_in_a_full_queue(loop, tmp_path, monkeypatch, sockets):
    monkeypatch.chdir(tmp_path)
    near, far = (sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) for _ in range(2))
    far.bind("far")
    for sock in (near, far):
        sock.setblocking(False)
    near.connect("far")
    sent = 0
    while True:
        task = asyncio.create_task(loop.sock_sendto(near, b"%06d" % sent, "far"))
        await settle()
        if not task.done():
            break
        assert await task == 6
        sent += 1
    for number in range(sent):
        assert far.recv(100) == b"%06d" % number
    assert await task == 6
    assert far.recv(100) == b"%06d" % sent
    assert not loop.remove_writer(near)


async def test_datagram_that_is_too_large_is_an_error(loop, sockets):
    sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sock.setblocking(False)
    with pytest.raises(OSError) as caught:
        await loop.sock_sendto(sock, bytes(100_000), ("127.0.0.1", 9))
    assert caught.value.errno == errno.EMSGSIZE


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_connects_to_literal_addresses_and_names(loop, sockets, client, host):
    lst = sockets.enter_context(listener())
    assert await loop.sock_connect(client, (host, lst.getsockname()[1])) is None
    assert client.getpeername() == lst.getsockname()
    assert not loop.remove_writer(client)


@needs_ipv6
async def test_connects_over_ipv6(loop, sockets):
    lst = sockets.enter_context(listener("::1"))
    sock = sockets.enter_context(socket.socket(socket.AF_INET6))
    sock.setblocking(False)
    for address in (lst.getsockname(), lst.getsockname()[:2]):
        sock = sockets.enter_context(socket.socket(socket.AF_INET6))
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
        assert sock.getpeername() == lst.getsockname()


async def test_connects_to_unix_paths(loop, sockets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lst = sockets.enter_context(socket.socket(socket.AF_UNIX))
    lst.bind("socket")
    lst.listen()
    for path in ("socket", b"socket"):
        sock = sockets.enter_context(socket.socket(socket.AF_UNIX))
        sock.setblocking(False)
        await loop.sock_connect(sock, path)
        assert sock.getpeername() == "socket"


async def test_connect_gives_a_datagram_socket_its_peer(loop, sockets):
    near, far = (sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
    far.bind(("127.0.0.1", 0))
    near.setblocking(False)
    await loop.sock_connect(near, far.getsockname())
    assert near.getpeername() == far.getsockname()


async def test_names_are_looked_up_for_the_kind_of_the_socket(loop, sockets, client, monkeypatch):
    lst = sockets.enter_context(listener())
    calls = answering(monkeypatch, (socket.AF_INET, lst.getsockname()))
    await loop.sock_connect(client, ("a.name", 77))
    assert calls == [("a.name", 77, socket.AF_INET, socket.SOCK_STREAM, client.proto, 0)]
    assert client.getpeername() == lst.getsockname()


async def test_literal_addresses_are_not_looked_up(loop, sockets, client, monkeypatch):
    lst = sockets.enter_context(listener())
    monkeypatch.setattr(socket, "getaddrinfo", raiser(AssertionError))
    await loop.sock_connect(client, lst.getsockname())


async def test_literal_address_of_another_family_is_refused(loop, client):
    with pytest.raises(socket.gaierror):
        await loop.sock_connect(client, ("::1", 80))


async def test_lookup_failures_come_through(loop, client, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", raiser(socket.gaierror))
    with pytest.raises(socket.gaierror):
        await loop.sock_connect(client, ("a.name", 80))


async def test_refused_connect_names_the_address(loop, sockets, client):
    address = sockets.enter_context(reserved()).getsockname()
    with pytest.raises(ConnectionRefusedError) as caught:
        await loop.sock_connect(client, address)
    assert caught.value.errno == errno.ECONNREFUSED
    assert str(caught.value) == f"[Errno {errno.ECONNREFUSED}] Connect call failed {address}"
    assert not loop.remove_writer(client)


async def test_connect_cancelled_leaves_nothing_registered(loop, client):
    with black_hole() as hole:
        task = asyncio.create_task(loop.sock_connect(client, hole))
        await settle()
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not loop.remove_writer(client)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets connect() follow on one that is in progress")
async def test_connect_cancelled_and_repeated_at_once(loop, client):
    with black_hole() as hole:
        first = asyncio.create_task(loop.sock_connect(client, hole))
        await settle()
        first.cancel()
        second = asyncio.create_task(loop.sock_connect(client, hole))
        await settle()
        assert first.cancelled()
        if second.done():
            assert second.exception().errno == errno.EALREADY
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert not loop.remove_writer(client)


@pytest.mark.asyncio_wrong("takes the registration of the closed socket for the one of its heir")
async def test_socket_closed_after_a_cancelled_connect_disturbs_nobody(loop, sockets):
    with black_hole() as hole:
        sock = socket.socket()
        sock.setblocking(False)
        task = asyncio.create_task(loop.sock_connect(sock, hole))
        await settle()
        task.cancel()
        sock.close()  # before the cancellation was handled
        near, far = (sockets.enter_context(end) for end in nonblocking_pair())
        writable = loop.create_future()
        loop.add_writer(near, writable.set_result, None)
        with pytest.raises(asyncio.CancelledError):
            await task
        await writable
        assert loop.remove_writer(near)


async def test_unix_path_that_does_not_exist_is_an_error(loop, sockets):
    sock = sockets.enter_context(socket.socket(socket.AF_UNIX))
    sock.setblocking(False)
    with pytest.raises(FileNotFoundError):
        await loop.sock_connect(sock, "/nowhere/at/all")


@pytest.mark.parametrize("address", [None, 42, "127.0.0.1", ("127.0.0.1",), ()])
async def test_addresses_that_make_no_sense_are_refused(loop, client, address):
    with pytest.raises((TypeError, ValueError, OSError)):
        await loop.sock_connect(client, address)
    assert not loop.remove_writer(client)


@pytest.mark.parametrize(
    "operation",
    [
        lambda loop, sock: loop.sock_sendall(sock, b"x"),
        lambda loop, sock: loop.sock_sendto(sock, b"x", ("127.0.0.1", 9)),
        lambda loop, sock: loop.sock_connect(sock, ("127.0.0.1", 9)),
    ],
    ids=["sock_sendall", "sock_sendto", "sock_connect"],
)
async def test_blocking_closed_and_wrapped_sockets_are_refused(loop, sockets, operation):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    wrapped = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await operation(loop, wrapped)
    closed = socket.socket()
    closed.close()
    with pytest.raises((OSError, ValueError)):
        await operation(loop, closed)
    loop.set_debug(True)
    blocking = sockets.enter_context(socket.socket())
    with pytest.raises(ValueError, match="the socket must be non-blocking"):
        await operation(loop, blocking)
