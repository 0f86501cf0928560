"""How does a host name become addresses without blocking the loop?

Look-ups run on threads of their own, one pool per loop, so that they neither wait behind work in the default executor
nor hold it up. Addresses in figures need no look-up and so no thread. `socket.getaddrinfo` and `socket.getnameinfo` are
read at each call: who replaces them (a test, a resolver of one's own) is heard.
"""

from __future__ import annotations

import functools
import socket
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from epoque.endpoints.resolver import Resolver

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

AddrInfo = tuple[int, int, int, str, tuple[Any, ...]]

_TRANSPORT_PROTOCOL: dict[int, int] = {socket.SOCK_STREAM: socket.IPPROTO_TCP, socket.SOCK_DGRAM: socket.IPPROTO_UDP}
_PROTOCOLS = (0, *_TRANSPORT_PROTOCOL.values())
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_NUMERIC_NAMES = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


async def getaddrinfo(
    loop: Any,
    host: bytes | str | None,
    port: bytes | str | int | None,
    *,
    family: int = 0,
    type: int = 0,
    proto: int = 0,
    flags: int = 0,
) -> list[Any]:
    """Return the 5-tuples (family, type, proto, canonname, sockaddr) of a host and port; see getaddrinfo(3).

    Raises socket.gaierror when there is no such name, RuntimeError on a closed loop.
    """
    ask: Any = functools.partial(_logged, loop) if loop.get_debug() else socket.getaddrinfo
    if (host is None or is_literal(host)) and _is_number(port):
        infos: list[AddrInfo] = ask(host, port, family, type, proto, flags)
    else:
        infos = await _on_thread(loop, ask, host, port, family, type, proto, flags)
    return infos


async def getnameinfo(loop: Any, sockaddr: tuple[Any, ...], flags: int = 0) -> tuple[str, str]:
    """Return the host and service name of an address; see getnameinfo(3). Raises socket.gaierror."""
    if flags & _NUMERIC_NAMES == _NUMERIC_NAMES:
        return socket.getnameinfo(sockaddr, flags)
    names: tuple[str, str] = await _on_thread(loop, socket.getnameinfo, sockaddr, flags)
    return names


def close_resolver(loop: Any) -> None:
    """Let the loop's resolver go without waiting: what is queued never starts, late answers are dropped in silence."""
    pool, loop._resolver = loop._resolver, None
    if pool is not None:
        pool.close()


async def resolve(
    loop: Any,
    address: tuple[Any, ...],
    *,
    family: int = 0,
    type: int = socket.SOCK_STREAM,
    proto: int = 0,
    flags: int = 0,
) -> list[AddrInfo]:
    """Return the addresses that (host, port) stands for; only a name is asked of loop.getaddrinfo. Raises gaierror."""
    info = in_figures(address, family, type, proto)
    if info is not None:
        return [info]
    host, port = address[:2]
    infos: list[AddrInfo] = await loop.getaddrinfo(host, port, family=family, type=type, proto=proto, flags=flags)
    return infos


def is_literal(host: object) -> bool:
    """Is the host an IPv4 or IPv6 address in figures, perhaps with a zone (RFC 4007, section 11)?"""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return False
    for family, text in ((socket.AF_INET, host), (socket.AF_INET6, host.partition("%")[0])):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return True
    return False


def is_plain(address: object, family: int) -> bool:
    """Is this the usual address of a socket of that family, (figures, port), which connect(2) takes as it stands?"""
    if type(address) is not tuple or len(address) != 2 or type(address[0]) is not str or type(address[1]) is not int:
        return False
    try:
        socket.inet_pton(family, address[0])
    except (OSError, ValueError):
        return False
    return True


def needs_lookup(address: object) -> bool:
    """Would the socket module ask a name server, and block, to send to this address?"""
    if not isinstance(address, tuple) or not address or not isinstance(address[0], str):
        return False
    return address[0] not in ("", "<broadcast>") and not is_literal(address[0])


def _is_number(port: object) -> bool:
    return port is None or isinstance(port, int) or (isinstance(port, (str, bytes)) and (not port or port.isdigit()))


def in_figures(address: tuple[Any, ...], family: int, type: int, proto: int) -> AddrInfo | None:
    """The one answer that getaddrinfo would give for an address in figures; None if it has to be asked."""
    host, port = address[:2]
    if host is None or type not in _TRANSPORT_PROTOCOL or proto not in _PROTOCOLS:
        return None
    try:
        port = int(port or 0)
    except (TypeError, ValueError):
        return None  # a service name, such as "http"
    if isinstance(host, bytes):
        host = host.decode("idna")
    if "%" in host:
        return None  # the zone's number is getaddrinfo's to find
    for candidate in (family,) if family else _FAMILIES:
        try:
            socket.inet_pton(candidate, host)
        except OSError:
            continue
        flow_and_scope = (*address[2:], 0, 0)[:2] if candidate == socket.AF_INET6 else ()
        return candidate, type, _TRANSPORT_PROTOCOL[type], "", (host, port, *flow_and_scope)
    return None


def _logged(loop: Any, host: Any, port: Any, family: int, type: int, proto: int, flags: int) -> list[AddrInfo]:
    """In debug mode: tell of each look-up what was asked, what came, and how long it took."""
    options = {"family": family, "type": type, "proto": proto, "flags": flags}
    question = ", ".join([f"{host}:{port!r}", *(f"{name}={value!r}" for name, value in options.items() if value)])
    logger.debug("Get address info %s", question)
    start = loop.time()
    infos: list[Any] = socket.getaddrinfo(host, port, family, type, proto, flags)
    took = loop.time() - start
    report = logger.info if took >= loop.slow_callback_duration else logger.debug
    report("Getting address info %s took %.3fms: %r", question, took * 1e3, infos)
    return infos


def look_up(loop: Any, host: str | bytes, family: int) -> asyncio.Future[tuple[Any, BaseException | None]]:
    """Begin to look up a host; the future's result is (what getaddrinfo returned, None) or (None, what it raised)."""
    ask: Any = functools.partial(_logged, loop) if loop.get_debug() else socket.getaddrinfo
    return _ask_on_thread(loop, ask, host, None, family, socket.SOCK_DGRAM, 0, 0)


async def _on_thread(loop: Any, ask: Callable[..., Any], *args: object) -> Any:
    waiter = _ask_on_thread(loop, ask, *args)
    answer, error = await waiter
    del waiter
    try:
        if error is not None:
            raise error
        return answer
    finally:
        del error  # its traceback refers to this frame


def _ask_on_thread(loop: Any, ask: Callable[..., Any], *args: object) -> asyncio.Future[Any]:
    if loop.is_closed():
        raise RuntimeError("Event loop is closed")
    if loop._resolver is None:
        loop._resolver = Resolver(loop._daemons)
    waiter: asyncio.Future[Any] = loop.create_future()
    loop._resolver.submit(_look_up, loop, [waiter], ask, args)
    return waiter


def _look_up(loop: Any, slot: list[asyncio.Future[Any]], ask: Callable[..., Any], args: tuple[object, ...]) -> None:
    waiter = slot.pop()  # the pool's frame, to which an exception's traceback leads, still has the list
    if waiter.cancelled():
        return
    outcome: tuple[Any, BaseException | None]
    try:
        outcome = ask(*args), None
    except BaseException as exc:
        outcome = None, exc
    try:
        loop.call_soon_threadsafe(_deliver, waiter, outcome)
    except RuntimeError:
        pass  # the loop was closed meanwhile, nobody waits any more
    finally:
        del outcome, waiter  # they lead to the exception, and its traceback to this frame


def _deliver(waiter: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    if not waiter.done():
        waiter.set_result(outcome)
