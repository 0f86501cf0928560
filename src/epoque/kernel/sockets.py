"""Operations on a non-blocking stream socket: recv(2), send(2), sendmsg(2), accept4(2), shutdown(2). Interpreted twin.

Sockets are named by descriptor, so that a transport need not hold a `socket.socket`. read(2) and write(2) on a socket
are recv(2) and send(2) without flags; Python ignores SIGPIPE. The functions whose name begins with try_ are for
coroutines, which have a `socket.socket`.
"""

import contextlib
import os
import socket

from epoque.kernel.masks import JOINED, SEND_PIECES, SMALL

__all__ = [
    "Receiver",
    "accept",
    "local_address",
    "no_sigpipe",
    "nodelay",
    "recv_into",
    "send",
    "send_many",
    "shutdown",
    "try_recv",
    "try_recv_into",
    "try_send",
]

LARGEST_BLOCK = 8 * 1024 * 1024  # bytes; never touched
bytes(LARGEST_BLOCK)  # has glibc keep up to twice as much freed memory for what comes next, as the twin says

_WOULD_BLOCK = (BlockingIOError, InterruptedError)


class Receiver:
    """Where a loop receives: `recv` gives what one system call brings, as bytes of exactly that length."""

    __slots__ = ("_data", "_size", "full")

    def __init__(self, size):
        self._data = b""
        self._size = size
        self.full = False  # the last receive has taken all the room there was; there may be more

    def recv(self, fd):
        """Bytes, empty at the end of the stream, or None when it would block."""
        try:
            data = os.read(fd, self._size)
        except BlockingIOError:
            return None
        self.full = len(data) == self._size
        return data

    def fill(self, fd):
        """Receive without making bytes of it; return the count, 0 at the end of the stream, or -1."""
        data = self.recv(fd)
        self._data = data or b""
        return -1 if data is None else len(data)

    def get(self):
        """What `fill` brought, as bytes."""
        return self._data


def try_recv(sock, size):
    """Up to `size` bytes, none at the end of the stream, or None when it would block."""
    try:
        return sock.recv(size)
    except _WOULD_BLOCK:
        return None


def try_recv_into(sock, buffer):
    """Receive into a writable buffer; return the count, 0 at the end of the stream, or -1 when it would block."""
    try:
        return sock.recv_into(buffer)
    except _WOULD_BLOCK:
        return -1


def try_send(sock, data):
    """Send from a buffer; return the count, or -1 when it would block."""
    try:
        return sock.send(data)
    except _WOULD_BLOCK:
        return -1


def recv_into(fd, buffer):
    """Receive into a writable buffer; return the count, 0 at the end of the stream, or -1 when it would block."""
    try:
        return os.readv(fd, (buffer,))
    except BlockingIOError:
        return -1


def send(fd, data, offset):
    """Send `data` from `offset` on; return the count, or -1 when it would block."""
    try:
        return os.write(fd, memoryview(data)[offset:] if offset else data)
    except BlockingIOError:
        return -1


def send_many(fd, pieces, offset, size):
    """Send a list of buffers, the first from `offset` on, `size` bytes in all, by one system call; the count, or -1.

    Small ones are joined: for the kernel to find one after the other takes longer.
    """
    batch = pieces[:SEND_PIECES]
    if offset:
        batch[0] = memoryview(batch[0])[offset:]
    try:
        if size <= min(JOINED, len(batch) * SMALL) and len(batch) == len(pieces):
            return os.write(fd, b"".join(batch))
        return os.writev(fd, batch)
    except BlockingIOError:
        return -1


def accept(listener):
    """Accept from a non-blocking `socket.socket`: (descriptor, peer's address), or None when nobody waits."""
    try:
        connection, address = listener.accept()
    except BlockingIOError:
        return None
    connection.setblocking(False)
    return connection.detach(), address


def local_address(fd, family):
    """getsockname(2) of a connected socket, as `socket.socket.getsockname` gives it."""
    connection = socket.socket(family, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        return connection.getsockname()
    finally:
        connection.detach()


def peer_address(fd, family):
    """getpeername(2), likewise."""
    connection = socket.socket(family, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        return connection.getpeername()
    finally:
        connection.detach()


def is_connected(fd):
    """Whether getpeername(2) knows of a peer."""
    try:
        peer_address(fd, socket.AF_INET)
    except OSError:
        return False
    return True


def nodelay(fd):
    """Set TCP_NODELAY; a socket that is not TCP's stays as it is."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=fd)
    try:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    finally:
        connection.detach()


def no_sigpipe(fd):
    """Let sending to a peer that has gone be an error only. Nothing to do: Python ignores the signal."""


def shutdown(fd):
    """Send FIN: shutdown(SHUT_WR). A peer that is gone already is no error."""
    if fd < 0:
        return
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
    finally:
        connection.detach()
