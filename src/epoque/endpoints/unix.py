"""How does a path, an abstract name or an existing Unix socket become a connection or a server? See unix(7)."""

from __future__ import annotations

import errno
import functools
import os
import socket
import stat
import sys
from asyncio.log import logger
from typing import TYPE_CHECKING, Any, TypeVar

from epoque.endpoints import tls
from epoque.endpoints.connect import nonblocking_socket
from epoque.endpoints.tcp import attach, launch
from epoque.server import Server

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from ssl import SSLContext

    Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

    Proto = TypeVar("Proto", bound=asyncio.BaseProtocol)

_CLEANUP = sys.version_info >= (3, 13)  # since then asyncio removes a server's path when the server closes


async def create_unix_connection(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    path: Path | None = None,
    *,
    ssl: SSLContext | bool | None = None,
    sock: socket.socket | None = None,
    server_hostname: str | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
) -> tuple[asyncio.Transport, Proto]:
    """Connect to a Unix stream socket, or take a connected one; return the transport and the protocol.

    A path that begins with a zero byte is an abstract name (Linux). Raises ValueError for arguments that do not go
    together, OSError if the connection fails.
    """
    assert server_hostname is None or isinstance(server_hostname, str)
    if ssl and server_hostname is None:
        raise ValueError("you have to pass server_hostname when using ssl")
    if server_hostname is not None and not ssl:
        raise ValueError("server_hostname is only meaningful with ssl")
    tls.check_timeouts(ssl, ssl_handshake_timeout, ssl_shutdown_timeout)
    owned = path is not None
    if path is not None:
        if sock is not None:
            raise ValueError("path and sock can not be specified at the same time")
        path = os.fspath(path)
        sock = nonblocking_socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            await loop.sock_connect(sock, path)
        except BaseException:
            sock.close()
            raise
    elif sock is None:
        raise ValueError("no path and sock were specified")
    else:
        _check_unix_stream(sock)
    return await attach(
        loop,
        sock,
        protocol_factory,
        owned=owned,
        ssl=ssl,
        server_hostname=server_hostname,
        handshake_timeout=ssl_handshake_timeout,
        shutdown_timeout=ssl_shutdown_timeout,
    )


async def create_unix_server(
    loop: Any,
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    path: Path | None = None,
    *,
    sock: socket.socket | None = None,
    backlog: int = 100,
    ssl: SSLContext | bool | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
    start_serving: bool = True,
    cleanup_socket: bool = _CLEANUP,
) -> Server:
    """Listen on a path, from which a socket left behind is removed first, or on a bound Unix stream socket.

    With cleanup_socket (the default from Python 3.13 on) closing the server removes the path, if the socket there is
    still the server's own. Raises ValueError or TypeError for arguments that do not go together, OSError if the path
    cannot be bound.
    """
    if isinstance(ssl, bool):
        raise TypeError("ssl argument must be an SSLContext or None")
    tls.check_timeouts(ssl, ssl_handshake_timeout, ssl_shutdown_timeout)
    owned = path is not None
    if path is not None:
        if sock is not None:
            raise ValueError("path and sock can not be specified at the same time")
        sock = _bind(os.fspath(path))
    elif sock is None:
        raise ValueError("path was not specified, and no sock specified")
    else:
        _check_unix_stream(sock)
    on_close = _remover(sock) if cleanup_socket else None
    server = Server(
        loop, [sock], protocol_factory, ssl, backlog, ssl_handshake_timeout, ssl_shutdown_timeout, on_close=on_close
    )
    await launch(server, [sock], start_serving, owned=owned)
    return server


def _check_unix_stream(sock: socket.socket) -> None:
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
        raise ValueError(f"A UNIX Domain Stream Socket was expected, got {sock!r}")


def _in_file_system(path: str | bytes) -> bool:
    """Is this neither an abstract name nor no name at all?"""
    return path[:1] not in ("", b"", "\0", b"\0")


def remove_stale(path: str | bytes) -> None:
    """Remove a socket that was left behind where another is to be bound; what is no socket stays."""
    if not _in_file_system(path):
        return
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.remove(path)
    except FileNotFoundError:
        pass
    except OSError as exc:  # a directory in which one may only make sockets
        logger.error("Unable to check or remove stale UNIX socket %r: %r", path, exc)


def _bind(path: str | bytes) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        remove_stale(path)
        sock.bind(path)
    except BaseException as exc:
        sock.close()
        if isinstance(exc, OSError) and exc.errno == errno.EADDRINUSE:
            raise OSError(errno.EADDRINUSE, f"Address {path!r} is already in use") from None
        raise
    return sock


def _remover(sock: socket.socket) -> Callable[[], None] | None:
    """What removes the path of a bound socket, or None if it has no path."""
    path = sock.getsockname()
    if not _in_file_system(path):
        return None
    try:
        path = os.path.abspath(path)  # the process may change its directory
        status = os.stat(path)
    except OSError:
        return None
    return functools.partial(_remove, path, (status.st_dev, status.st_ino), os.getpid())


def _remove(path: str, identity: tuple[int, int], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child closes its copy of the server; the path is still in use
    try:
        status = os.stat(path)
        if (status.st_dev, status.st_ino) == identity:
            os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as exc:
        logger.error("Unable to clean up listening UNIX socket %r: %r", path, exc)
