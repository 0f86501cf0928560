"""How does TLS serve a protocol? `TLSConnection`: a protocol to the transport below, and all that happens by itself.

What the transport below delivers is decrypted and delivered at once. What a turn writes is encrypted at its end, small
pieces together in one record; a `LARGE` piece, or more in all than `AT_ONCE` bytes or the high-water mark, at once.
While the transport below (ours, TLS or not, or anybody's) has no room nothing is encrypted: what waits is plaintext.

The end: what was written is sent, then close_notify, and the peer's is awaited; whatever else the peer still sends is
dropped, and ends the waiting at once. A peer that just sends FIN has ended the stream as far as the protocol can tell;
what it may still want to read is sent all the same.

Whatever the loop calls here runs in the connection's context already, but for `on_turn_end`.
"""

from epoque.core import debug
from epoque.kernel import interp
from epoque.selector.source import Source
from epoque.transports.base import BaseTransport
from epoque.transports.flow import FlowControl
from epoque.transports.sendqueue import SendQueue
from epoque.transports.writer import ByteTransport

__all__ = ["TLSConnection"]

MOST = 256 * 1024  # bytes of one delivery
CHUNK = 256 * 1024  # bytes encrypted between two looks at whether the transport below has room
AT_ONCE = 64 * 1024  # bytes of plaintext; more is not kept until the end of the turn
MOST_UNREAD = 64 * 1024  # bytes of answers to key updates that may wait where there is no room for more

# What comes next.
HANDSHAKE = 0
OPEN = 1
CLOSING = 2  # what was written still leaves
SHUTDOWN = 3  # close_notify was sent, the peer's is awaited
LOST = 4


class TLSConnection(Source):
    """The state of one connection. It is no descriptor: the selector does not know it, but turns end for it too."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "buffered",
        "closing",
        "context",
        "dropped",
        "ending",
        "engine",
        "eof",
        "established",
        "flow",
        "fresh",
        "handshake_timeout",
        "loop",
        "lower",
        "notified",
        "paused",
        "pending",
        "protocol",
        "queue",
        "shutdown_timeout",
        "state",
        "stream",
        "stuck",
        "suspended",
        "timer",
        "told",
        "unread",
        "waiter",
    )

    def __init__(self, loop, protocol, engine, waiter, handshake_timeout, shutdown_timeout):
        interp.drop_dict(self)
        Source.__init__(self, -1)
        self.loop = loop
        self.protocol = protocol
        self.engine = engine
        self.waiter = waiter
        self.handshake_timeout = handshake_timeout
        self.shutdown_timeout = shutdown_timeout
        self.queue = SendQueue()
        self.flow = FlowControl()
        self.lower = None
        self.stream = None
        self.context = None
        self.timer = None
        self.state = HANDSHAKE
        self.told = False
        self.buffered = False
        self.closing = False
        self.paused = False
        self.suspended = False
        self.stuck = False
        self.ending = False
        self.established = False
        self.eof = False
        self.fresh = False
        self.notified = False
        self.dropped = 0
        self.pending = 0
        self.unread = 0

    # The protocol of the transport below.

    def connection_made(self, lower):
        """Begin with the handshake."""
        self._attach(lower)
        if self.state == LOST:  # closed before it began
            lower.abort()
        else:
            self._begin()

    def _attach(self, lower):
        self.lower = lower
        self.stream = lower if isinstance(lower, ByteTransport) else None
        self.context = context_of(lower)

    def _take_place(self, lower, unread):
        """Replace the protocol of a connection that lives: begin soon, with what it has received already."""
        self._attach(lower)
        self.told = True
        if unread:
            self.engine.receive(unread)
        if getattr(lower, "_protocol_paused", False):  # of which the protocol knows
            self.suspended = True
            self.flow.paused = True
        return self.loop.schedule(self._begin, (), self.context)

    def _begin(self):
        if self.state == HANDSHAKE:
            self.timer = self.loop.call_later(self.handshake_timeout, self._handshake_overdue)
            self.shake()

    def data_received(self, data):
        """Ciphertext has come."""
        self.engine.receive(data)
        self.go_on()

    def _take(self, receiver):
        """`data_received`, out of the loop's buffer."""
        self.engine.receive_from(receiver)
        try:
            self.go_on()
        finally:
            self.engine.settle(receiver)

    def go_on(self):
        if self.state == OPEN:
            self.read_on()
        elif self.state == HANDSHAKE:
            self.shake()
        elif self.state == CLOSING:
            self.progress()
        elif self.state == SHUTDOWN:
            self.say_goodbye()

    def eof_received(self):
        """The peer sends no more, whether it has said so in TLS or not."""
        self.eof = True
        if self.state == HANDSHAKE:
            self.fail(ConnectionResetError("the peer has ended the connection during the TLS handshake"), "")
        elif self.state == OPEN:
            self.read_on()  # what a pause has held back goes first
        return self.state < SHUTDOWN

    def pause_writing(self):
        """The transport below has no room."""
        self.suspended = True

    def resume_writing(self):
        """The transport below has room again."""
        self.suspended = False
        self.unread = 0
        self.progress()
        self.settle(None)

    def connection_lost(self, exc):
        """The transport below has ended, and everything with it."""
        self.state = LOST
        self.closing = True
        self.cancel_timer()
        self.queue.clear()
        self.wake(ConnectionAbortedError("the connection was closed during the TLS handshake") if exc is None else exc)
        protocol, self.protocol = self.protocol, None
        if self.told:
            self.told = False
            protocol.connection_lost(exc)

    def shake(self):
        try:
            done = self.engine.handshake()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.fail(exc, "SSL handshake failed")
            return 0
        self.send_output()
        if done:
            self.open_up()

    def open_up(self):
        self.cancel_timer()
        self.state = OPEN
        self.established = True
        try:
            if not self.told:
                self.told = True
                self.protocol.connection_made(self)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "connection_made")
        finally:
            self.wake(None)
            self.fresh = True
            self.loop.schedule(self._first_read, (), self.context)  # whoever was woken goes first
        self.progress()

    def _first_read(self):
        self.fresh = False
        self.read_on()

    def wake(self, exc):
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            if exc is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(exc)

    def _handshake_overdue(self):
        self.timer = None
        message = f"SSL handshake is taking longer than {self.handshake_timeout} seconds: aborting the connection"
        self.fail(ConnectionAbortedError(message), "")

    # Reading.

    def _read_on(self):
        self.read_on()

    def read_on(self):
        """Deliver what can be decrypted, and send what that causes."""
        if self.fresh:
            return 0
        try:
            while self.state == OPEN and not self.paused and not self.engine.idle():
                if not (self.read_into() if self.buffered else self.read()):
                    break
        except (SystemExit, KeyboardInterrupt):
            self.loop.schedule(self._read_on, (), self.context)
            raise
        if self.state == OPEN:
            self.answer()
            if self.stuck:
                self.progress()
                self.settle(None)
            if self.eof and not self.paused:
                self.end_of_stream()

    def read(self):
        """Deliver bytes; False if there are none."""
        try:
            data = self.engine.read(MOST)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.fail(exc, "Fatal error on SSL protocol")
            return False
        if not data:
            if data is not None:
                self.notified = True
                self.end_of_stream()
            return False
        try:
            self.protocol.data_received(data)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "data_received")
        return True

    def read_into(self):
        """Let the protocol have the bytes in its own buffer; False if there are none."""
        name = "get_buffer"
        try:
            buffer = self.protocol.get_buffer(-1)
            if not len(buffer):
                raise RuntimeError("get_buffer() returned an empty buffer")
            if self.state != OPEN or self.paused:
                return False
            try:
                count = self.engine.read_into(buffer)
            except OSError as exc:
                self.fail(exc, "Fatal error on SSL protocol")
                return False
            if count > 0:
                name = "buffer_updated"
                self.protocol.buffer_updated(count)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, name)
            return False
        if count == 0:
            self.notified = True
            self.end_of_stream()
        return count > 0

    def end_of_stream(self):
        """The peer has sent close_notify, or just FIN; what the protocol answers to that still leaves."""
        if self.loop.debug:
            debug.logger.debug("%r received EOF", self)
        try:
            if self.protocol.eof_received():
                debug.logger.warning("returning true from eof_received() has no effect when using ssl")
        except (SystemExit, KeyboardInterrupt):
            self.shut_down()
            raise
        except BaseException as exc:
            self.blame(exc, "eof_received")
            return 0
        self.shut_down()

    # Writing.

    def commit(self, at_once):
        """Something was queued: decide when it leaves."""
        if self.state == OPEN and not self.suspended and not self.stuck:
            much = at_once or self.queue.size > AT_ONCE or self.queue.size > self.flow.most
            if not much and self.loop.turning:
                self.ask_for_turn_end()
                return 0
            self.pump()
            if self.flow.paused:
                self.ask_for_turn_end()
        self.filled()

    def filled(self):
        self.flow.filled(self.counted(), self, self.protocol, self.loop)

    def counted(self):
        """What the water marks see: what the transport below holds only while it will say that it has room again."""
        return self.unsent() if self.suspended else self.queue.size

    def unsent(self):
        return self.queue.size + (0 if self.lower is None else self.lower.get_write_buffer_size())

    def ask_for_turn_end(self):
        if not self.ending:
            self.ending = True
            self.loop.ending.append(self)

    def on_turn_end(self):
        self.ending = False
        self.progress()
        if self.suspended and self.state == OPEN:
            self.filled()
        self.settle(self.context)

    def before_fork(self):
        if self.state == OPEN:
            self.pump()
        if isinstance(self.lower, Source):  # which may have had its turn before it got this
            lower = self.lower
            lower.before_fork()

    def progress(self):
        """Send what can be sent, and go on to the shutdown if that was all."""
        if self.state == OPEN or self.state == CLOSING:
            self.pump()
            if self.state != CLOSING:
                return 0
            if self.queue.size == 0:
                self.say_goodbye()
            elif self.stuck:
                self.lower.resume_reading()
            else:
                self.lower.pause_reading()  # until all is sent

    def settle(self, context):
        if self.flow.paused and self.state != LOST:
            self.flow.drained(self.counted(), self, self.protocol, self.loop, context)

    def pump(self):
        """Encrypt while the transport below has room."""
        while self.queue.size and not self.suspended and self.state != LOST:
            try:
                count = self.engine.write(self.queue.front(CHUNK))
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as exc:
                self.fail(exc, "Fatal error on SSL protocol")
                return 0
            self.stuck = count < 0  # a renegotiation: data_received() goes on
            if self.stuck:
                return 0
            self.queue.drop(count)
            if self.stream is None or not self.stream.offer(self.engine):
                self.send_output()
            if self.stream is not None and self.stream.lost:
                return 0  # connection_lost() is on its way

    def send_output(self):
        output = self.engine.output()
        if output:
            self.lower.write(output)

    def answer(self):
        """Send what reading has caused, answers to key updates; a peer that asks for them and reads nothing must go."""
        output = self.engine.output()
        if output:
            self.lower.write(output)
            if self.suspended:
                self.unread += len(output)
                if self.unread > MOST_UNREAD:
                    self.fail(ConnectionAbortedError("the peer asks for new keys and does not read the answers"), "")

    # The end.

    def shut_down(self):
        """Send what was written, then go through the shutdown; before the handshake is done, end at once."""
        if self.closing:
            return 0
        if self.state == HANDSHAKE:
            self.lose(None)
            return 0
        self.closing = True
        self.state = CLOSING
        self.await_shutdown()
        self.progress()

    def say_goodbye(self):
        """Exchange close_notify (RFC 8446, 6.1). Anything that is no close_notify ends the exchange."""
        first = self.state != SHUTDOWN
        self.state = SHUTDOWN
        done = self.eof
        if self.notified or not self.eof:  # to who has just hung up asyncio says nothing more
            try:
                done = self.engine.unwrap() or self.eof
            except OSError:
                done = True
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as exc:  # out of a callback of the ssl module's
                self.fail(exc, "Fatal error on SSL protocol")
                return 0
            self.send_output()
        if done:
            self.lower.close()  # which still sends, and has until the timeout to do it
        elif first:
            self.lower.resume_reading()

    def await_shutdown(self):
        self.pending = self.unsent()
        self.timer = self.loop.call_later(self.shutdown_timeout, self._shutdown_overdue)

    def _shutdown_overdue(self):
        self.timer = None
        if self.unsent() < self.pending:
            self.await_shutdown()
        else:
            self.lose(TimeoutError("SSL shutdown timed out"))

    def fail(self, exc, message):
        """TLS is broken: tell the peer what OpenSSL has to say, and end the connection."""
        if self.state == LOST:
            return 0
        self.ending = False  # nothing can be encrypted any more
        self.send_output()
        if isinstance(exc, OSError):
            if self.loop.debug:
                debug.logger.debug("%r: %s", self, message or exc, exc_info=exc)
        else:
            self.report(exc, message)
        self.wake(exc)
        self.lose(exc)

    def blame(self, exc, name):
        """The protocol failed: report it, and end its connection only."""
        self.report(exc, f"Fatal error: protocol.{name}() call failed.")
        self.lose(exc)

    def report(self, exc, message):
        self.loop.call_exception_handler(
            {"message": message, "exception": exc, "transport": self, "protocol": self.protocol}
        )

    def lose(self, exc):
        """End the connection at once; ``connection_lost(exc)`` follows from the transport below."""
        if self.ending and self.state == OPEN:
            self.ending = False
            self.pump()
        if self.state == LOST:
            return 0
        self.state = LOST
        self.closing = True
        self.cancel_timer()
        self.queue.clear()
        if exc is not None and self.lower is not None:
            self.lower._force_close(exc)
        elif self.lower is not None:
            self.lower.abort()

    def cancel_timer(self):
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def context_of(transport):
    """The context in which a transport calls its protocol."""
    if isinstance(transport, BaseTransport):
        base = transport
        return base.context
    if isinstance(transport, TLSConnection):
        upper = transport
        return upper.context
    return interp.copy_context()
