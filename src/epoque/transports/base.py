"""What has every transport? A descriptor with names, a protocol, and an end.

The end comes once: `end` puts ``connection_lost`` in line; until it has run the descriptor stays open, so that its
number cannot be anybody else's. Accepted connections get no `socket.socket` until somebody asks for one; from then on
that object owns the descriptor.
"""

import os
import socket
import warnings
from asyncio.trsock import TransportSocket
from errno import EBADF

from epoque.core import debug
from epoque.kernel import events, interp, sockets
from epoque.kernel.masks import LEVEL, READ, WRITE
from epoque.selector.source import Source

__all__ = ["BaseTransport"]

# Receives after a connection has broken: with the loop's buffer of 256 KiB more than a kernel queues. A peer that still
# sends (shutdown(SHUT_RD) at the far end of a Unix socket) must not keep us.
LAST_RECEIVES = 64

_family = socket.SocketType.family.__get__
_type = socket.SocketType.type.__get__
_getsockname = socket.SocketType.getsockname
_getpeername = socket.SocketType.getpeername
# Addresses of other families may depend on the protocol (Bluetooth). Classes that are not plain, a proxy's, have names
# of their own.
_COMMON = frozenset(map(int, (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)))


class BaseTransport(Source):
    """The part of asyncio's `BaseTransport` that does not depend on what is transported."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "closing",
        "context",
        "extra",
        "family",
        "fresh",
        "lent",
        "loop",
        "lost",
        "paused",
        "peername",
        "proto",
        "protocol",
        "server",
        "sock",
        "sockname",
        "started",
    )

    max_size = 256 * 1024  # bytes that one receive can bring; the name is asyncio's

    def prepare(self, loop, protocol, server, context):
        """What a subclass's `__init__` begins with."""
        interp.drop_dict(self)
        self.set_up(-1, 0, LEVEL)
        self.loop = loop
        self.protocol = protocol
        self.server = server
        self.context = context
        self.sock = None
        self.lent = None
        self.family = 0
        self.proto = 0
        self.peername = None
        self.sockname = None
        self.extra = None
        self.started = False
        self.fresh = False
        self.paused = False
        self.closing = False
        self.lost = 0

    def take_over(self, fd):
        """Become responsible for `fd`; if this raises it is still the caller's."""
        self.fd = fd
        try:
            self.loop.selector.add(self)
        except BaseException:
            self.fd = -1
            raise
        self.owned = True
        if self.server is not None:
            self.server._attach(self)

    def number(self):
        """The descriptor for a system call; -1 when it was closed by whoever lent it: then it may be anybody's."""
        return self.fd if self.lent is None else self.lent.fileno()

    def still_ours(self):
        """Is the descriptor the one that was lent? If not, that is the end."""
        if self.number() == self.fd:
            return True
        self.loop.selector.remove(self)
        self.on_lost()
        return False

    def watch(self):
        """Have `on_ready` called for what is of interest."""
        if not self.fresh:
            self.loop.selector.update(self)

    def on_lost(self):
        """Somebody else has closed our descriptor; its number may be anybody's by now, so nothing is sent or closed."""
        if isinstance(self.sock, socket.socket) and self.sock.fileno() == self.fd:
            self.sock.detach()
        self.fd = -1
        self.owned = False
        self.lose(OSError(EBADF, os.strerror(EBADF)))

    def get_extra_info(self, name, default=None):
        """``socket``, ``sockname``, ``peername``, or `default`. Names stay known after the connection has ended."""
        if self.extra is not None and name in self.extra:
            return self.extra[name]
        if name == "peername":
            return self.peername
        if name == "sockname":
            return self.sockname
        if name == "socket":
            return self.get_socket()
        return default

    def get_socket(self):
        if self.extra is None:
            self.extra = {}
        if "socket" not in self.extra:
            if self.sock is None and self.fd < 0:
                self.sock = socket.socket(self.family, socket.SOCK_STREAM, self.proto)
                self.sock.close()
            if self.sock is None:
                self.sock = socket.socket(self.family, socket.SOCK_STREAM, self.proto, fileno=self.fd)
                self.sock.setblocking(False)
            self.extra["socket"] = TransportSocket(self.sock)
        return self.extra["socket"]

    def set_protocol(self, protocol):
        """Hand the transport to another protocol, from the next event on."""
        self.protocol = protocol

    def get_protocol(self):
        """The protocol, None once the connection has ended."""
        return self.protocol

    def is_closing(self):
        """Whether the transport is closed or about to be."""
        return self.closing

    def __repr__(self):
        parts = [type(self).__name__]
        if self.fd < 0:
            parts.append("closed")
        elif self.closing:
            parts.append("closing")
        parts.append(f"fd={self.fd}")
        if self.fd >= 0 and self.loop.usable:
            parts.append(self.state())
        return f"<{' '.join(parts)}>"

    def state(self):
        return "polling" if self.interest & (READ | WRITE) else "idle"

    def __del__(self):
        if self.owned:
            warnings.warn(f"unclosed transport {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.release()

    # asyncio.ReadTransport; a transport that cannot be read says so.

    def is_reading(self):
        """Whether data can be received: not paused and not closing."""
        return not self.closing and not self.paused

    def pause_reading(self):
        """Give the protocol no more data until `resume_reading`. Without effect when paused or closing."""
        if self.closing or self.paused:
            return
        self.paused = True
        self.interest &= ~READ
        if self.loop.debug:
            debug.logger.debug("%r pauses reading", self)

    def resume_reading(self):
        """Undo `pause_reading`. Without effect when not paused or closing."""
        if self.closing or not self.paused:
            return
        self.paused = False
        if self.still_ours():
            self.read_on()
        if self.loop.debug:
            debug.logger.debug("%r resumes reading", self)

    # The beginning.

    def _start(self, waiter):
        """Begin: connection_made, then whoever waits, then events: he may have to prepare for them."""
        try:
            self.begin()
        finally:
            self.start()
            if waiter is None:
                self.watch()
            else:
                if not waiter.done():
                    waiter.set_result(None)
                self.fresh = True
                self.loop.schedule(self._call_watch, (), self.loop.context)

    def _call_watch(self):
        self.fresh = False
        self.watch()

    def begin(self):
        try:
            interp.call_method(self.context, self.protocol, "connection_made", self)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "connection_made")

    def start(self):
        """The protocol knows the transport; `watch` makes it effective."""
        self.started = True
        self.want_data()

    def read_on(self):
        """Watch for data, if they are wanted."""
        if self.want_data():
            self.watch()

    # The end.

    def note(self, exc, message):
        """A broken connection is everyday life: seen in debug mode, and by connection_lost."""
        if self.loop.debug:
            debug.logger.debug("%r: %s", self, message, exc_info=exc)

    def blame(self, exc, name):
        """The protocol failed: report it, and end its connection only."""
        self.report(exc, f"Fatal error: protocol.{name}() call failed.")
        self.lose(exc)

    def report(self, exc, message):
        self.loop.call_exception_handler(
            {"message": message, "exception": exc, "transport": self, "protocol": self.protocol}
        )

    def lose(self, exc):
        self.end(exc, 0)

    def end(self, exc, last):
        """Put connection_lost(exc) in line, once. Nothing is sent any more; what is left is read if `last` is READ.

        Unless this is called again, by `abort`.
        """
        self.interest = 0
        if self.lost:
            return 0
        self.lost = 1
        self.closing = True
        self.drop_output()
        if not self.loop.usable:
            self.release()
            self.loop.check_closed()
        self.loop.selector.remove(self)
        self.interest = last
        self.loop.schedule(self._call_connection_lost, (exc,), self.loop.context)

    def _call_connection_lost(self, exc):
        receives = 0
        try:
            while self.interest & READ and receives < LAST_RECEIVES and self.receive():
                receives += 1
        except (SystemExit, KeyboardInterrupt):
            self.loop.schedule(self._call_connection_lost, (exc,), self.loop.context)
            raise
        try:
            interp.call_method(self.context, self.protocol, "connection_lost", exc)
        finally:
            self.release()

    def release(self):
        """Give everything back."""
        fd = self.fd
        owned = self.owned
        self.fd = -1
        self.owned = False
        self.protocol = None
        self.lent = None
        server = self.server
        self.server = None
        try:
            if self.sock is not None:
                self.sock.close()
            elif owned:
                events.close(fd)
        finally:
            if server is not None:
                server._detach(self)

    def __dir__(self):
        return dir(type(self))  # not of what ``__class__`` says

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    # Names under which asyncio's own transports are inspected and driven.

    def _force_close(self, exc):
        self.lose(exc)

    def _fatal_error(self, exc, message="Fatal error on transport"):
        if isinstance(exc, OSError):
            self.note(exc, message)
        else:
            self.report(exc, message)
        self.lose(exc)

    def _read_ready(self):
        self.on_ready(READ)

    @property
    def _extra(self):
        self.get_socket()  # makes it
        self.extra.setdefault("sockname", self.sockname)
        self.extra.setdefault("peername", self.peername)
        return self.extra

    @property
    def _loop(self):
        return self.loop

    @property
    def _protocol(self):
        return self.protocol

    @property
    def _protocol_connected(self):
        return True  # there is none without a protocol

    @property
    def _server(self):
        return self.server

    @property
    def _sock(self):
        return self.sock if self.get_extra_info("socket") is not None else None

    @property
    def _sock_fd(self):
        return self.number()

    @property
    def _paused(self):
        return self.paused

    @property
    def _closing(self):
        return self.closing

    @property
    def _conn_lost(self):
        return self.lost

    # What a kind of transport supplies.

    def want_data(self):
        """Be interested in data, if they are wanted; whether they are."""
        raise NotImplementedError

    def receive(self):
        """One receive; True if data came."""
        raise NotImplementedError

    def drop_output(self):
        """Forget what was not sent."""
        raise NotImplementedError


def local_name(sock):
    """getsockname(2), None if that fails."""
    try:
        if getattr(type(sock), "getsockname", None) is _getsockname and _family(sock) in _COMMON:
            return sockets.local_address(sock.fileno(), _family(sock))
        return sock.getsockname()
    except OSError:
        return None


def peer_name(sock):
    """getpeername(2), None if that fails."""
    try:
        if getattr(type(sock), "getpeername", None) is _getpeername and _family(sock) in _COMMON:
            return sockets.peer_address(sock.fileno(), _family(sock))
        return sock.getpeername()
    except OSError:
        return None


def family_of(sock):
    """The family's number alone: the property of `socket.socket` looks up an enumeration's member each time."""
    return _family(sock) if isinstance(sock, socket.SocketType) else sock.family


def type_of(sock):
    """The type's number, likewise."""
    return _type(sock) if isinstance(sock, socket.SocketType) else sock.type
