"""How do a host and a port, or a socket that exists already, become a connection or a server?

A socket made here is closed here if anything fails or is cancelled before a transport owns it. A socket that the caller
brought stays the caller's until a transport owns it, which then closes it, even if the call is cancelled; from Python
3.14 on it is closed, too, if the transport cannot be made.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import socket
import sys
from asyncio.log import logger
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from epoque.endpoints import names, tls
from epoque.endpoints.bind import Options, bind_all
from epoque.endpoints.connect import connect, connect_any, interleaved
from epoque.endpoints.sock import reject_ssl
from epoque.server import Server
from epoque.transports import base
from epoque.transports.stream import connected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from epoque.endpoints.names import AddrInfo

Proto = TypeVar("Proto", bound=asyncio.BaseProtocol)
TAKES_SOCKETS = sys.version_info >= (3, 14)


async def create_connection(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    host: str | bytes | None = None,
    port: int | str | bytes | None = None,
    *,
    ssl: SSLContext | bool | None = None,
    family: int = 0,
    proto: int = 0,
    flags: int = 0,
    sock: socket.socket | None = None,
    local_addr: tuple[str, int] | None = None,
    server_hostname: str | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
    happy_eyeballs_delay: float | None = None,
    interleave: int | None = None,
    all_errors: bool = False,
) -> tuple[asyncio.Transport, Proto]:
    """Connect to host and port, or take a connected stream socket; return the transport and the protocol.

    With happy_eyeballs_delay (seconds, RFC 8305 advises 0.25) addresses are tried side by side, each that long after
    the one before or as soon as that has failed; interleave says after how many of the first family others take turns.

    Raises ValueError or TypeError for arguments that do not go together, OSError if no address accepts (all_errors: an
    ExceptionGroup of what each of them said), ssl.SSLError if the handshake fails.
    """
    if server_hostname is not None and not ssl:
        raise ValueError("server_hostname is only meaningful with ssl")
    if server_hostname is None and ssl:
        if not host:
            raise ValueError("You must set server_hostname when using ssl without a host")
        server_hostname = host  # type: ignore[assignment]  # bytes are as good
    tls.check_timeouts(ssl, ssl_handshake_timeout, ssl_shutdown_timeout)
    if sock is not None:
        reject_ssl(sock)
    owned = host is not None or port is not None
    if owned:
        if sock is not None:
            raise ValueError("host/port and sock can not be specified at the same time")
        info = names.in_figures((host, port), family, socket.SOCK_STREAM, proto)
        if info is not None and local_addr is None and not all_errors:
            sock = await connect(loop, [], info, None)  # there is no choice
        else:
            ask = {"family": family, "type": socket.SOCK_STREAM, "proto": proto, "flags": flags}
            infos = _not_empty(await names.resolve(loop, (host, port), **ask))
            local_infos = None if local_addr is None else _not_empty(await names.resolve(loop, local_addr, **ask))
            if interleave is None and happy_eyeballs_delay is not None:
                interleave = 1
            if interleave:
                infos = interleaved(infos, interleave)
            sock = await connect_any(loop, infos, local_infos, happy_eyeballs_delay, all_errors)
    elif sock is None:
        raise ValueError("host and port was not specified and no sock specified")
    else:
        _check_stream(sock)
    transport, protocol = await attach(
        loop,
        sock,
        protocol_factory,
        owned=owned,
        ssl=ssl,
        server_hostname=server_hostname,
        handshake_timeout=ssl_handshake_timeout,
        shutdown_timeout=ssl_shutdown_timeout,
    )
    if loop.get_debug():
        end = transport.get_extra_info("socket")
        logger.debug("%r connected to %s:%r: (%r, %r)", end, host, port, transport, protocol)
    return transport, protocol


async def create_server(
    loop: Any,
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    host: str | bytes | Sequence[str | bytes | None] | None = None,
    port: int | str | bytes | None = None,
    *,
    family: int = socket.AF_UNSPEC,
    flags: int = socket.AI_PASSIVE,
    sock: socket.socket | None = None,
    backlog: int = 100,
    ssl: SSLContext | bool | None = None,
    reuse_address: bool | None = None,
    reuse_port: bool | None = None,
    keep_alive: bool | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
    start_serving: bool = True,
) -> Server:
    """Listen on all addresses of the host or hosts (None or "": of this machine), or on a bound stream socket.

    Port 0 takes one ephemeral port for all addresses. Raises ValueError or TypeError for arguments that do not go
    together, OSError if an address cannot be bound; of addresses that this machine does not have, one must remain.
    """
    if isinstance(ssl, bool):
        raise TypeError("ssl argument must be an SSLContext or None")
    tls.check_timeouts(ssl, ssl_handshake_timeout, ssl_shutdown_timeout)
    if sock is not None:
        reject_ssl(sock)
    owned = host is not None or port is not None
    if owned:
        if sock is not None:
            raise ValueError("host/port and sock can not be specified at the same time")
        infos = await _resolve_hosts(loop, host, port, family, flags)
        options = Options(reuse_address is None or reuse_address, reuse_port, keep_alive)
        sockets = bind_all(loop, infos, options)
    elif sock is None:
        raise ValueError("Neither host/port nor sock were specified")
    else:
        _check_stream(sock)
        sockets = [sock]
    server = Server(loop, sockets, protocol_factory, ssl, backlog, ssl_handshake_timeout, ssl_shutdown_timeout)
    await launch(server, sockets, start_serving, owned=owned)
    if loop.get_debug():
        logger.info("%r is serving", server)
    return server


async def connect_accepted_socket(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    sock: socket.socket,
    *,
    ssl: SSLContext | bool | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
) -> tuple[asyncio.Transport, Proto]:
    """Take a connection that was accepted elsewhere, as the server's end; return the transport and the protocol."""
    _check_stream(sock)
    tls.check_timeouts(ssl, ssl_handshake_timeout, ssl_shutdown_timeout)
    reject_ssl(sock)
    transport, protocol = await attach(
        loop,
        sock,
        protocol_factory,
        owned=False,
        ssl=ssl,
        server_side=True,
        server_hostname="",
        handshake_timeout=ssl_handshake_timeout,
        shutdown_timeout=ssl_shutdown_timeout,
    )
    if loop.get_debug():
        logger.debug("%r handled: (%r, %r)", transport.get_extra_info("socket"), transport, protocol)
    return transport, protocol


async def attach(
    loop: Any,
    sock: socket.socket,
    protocol_factory: Callable[[], Proto],
    *,
    owned: bool,
    ssl: SSLContext | bool | None = None,
    server_side: bool = False,
    server_hostname: str | None = None,
    handshake_timeout: float | None = None,
    shutdown_timeout: float | None = None,
) -> tuple[asyncio.Transport, Proto]:
    """Put a transport, with TLS if asked for, between a connected socket and a new protocol, and wait until it runs.

    An owned socket is new, and closed if the transport cannot be made. Once it is made, it closes the socket in any
    case.
    """
    secured = None
    brought = not owned
    owned = owned or TAKES_SOCKETS
    try:
        if brought or sock.gettimeout() != 0:  # a proxy's connect() may have left it blocking
            sock.setblocking(False)
        protocol = protocol_factory()
    except BaseException:
        if owned:
            sock.close()
        raise
    if brought:
        loop._ensure_fd_no_transport(sock)  # else it is that transport's
    try:
        waiter = loop.create_future()
        if ssl:
            secured = tls.secure(
                loop,
                protocol,
                ssl,
                waiter,
                server_side=server_side,
                server_hostname=server_hostname,
                handshake_timeout=handshake_timeout,
                shutdown_timeout=shutdown_timeout,
            )
            connected(loop, sock, secured, lent=brought)
        else:
            stream = connected(loop, sock, protocol, waiter, lent=brought)
    except BaseException:
        if owned:
            sock.close()
        raise
    transport: asyncio.Transport = stream if secured is None else secured
    try:
        await waiter
    except BaseException:
        transport.close()
        raise
    finally:
        del waiter  # it may hold the exception, whose traceback refers to this frame
    return transport, protocol


def make_socket_transport(
    loop: Any, sock: socket.socket, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
) -> asyncio.Transport:
    transport: asyncio.Transport = connected(loop, sock, protocol, waiter, extra, server, lent=True)
    return transport


async def launch(server: Server, sockets: Iterable[socket.socket], start_serving: bool, *, owned: bool) -> None:
    """Start a new server if asked to. If that fails, its sockets are closed, but a caller's only if it has listened."""
    try:
        for sock in sockets:
            sock.setblocking(False)
        if start_serving:
            await server.start_serving()
    except BaseException:
        if owned or server.is_serving():
            server.close()
        raise


def _check_stream(sock: socket.socket) -> None:
    if base.type_of(sock) != socket.SOCK_STREAM:
        raise ValueError(f"A Stream Socket was expected, got {sock!r}")


def _not_empty(infos: list[AddrInfo]) -> list[AddrInfo]:
    if not infos:
        raise OSError("getaddrinfo() returned empty list")
    return infos


async def _resolve_hosts(loop: Any, host: Any, port: Any, family: int, flags: int) -> list[AddrInfo]:
    """The addresses of a host or of several, each once, in the order given."""
    single = isinstance(host, (str, bytes)) or not isinstance(host, Iterable)
    hosts = [host or None] if single else list(host)
    ask = functools.partial(names.resolve, loop, family=family, type=socket.SOCK_STREAM, flags=flags)
    answers = await asyncio.gather(*(ask((name, port)) for name in hosts))
    for name, infos in zip(hosts, answers, strict=True):
        if not infos:
            raise OSError(f"getaddrinfo({name!r}) returned empty list")
    return list(dict.fromkeys(itertools.chain.from_iterable(answers)))
