"""sock_recv, sock_recv_into, sock_recvfrom, sock_recvfrom_into and sock_accept."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

import pytest

from tests.net.peers import listener, nonblocking_pair, reset, settle, tcp_pair


@pytest.fixture
def pair(sockets):
    near, far = nonblocking_pair()
    sockets.enter_context(near)
    sockets.enter_context(far)
    return near, far


def into(method):
    async def receive(loop, sock, size):
        buffer = bytearray(size)
        got = await getattr(loop, method)(sock, buffer)
        count = got[0] if isinstance(got, tuple) else got
        return bytes(buffer[:count])

    return receive


async def receive_from(loop, sock, size):
    data, _ = await loop.sock_recvfrom(sock, size)
    return data


async def receive_plainly(loop, sock, size):
    return await loop.sock_recv(sock, size)


every_method = pytest.mark.parametrize(
    "receive",
    [receive_plainly, into("sock_recv_into"), receive_from, into("sock_recvfrom_into")],
    ids=["sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into"],
)


@every_method
async def test_data_that_is_there_is_received_at_once(loop, pair, receive):
    near, far = pair
    far.send(b"hello")
    coro = receive(loop, near, 100)
    with pytest.raises(StopIteration) as done:
        coro.send(None)
    assert done.value.value == b"hello"


@every_method
async def test_waits_for_data(loop, pair, receive):
    near, far = pair
    task = asyncio.create_task(receive(loop, near, 100))
    await settle()
    assert not task.done()
    far.send(b"hello")
    assert await task == b"hello"
    assert not loop.remove_reader(near)


@every_method
async def test_takes_no_more_than_asked(loop, pair, receive):
    near, far = pair
    far.send(b"hello")
    assert await receive(loop, near, 2) == b"he"
    assert await receive(loop, near, 100) == b"llo"


@every_method
async def test_end_of_file_is_empty(loop, pair, receive):
    near, far = pair
    task = asyncio.create_task(receive(loop, near, 100))
    await settle()
    far.close()
    assert await task == b""
    assert await receive(loop, near, 100) == b""


@every_method
async def test_reset_is_an_error(loop, sockets, receive):
    near, far = tcp_pair()
    sockets.enter_context(near)
    near.setblocking(False)
    task = asyncio.create_task(receive(loop, near, 100))
    await settle()
    reset(far)
    with pytest.raises(ConnectionResetError):
        await task
    assert not loop.remove_reader(near)


@every_method
async def test_cancelled_and_repeated_at_once_it_loses_nothing(loop, pair, receive):
    near, far = pair
    first = asyncio.create_task(receive(loop, near, 100))
    await settle()
    first.cancel()
    second = asyncio.create_task(receive(loop, near, 100))  # before the cancellation was handled
    await settle()
    assert first.cancelled()
    far.send(b"hello")
    assert await second == b"hello"
    assert not loop.remove_reader(near)


@every_method
async def test_cancelled_it_leaves_nothing_registered(loop, pair, receive):
    near, far = pair
    task = asyncio.create_task(receive(loop, near, 100))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not loop.remove_reader(near)
    far.send(b"hello")
    await settle()
    assert near.recv(100) == b"hello"


@every_method
async def test_cancelled_when_data_has_just_come_swallows_none(loop, pair, receive):
    near, far = pair
    task = asyncio.create_task(receive(loop, near, 100))
    await settle()
    far.send(b"hello")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settle()
    assert await loop.sock_recv(near, 100) == b"hello"


@every_method
async def test_the_socket_closed_after_a_cancellation_disturbs_nobody(loop, sockets, receive):
    near, far = nonblocking_pair()
    task = asyncio.create_task(receive(loop, near, 100))
    await settle()
    task.cancel()
    near.close()  # before the cancellation was handled
    far.close()
    heirs = [sockets.enter_context(sock) for sock in nonblocking_pair()]
    readable = asyncio.create_task(loop.sock_recv(heirs[0], 100))
    with pytest.raises(asyncio.CancelledError):
        await task
    await settle()
    heirs[1].send(b"for the heir")
    assert await readable == b"for the heir"


@every_method
async def test_closed_socket_is_an_error(loop, receive):
    near, far = nonblocking_pair()
    near.close()
    far.close()
    with pytest.raises((OSError, ValueError)):
        await receive(loop, near, 100)


@every_method
async def test_blocking_socket_is_refused_in_debug_mode(loop, pair, receive):
    loop.set_debug(True)
    near, far = pair
    far.send(b"hello")
    near.setblocking(True)
    with pytest.raises(ValueError, match="the socket must be non-blocking"):
        await receive(loop, near, 100)
    near.settimeout(1)
    with pytest.raises(ValueError, match="the socket must be non-blocking"):
        await receive(loop, near, 100)


@every_method
async def test_wrapped_ssl_socket_is_refused(loop, sockets, receive):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    sock = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await receive(loop, sock, 100)


async def test_sizes_that_make_no_sense_are_refused(loop, pair):
    for size in (-1, "many", None, 1.5):
        with pytest.raises((TypeError, ValueError)):
            await loop.sock_recv(pair[0], size)
        with pytest.raises((TypeError, ValueError)):
            await loop.sock_recvfrom(pair[0], size)
    for buffer in (b"read only", memoryview(bytearray(8))[::2], "text", None, 5):
        with pytest.raises(TypeError, match="read-write bytes-like object"):
            await loop.sock_recv_into(pair[0], buffer)


async def test_who_asks_for_nothing_does_not_wait_for_it(loop, pair):
    near, far = pair
    closed = socket.socket()
    closed.close()
    for sock in (near, closed):
        assert await asyncio.wait_for(loop.sock_recv(sock, 0), 5) == b""
        assert await asyncio.wait_for(loop.sock_recv_into(sock, bytearray()), 5) == 0
    far.send(b"x")
    assert await loop.sock_recv(near, 0) == b""
    assert await loop.sock_recv(near, 1) == b"x"


@pytest.mark.parametrize("buffer", [b"abc", "abc", None, memoryview(bytearray(4))[::2]], ids=lambda b: type(b).__name__)
async def test_what_nothing_can_be_received_into_is_a_type_error(loop, pair, buffer):
    near, far = pair
    far.send(b"hello")
    with pytest.raises(TypeError, match="read-write bytes-like object"):
        await loop.sock_recv_into(near, buffer)
    assert await loop.sock_recv(near, 10) == b"hello"


async def test_receives_into_every_kind_of_buffer(loop, pair):
    near, far = pair
    store = bytearray(b"." * 10)
    task = asyncio.create_task(loop.sock_recv_into(near, memoryview(store)[2:7]))
    await settle()
    far.send(b"0123456789")
    assert await task == 5
    assert store == b"..01234..."


@pytest.fixture
def datagrams(sockets):
    ends = []
    for _ in range(2):
        sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        ends.append(sock)
    return ends


@pytest.mark.parametrize("waiting", [False, True])
async def test_datagrams_come_with_their_sender(loop, datagrams, waiting):
    near, far = datagrams
    for receive in (loop.sock_recvfrom(near, 100), loop.sock_recvfrom_into(near, bytearray(100))):
        task = asyncio.create_task(receive)
        if waiting:
            await settle()
        far.sendto(b"hello", near.getsockname())
        data, sender = await task
        assert data in (b"hello", 5)
        assert sender == far.getsockname()


async def test_recvfrom_into_takes_as_many_bytes_as_asked(loop, datagrams):
    near, far = datagrams
    for size, count in ((3, 3), (0, 5), (100, 5)):
        buffer = bytearray(max(size, 10))
        task = asyncio.create_task(loop.sock_recvfrom_into(near, buffer, size))
        await settle()
        far.sendto(b"hello", near.getsockname())
        assert await task == (count, far.getsockname())
        assert buffer.rstrip(b"\0") == b"hello"[:count]


async def test_recvfrom_into_refuses_more_than_the_buffer_holds(loop, datagrams):
    with pytest.raises(ValueError):
        await loop.sock_recvfrom_into(datagrams[0], bytearray(10), 20)


@pytest.mark.parametrize("waiting", [False, True])
async def test_accepted_sockets_are_nonblocking_and_come_with_their_address(loop, sockets, waiting):
    lst = sockets.enter_context(listener())
    client = sockets.enter_context(socket.socket())
    task = asyncio.create_task(loop.sock_accept(lst))
    if waiting:
        await settle()
        assert not task.done()
    client.connect(lst.getsockname())
    accepted, address = await task
    sockets.enter_context(accepted)
    assert isinstance(accepted, socket.socket)
    assert accepted.gettimeout() == 0
    assert not accepted.get_inheritable()
    assert address == client.getsockname()
    client.send(b"hello")
    assert await loop.sock_recv(accepted, 100) == b"hello"
    assert not loop.remove_reader(lst)


async def test_accept_cancelled_and_repeated_at_once_loses_no_client(loop, sockets):
    lst = sockets.enter_context(listener())
    first = asyncio.create_task(loop.sock_accept(lst))
    await settle()
    first.cancel()
    second = asyncio.create_task(loop.sock_accept(lst))
    await settle()
    assert first.cancelled()
    client = sockets.enter_context(socket.create_connection(lst.getsockname(), 10))
    accepted, address = await second
    sockets.enter_context(accepted)
    assert address == client.getsockname()


async def test_accept_cancelled_when_a_client_has_just_come_keeps_it_queued(loop, sockets):
    lst = sockets.enter_context(listener())
    task = asyncio.create_task(loop.sock_accept(lst))
    await settle()
    client = sockets.enter_context(socket.create_connection(lst.getsockname(), 10))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not loop.remove_reader(lst)
    accepted, address = await loop.sock_accept(lst)
    sockets.enter_context(accepted)
    assert address == client.getsockname()


async def test_accept_on_a_socket_that_does_not_listen_is_an_error(loop, sockets):
    sock = sockets.enter_context(socket.socket())
    sock.setblocking(False)
    with pytest.raises(OSError) as caught:
        await loop.sock_accept(sock)
    assert caught.value.errno == errno.EINVAL


async def test_accept_refuses_blocking_and_wrapped_sockets(loop, sockets):
    lst = sockets.enter_context(listener())
    loop.set_debug(True)
    lst.setblocking(True)
    with pytest.raises(ValueError, match="the socket must be non-blocking"):
        await loop.sock_accept(lst)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    wrapped = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await loop.sock_accept(wrapped)
