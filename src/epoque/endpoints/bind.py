"""How are the sockets of a server made and bound?"""

from __future__ import annotations

import errno
import itertools
import socket
import sys
from asyncio.log import logger
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from epoque.endpoints.names import AddrInfo

_WILDCARDS = ("0.0.0.0", "::")

# How often an ephemeral port is chosen anew because another address of the server has it taken; a second time is rare.
_PORT_ATTEMPTS = 16


class Options(NamedTuple):
    """What create_server() is told about its sockets."""

    reuse_address: bool = True
    reuse_port: bool | None = None
    keep_alive: bool | None = None

    def apply(self, sock: socket.socket, family: int) -> None:
        if self.reuse_address:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.reuse_port:
            set_reuse_port(sock)
        if self.keep_alive:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            # By default an IPv6 socket of Linux takes IPv4 connections too, and would be in the IPv4 one's way.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def bind(sock: socket.socket, address: tuple[Any, ...]) -> None:
    """Bind the socket; the OSError says to which address it could not be bound."""
    try:
        sock.bind(address)
    except OSError as exc:
        text = exc.strerror if sys.version_info < (3, 13) and exc.strerror else str(exc)
        message = f"error while attempting to bind on address {address!r}: {text.lower()}"
        raise OSError(exc.errno, message) from None


def bind_all(loop: Any, infos: list[AddrInfo], options: Options) -> list[socket.socket]:
    """Return bound sockets, at least one. If the kernel chooses the port, it chooses once: all addresses get that one.

    Addresses that this machine does not have are passed over while others remain. Raises OSError.
    """
    for attempt in itertools.count(1):
        sockets: list[socket.socket] = []
        try:
            absent = _bind_each(loop, infos, options, sockets)
            if sockets:
                return sockets
            if absent is not None and sys.version_info < (3, 13):
                raise absent
            raise OSError(f"could not bind on any address out of {[info[4] for info in infos]!r}")
        except BaseException as exc:
            for sock in sockets:
                sock.close()
            taken = isinstance(exc, OSError) and exc.errno == errno.EADDRINUSE
            if not taken or attempt == _PORT_ATTEMPTS or not (sockets and infos[0][4][1] == 0):
                raise
    raise AssertionError("an endless loop has ended")


def _bind_each(loop: Any, infos: list[AddrInfo], options: Options, sockets: list[socket.socket]) -> OSError | None:
    """Add a bound socket for each address; return the error of one that this machine does not have."""
    wild = {info[0] for info in infos if info[4][0] in _WILDCARDS}
    port, absent = 0, None
    for family, kind, proto, _, address in infos:
        try:
            sock = socket.socket(family, kind, proto)
        except OSError:  # a family that this system does not have
            if loop.get_debug():
                text = "create_server() failed to create socket.socket(%r, %r, %r)"
                logger.warning(text, family, kind, proto, exc_info=True)
            continue
        # A wildcard address covers all others of its family, so they cannot listen on its port.
        if address[1] == 0 and not (family in wild and any(other.family == family for other in sockets)):
            address = (address[0], port, *address[2:])
        try:
            options.apply(sock, family)
            bind(sock, address)
            port = port or sock.getsockname()[1]
        except BaseException as exc:
            sock.close()
            if not isinstance(exc, OSError) or exc.errno != errno.EADDRNOTAVAIL:
                raise
            absent = exc
            if loop.get_debug():
                logger.warning("%s", exc.strerror)
        else:
            sockets.append(sock)
    return absent


def set_reuse_port(sock: socket.socket) -> None:
    """Set SO_REUSEPORT. Raises ValueError where there is none."""
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ValueError("reuse_port not supported by socket module")
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        message = "reuse_port not supported by socket module, SO_REUSEPORT defined but not implemented."
        raise ValueError(message) from None
