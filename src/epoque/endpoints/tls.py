"""How do ssl=, server_hostname= and the TLS timeouts of an endpoint become TLS on a stream?

Timeouts are in seconds; None means 60 for the handshake and 30 for the shutdown.
"""

from __future__ import annotations

from asyncio import constants
from typing import TYPE_CHECKING, Any

try:
    import ssl
except ImportError:  # an interpreter built without OpenSSL
    ssl = None  # type: ignore[assignment]

from epoque.kernel.tls import Engine
from epoque.transports.tls import TLSTransport

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from ssl import SSLContext


def secure(
    loop: Any,
    protocol: asyncio.BaseProtocol,
    context: SSLContext | bool | None,
    waiter: asyncio.Future[None],
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
    handshake_timeout: float | None = None,
    shutdown_timeout: float | None = None,
) -> TLSTransport:
    """Make a TLS transport, to be given to the transport below it as its protocol; `waiter` hears of the handshake.

    ValueError for a timeout that is not positive or a server without a context, ssl.SSLError for a context that does
    not fit.
    """
    if ssl is None:
        raise RuntimeError("Python ssl module is not available")
    if isinstance(context, bool) or not context:
        if server_side:
            raise ValueError("Server side SSL needs a valid SSLContext")
        context = ssl.create_default_context()
        if not server_hostname:
            context.check_hostname = False
    hostname = server_hostname if server_hostname and not server_side else None
    handshake_timeout = _timeout("handshake", handshake_timeout, constants.SSL_HANDSHAKE_TIMEOUT)
    shutdown_timeout = _timeout("shutdown", shutdown_timeout, constants.SSL_SHUTDOWN_TIMEOUT)
    engine = Engine(context, server_side, hostname)
    return TLSTransport(loop, protocol, engine, waiter, handshake_timeout, shutdown_timeout)


def check_timeouts(context: object, handshake_timeout: float | None, shutdown_timeout: float | None) -> None:
    """Raise ValueError for a TLS timeout without TLS."""
    if context:
        return
    for name, value in (("handshake", handshake_timeout), ("shutdown", shutdown_timeout)):
        if value is not None:
            raise ValueError(f"ssl_{name}_timeout is only meaningful with ssl")


def accepting(
    loop: Any,
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    context: SSLContext,
    handshake_timeout: float | None,
    shutdown_timeout: float | None,
) -> Callable[[], TLSTransport]:
    """Return the protocol factory of a listener whose connections begin with a handshake."""

    def make() -> TLSTransport:
        protocol = protocol_factory()
        waiter = loop.create_future()
        transport = secure(
            loop,
            protocol,
            context,
            waiter,
            server_side=True,
            handshake_timeout=handshake_timeout,
            shutdown_timeout=shutdown_timeout,
        )

        def report(waiter: asyncio.Future[None]) -> None:
            error = None if waiter.cancelled() else waiter.exception()
            if error is not None and loop.get_debug():
                message = "Error on transport creation for incoming connection"
                context = {"message": message, "exception": error, "protocol": protocol, "transport": transport}
                loop.call_exception_handler(context)

        waiter.add_done_callback(report)
        return transport

    return make


async def start_tls(
    loop: Any,
    transport: asyncio.WriteTransport,
    protocol: asyncio.BaseProtocol,
    sslcontext: SSLContext,
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
) -> TLSTransport | None:
    """Upgrade a connection to TLS and return the transport that takes the old one's place for the protocol.

    Raises TypeError for a wrong context or transport, ssl.SSLError or OSError if the handshake fails,
    ConnectionAbortedError if the peer has ended its direction. As with asyncio the answer for a transport that was
    closed before is None: programs look for that.
    """
    if ssl is None:
        raise RuntimeError("Python ssl module is not available")
    if not isinstance(sslcontext, ssl.SSLContext):
        raise TypeError(f"sslcontext is expected to be an instance of ssl.SSLContext, got {sslcontext!r}")
    if not getattr(transport, "_start_tls_compatible", False):
        raise TypeError(f"transport {transport!r} is not supported by start_tls()")
    if transport.is_closing():
        return None
    if getattr(transport, "_half_closed", False):
        raise ConnectionAbortedError("start_tls() needs both directions of the connection, and one has ended")
    stream: Any = transport
    waiter = loop.create_future()
    secured = secure(
        loop,
        protocol,
        sslcontext,
        waiter,
        server_side=server_side,
        server_hostname=server_hostname,
        handshake_timeout=ssl_handshake_timeout,
        shutdown_timeout=ssl_shutdown_timeout,
    )
    # What comes before the handshake begins would be taken for more of it than there is: reading waits for its turn.
    stream.pause_reading()
    stream.set_protocol(secured)
    secured._take_place(stream, _take_unread(protocol))
    resumed = loop.call_soon(stream.resume_reading)
    try:
        await waiter
    except BaseException:
        resumed.cancel()
        secured.close()
        stream.close()
        raise
    finally:
        del waiter  # it may hold the exception, whose traceback refers to this frame
    return secured


def _take_unread(protocol: asyncio.BaseProtocol) -> bytes:
    """What the peer sent right behind its STARTTLS line, and a StreamReader holds, belongs to the handshake.

    Left in the reader, it would look as if it had come by way of TLS: the injection of CVE-2011-0411.
    """
    buffer = getattr(getattr(protocol, "_stream_reader", None), "_buffer", None)
    if not isinstance(buffer, bytearray):
        return b""
    data = bytes(buffer)
    buffer.clear()
    return data


def _timeout(name: str, value: float | None, default: float) -> float:
    if value is None:
        return default
    if value <= 0:
        raise ValueError(f"ssl_{name}_timeout should be a positive number, got {value}")
    return value
