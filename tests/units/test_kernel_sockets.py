"""kernel.sockets in both forms: what one system call gives, and the addresses of every family."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct

import pytest

from epoque.kernel.masks import JOINED, SEND_PIECES, SMALL
from tests.units.twins import FORMS, twin

pytestmark = pytest.mark.epoque_only("looks at epoque's own kernel modules")


@pytest.fixture(params=FORMS)
def sockets(request):
    return twin("sockets", request.param)


@pytest.fixture
def ends(pair):
    """Two connected, non-blocking sockets; the first has little room for what it sends."""
    left, right = pair()
    left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return left, right


def fill(sock):
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(1024))


def closed_descriptor():
    fd = os.dup(0)
    os.close(fd)
    return fd


def reset(sock):
    """Close it so that the peer gets RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# --- receiving and sending


def test_recv_into_gives_the_count_then_would_block_then_the_end(sockets, ends):
    left, right = ends
    buffer = bytearray(b"......")
    assert sockets.recv_into(left.fileno(), buffer) == -1
    right.send(b"abc")
    assert sockets.recv_into(left.fileno(), buffer) == 3
    assert buffer == b"abc..."
    right.close()
    assert sockets.recv_into(left.fileno(), buffer) == 0


def test_recv_into_stays_within_the_buffer(sockets, ends):
    left, right = ends
    buffer = bytearray(b"......")
    right.send(b"abcdef")
    assert sockets.recv_into(left.fileno(), memoryview(buffer)[2:4]) == 2
    assert buffer == b"..ab.."
    assert sockets.recv_into(left.fileno(), memoryview(bytearray(8)).cast("I")) == 4
    buffer.extend(b"x")  # the buffer was let go of


@pytest.mark.parametrize("buffer", [b"bytes", memoryview(b"bytes"), memoryview(bytearray(8))[::2], "text", None, 7])
def test_recv_into_refuses_what_cannot_be_written(sockets, ends, buffer):
    left, right = ends
    right.send(b"abc")
    with pytest.raises((TypeError, BufferError)):
        sockets.recv_into(left.fileno(), buffer)
    assert left.recv(10) == b"abc"


def test_send_starts_at_its_offset_and_says_when_it_would_block(sockets, ends):
    left, right = ends
    for data in (b"abcdef", memoryview(b"abcdef"), bytearray(b"abcdef")):
        assert sockets.send(left.fileno(), data, 0) == 6
        assert sockets.send(left.fileno(), data, 4) == 2
        assert right.recv(20) == b"abcdefef"
    fill(left)
    assert sockets.send(left.fileno(), b"abcdef", 0) == -1


def test_send_says_how_much_the_kernel_took(sockets, ends):
    left, right = ends
    data = bytes(range(256)) * 1000
    count = sockets.send(left.fileno(), data, 0)
    assert 0 < count < len(data)
    assert right.recv(len(data)) == data[:count]


def test_send_many_sends_the_pieces_in_order_from_its_offset(sockets, ends):
    left, right = ends
    pieces = [b"abc", memoryview(b"defg"), b"hi"]
    assert sockets.send_many(left.fileno(), pieces, 0, 9) == 9
    assert sockets.send_many(left.fileno(), pieces, 2, 7) == 7
    assert sockets.send_many(left.fileno(), pieces[1:], 3, 3) == 3
    assert right.recv(50) == b"abcdefghi" + b"cdefghi" + b"ghi"
    assert pieces == [b"abc", b"defg", b"hi"]
    fill(left)
    assert sockets.send_many(left.fileno(), pieces, 0, 9) == -1


def test_send_many_takes_a_bounded_number_of_pieces(sockets, ends):
    left, right = ends
    pieces = [b"%03d" % number for number in range(SEND_PIECES + 10)]
    assert sockets.send_many(left.fileno(), pieces, 1, 3 * len(pieces) - 1) == 3 * SEND_PIECES - 1
    assert right.recv(4096) == b"".join(pieces[:SEND_PIECES])[1:]


@pytest.mark.parametrize("size", [SMALL, SMALL + 1])
@pytest.mark.parametrize("count", [2, JOINED // SMALL, JOINED // SMALL + 1])
def test_send_many_sends_alike_whether_it_joins_the_pieces_or_not(sockets, stack, size, count):
    left, right = map(stack.enter_context, socket.socketpair())
    pieces = [bytes([number]) * size for number in range(count)]
    assert sockets.send_many(left.fileno(), pieces, 1, size * count - 1) == size * count - 1
    assert right.recv(2 * JOINED) == b"".join(pieces)[1:]


def test_send_many_says_how_much_the_kernel_took(sockets, ends):
    left, right = ends
    pieces = [bytes([number]) * 5000 for number in range(100)]
    count = sockets.send_many(left.fileno(), pieces, 0, 500_000)
    assert 0 < count < 500_000
    assert right.recv(500_000) == b"".join(pieces)[:count]


def test_a_peer_that_is_gone_is_a_broken_pipe_and_no_signal(sockets, ends):
    left, right = ends
    right.close()
    with pytest.raises(BrokenPipeError):
        sockets.send(left.fileno(), b"abc", 0)
    with pytest.raises(BrokenPipeError):
        sockets.send_many(left.fileno(), [b"abc", b"def"], 0, 6)


def test_a_reset_connection_is_an_error(sockets, stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = stack.enter_context(socket.create_connection(listener.getsockname()))
    reset(listener.accept()[0])
    with pytest.raises(ConnectionResetError):
        sockets.recv_into(client.fileno(), bytearray(8))


@pytest.mark.parametrize(
    "operation",
    [
        lambda sockets, fd: sockets.recv_into(fd, bytearray(8)),
        lambda sockets, fd: sockets.send(fd, b"abc", 0),
        lambda sockets, fd: sockets.send_many(fd, [b"abc", b"def"], 0, 6),
        lambda sockets, fd: sockets.local_address(fd, socket.AF_INET),
        lambda sockets, fd: sockets.peer_address(fd, socket.AF_INET),
    ],
    ids=["recv_into", "send", "send_many", "local_address", "peer_address"],
)
def test_a_closed_descriptor_is_an_error(sockets, operation):
    with pytest.raises(OSError) as caught:
        operation(sockets, closed_descriptor())
    assert caught.value.errno == errno.EBADF


# --- connections


def listening(stack, family, address):
    listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
    try:
        listener.bind(address)
    except OSError as exc:
        if family == socket.AF_INET6:
            pytest.skip(f"no IPv6 here: {exc}")
        raise
    listener.listen()
    listener.setblocking(False)
    return listener


def connected(stack, listener, local=None):
    client = stack.enter_context(socket.socket(listener.family, socket.SOCK_STREAM))
    if local is not None:
        client.bind(local)
    client.connect(listener.getsockname())
    return client


def test_accept_on_a_listener_without_clients_gives_none(sockets, stack):
    assert sockets.accept(listening(stack, socket.AF_INET, ("127.0.0.1", 0))) is None


@pytest.mark.parametrize("default", [None, 5.0])
def test_an_accepted_descriptor_is_non_blocking_and_closed_on_exec(sockets, stack, default):
    stack.callback(socket.setdefaulttimeout, socket.getdefaulttimeout())
    listener = listening(stack, socket.AF_INET, ("127.0.0.1", 0))
    client = connected(stack, listener)
    socket.setdefaulttimeout(default)
    fd, address = sockets.accept(listener)
    with socket.socket(fileno=fd) as server:
        assert address == client.getsockname()
        assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK
        assert not os.get_inheritable(fd)
        client.send(b"abc")
        assert server.recv(10) == b"abc"


def test_accept_takes_one_client_at_a_time_in_their_order(sockets, stack):
    listener = listening(stack, socket.AF_INET, ("127.0.0.1", 0))
    clients = [connected(stack, listener) for _ in range(3)]
    for client in clients:
        fd, address = sockets.accept(listener)
        os.close(fd)
        assert address == client.getsockname()
    assert sockets.accept(listener) is None


def test_accept_of_what_does_not_listen_is_an_error(sockets, stack):
    sock = stack.enter_context(socket.socket())
    sock.setblocking(False)
    for number in (errno.EINVAL, errno.EBADF):
        with pytest.raises(OSError) as caught:
            sockets.accept(sock)
        assert caught.value.errno == number
        sock.close()


ADDRESSES = {
    "ipv4": (socket.AF_INET, lambda path: ("127.0.0.1", 0)),
    "ipv4 of another interface": (socket.AF_INET, lambda path: ("127.1.2.3", 0)),
    "ipv4 of all lengths": (socket.AF_INET, lambda path: ("127.255.99.10", 0)),
    "ipv4 of round figures": (socket.AF_INET, lambda path: ("127.100.0.200", 0)),
    "ipv6": (socket.AF_INET6, lambda path: ("::1", 0)),
    "path": (socket.AF_UNIX, lambda path: str(path / "socket")),
    "path that is no text": (socket.AF_UNIX, lambda path: os.fsencode(path) + b"/\xff\xfe"),
    "longest path": (socket.AF_UNIX, lambda path: "l" * 107),
    "abstract": (socket.AF_UNIX, lambda path: b"\0epoque-%d" % os.getpid()),
    "abstract with zero bytes": (socket.AF_UNIX, lambda path: b"\0a\0b\0\0%d\0" % os.getpid()),
    "abstract that is no text": (socket.AF_UNIX, lambda path: b"\0\xff\xfe%d" % os.getpid()),
    "longest abstract": (socket.AF_UNIX, lambda path: (b"\0%d" % os.getpid()).ljust(108, b"z")),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_addresses_are_those_that_the_socket_module_gives(sockets, stack, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    family, address = ADDRESSES[name]
    listener = listening(stack, family, address(tmp_path))
    client = connected(stack, listener)
    fd, peer = sockets.accept(listener)
    with socket.socket(fileno=fd) as server:
        assert peer == client.getsockname() == server.getpeername()
        for sock in (server, client, listener):
            found = sockets.local_address(sock.fileno(), family)
            assert (type(found), found) == (type(sock.getsockname()), sock.getsockname())
        for sock in (server, client):
            found = sockets.peer_address(sock.fileno(), family)
            assert (type(found), found) == (type(sock.getpeername()), sock.getpeername())


@pytest.mark.parametrize("name", ["path", "path that is no text", "longest path", "abstract with zero bytes"])
def test_a_client_with_a_name_is_named(sockets, stack, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    family, address = ADDRESSES[name]
    listener = listening(stack, family, "listener")
    client = connected(stack, listener, address(tmp_path))
    fd, peer = sockets.accept(listener)
    os.close(fd)
    assert (type(peer), peer) == (type(client.getsockname()), client.getsockname())


def test_a_client_without_a_name_has_the_empty_one(sockets, stack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listener = listening(stack, socket.AF_UNIX, "listener")
    client = connected(stack, listener)
    fd, peer = sockets.accept(listener)
    os.close(fd)
    assert peer == sockets.local_address(client.fileno(), socket.AF_UNIX) == ""


def test_an_ipv4_client_of_an_ipv6_listener_has_a_mapped_address(sockets, stack):
    listener = stack.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True))
    listener.setblocking(False)
    client = stack.enter_context(socket.create_connection(("127.0.0.1", listener.getsockname()[1])))
    fd, peer = sockets.accept(listener)
    with socket.socket(fileno=fd) as server:
        assert peer == server.getpeername() == ("::ffff:127.0.0.1", client.getsockname()[1], 0, 0)
        assert sockets.local_address(fd, socket.AF_INET6) == server.getsockname()


def test_a_client_that_is_gone_already_is_accepted_with_its_address(sockets, stack):
    listener = listening(stack, socket.AF_INET, ("127.0.0.1", 0))
    client = connected(stack, listener)
    address = client.getsockname()
    reset(client)
    fd, peer = sockets.accept(listener)
    os.close(fd)
    assert peer == address


@pytest.mark.parametrize("address", [("127.0.0.1", 0), ("::1", 0)], ids=["ipv4", "ipv6"])
def test_a_socket_is_connected_once_it_has_a_peer(sockets, stack, address):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = listening(stack, family, address)
    client = stack.enter_context(socket.socket(family))
    assert not sockets.is_connected(client.fileno())
    client.connect(listener.getsockname())
    assert sockets.is_connected(client.fileno())


def test_nodelay_is_set_on_tcp_and_harms_nothing_else(sockets, stack, ends):
    sock = stack.enter_context(socket.socket())
    sockets.nodelay(sock.fileno())
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    sockets.nodelay(ends[0].fileno())
    ends[0].send(b"abc")
    assert ends[1].recv(10) == b"abc"


def test_shutdown_ends_one_direction(sockets, ends):
    left, right = ends
    for _ in range(2):
        sockets.shutdown(left.fileno())
    assert right.recv(10) == b""
    right.send(b"abc")
    assert left.recv(10) == b"abc"
    right.close()
    sockets.shutdown(left.fileno())


def test_shutdown_of_a_reset_connection_is_no_error(sockets, stack):
    listener = listening(stack, socket.AF_INET, ("127.0.0.1", 0))
    client = connected(stack, listener)
    listener.setblocking(True)
    reset(listener.accept()[0])
    sockets.shutdown(client.fileno())
