"""How do clients get in? `Listener`: accept4(2) in bounded batches.

When descriptors or memory run out, clients stay in the kernel's queue: the listener is set aside for a moment and
tries again, and says so no more than twice a second. Errors that belong to one connection (accept(2) lists them) are
passed over.
"""

import errno
import socket
from asyncio.trsock import TransportSocket

from epoque.kernel import clock, events, interp, sockets
from epoque.kernel.masks import EXCLUSIVE, READ
from epoque.selector.source import Source
from epoque.transports import stream

__all__ = ["Listener"]

BATCH = 64  # connections of one turn; with a costly protocol factory (50 us) that holds the others up for some 3 ms
# Asking once more than there are clients costs as much as four looks at the listener. So one is accepted a turn, and
# one more for so many in a row that came without such a vain attempt.
BOLDNESS = 16
# Nanoseconds since the last time. Then that cost is lost in the noise, and if a long turn is the reason many may wait:
# one by one, 400 clients a second waited for half a second behind turns of 20 ms, some until TCP's second attempt.
LONG_AGO = 200_000
RETRY = 0.1  # seconds until the next attempt when descriptors or memory have run out
REPORT_EVERY = 500_000_000  # nanoseconds between two reports of that

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PASSING = frozenset(
    getattr(errno, name)
    for name in [
        "ECONNABORTED",
        "EPROTO",
        "EPERM",
        "ENETDOWN",
        "ENOPROTOOPT",
        "EHOSTDOWN",
        "ENONET",
        "EHOSTUNREACH",
        "EOPNOTSUPP",
        "ENETUNREACH",
        "ETIMEDOUT",
    ]
    if hasattr(errno, name)
)


class Listener(Source):
    """A listening socket, which it takes over. Each connection gets a copy of `context`, None being the current one."""

    __slots__ = (
        "asked",
        "backlog",
        "context",
        "factory",
        "family",
        "loop",
        "proto",
        "reported",
        "retry",
        "run",
        "server",
        "sock",
        "sockname",
    )

    def __init__(self, loop, sock, protocol_factory, server, backlog, context=None):
        Source.__init__(self, sock.fileno(), 0, EXCLUSIVE)
        self.loop = loop
        self.sock = sock
        self.factory = protocol_factory
        self.server = server
        self.backlog = backlog
        self.context = interp.copy_context() if context is None else context
        self.family = sock.family
        self.proto = sock.proto
        self.sockname = None
        self.run = 0
        self.asked = 0
        self.retry = None
        self.reported = 0

    def start(self):
        """listen(2), and accept from now on."""
        self.sock.setblocking(False)
        self.sock.listen(self.backlog)
        self.sockname = shared_name(self.sock)
        if self.family in (socket.AF_INET, socket.AF_INET6):
            sockets.nodelay(self.fd)  # what it accepts inherits that
        self.interest = READ
        self.loop.selector.add(self)

    def close(self):
        """Stop accepting; clients that still wait are turned away by the kernel."""
        if self.fd < 0:
            return
        self.interest = 0
        self.loop.selector.remove(self)
        self.fd = -1
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None
        self.sock.close()

    def on_ready(self, mask):
        now = clock.monotonic_ns()
        most = BATCH if now - self.asked > LONG_AGO else min(1 + self.run // BOLDNESS, BATCH)
        self.asked = now
        for _ in range(most):
            try:
                client = sockets.accept(self.sock)
            except OSError as exc:
                if exc.errno in _PASSING:
                    continue
                self.failed(exc)
                return 0
            if client is None:
                self.run = 0
                return 0
            if self.run < BATCH * BOLDNESS:
                self.run += 1
            self.admit(client[0], client[1])
            if self.fd < 0:
                return 0

    def admit(self, fd, peername):
        context = interp.copy(self.context)
        protocol = None
        try:
            try:
                protocol = interp.call(context, self.factory, ())
            except BaseException:
                events.close(fd)
                raise
            stream.accepted(
                self.loop, fd, self.family, self.proto, peername, self.sockname, protocol, self.server, context
            )
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            report = {"message": "Error on transport creation for incoming connection", "exception": exc}
            if protocol is not None:
                report["protocol"] = protocol
            self.loop.call_exception_handler(report)

    def failed(self, exc):
        self.interest = 0
        self.loop.selector.update(self)
        if exc.errno in _EXHAUSTED:
            self.retry = self.loop.call_later(RETRY, self._try_again)
            now = clock.monotonic_ns()
            if self.reported and now - self.reported < REPORT_EVERY:
                return 0
            self.reported = now
            message = "socket.accept() out of system resource"
        else:
            message = "socket.accept() failed; no more connections are accepted"
        self.loop.call_exception_handler({"message": message, "exception": exc, "socket": TransportSocket(self.sock)})

    def _try_again(self):
        self.retry = None
        self.interest = READ
        self.loop.selector.update(self)


def shared_name(sock):
    """The local address of every connection that `sock` accepts, or None if they differ."""
    name = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        return name
    if sock.family in (socket.AF_INET, socket.AF_INET6) and name[0] not in ("0.0.0.0", "::"):
        return name
    return None
