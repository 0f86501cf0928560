"""How does an open pipe, FIFO, terminal or socket become a transport?"""

from __future__ import annotations

from asyncio.log import logger
from typing import TYPE_CHECKING, Any, TypeVar

from epoque.transports.pipe import ReadPipeTransport, WritePipeTransport

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

Proto = TypeVar("Proto", bound="asyncio.BaseProtocol")


async def connect_read_pipe(
    loop: Any, protocol_factory: Callable[[], Proto], pipe: Any
) -> tuple[asyncio.ReadTransport, Proto]:
    """Read from `pipe`, an object with ``fileno()`` and ``close()``, which the transport closes at its end.

    The descriptor becomes non-blocking, for everybody who shares it. Raises ValueError for what is no pipe, FIFO,
    socket or character device; such a pipe is still the caller's.
    """
    return await _connect(loop, protocol_factory, pipe, ReadPipeTransport, "Read")


async def connect_write_pipe(
    loop: Any, protocol_factory: Callable[[], Proto], pipe: Any
) -> tuple[asyncio.WriteTransport, Proto]:
    """Write to `pipe`; as `connect_read_pipe`. The connection ends as soon as nobody can read any more."""
    return await _connect(loop, protocol_factory, pipe, WritePipeTransport, "Write")


async def _connect(loop: Any, protocol_factory: Callable[[], Proto], pipe: Any, kind: Any, name: str) -> Any:
    protocol = protocol_factory()
    waiter = loop.create_future()
    transport = kind(loop, pipe, protocol, waiter)
    try:
        await waiter
    except BaseException:
        transport.close()
        raise
    if loop.get_debug():
        logger.debug("%s pipe %r connected: (%r, %r)", name, pipe.fileno(), transport, protocol)
    return transport, protocol
