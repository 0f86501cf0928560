"""How do bytes go one way, through a pipe, a FIFO, a terminal or another character device, or a socket?

A descriptor can carry two of these transports (a terminal or a socket, one to read and one to write). The selector
knows one source per number, so the second one works on a duplicate, dup(2): each has a registration of its own in the
kernel. Either may end first: what the caller brought is closed when both have, lest one takes the number from under
the other.

A writer is told of the end of its reader while it is idle: it is registered for nothing but the hang-up, which for a
pipe is EPOLLERR. Data that arrive on the descriptor of a writer are not its business.

Some devices cannot be watched (EPERM, epoll_ctl(2)) because they never block: /dev/null and its like. They are read or
written once per turn. With kqueue that may be a terminal, which does block: it is tried every `RETRY` seconds.

The pipes of a child that are found full hold twice as much from then on.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
from asyncio import constants

from epoque.core import debug
from epoque.kernel import events, interp, pipes
from epoque.kernel.masks import HANGUP, READ, WRITE
from epoque.transports import sendqueue
from epoque.transports.base import BaseTransport
from epoque.transports.writer import ByteTransport

__all__ = ["ReadPipeTransport", "WritePipeTransport", "make_elastic"]

MAX_SIZE = 256 * 1024  # bytes of the loop's receive buffer
RETRY = 0.01  # seconds
FULL = 64 * 1024  # bytes that a pipe holds by default, pipe(7)
# Each turn moves no more than a pipe holds. Beyond twice the default there is little to be had, and all pipes of a user
# share a limit (pipe-user-pages-soft, pipe(7)).
ENLARGED = 2 * FULL
UNNOTICED = constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES  # writes after the end, before it is logged


class Sharing:
    """What the caller brought for one descriptor: usually one object, with one transport that uses it."""

    __slots__ = ("pipes", "users")

    def __init__(self):
        self.users = 0
        self.pipes = []

    def leave(self):
        """A transport has ended. With the last one all objects are closed, even if closing one of them fails."""
        self.users -= 1
        if self.users or not self.pipes:
            return 0
        pipe = self.pipes.pop()
        try:
            pipe.close()
        finally:
            for pipe in self.pipes:
                # Two files with one descriptor, of which the other was closed just now.
                with contextlib.suppress(OSError):
                    pipe.close()
            self.pipes = []


class Descriptor:
    """What a transport has of a pipe: the number, or a duplicate. It owns it as elsewhere a `socket.socket` does."""

    __slots__ = ("duplicate", "elastic", "in_line", "mode", "pipe", "sharing", "unpolled")

    def __init__(self, pipe, complaint):
        self.pipe = pipe
        self.mode = os.fstat(pipe.fileno()).st_mode
        self.sharing = None
        self.duplicate = -1
        self.unpolled = False
        self.in_line = False
        self.elastic = False
        if not (self.is_pipe_or_socket() or stat.S_ISCHR(self.mode)):
            raise ValueError(complaint)

    def is_pipe_or_socket(self):
        return stat.S_ISFIFO(self.mode) or stat.S_ISSOCK(self.mode)

    def take(self, pipe, transport):
        """Take `pipe` over, an object with ``fileno()`` and ``close()``; if this raises it is still the caller's."""
        fd = pipe.fileno()
        os.set_blocking(fd, False)
        source = transport.loop.selector.find(fd)
        if source is not None and transport.loop.selector.verify(source):
            fd = self.duplicate = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)
        try:
            transport.take_over(fd)
        except BaseException:
            if self.duplicate >= 0:
                events.close(fd)
            raise
        self.sharing = sharing_of(source)
        self.sharing.users += 1
        self.sharing.pipes.append(pipe)

    def fileno(self):
        """The number; -1 when somebody has closed the pipe."""
        if self.duplicate >= 0:
            return self.duplicate
        try:
            return self.pipe.fileno()
        except ValueError:
            return -1

    def enlarge(self, fd):
        """It was full: let it hold more, unless that is the caller's business, or the user has too many such pipes."""
        if self.elastic:
            self.elastic = False
            with contextlib.suppress(OSError):
                if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) == FULL:
                    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, ENLARGED)

    def watch(self, transport):
        """Have `on_ready` called for what is of interest."""
        if not self.unpolled:
            try:
                transport.loop.selector.update(transport)
                return 0
            except PermissionError:
                self.unpolled = True
                transport.loop.selector.remove(transport)
        if not self.in_line and transport.interest:
            self.in_line = True
            if os.isatty(transport.fd):
                transport.loop.call_later(RETRY, self._call_ready, transport, context=transport.loop.context)
            else:
                transport.loop.schedule(self._call_ready, (transport,), transport.loop.context)

    def _call_ready(self, transport):
        self.call_ready(transport)

    def call_ready(self, transport):
        self.in_line = False
        if transport.interest:
            try:
                transport.on_ready(transport.interest)
            finally:
                self.watch(transport)

    def lost(self):
        """Somebody else has closed the number, which may be anybody's by now."""
        if self.duplicate >= 0:
            self.duplicate = -1
        else:
            self.sharing.pipes.clear()

    def close(self):
        """Give it back."""
        if self.duplicate >= 0:
            events.close(self.duplicate)
            self.duplicate = -1
        if self.sharing is not None:
            sharing = self.sharing
            self.sharing = None
            sharing.leave()


def make_elastic(transport):
    """Let the pipe of a `ReadPipeTransport` or `WritePipeTransport` hold more once it has been full. Linux only."""
    descriptor = transport.sock
    descriptor.elastic = hasattr(fcntl, "F_SETPIPE_SZ") and stat.S_ISFIFO(descriptor.mode)


def sharing_of(source):
    if isinstance(source, BaseTransport):
        transport = source
        if isinstance(transport.sock, Descriptor):
            descriptor = transport.sock
            return descriptor.sharing
    return Sharing()


class ReadPipeTransport(BaseTransport):
    """asyncio's `ReadTransport` interface."""

    __slots__ = ("descriptor", "receiver")

    def __init__(self, loop, pipe, protocol, waiter=None):
        self.prepare(loop, protocol, None, interp.copy_context())
        self.sock = self.descriptor = Descriptor(pipe, "Pipe transport is for pipes/sockets only.")
        self.extra = {"pipe": pipe}
        self.descriptor.take(pipe, self)
        self.lent = self.descriptor
        self.receiver = self.loop.get_receiver()
        self.loop.schedule(self._start, (waiter,), self.loop.context)

    @property
    def __class__(self):
        return asyncio.ReadTransport

    @property
    def max_size(self):
        """Bytes that one read can bring."""
        return MAX_SIZE

    def get_extra_info(self, name, default=None):
        """``pipe``, or `default`."""
        return self.extra.get(name, default)

    @property
    def _extra(self):
        return self.extra

    @property
    def _pipe(self):
        return self.extra["pipe"] if self.fd >= 0 else None

    @property
    def _fileno(self):
        return self.fd

    def watch(self):
        if not self.fresh:
            self.descriptor.watch(self)

    def on_lost(self):
        self.descriptor.lost()
        BaseTransport.on_lost(self)

    def close(self):
        """Stop reading and end the connection. Closing twice is harmless."""
        if not self.closing:
            self.lose(None)

    def want_data(self):
        if self.started and not self.paused and not self.closing:
            self.interest = READ
            return True
        return False

    def on_ready(self, mask):
        if self.interest & READ:
            self.receive()

    def receive(self):
        try:
            data = pipes.read(self.number(), self.receiver)
        except OSError as exc:
            self._fatal_error(exc, "Fatal read error on pipe transport")
            return False
        if data is None:
            return False
        if not data:
            self.end_of_stream()
            return False
        if len(data) >= FULL:
            self.descriptor.enlarge(self.fd)
        try:
            interp.call_method(self.context, self.protocol, "data_received", data)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "data_received")
        return True

    def end_of_stream(self):
        """Nobody writes any more. Unlike a stream's, a pipe's protocol cannot keep it open."""
        if self.loop.debug:
            debug.logger.info("%r was closed by peer", self)
        self.interest = 0
        self.closing = True
        try:
            interp.call(self.context, self.protocol.eof_received, ())
        except (SystemExit, KeyboardInterrupt):
            self.lose(None)
            raise
        except BaseException as exc:
            self.blame(exc, "eof_received")
        self.lose(None)

    def _close(self, exc):
        self.lose(exc)

    def _fatal_error(self, exc, message="Fatal error on pipe transport"):
        if isinstance(exc, OSError) and exc.errno == errno.EIO:  # a terminal that hangs up
            self.note(exc, message)
        else:
            self.report(exc, message)
        self.lose(exc)

    def drop_output(self):
        pass


class WritePipeTransport(ByteTransport):
    """asyncio's `WriteTransport` interface."""

    __slots__ = ("apart", "descriptor", "dropped")

    def __init__(self, loop, pipe, protocol, waiter=None):
        self.prepare(loop, protocol, None, interp.copy_context())
        self.queue.plain = True
        complaint = "Pipe transport is only for pipes, sockets and character devices"
        self.sock = self.descriptor = Descriptor(pipe, complaint)
        self.extra = {"pipe": pipe}
        self.descriptor.take(pipe, self)
        self.lent = self.descriptor
        self.apart = keeps_boundaries(self.fd, self.descriptor.mode)
        self.dropped = 0
        self.loop.schedule(self._start, (waiter,), self.loop.context)

    @property
    def __class__(self):
        return asyncio.Transport  # as which asyncio's own passes

    def get_extra_info(self, name, default=None):
        """``pipe``, or `default`."""
        return self.extra.get(name, default)

    @property
    def _extra(self):
        return self.extra

    @property
    def _pipe(self):
        return self.extra["pipe"] if self.fd >= 0 else None

    @property
    def _fileno(self):
        return self.fd

    def watch(self):
        if not self.fresh:
            self.descriptor.watch(self)

    def on_lost(self):
        self.descriptor.lost()
        BaseTransport.on_lost(self)

    def state(self):
        return BaseTransport.state(self)

    def write_eof(self):
        """The same as `close`: a pipe has nothing that could stay open."""
        self.close()

    def can_write_eof(self):
        """True."""
        return True

    def is_reading(self):
        """NotImplementedError, as are the other two of reading: asyncio's writer has them, and cannot read either."""
        raise NotImplementedError

    def pause_reading(self):
        """NotImplementedError"""
        raise NotImplementedError

    def resume_reading(self):
        """NotImplementedError"""
        raise NotImplementedError

    def write(self, data):
        """Write `data`, bytes-like, no later than at the end of the turn; the buffer may be reused at once.

        TypeError for other types. After `close`, or when the reader has gone, data is dropped, and from the sixth time
        on a warning logged.
        """
        data = sendqueue.own(data)
        if not data:
            return
        if self.closing:
            if self.dropped >= UNNOTICED:
                debug.logger.warning("pipe closed by peer or os.write(pipe, data) raised exception.")
            self.dropped += 1
            return
        self.queue.push(data)
        self.commit(self.apart)

    def writelines(self, list_of_data):
        """Write several buffers as one; if one of them has a wrong type, none."""
        self.write(b"".join([sendqueue.own(data) for data in list_of_data]))

    def start(self):
        if self.lost == 0 and self.descriptor.is_pipe_or_socket():
            self.interest |= HANGUP

    def on_ready(self, mask):
        if mask & HANGUP and self.interest & HANGUP:
            if self.loop.debug:
                debug.logger.info("%r was closed by peer", self)
            self.lose(BrokenPipeError() if self.queue.size else None)
        elif mask & WRITE and self.interest & WRITE:
            self.flush()
            self.settle()

    def flush(self):
        ByteTransport.flush(self)
        if self.queue.size:
            self.descriptor.enlarge(self.fd)

    def write_failed(self, exc):
        self._fatal_error(exc, "Fatal write error on pipe transport")

    def _read_ready(self):
        self.on_ready(HANGUP)

    def _close(self, exc=None):
        self.lose(exc)

    @property
    def _buffer(self):
        return bytearray().join(self.queue.views())


def keeps_boundaries(fd, mode):
    """Does one write() make one message? Not in pipes, byte streams and terminals; perhaps in any other device."""
    if stat.S_ISFIFO(mode):
        return fcntl.fcntl(fd, fcntl.F_GETFL) & getattr(os, "O_DIRECT", 0) != 0
    if stat.S_ISCHR(mode):
        return not os.isatty(fd)
    with socket.socket(fileno=os.dup(fd)) as duplicate:
        return duplicate.type != socket.SOCK_STREAM
