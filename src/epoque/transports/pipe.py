"""How do bytes go one way, through a pipe, a FIFO, a terminal or another character device, or a socket?

A descriptor can carry two of these transports (a terminal or a socket, one to read and one to write). The selector
knows one source per number, so the second one works on a duplicate, dup(2): each has a registration of its own in the
kernel. Either may end first: what the caller brought is closed when both have, lest one takes the number from under
the other.

A writer is told of the end of its reader while it is idle: it is registered for nothing but the hang-up, which for a
pipe is EPOLLERR. Data that arrive on the descriptor of a writer are not its business.

Some devices cannot be watched (EPERM, epoll_ctl(2)) because they never block: /dev/null and its like. They are read or
written once per turn. With kqueue that may be a terminal, which does block: it is tried every `RETRY` seconds.
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
from epoque.transports.flow import FlowControl
from epoque.transports.sendqueue import SendQueue

__all__ = ["ReadPipeTransport", "WritePipeTransport"]

AT_ONCE = 64 * 1024  # bytes; as for streams, and as much as a pipe holds by default (pipe(7))
MAX_SIZE = 256 * 1024  # bytes of the loop's receive buffer
RETRY = 0.01  # seconds
UNNOTICED = constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES  # writes after the end, before it is logged


class Sharing:
    """What the caller brought for one descriptor: usually one object, with one transport that uses it."""

    __slots__ = ("pipes", "users")

    def __init__(self):
        self.users = 1
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


class PipeTransport(BaseTransport):
    """What both directions share."""

    __slots__ = ("__dict__", "duplicate", "file_mode", "in_line", "sharing", "unpolled")

    def __init__(self, loop, pipe, protocol, complaint):
        BaseTransport.__init__(self, loop, protocol, None, interp.copy_context())
        self.file_mode = 0
        self.sharing = None
        self.duplicate = False
        self.unpolled = False
        self.in_line = False
        self.open(pipe, complaint)

    def open(self, pipe, complaint):
        """Take `pipe` over, an object with ``fileno()`` and ``close()``; if this raises it is still the caller's."""
        fd = pipe.fileno()
        self.extra = {"pipe": pipe}
        self.file_mode = os.fstat(fd).st_mode
        if not (stat.S_ISFIFO(self.file_mode) or stat.S_ISSOCK(self.file_mode) or stat.S_ISCHR(self.file_mode)):
            raise ValueError(complaint)
        os.set_blocking(fd, False)
        source = self.loop.selector.find(fd)
        if source is not None and self.loop.selector.verify(source):
            fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)
            self.duplicate = True
        try:
            self.take_over(fd)
        except BaseException:
            if self.duplicate:
                events.close(fd)
            raise
        if isinstance(source, PipeTransport):
            partner = source
            self.sharing = partner.sharing
            self.sharing.users += 1
        else:
            self.sharing = Sharing()
        self.sharing.pipes.append(pipe)

    def get_extra_info(self, name, default=None):
        """``pipe``, or `default`."""
        return self.extra.get(name, default)

    @property
    def _pipe(self):
        return self.extra["pipe"] if self.fd >= 0 else None

    @property
    def _fileno(self):
        return self.fd

    def set_protocol(self, protocol):
        """Hand the pipe to another protocol, from the next event on."""
        self.protocol = protocol

    def __repr__(self):
        parts = [type(self).__name__]
        if self.fd < 0:
            parts.append("closed")
        elif self.closing:
            parts.append("closing")
        parts.append(f"fd={self.fd}")
        if self.fd >= 0 and self.loop.usable:
            parts.append("polling" if self.interest & (READ | WRITE) else "idle")
        return f"<{' '.join(parts)}>"

    def _start(self, waiter):
        """Begin: connection_made, then watching, then whoever waits."""
        try:
            self.begin()
        finally:
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def begin(self):
        try:
            interp.call_method(self.context, self.protocol, "connection_made", self)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "connection_made")
        finally:
            self.start()

    def watch(self):
        """Have `on_ready` called for what is of interest."""
        if not self.unpolled:
            try:
                self.loop.selector.update(self)
                return 0
            except PermissionError:
                self.unpolled = True
                self.loop.selector.remove(self)
        if not self.in_line and self.interest:
            self.in_line = True
            if os.isatty(self.fd):
                self.loop.call_later(RETRY, self._call_ready, context=self.loop.context)
            else:
                self.loop.schedule(self._call_ready, (), self.loop.context)

    def _call_ready(self):
        self.in_line = False
        if self.interest:
            self.on_ready(self.interest)
            self.watch()

    def failed(self, exc, message):
        """Reading or writing failed: the end. A terminal that hangs up does so with EIO, a pipe with EPIPE."""
        if exc.errno == errno.EIO or self.interest & READ == 0:
            self.note(exc, message)
        else:
            self.loop.call_exception_handler(
                {"message": message, "exception": exc, "transport": self, "protocol": self.protocol}
            )
        self.lose(exc)

    def on_lost(self):
        if not self.duplicate:
            self.sharing.pipes.clear()  # their number may be anybody's
        BaseTransport.on_lost(self)

    def release(self):
        fd = self.fd
        self.fd = -1
        self.owned = False
        self.protocol = None
        if self.duplicate and fd >= 0:
            events.close(fd)
        if self.sharing is not None:
            try:
                self.sharing.leave()
            finally:
                self.sharing = None

    # What a direction supplies.

    def start(self):
        """The protocol knows the transport: watch the descriptor."""
        raise NotImplementedError


class ReadPipeTransport(PipeTransport):
    """asyncio's `ReadTransport` interface."""

    __slots__ = ("paused", "receiver", "started")

    def __init__(self, loop, pipe, protocol, waiter=None):
        PipeTransport.__init__(self, loop, pipe, protocol, "Pipe transport is for pipes/sockets only.")
        self.receiver = self.loop.get_receiver()
        self.started = False
        self.paused = False
        self.loop.schedule(self._start, (waiter,), self.loop.context)

    @property
    def __class__(self):
        return asyncio.ReadTransport

    @property
    def max_size(self):
        """Bytes that one read can bring."""
        return MAX_SIZE

    def close(self):
        """Stop reading and end the connection. Closing twice is harmless."""
        if not self.closing:
            self.lose(None)

    def is_reading(self):
        """Whether data can be received: not paused and not closing."""
        return not self.closing and not self.paused

    def pause_reading(self):
        """Stop calling ``data_received`` until `resume_reading`. Without effect when paused or closing."""
        if self.closing or self.paused:
            return
        self.paused = True
        self.interest = 0
        if self.loop.debug:
            debug.logger.debug("%r pauses reading", self)

    def resume_reading(self):
        """Undo `pause_reading`. Without effect when not paused or closing."""
        if self.closing or not self.paused:
            return
        self.paused = False
        self.read_on()
        if self.loop.debug:
            debug.logger.debug("%r resumes reading", self)

    def start(self):
        self.started = True
        self.read_on()

    def read_on(self):
        if self.started and not self.paused and not self.closing:
            self.interest = READ
            self.watch()

    def on_ready(self, mask):
        if self.interest & READ:
            self.receive()

    def receive(self):
        try:
            data = pipes.read(self.fd, self.receiver)
        except OSError as exc:
            self.failed(exc, "Fatal read error on pipe transport")
            return False
        if data is None:
            return False
        if not data:
            self.end_of_stream()
            return False
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

    def drop_output(self):
        pass


class WritePipeTransport(PipeTransport):
    """asyncio's `WriteTransport` interface."""

    __slots__ = ("apart", "dropped", "ending", "flow", "queue")

    def __init__(self, loop, pipe, protocol, waiter=None):
        complaint = "Pipe transport is only for pipes, sockets and character devices"
        PipeTransport.__init__(self, loop, pipe, protocol, complaint)
        self.queue = SendQueue(True)
        self.flow = FlowControl()
        self.apart = keeps_boundaries(self.fd, self.file_mode)
        self.ending = False
        self.dropped = 0
        self.loop.schedule(self._start, (waiter,), self.loop.context)

    @property
    def __class__(self):
        return asyncio.Transport  # as which asyncio's own passes

    def close(self):
        """Write what is still to be written, then end the connection. Closing twice is harmless."""
        self.write_eof()

    def write_eof(self):
        """The same as `close`: a pipe has nothing that could stay open."""
        if self.closing:
            return
        self.closing = True
        if self.queue.size == 0:
            self.finish()
        elif not self.interest & WRITE:
            self.flush_now()

    def can_write_eof(self):
        """True."""
        return True

    def abort(self):
        """End the connection at once; what the kernel has not taken is lost."""
        if self.ending and self.lost == 0 and not self.interest & WRITE:
            self.ending = False
            try:
                self.queue.send(self.fd)
            except OSError as exc:
                self.note(exc, "Fatal write error on pipe transport")
        self.lose(None)

    def is_reading(self):
        """NotImplementedError, as are the other two of reading: asyncio's writer has them, and cannot read either."""
        raise NotImplementedError

    def pause_reading(self):
        """NotImplementedError"""
        raise NotImplementedError

    def resume_reading(self):
        """NotImplementedError"""
        raise NotImplementedError

    def set_write_buffer_limits(self, high=None, low=None):
        """Set the water marks, in bytes: `high` pauses the protocol's writing, `low` resumes it.

        By default 64 KiB and a quarter of `high`. ValueError unless high >= low >= 0.
        """
        self.flow.set_limits(high, low)
        self.flow.filled(self.queue.size, self, self.protocol, self.loop)

    def get_write_buffer_limits(self):
        """The water marks (low, high), in bytes."""
        return self.flow.low, self.flow.high

    def get_write_buffer_size(self):
        """Bytes that the kernel has not taken yet, those written in this turn among them."""
        return self.queue.size

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
        self.commit()

    def writelines(self, list_of_data):
        """Write several buffers as one; if one of them has a wrong type, none."""
        self.write(b"".join(list_of_data))

    def start(self):
        if self.lost == 0 and (stat.S_ISFIFO(self.file_mode) or stat.S_ISSOCK(self.file_mode)):
            self.interest |= HANGUP
            self.watch()

    def on_ready(self, mask):
        if mask & HANGUP and self.interest & HANGUP:
            if self.loop.debug:
                debug.logger.info("%r was closed by peer", self)
            self.lose(BrokenPipeError() if self.queue.size else None)
        elif mask & WRITE and self.interest & WRITE:
            self.flush()
            self.settle()

    def commit(self):
        """Something was queued: decide when it leaves."""
        size = self.queue.size
        if self.interest & WRITE:
            self.flow.filled(size, self, self.protocol, self.loop)
        elif self.apart or size > AT_ONCE or size > self.flow.most or not self.loop.turning:
            self.flush_now()
        else:
            self.ask_for_turn_end()

    def ask_for_turn_end(self):
        if not self.ending:
            self.ending = True
            self.loop.ending.append(self)

    def on_turn_end(self):
        self.ending = False
        if self.queue.size and not self.interest & WRITE:
            self.flush()
        self.settle()

    def flush_now(self):
        """Write within a call of the protocol's; what follows happens on the spot unless it calls the protocol."""
        self.flush()
        if self.flow.paused:
            self.ask_for_turn_end()
        else:
            self.finish()

    def flush(self):
        """Write what the kernel takes, and watch for room for the rest."""
        try:
            self.queue.send(self.fd)
        except OSError as exc:
            self.failed(exc, "Fatal write error on pipe transport")
            return 0
        if self.queue.size:
            if not self.interest & WRITE:
                self.interest |= WRITE
                self.watch()
            self.flow.filled(self.queue.size, self, self.protocol, self.loop)
        elif self.interest & WRITE:
            self.interest &= ~WRITE
            self.watch()

    def settle(self):
        """After the loop's own flush: resume the protocol's writing, and end what was to end when all is written."""
        if self.flow.paused and self.lost == 0:
            self.flow.drained(self.queue.size, self, self.protocol, self.loop, self.context)
        self.finish()

    def finish(self):
        if self.closing and self.queue.size == 0 and self.lost == 0:
            self.lose(None)

    def drop_output(self):
        self.queue.clear()


def keeps_boundaries(fd, mode):
    """Does one write() make one message? Not in pipes, byte streams and terminals; perhaps in any other device."""
    if stat.S_ISFIFO(mode):
        return fcntl.fcntl(fd, fcntl.F_GETFL) & getattr(os, "O_DIRECT", 0) != 0
    if stat.S_ISCHR(mode):
        return not os.isatty(fd)
    with socket.socket(fileno=os.dup(fd)) as duplicate:
        return duplicate.type != socket.SOCK_STREAM
