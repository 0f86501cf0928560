"""When does what a protocol writes leave? What the transports that write have in common.

What a turn writes leaves at its end in one system call; a `LARGE` piece, or more in all than `AT_ONCE` bytes or the
high-water mark, leaves at once, and so does anything written outside a turn. Only when the kernel refuses more is the
descriptor watched for writing. A write that was asked for by the protocol's own call (`flush_now`) calls it back on the
spot only to pause it; everything else waits for the end of the turn.
"""

from asyncio import constants

from epoque.core import debug
from epoque.kernel.masks import READ, WRITE
from epoque.transports.base import BaseTransport
from epoque.transports.flow import FlowControl
from epoque.transports.sendqueue import SendQueue

__all__ = ["ByteTransport", "WritingTransport"]

AT_ONCE = 64 * 1024  # bytes; with less, waiting for the end of the turn saves more than it costs


class WritingTransport(BaseTransport):
    """A transport with output of any kind, and water marks. asyncio's `WriteTransport` without ``write()``."""

    __slots__ = ("ending", "flow")

    def prepare(self, loop, protocol, server, context):
        BaseTransport.prepare(self, loop, protocol, server, context)
        self.flow = FlowControl()
        self.ending = False

    def close(self):
        """Stop reading, send what was written, then end. Closing twice is harmless."""
        if self.closing:
            if self.lost:
                self.interest = 0  # it broke by itself, but now nothing is to be read any more
            return
        self.closing = True
        if self.interest & READ:
            self.interest &= ~READ
            if self.interest:
                self.watch()
        self.hasten()

    def abort(self):
        """End at once. What was written in this turn is offered to the kernel; what it does not take is lost."""
        self._force_close(None)

    def _force_close(self, exc):
        if self.ending and self.sendable():
            self.send_last()
        self.lose(exc)

    def set_write_buffer_limits(self, high=None, low=None):
        """Set the water marks, in bytes: `high` pauses the protocol's writing, `low` resumes it.

        By default 64 KiB and a quarter of `high`. ValueError unless high >= low >= 0.
        """
        self.flow.set_limits(high, low)
        self.filled()

    def get_write_buffer_limits(self):
        """The water marks (low, high), in bytes."""
        return self.flow.low, self.flow.high

    def get_write_buffer_size(self):
        """Bytes that the kernel has not taken yet, those written in this turn among them."""
        return self.unsent()

    def state(self):
        read = "polling" if self.interest & READ else "idle"
        write = "polling" if self.interest & WRITE else "idle"
        return f"read={read} write=<{write}, bufsize={self.unsent()}>"

    def commit(self, at_once):
        """Something was queued: decide when it leaves."""
        size = self.unsent()
        much = at_once or size > AT_ONCE or size > self.flow.most or not self.loop.turning
        if self.ending and not much:
            return 0
        if not self.sendable():
            self.filled()
        elif much:
            self.flush_now()
        else:
            self.ask_for_turn_end()

    def ask_for_turn_end(self):
        if not self.ending:
            self.ending = True
            self.loop.ending.append(self)

    def on_turn_end(self):
        self.ending = False
        if self.sendable():
            self.flush()
        if self.flow.paused:
            self.settle()
        else:
            self.finish()

    def before_fork(self):
        if self.sendable():
            self.flush_now()

    def hasten(self):
        """Nothing more will be written: what is queued need not wait."""
        if self.unsent() == 0:
            self.finish()
        elif self.sendable():
            self.flush_now()

    def flush_now(self):
        """Send within a call of the protocol's; what follows happens on the spot unless it calls the protocol."""
        self.flush_here()
        if self.flow.paused:
            self.ask_for_turn_end()
        else:
            self.finish()

    def flush_here(self):
        self.flush()

    def filled(self):
        """More may be queued than the protocol should have written."""
        self.flow.filled(self.unsent(), self, self.protocol, self.loop)

    def settle(self):
        """After the loop's own flush: resume the protocol's writing, and end what was to end when all is sent."""
        try:
            if self.flow.paused:
                self.drained()
        finally:
            self.finish()

    def drained(self):
        if self.lost == 0:
            self.flow.drained(self.unsent(), self, self.protocol, self.loop, self.context)

    def finish(self):
        if self.closing and self.lost == 0 and self.unsent() == 0:
            self.lose(None)

    def count_lost_write(self):
        if self.lost >= constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES:
            debug.logger.warning("socket.send() raised exception.")
        self.lost += 1

    # Names under which asyncio's own transports are inspected and driven.

    def _write_ready(self):
        self.on_ready(WRITE)

    def _set_write_buffer_limits(self, high=None, low=None):
        self.flow.set_limits(high, low)

    def _maybe_pause_protocol(self):
        self.filled()

    def _maybe_resume_protocol(self):
        self.drained()

    @property
    def _high_water(self):
        return self.flow.high

    @property
    def _low_water(self):
        return self.flow.low

    @property
    def _protocol_paused(self):
        return self.flow.paused

    # What a kind of output supplies.

    def unsent(self):
        """Bytes queued; 0 if and only if nothing is."""
        raise NotImplementedError

    def sendable(self):
        """Is there something that the kernel may take now?"""
        raise NotImplementedError

    def flush(self):
        """Send what the kernel takes, and see to it that the rest follows."""
        raise NotImplementedError

    def send_last(self):
        """Send what the kernel takes; the end comes in any case."""
        raise NotImplementedError


class ByteTransport(WritingTransport):
    """A transport whose output is one stream of bytes."""

    __slots__ = ("queue",)

    def prepare(self, loop, protocol, server, context):
        WritingTransport.prepare(self, loop, protocol, server, context)
        self.queue = SendQueue()

    def unsent(self):
        return self.queue.size

    def sendable(self):
        return self.queue.size > 0 and not self.interest & WRITE

    def commit(self, at_once):  # as in WritingTransport, without its calls
        size = self.queue.size
        if self.interest & WRITE:
            self.filled()
        elif at_once or size > AT_ONCE or size > self.flow.most or not self.loop.turning:
            self.flush_now()
        elif not self.ending:
            self.ending = True
            self.loop.ending.append(self)

    def flush(self):
        try:
            self.queue.send(self.fd if self.lent is None else self.number())
        except OSError as exc:
            self.write_failed(exc)
            return 0
        if self.queue.size:
            if not self.interest & WRITE:
                self.interest |= WRITE
                self.watch()
            self.filled()
        elif self.interest & WRITE:
            self.interest &= ~WRITE
            self.watch()

    def offer(self, engine):
        """Send the output of a TLS engine past the queue; False if something is left, which must be written."""
        if self.queue.size or self.lost or self.interest & WRITE:
            return False
        try:
            return engine.send(self.number())
        except OSError as exc:
            engine.output()
            self.write_failed(exc)
            return True

    def send_last(self):
        try:
            self.queue.send(self.number())
        except OSError as exc:
            self.note(exc, "Fatal write error on aborted transport")

    def drop_output(self):
        self.queue.clear()

    def write_failed(self, exc):
        """The kernel refused: the end."""
        raise NotImplementedError
