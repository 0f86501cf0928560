"""How does a stream socket serve a protocol? `StreamTransport`, over TCP and Unix sockets alike.

Reading: one receive per readiness into the loop's buffer, or straight into a `BufferedProtocol`'s. A pause is
remembered here and told to the kernel only if something arrives meanwhile. When the peer has hung up, what the kernel
still holds is read at once.

Writing: what a turn writes leaves at its end in one system call; more than `AT_ONCE` bytes, or more than the
high-water mark, leave at once, and so does anything written outside a turn. Only when the kernel refuses more is the
socket watched for writing.

The end: ``connection_lost`` is called exactly once, from the ready queue, after all data that arrived before. Until
then the descriptor stays open, so that its number cannot be anybody else's.

Everything the protocol does for this connection runs in the connection's own context (PEP 567), except what its own
calls cause on the spot (``pause_writing`` out of ``write``).
"""

import asyncio
import socket
from asyncio import constants

from epoque.core import debug
from epoque.kernel import events, interp, sockets
from epoque.kernel.masks import HANGUP, READ, WRITE
from epoque.transports import sendqueue
from epoque.transports.base import BaseTransport
from epoque.transports.flow import FlowControl
from epoque.transports.sendqueue import SendQueue

__all__ = ["StreamTransport", "accepted", "connected"]

AT_ONCE = 64 * 1024  # bytes; with less, waiting for the end of the turn saves more than it costs
READS_AFTER_HANGUP = 16  # receives in a row from one connection, before the others have their turn


class StreamTransport(BaseTransport):
    """A connection. asyncio's `Transport` interface."""

    __slots__ = (
        "buffered",
        "ending",
        "eof_received",
        "eof_sent",
        "eof_written",
        "flow",
        "paused",
        "queue",
        "receiver",
        "room",
        "sending",
        "started",
    )

    def __init__(self, loop, fd, protocol, server, context):
        BaseTransport.__init__(self, loop, protocol, server, context)
        self.receiver = self.loop.get_receiver()
        self.queue = SendQueue()
        self.flow = FlowControl()
        self.started = False
        self.paused = False
        self.ending = False
        self.eof_received = False
        self.eof_written = False
        self.eof_sent = False
        self.sending = False
        self.room = None
        self.buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self.take_over(fd)

    @property
    def __class__(self):
        return asyncio.Transport

    # asyncio.BaseTransport

    def set_protocol(self, protocol):
        """Hand the connection to another protocol, from the next event on."""
        self.protocol = protocol
        self.buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def close(self):
        """Stop reading, send what was written, then end the connection. Closing twice is harmless."""
        if self.closing:
            return
        self.closing = True
        if self.interest & READ:
            self.interest &= ~READ
            if self.interest:
                self.loop.selector.update(self)
        if self.queue.size == 0:
            self.finish()
        elif not self.interest & WRITE:
            self.flush_now()

    def abort(self):
        """End the connection at once; what the kernel has not taken is lost."""
        if self.ending and self.lost == 0 and not self.interest & WRITE:
            self.ending = False
            try:
                self.queue.send(self.fd)
            except OSError as exc:
                self.note(exc, "Fatal write error on socket transport")
        self.lose(None)

    @property
    def _start_tls_compatible(self):
        return True

    # asyncio.ReadTransport

    def is_reading(self):
        """Whether data can be received: not paused and not closing."""
        return not self.closing and not self.paused

    def pause_reading(self):
        """Stop calling ``data_received`` until `resume_reading`. Without effect when paused or closing."""
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
        self.read_on()
        if self.loop.debug:
            debug.logger.debug("%r resumes reading", self)

    def read_on(self):
        if self.started and not self.paused and not self.closing and not self.eof_received and not self.sending:
            self.interest |= READ
            self.loop.selector.update(self)

    def _start(self, waiter):
        """Begin: connection_made, then reading, then whoever waits."""
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
            self.started = True
            self.read_on()

    def on_ready(self, mask):
        if mask & READ and self.interest & READ:
            rounds = 1
            while self.receive() and mask & HANGUP and self.interest & READ and rounds < READS_AFTER_HANGUP:
                rounds += 1
        if mask & WRITE and self.interest & WRITE:
            self.flush()
            self.settle()
            if self.queue.size == 0:
                self.grant()

    def receive(self):
        """One receive; True if data came."""
        if self.buffered:
            return self.receive_into()
        try:
            data = self.receiver.recv(self.fd)
        except OSError as exc:
            self.note(exc, "Fatal read error on socket transport")
            self.lose(exc)
            return False
        if data is None:
            return False
        if not data:
            self.end_of_stream()
            return False
        self.deliver("data_received", data)
        return True

    def receive_into(self):
        try:
            buffer = interp.call_method(self.context, self.protocol, "get_buffer", -1)
            if not len(buffer):
                raise RuntimeError("get_buffer() returned an empty buffer")
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "get_buffer")
            return False
        if not self.interest & READ:  # get_buffer() closed or paused
            return False
        try:
            count = sockets.recv_into(self.fd, buffer)
        except (SystemExit, KeyboardInterrupt):
            raise
        except OSError as exc:
            self.note(exc, "Fatal read error on socket transport")
            self.lose(exc)
            return False
        except BaseException as exc:
            self.blame(exc, "get_buffer")
            return False
        if count < 0:
            return False
        if count == 0:
            self.end_of_stream()
            return False
        self.deliver("buffer_updated", count)
        return True

    def deliver(self, name, argument):
        try:
            interp.call_method(self.context, self.protocol, name, argument)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, name)

    def end_of_stream(self):
        """The peer sends no more. The protocol says whether we may still want to."""
        if self.lost:  # the end of a connection that broke while we wrote, which connection_lost will tell
            return 0
        if self.loop.debug:
            debug.logger.debug("%r received EOF", self)
        self.eof_received = True
        try:
            keep_open = interp.call(self.context, self.protocol.eof_received, ())
        except (SystemExit, KeyboardInterrupt):
            self.close()
            raise
        except BaseException as exc:
            self.blame(exc, "eof_received")
            return 0
        if not keep_open:
            self.close()
        elif not self.closing:
            # The end of the stream stays readable for ever.
            self.interest &= ~READ
            self.loop.selector.update(self)

    # asyncio.WriteTransport

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

    def can_write_eof(self):
        """True: the connection can be half closed."""
        return True

    def write(self, data):
        """Send `data`, bytes-like, no later than at the end of the turn; the buffer may be reused at once.

        TypeError for other types, RuntimeError after `write_eof`. After the connection has ended data is dropped, and
        from the fifth time on a warning logged.
        """
        if type(data) is not bytes:
            data = self.take(data)
        if self.eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self.sending:
            raise RuntimeError("unable to write; sendfile is in progress")
        if not data:
            return
        if self.lost:
            self.count_lost_write()
            return
        self.queue.push(data)
        self.commit()

    def take(self, data):
        """A buffer that can change: send now what the kernel takes, so that only the rest must be copied."""
        if (
            self.queue.size == 0
            and self.lost == 0
            and not self.eof_written
            and not self.sending
            and isinstance(data, (bytearray, memoryview))
            and len(data) > AT_ONCE
        ):
            view = memoryview(data)
            if view.c_contiguous:
                view = view.cast("B")
                try:
                    sent = sockets.send(self.fd, view, 0)
                except OSError as exc:
                    self.write_failed(exc)
                    return b""
                if sent > 0:
                    return view[sent:].tobytes()
        return sendqueue.own(data)

    def writelines(self, list_of_data):
        """Send several buffers, as `write` would; if one of them has a wrong type, none."""
        if self.eof_written:
            raise RuntimeError("Cannot call writelines() after write_eof()")
        if self.sending:
            raise RuntimeError("unable to writelines; sendfile is in progress")
        pieces = [sendqueue.own(data) for data in list_of_data]
        if self.lost and pieces:
            self.count_lost_write()
            return
        for piece in pieces:
            if piece:
                self.queue.push(piece)
        if self.queue.size:
            self.commit()

    def write_eof(self):
        """Send what was written, then FIN; reading goes on."""
        if self.closing or self.eof_written:
            return
        self.eof_written = True
        if self.queue.size == 0:
            self.finish()
        elif not self.interest & WRITE:
            self.flush_now()

    def commit(self):
        """Something was queued: decide when it leaves."""
        size = self.queue.size
        if self.interest & WRITE:
            self.flow.filled(size, self, self.protocol, self.loop)
        elif size > AT_ONCE or size > self.flow.most or not self.loop.turning:
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
        """Send within a call of the protocol's; what follows happens on the spot unless it calls the protocol."""
        self.flush()
        if self.flow.paused:
            self.ask_for_turn_end()
        else:
            self.finish()

    def flush(self):
        """Send what the kernel takes, and watch for room for the rest."""
        try:
            self.queue.send(self.fd)
        except OSError as exc:
            self.write_failed(exc)
            return 0
        if self.queue.size:
            if not self.interest & WRITE:
                self.interest |= WRITE
                self.loop.selector.update(self)
            self.flow.filled(self.queue.size, self, self.protocol, self.loop)
        elif self.interest & WRITE:
            self.interest &= ~WRITE
            if not self.sending:  # which will want it again at once
                self.loop.selector.update(self)

    def settle(self):
        """After the loop's own flush: resume the protocol's writing, and end what was to end when all is sent."""
        if self.flow.paused and self.lost == 0:
            self.flow.drained(self.queue.size, self, self.protocol, self.loop, self.context)
        self.finish()

    def finish(self):
        if self.queue.size or self.lost:
            return 0
        if self.closing:
            self.lose(None)
        elif self.eof_written and not self.eof_sent and not self.sending:
            self.eof_sent = True
            sockets.shutdown(self.fd)

    def count_lost_write(self):
        if self.lost >= constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES:
            debug.logger.warning("socket.send() raised exception.")
        self.lost += 1

    # loop.sendfile(), see endpoints/files.py: it writes to the descriptor itself, in turn with the transport.

    @property
    def _sendfile_compatible(self):
        return constants._SendfileMode.TRY_NATIVE

    @property
    def _protocol_paused(self):
        return self.flow.paused

    def _hold_output(self):
        """Until `_release_output` nobody else writes and nothing is read; what was written before goes first."""
        if self.sending:
            raise RuntimeError("unable to sendfile; sendfile is in progress")
        self.sending = True
        self.interest &= ~READ
        if self.queue.size and not self.interest & WRITE:
            self.flush_now()

    def _room(self):
        """A future, done when nothing is queued and the kernel takes more, or when the connection has ended."""
        self.room = self.loop.create_future()
        if self.lost:
            self.grant()
        else:
            self.interest |= WRITE
            self.loop.selector.update(self)
        return self.room

    def grant(self):
        if self.room is not None and not self.room.done():
            self.room.set_result(None)

    def _release_output(self):
        self.sending = False
        self.room = None
        if self.lost == 0 and self.loop.usable:
            self.read_on()
            self.loop.selector.update(self)
            self.finish()

    # The end.

    def write_failed(self, exc):
        """The peer is gone; but what it sent before is still ours to deliver."""
        self.note(exc, "Fatal write error on socket transport")
        self.end(exc, self.interest & READ)

    def drop_output(self):
        self.queue.clear()
        self.grant()


def connected(loop, sock, protocol, waiter=None, extra=None, server=None, context=None):
    """A transport over a connected, non-blocking `socket.socket`, which it takes over.

    The protocol hears of it from the ready queue; then reading starts, then `waiter` gets its result. If this raises,
    the socket is still the caller's.
    """
    transport = StreamTransport(
        loop, sock.fileno(), protocol, server, interp.copy_context() if context is None else context
    )
    transport.extra = dict(extra) if extra else None
    transport.family = sock.family
    transport.proto = sock.proto
    transport.sockname = name_of(sock.getsockname)
    transport.peername = extra["peername"] if extra and "peername" in extra else name_of(sock.getpeername)
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sockets.nodelay(transport.fd)
    sockets.no_sigpipe(transport.fd)
    transport.sock = sock
    loop.schedule(transport._start, (waiter,), loop.context)
    return transport


def accepted(loop, fd, listener, peername, sockname, protocol, server, context):
    """A transport over a descriptor that the socket `listener` has accepted; the protocol hears of it on the spot."""
    try:
        if sockname is None:
            sockname = sockets.local_address(fd, listener.family)
        transport = StreamTransport(loop, fd, protocol, server, context)
    except BaseException:
        events.close(fd)
        raise
    transport.family = listener.family
    transport.proto = listener.proto
    transport.peername = peername
    transport.sockname = sockname
    transport.begin()
    return transport


def name_of(ask):
    try:
        return ask()
    except OSError:
        return None
