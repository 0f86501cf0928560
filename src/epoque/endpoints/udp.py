"""How do addresses, paths or a socket that exists already become a datagram endpoint?

A socket made here is closed here if anything fails or is cancelled before a transport owns it; one that the caller
brought stays the caller's until then.
"""

from __future__ import annotations

import socket
import sys
from asyncio.log import logger
from typing import TYPE_CHECKING, Any, TypeVar

from epoque.endpoints import names
from epoque.endpoints.bind import set_reuse_port
from epoque.endpoints.unix import remove_stale
from epoque.transports.datagram import opened

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    Proto = TypeVar("Proto", bound=asyncio.BaseProtocol)

# A family and a protocol with a local and a remote address of theirs, either None.
Candidate = tuple[int, int, Any, Any]

_EXPECTED = "A datagram socket" if sys.version_info >= (3, 13) else "A UDP Socket"


async def create_datagram_endpoint(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    local_addr: tuple[str, int] | str | None = None,
    remote_addr: tuple[str, int] | str | None = None,
    *,
    family: int = 0,
    proto: int = 0,
    flags: int = 0,
    reuse_port: bool | None = None,
    allow_broadcast: bool | None = None,
    sock: socket.socket | None = None,
) -> tuple[asyncio.DatagramTransport, Proto]:
    """Open a datagram endpoint on (host, port) pairs or Unix paths, or on a socket; return transport and protocol.

    With a remote address the socket is connected, unless broadcasts are allowed. A Unix socket left behind at the local
    path is removed first. Raises ValueError or TypeError for arguments that do not go together, OSError if no address
    can be bound or connected to.
    """
    owned = sock is None
    remote = None
    if sock is None:
        candidates = await _candidates(loop, local_addr, remote_addr, family, proto, flags)
        sock, remote = await _open_any(loop, candidates, bool(reuse_port), bool(allow_broadcast))
    else:
        _check_datagram(sock)
        options = {
            "local_addr": local_addr,
            "remote_addr": remote_addr,
            "family": family,
            "proto": proto,
            "flags": flags,
            "reuse_port": reuse_port,
            "allow_broadcast": allow_broadcast,
        }
        given = ", ".join(f"{name}={value}" for name, value in options.items() if value)
        if given:
            raise ValueError(f"socket modifier keyword arguments can not be used when sock is specified. ({given})")
        sock.setblocking(False)
        loop._ensure_fd_no_transport(sock.fileno())
    try:
        protocol = protocol_factory()
        waiter = loop.create_future()
        transport: Any = opened(loop, sock, protocol, remote, waiter, not owned)
    except BaseException:
        if owned:
            sock.close()
        raise
    if loop.get_debug():
        report = logger.info if local_addr else logger.debug
        where = f"local_addr={local_addr!r} remote_addr" if local_addr else "remote_addr"
        report("Datagram endpoint %s=%r created: (%r, %r)", where, remote_addr, transport, protocol)
    try:
        await waiter
    except BaseException:
        transport.close()
        raise
    return transport, protocol


def _check_datagram(sock: socket.socket) -> None:
    if sock.type == socket.SOCK_STREAM:
        raise ValueError(f"{_EXPECTED} was expected, got {sock!r}")


async def _candidates(loop: Any, local: Any, remote: Any, family: int, proto: int, flags: int) -> list[Candidate]:
    """What to try, in this order."""
    if not (local or remote):
        if family == 0:
            raise ValueError("unexpected address family")
        return [(family, proto, None, None)]
    if family == socket.AF_UNIX:
        for path in (local, remote):
            if path is not None and not isinstance(path, str):
                raise TypeError("string is expected")
        if local:
            remove_stale(local)
        return [(family, proto, local or None, remote or None)]
    found: dict[tuple[int, int], list[Any]] = {}
    for position, address in enumerate((local, remote)):
        if address is None:
            continue
        if not (isinstance(address, tuple) and len(address) == 2):
            raise TypeError("2-tuple is expected")
        infos = await names.resolve(loop, address, family=family, type=socket.SOCK_DGRAM, proto=proto, flags=flags)
        if not infos:
            raise OSError("getaddrinfo() returned empty list")
        for kind, _, protocol, _, numeric in infos:
            found.setdefault((kind, protocol), [None, None])[position] = numeric
    complete = [
        (*key, *pair)
        for key, pair in found.items()
        if not ((local and pair[0] is None) or (remote and pair[1] is None))
    ]
    if not complete:
        raise ValueError("can not get address information")
    return complete


async def _open_any(
    loop: Any, candidates: list[Candidate], reuse_port: bool, allow_broadcast: bool
) -> tuple[socket.socket, Any]:
    """A socket for the first candidate that works, and its remote address. Raises the first one's OSError if none."""
    first: OSError | None = None
    for candidate in candidates:
        try:
            return await _open(loop, candidate, reuse_port, allow_broadcast), candidate[3]
        except OSError as exc:
            first = first or exc
    assert first is not None
    try:
        raise first
    finally:
        del first  # its traceback refers to this frame


async def _open(loop: Any, candidate: Candidate, reuse_port: bool, allow_broadcast: bool) -> socket.socket:
    family, proto, local, remote = candidate
    sock = socket.socket(family, socket.SOCK_DGRAM, proto)
    try:
        if reuse_port:
            set_reuse_port(sock)
        if allow_broadcast:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.setblocking(False)
        if local is not None:
            sock.bind(local)
        if remote is not None and not allow_broadcast:
            await loop.sock_connect(sock, remote)
        return sock
    except BaseException:
        sock.close()
        raise
