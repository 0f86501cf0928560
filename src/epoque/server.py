"""What does create_server() return, and when is such a server closed?

A server owns listening sockets, each accepting through a Listener, and counts its connections, whose transports report
to it when they begin and when they have ended. `wait_closed` answers as the running Python's asyncio does.
"""

from __future__ import annotations

import asyncio
import contextvars
import operator
import sys
from asyncio.trsock import TransportSocket
from typing import TYPE_CHECKING, Any

from epoque.endpoints import tls
from epoque.transports.listener import Listener
from epoque.transports.tls import TLSTransport

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from ssl import SSLContext


class Server(asyncio.Server):
    """A TCP or Unix server; as a context manager it closes itself and waits until it is closed.

    Of its base class it has the type only: nothing is taken over, so nothing there can change under it.
    """

    def __init__(
        self,
        loop: Any,
        sockets: Sequence[socket.socket],
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        ssl_context: SSLContext | None,
        backlog: int,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        *,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        if ssl_context:
            protocol_factory = tls.accepting(
                loop, protocol_factory, ssl_context, ssl_handshake_timeout, ssl_shutdown_timeout
            )
        self._loop = loop
        self._sockets: Sequence[socket.socket] | None = sockets  # None: closed
        self._listeners: list[Listener] = []  # of the first sockets, all of them once serving
        self._protocol_factory = protocol_factory
        self._backlog = backlog
        self._on_close = on_close
        # The connections' context: from 3.15 on of where the server was made, before of where it began to serve.
        self._context = contextvars.copy_context() if sys.version_info >= (3, 15) else None
        self._ssl_context = ssl_context
        self._ssl_handshake_timeout = ssl_handshake_timeout
        self._ssl_shutdown_timeout = ssl_shutdown_timeout
        self._active_count = 0  # connections; which ones they are, the selector knows
        self._waiters: list[asyncio.Future[None]] | None = []  # None: closed and the last connection gone
        self._serving = False
        self._serving_forever_fut: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} sockets={self.sockets!r}>"

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop the server belongs to."""
        loop: asyncio.AbstractEventLoop = self._loop
        return loop

    def is_serving(self) -> bool:
        """Return True while the server accepts connections."""
        return self._serving

    @property
    def sockets(self) -> tuple[Any, ...]:
        """The listening sockets, none once the server is closed."""
        return tuple(TransportSocket(sock) for sock in self._sockets or ())

    async def start_serving(self) -> None:
        """Begin to accept connections, unless the server does already. Raises RuntimeError if it is closed."""
        self._start_serving()
        await asyncio.sleep(0)

    async def serve_forever(self) -> None:
        """Accept connections until cancelled or closed, either of which raises CancelledError here.

        Cancelling closes the connections as well, from Python 3.13 on, and waits for their end.
        Raises RuntimeError if the server is closed or another call waits already.
        """
        if self._serving_forever_fut is not None:
            raise RuntimeError(f"server {self!r} is already being awaited on serve_forever()")
        self._start_serving()
        self._serving_forever_fut = self._loop.create_future()
        try:
            await self._serving_forever_fut
        except asyncio.CancelledError as cancelled:
            try:
                self.close()
                if sys.version_info >= (3, 13):
                    self.close_clients()
                await self.wait_closed()
            finally:
                raise cancelled  # also if waiting was cut short
        finally:
            self._serving_forever_fut = None

    def close(self) -> None:
        """Stop accepting and close the listening sockets; connections accepted before stay open."""
        sockets = self._sockets
        if sockets is None:
            return
        self._sockets = None
        self._serving = False
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for sock in sockets:
            sock.close()  # those that have never listened
        if self._on_close is not None:
            self._on_close()
        if self._serving_forever_fut is not None and not self._serving_forever_fut.done():
            self._serving_forever_fut.cancel()
            self._serving_forever_fut = None
        if self._active_count == 0:
            self._wake_waiters()

    if sys.version_info >= (3, 13):

        def close_clients(self) -> None:
            """Close all connections once their buffered data is sent."""
            for transport in self._clients:
                transport.close()

        def abort_clients(self) -> None:
            """Close all connections at once; buffered data is lost."""
            for transport in self._clients:
                transport.abort()

    async def wait_closed(self) -> None:
        """Wait until the server is closed and its last connection has ended, in either order.

        Before Python 3.12 a server that is closed already is not waited for, whatever connections it has.
        """
        if self._waiters is None or (sys.version_info < (3, 12) and self._sockets is None):
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _start_serving(self) -> None:
        if self._sockets is None:
            raise RuntimeError(f"server {self!r} is closed")
        backlog = operator.index(self._backlog)  # a C integer would take a float, which listen(2) has no use for
        for sock in self._sockets[len(self._listeners) :]:
            listener = Listener(self._loop, sock, self._protocol_factory, self, backlog, self._context)
            listener.start()
            self._listeners.append(listener)
        self._serving = True

    def _attach(self, transport: asyncio.Transport) -> None:
        self._active_count += 1

    def _detach(self, transport: asyncio.Transport) -> None:
        self._active_count -= 1
        if self._sockets is None and self._active_count == 0:
            self._wake_waiters()

    @property
    def _clients(self) -> list[asyncio.Transport]:
        """The connections that have not ended."""
        sources = self._loop._transports.values()
        return [_outermost(transport) for transport in sources if transport._server is self]

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)


def _outermost(transport: Any) -> Any:
    """The transport that the connection's protocol knows: that of TLS, if there is TLS."""
    above = transport.get_protocol()
    while isinstance(above, TLSTransport):
        transport, above = above, above.get_protocol()
    return transport
