"""How does a file leave by a socket? By sendfile(2) within the kernel; where that cannot be, by reading and writing.

A transport owns its descriptor, and the selector knows one source per descriptor. So nothing is registered here: the
transport lends its output, sends what it holds, and then answers with futures when there is room for more.

`offset` and `count` are in bytes; without a count everything up to the end of the file is sent. Afterwards, also after
an error or a cancellation, the file's position is behind the last byte sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import socket
import sys
from asyncio import constants
from typing import TYPE_CHECKING, Any

from epoque.endpoints.sock import check

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import IO

_LARGEST = sys.maxsize // 2 + 1  # bytes of one call; more overflows on 32-bit systems
_UNSUPPORTED = constants._SendfileMode.UNSUPPORTED
_NATIVE = constants._SendfileMode.TRY_NATIVE


async def sendfile(
    loop: Any,
    transport: asyncio.WriteTransport,
    file: IO[bytes],
    offset: int = 0,
    count: int | None = None,
    *,
    fallback: bool = True,
) -> int:
    """Send a file through a stream transport, after what was written to it, and return the number of bytes.

    Meanwhile the transport reads nothing, and refuses writes (RuntimeError) while the kernel does the sending. Over TLS
    and where the kernel refuses, the file is read in the default executor. Without fallback that is an error:
    SendfileNotAvailableError, or RuntimeError for transports that cannot do without. ConnectionError if the connection
    ends before the file does.
    """
    if transport.is_closing():
        raise RuntimeError("Transport is closing")
    mode = getattr(transport, "_sendfile_compatible", _UNSUPPORTED)
    if mode is _UNSUPPORTED:
        raise RuntimeError(f"sendfile is not supported for transport {transport!r}")
    _check_range(offset, count)
    if mode is _NATIVE:
        try:
            return await loop._sendfile_native(transport, file, offset, count)  # type: ignore[no-any-return]
        except asyncio.SendfileNotAvailableError:
            if not fallback:
                raise
    if not fallback:
        raise RuntimeError(f"fallback is disabled and native sendfile is not supported for transport {transport!r}")
    return await _copy_to_transport(loop, transport, file, offset, count)


async def sock_sendfile(
    loop: Any, sock: socket.socket, file: IO[bytes], offset: int = 0, count: int | None = None, *, fallback: bool = True
) -> int:
    """Send a file through a connected stream socket and return the number of bytes.

    Where the kernel refuses, the file is read in the default executor, or without fallback SendfileNotAvailableError is
    raised. Other errors are those of the socket.
    """
    check(loop, sock)
    _check_file(file)
    if sock.type != socket.SOCK_STREAM:
        raise ValueError("only SOCK_STREAM type sockets are supported")
    _check_range(offset, count)
    try:
        return await loop._sock_sendfile_native(sock, file, offset, count)  # type: ignore[no-any-return]
    except asyncio.SendfileNotAvailableError:
        if not fallback:
            raise
    return await _copy_to_socket(loop, sock, file, offset, count)


# By the kernel.


async def sendfile_native(loop: Any, transport: Any, file: IO[bytes], offset: int, count: int | None) -> int:
    """The part of `sendfile` that has no fallback: SendfileNotAvailableError if nothing could be sent this way."""
    _check_file(file)

    def target() -> int:
        if transport.is_closing():
            raise ConnectionError("Connection is closed by peer")
        return transport._sock_fd  # type: ignore[no-any-return]

    transport._hold_output()
    try:
        if transport.get_write_buffer_size():
            await transport._room()
        target()
        return await _send(file, offset, count, target, transport._room)
    finally:
        transport._release_output()


async def sock_sendfile_native(loop: Any, sock: socket.socket, file: IO[bytes], offset: int, count: int | None) -> int:
    """The part of `sock_sendfile` that has no fallback: SendfileNotAvailableError if nothing could be sent this way."""
    return await _send(file, offset, count, sock.fileno, lambda: loop._writable(sock))


async def _send(
    file: IO[bytes], offset: int, count: int | None, target: Callable[[], int], room: Callable[[], Awaitable[None]]
) -> int:
    """Call sendfile(2) on the descriptor that `target` gives; `room` waits until it is worth another call."""
    source, size = _regular(file)
    position = None  # of the file, where we know it
    total = 0
    try:
        while count or size:
            block = count - total if count else max(size - offset - total, 1)  # behind the end the kernel says so
            fd = target()
            try:
                sent = os.sendfile(fd, source, offset + total, min(block, _LARGEST))
            except (BlockingIOError, InterruptedError):
                sent = -1
            except OSError as exc:
                raise _error(exc, total) from exc
            total += max(sent, 0)
            if sent == 0 or total == count:
                return total
            if not count and sent == block:  # all that there was; whether the file has grown since, its end tells
                size = position = os.lseek(source, 0, os.SEEK_END)
                if position <= offset + total:
                    return total
                continue
            await room()
        return 0
    finally:
        if position != offset + total:
            with contextlib.suppress(OSError):  # what has no position is none for sendfile(2) either
                os.lseek(source, offset + total, os.SEEK_SET)


def _regular(file: IO[bytes]) -> tuple[int, int]:
    """Descriptor and size in bytes of something that might be a regular file."""
    if not hasattr(os, "sendfile"):
        raise asyncio.SendfileNotAvailableError("os.sendfile() is not available")
    try:
        descriptor = file.fileno()
        return descriptor, os.fstat(descriptor).st_size
    except (AttributeError, io.UnsupportedOperation, OSError):
        raise asyncio.SendfileNotAvailableError("not a regular file") from None


def _error(exc: OSError, total: int) -> Exception:
    if total == 0:  # most likely the kind of file; if it was the connection, the fallback will fail too
        return asyncio.SendfileNotAvailableError("os.sendfile call failed")
    if exc.errno == errno.ENOTCONN:  # macOS says so of a connection that has broken in between
        return ConnectionError("socket is not connected", errno.ENOTCONN)
    return exc


# By reading and writing.


async def _copy_to_socket(loop: Any, sock: socket.socket, file: IO[bytes], offset: int, count: int | None) -> int:
    reader = _Reader(loop, file, offset, count)
    try:
        while data := await reader.read():
            await loop.sock_sendall(sock, data)
            reader.total += len(data)
        return reader.total
    finally:
        reader.finish()


async def _copy_to_transport(loop: Any, transport: Any, file: IO[bytes], offset: int, count: int | None) -> int:
    reader = _Reader(loop, file, offset, count)
    stand_in = _StandIn(loop, transport)
    try:
        while data := await reader.read():
            await stand_in.drain()
            transport.write(data)
            reader.total += len(data)
        return reader.total
    finally:
        reader.finish()
        stand_in.restore()


class _Reader:
    """Reads a file block by block, in the default executor."""

    def __init__(self, loop: Any, file: Any, offset: int, count: int | None) -> None:
        if hasattr(file, "seek"):
            file.seek(offset)
        self.loop = loop
        self.file = file
        self.offset = offset
        self.count = count
        self.total = 0  # bytes that were sent
        self.moved = False  # the position is no longer what it was, or about to change
        size = constants.SENDFILE_FALLBACK_READBUFFER_SIZE
        self.buffer = bytearray(min(count, size) if count else size)

    async def read(self) -> bytes:
        view = memoryview(self.buffer)
        if self.count:
            view = view[: self.count - self.total]
        if not view:
            return b""
        moved, self.moved = self.moved, True
        got = await self.loop.run_in_executor(None, self.file.readinto, view) or 0
        self.moved = moved or got > 0
        return bytes(view[:got])  # a transport may keep what it is given

    def finish(self) -> None:
        if self.moved and hasattr(self.file, "seek"):
            self.file.seek(self.offset + self.total)


class _StandIn(asyncio.Protocol):
    """Takes a protocol's place while a file is copied: hears of the water marks, and of the connection's end."""

    def __init__(self, loop: Any, transport: Any) -> None:
        self.loop = loop
        self.transport = transport
        self.protocol = transport.get_protocol()
        self.told_to_pause = transport._protocol_paused  # what the protocol knows
        self.resume_reading = transport.is_reading()
        self.lost = False
        self.waiter: asyncio.Future[None] | None = loop.create_future() if self.told_to_pause else None
        transport.pause_reading()
        transport.set_protocol(self)

    async def drain(self) -> None:
        """Wait until writing is welcome."""
        if not self.transport.is_closing() and self.waiter is not None:
            await self.waiter
        if self.transport.is_closing():
            raise ConnectionError("Connection closed by peer")

    def restore(self) -> None:
        """Put the protocol back, and tell it what it has missed."""
        if self.lost:
            return
        self.transport.set_protocol(self.protocol)
        if self.resume_reading:
            self.transport.resume_reading()
        paused = self.transport._protocol_paused
        if paused and not self.told_to_pause:
            self.protocol.pause_writing()
        elif self.told_to_pause and not paused:
            self.protocol.resume_writing()

    def pause_writing(self) -> None:
        if self.waiter is None:
            self.waiter = self.loop.create_future()

    def resume_writing(self) -> None:
        self._wake()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = True
        self._wake()
        self.protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        raise RuntimeError("Invalid state: reading should be paused")

    def eof_received(self) -> None:
        raise RuntimeError("Invalid state: reading should be paused")

    def _wake(self) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


# What is asked for.


def _check_file(file: object) -> None:
    if "b" not in getattr(file, "mode", "b"):
        raise ValueError("file should be opened in binary mode")


def _check_range(offset: object, count: object) -> None:
    if count is not None:
        if not isinstance(count, int):
            raise TypeError(f"count must be a positive integer (got {count!r})")
        if count <= 0:
            raise ValueError(f"count must be a positive integer (got {count!r})")
    if not isinstance(offset, int):
        raise TypeError(f"offset must be a non-negative integer (got {offset!r})")
    if offset < 0:
        raise ValueError(f"offset must be a non-negative integer (got {offset!r})")
