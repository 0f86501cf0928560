"""How does a coroutine read from, write to, connect or accept on a plain non-blocking socket?

Each operation is tried at once and waits only if it would block. The callback of the selector merely wakes the
coroutine, which then repeats the operation itself: data received, or a connection accepted, in a callback would be lost
with a task that is cancelled between the callback and its own next step.

The socket must be non-blocking (checked in debug mode: ValueError), must not be an ssl.SSLSocket (TypeError) and must
not be in use by a transport (RuntimeError, when the operation has to wait). Other errors are those of the socket.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import TYPE_CHECKING, Any

from epoque.endpoints import names
from epoque.kernel import sockets
from epoque.transports import base

try:
    import ssl
except ImportError:  # an interpreter built without OpenSSL
    ssl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EINTR)
_WOULD_BLOCK = (BlockingIOError, InterruptedError)
_Socket = socket.socket  # sockets of this very type pass without further look at them
_plain_connect = socket.SocketType.connect  # that of `socket.socket` may have been replaced before this is imported

_IP = (int(socket.AF_INET), int(socket.AF_INET6))

_RETRY_FIRST, _RETRY_MAX = 0.001, 0.05  # seconds between attempts to enter the full queue of a Unix listener


async def sock_recv(loop: Any, sock: socket.socket, n: int) -> bytes:
    """Return up to n bytes, b"" at the end of the stream; see recv(2)."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    while (data := sockets.try_recv(sock, n)) is None:
        await loop._readable(sock)
    return data


async def sock_recv_into(loop: Any, sock: socket.socket, buf: WriteableBuffer) -> int:
    """Receive into buf and return the number of bytes, 0 at the end of the stream; see recv(2)."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    while (count := sockets.try_recv_into(sock, buf)) < 0:
        await loop._readable(sock)
    return count


async def sock_recvfrom(loop: Any, sock: socket.socket, bufsize: int) -> tuple[bytes, Any]:
    """Return a datagram, cut to bufsize bytes, and the sender's address; see recvfrom(2)."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    while True:
        try:
            return sock.recvfrom(bufsize)
        except _WOULD_BLOCK:
            pass
        await loop._readable(sock)


async def sock_recvfrom_into(loop: Any, sock: socket.socket, buf: WriteableBuffer, nbytes: int = 0) -> tuple[int, Any]:
    """Receive a datagram of up to nbytes (0: the size of buf) and return its length and the sender's address."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    while True:
        try:
            return sock.recvfrom_into(buf, nbytes)
        except _WOULD_BLOCK:
            pass
        await loop._readable(sock)


async def sock_sendall(loop: Any, sock: socket.socket, data: ReadableBuffer) -> None:
    """Send all of data, any buffer, without copying it unless it has gaps; it must not change until this returns.

    After an error or a cancellation an unknown part of data has been sent.
    """
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    try:
        sent = sockets.try_send(sock, data)
    except BufferError:
        return await sock_sendall(loop, sock, memoryview(data).tobytes())
    if type(data) is bytes and sent == len(data):
        return
    sent = max(sent, 0)
    with memoryview(data) as buffer:
        if sent == buffer.nbytes:
            return
        with _flat(buffer) as view:
            while sent < len(view):
                await loop._writable(sock)
                sent += max(sockets.try_send(sock, view[sent:]), 0)


async def sock_sendto(loop: Any, sock: socket.socket, data: ReadableBuffer, address: Any) -> int:
    """Send any buffer as one datagram and return its size in bytes; see sendto(2). Host names are looked up first."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    if names.needs_lookup(address):
        address = await _resolved(loop, sock, address)
    while True:
        try:
            return sock.sendto(data, address)
        except _WOULD_BLOCK:
            pass
        except BufferError:
            data = memoryview(data).tobytes()
            continue
        await loop._writable(sock)


async def sock_connect(loop: Any, sock: socket.socket, address: Any) -> None:
    """Connect to an address, host names are looked up first; see connect(2). A cancelled socket is best closed."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    if not names.is_plain(address, base.family_of(sock)):
        address = await _resolved(loop, sock, address)
    pause = _RETRY_FIRST
    while True:
        error = _connect(sock, address)
        if error == 0:
            return
        if error in _UNDER_WAY:
            break
        if error != errno.EAGAIN or base.family_of(sock) != socket.AF_UNIX:
            raise OSError(error, os.strerror(error))
        # The queue of a Unix listener is full: nothing is under way, and no event will tell that there is room.
        await asyncio.sleep(pause)
        pause = min(2 * pause, _RETRY_MAX)
    if sockets.is_connected(sock.fileno()):
        return  # to this very machine: the other end was there at once, and no event need be waited for
    await loop._writable(sock)
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, f"Connect call failed {address}")


async def sock_accept(loop: Any, sock: socket.socket) -> tuple[socket.socket, Any]:
    """Return the next connection of a listening socket, non-blocking, and its peer's address; see accept(2)."""
    if type(sock) is not _Socket or loop.get_debug():
        check(loop, sock)
    while True:
        try:
            conn, address = sock.accept()
            conn.setblocking(False)
            return conn, address
        except _WOULD_BLOCK:
            pass
        await loop._readable(sock)


def _connect(sock: socket.socket, address: Any) -> int:
    """connect(2); return its errno. Who has a ``connect`` of his own (a proxy, a test that guards the net) is heard."""
    if type(sock) is _Socket and _Socket.connect is _plain_connect:
        return sock.connect_ex(address)  # an exception would take longer than the call
    try:
        sock.connect(address)
    except _WOULD_BLOCK as exc:
        return exc.errno or errno.EINPROGRESS
    return 0


def reject_ssl(sock: socket.socket) -> None:
    """Raise TypeError for a socket that does its own TLS, and may have to write before it can read."""
    if ssl is not None and isinstance(sock, ssl.SSLSocket):
        raise TypeError("Socket cannot be of type SSLSocket")


def check(loop: Any, sock: socket.socket) -> None:
    """Raise TypeError or ValueError for a socket that no operation here can use."""
    reject_ssl(sock)
    if loop.get_debug() and sock.gettimeout() != 0:
        raise ValueError("the socket must be non-blocking")


def _flat(buffer: memoryview) -> memoryview:
    """The same memory as single bytes; a copy where memoryview cannot cast (ctypes structures, record arrays)."""
    try:
        return buffer.cast("B")
    except (TypeError, ValueError):
        return memoryview(buffer.tobytes())


async def _resolved(loop: Any, sock: socket.socket, address: Any) -> Any:
    """The address as connect(2) takes it: looked up for IP sockets, untouched for all others (Unix, vsock ...)."""
    family = base.family_of(sock)
    if family not in _IP or not isinstance(address, (tuple, list)):
        return address  # what is no address at all is refused by the socket
    kind, proto = sock.type, sock.proto
    if kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM) and proto not in (0, socket.IPPROTO_TCP, socket.IPPROTO_UDP):
        proto = 0  # getaddrinfo(3) does not know MPTCP, whose addresses are TCP's
    infos = await names.resolve(loop, address, family=family, type=kind, proto=proto)
    if not infos:
        raise OSError("getaddrinfo() returned empty list")
    return infos[0][4]
