"""How does a stream socket serve a protocol? `StreamTransport`, over TCP and Unix sockets alike.

Reading: one receive per readiness into the loop's buffer, or straight into a `BufferedProtocol`'s. A pause is
remembered here and told to the kernel only if something arrives meanwhile. When the peer has hung up, what the kernel
still holds is read at once.

Writing: see `writer`.

The end: ``connection_lost`` is called exactly once, from the ready queue, after all data that arrived before. Until
then the descriptor stays open, so that its number cannot be anybody else's.

Everything the protocol does for this connection runs in the connection's own context (PEP 567), except what its own
calls cause on the spot (``pause_writing`` out of ``write``).
"""

import asyncio
import socket
from asyncio import constants
from collections import deque

from epoque.core import debug
from epoque.kernel import events, interp, sockets
from epoque.kernel.masks import HANGUP, READ, URGENT, WRITE
from epoque.transports import base, sendqueue
from epoque.transports.tlsconnection import TLSConnection
from epoque.transports.writer import ByteTransport

__all__ = ["StreamTransport", "accepted", "connected"]

AF_INET = int(socket.AF_INET)
AF_INET6 = int(socket.AF_INET6)
IPPROTO_TCP = socket.IPPROTO_TCP
MEASURED = (bytearray, memoryview)  # have no fewer bytes than len() says; what others say is their own matter
READS_AFTER_HANGUP = 16  # receives in a row from one connection, before the others have their turn


class StreamTransport(ByteTransport):
    """A connection. asyncio's `Transport` interface."""

    __slots__ = (
        "buffered",
        "eof_received",
        "eof_sent",
        "eof_written",
        "receiver",
        "room",
        "secured",
        "sending",
    )

    def __init__(self, loop, fd, protocol, server, context):
        self.prepare(loop, protocol, server, context)
        self.receiver = self.loop.get_receiver()
        self.eof_received = False
        self.eof_written = False
        self.eof_sent = False
        self.sending = False
        self.room = None
        self.buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self.secured = isinstance(protocol, TLSConnection)
        self.take_over(fd)

    def describe(self, family, proto):
        """Say what kind of socket it is, before it is watched.

        A receive from TCP that is short has taken all there was, unless the peer has hung up or sent something urgent,
        which an event tells, and a send that is short has left no room; so these can be watched edge-triggered. Other
        kinds keep messages (SCTP), or passed descriptors (unix(7)), apart.
        """
        self.family = family
        self.proto = proto
        if family in (AF_INET, AF_INET6) and proto in (0, IPPROTO_TCP):
            self.mode = self.loop.selector.stream_mode

    @property
    def __class__(self):
        return asyncio.Transport

    # asyncio.BaseTransport

    def set_protocol(self, protocol):
        """Hand the connection to another protocol, from the next event on."""
        self.protocol = protocol
        self.buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self.secured = isinstance(protocol, TLSConnection)

    @property
    def _start_tls_compatible(self):
        return True

    @property
    def _half_closed(self):
        """Whether one direction has ended: no handshake can succeed."""
        return self.eof_received or self.eof_written

    # Reading.

    def want_data(self):
        if self.started and not self.paused and not self.closing and not self.eof_received and not self.sending:
            self.interest |= READ
            return True
        return False

    def on_turn_end(self):  # as in WritingTransport, without its calls
        self.ending = False
        if self.queue.size and not self.interest & WRITE:
            self.flush()
        if self.flow.paused:
            self.settle()
        elif self.closing or self.eof_written:
            self.finish()

    def on_ready(self, mask):
        if mask & READ and self.interest & READ:
            rounds = 1
            while self.receive() and mask & HANGUP:
                if not self.interest & READ or rounds == READS_AFTER_HANGUP:
                    self.loop.selector.again(self)
                    break
                rounds += 1
            if mask & URGENT:
                self.loop.selector.again(self)
        if mask & WRITE and self.interest & WRITE:
            self.flush()
            if self.queue.size == 0:
                self.grant()
            self.settle()

    def receive(self):
        """One receive; True if data came."""
        if self.buffered:
            return self.receive_into()
        if self.secured:
            return self.receive_ciphertext()
        try:
            data = self.receiver.recv(self.fd if self.lent is None else self.number())
        except OSError as exc:
            self.note(exc, "Fatal read error on socket transport")
            self.lose(exc)
            return False
        if data is None:
            return False
        if not data:
            self.end_of_stream()
            return False
        if self.receiver.full:
            self.loop.selector.again(self)
        self.deliver("data_received", data)
        return True

    def receive_ciphertext(self):
        """`receive`, without making bytes of it."""
        try:
            count = self.receiver.fill(self.number())
        except OSError as exc:
            self.note(exc, "Fatal read error on socket transport")
            self.lose(exc)
            return False
        if count < 0:
            return False
        if count == 0:
            self.end_of_stream()
            return False
        if self.receiver.full:
            self.loop.selector.again(self)
        self.deliver("_take", self.receiver)
        return True

    def receive_into(self):
        protocol = self.protocol
        try:
            buffer = interp.call_method(self.context, protocol, "get_buffer", -1)
            room = len(buffer)
            if room == 0:
                raise RuntimeError("get_buffer() returned an empty buffer")
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.blame(exc, "get_buffer")
            return False
        if not self.interest & READ or self.protocol is not protocol:  # get_buffer() closed, paused or handed over
            self.loop.selector.again(self)
            return False
        try:
            count = sockets.recv_into(self.number(), buffer)
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
        if count >= room or type(buffer) not in MEASURED:
            self.loop.selector.again(self)
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
        self.commit(len(data) > sendqueue.LARGE)

    def take(self, data):
        """A buffer that can change: send now what the kernel takes, so that only the rest must be copied."""
        if (
            self.queue.size == 0
            and self.lost == 0
            and not self.eof_written
            and not self.sending
            and isinstance(data, (bytearray, memoryview))
            and len(data) > sendqueue.LARGE
        ):
            view = memoryview(data)
            if view.c_contiguous:
                view = view.cast("B")
                try:
                    sent = sockets.send(self.number(), view, 0)
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
        large = False
        for piece in pieces:
            if piece:
                self.queue.push(piece)
                large |= len(piece) > sendqueue.LARGE
        if self.queue.size:
            self.commit(large)

    def write_eof(self):
        """Send what was written, then FIN; reading goes on."""
        if self.closing or self.eof_written:
            return
        self.eof_written = True
        self.hasten()

    def finish(self):
        if self.queue.size or self.lost:
            return 0
        if self.closing:
            self.lose(None)
        elif self.eof_written and not self.eof_sent and not self.sending:
            self.eof_sent = True
            sockets.shutdown(self.number())

    # loop.sendfile(), see endpoints/files.py: it writes to the descriptor itself, in turn with the transport.

    @property
    def _sendfile_compatible(self):
        return constants._SendfileMode.TRY_NATIVE

    def _hold_output(self):
        """Until `_release_output` nobody else writes and nothing is read; what was written before goes first."""
        if self.sending:
            raise RuntimeError("unable to sendfile; sendfile is in progress")
        self.sending = True
        self.interest &= ~READ
        if self.sendable():
            self.flush_now()

    def _room(self):
        """A future, done when nothing is queued and the kernel takes more, or when the connection has ended."""
        self.room = self.loop.create_future()
        if self.lost:
            self.grant()
        else:
            self.interest |= WRITE
            self.loop.selector.again(self)
        return self.room

    def watch(self):
        if not self.fresh and (not self.sending or self.interest & WRITE):  # a sendfile will want WRITE again at once
            self.loop.selector.update(self)

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

    # Names of asyncio's own, as in `base`.

    @property
    def _buffer(self):
        return deque(self.queue.views())

    @property
    def _eof(self):
        return self.eof_written

    # The end.

    def write_failed(self, exc):
        """The peer is gone; but what it sent before is still ours to deliver."""
        self.note(exc, "Fatal write error on socket transport")
        self.end(exc, self.interest & READ)

    def drop_output(self):
        ByteTransport.drop_output(self)
        self.grant()


def connected(loop, sock, protocol, waiter=None, extra=None, server=None, context=None, lent=False):
    """A transport over a connected, non-blocking `socket.socket`, which it takes over; `lent` if others still have it.

    The protocol hears of it from the ready queue; then `waiter` gets its result, then reading starts. If this raises,
    the socket is still the caller's.
    """
    family = base.family_of(sock)
    transport = StreamTransport(
        loop, sock.fileno(), protocol, server, interp.copy_context() if context is None else context
    )
    transport.extra = dict(extra) if extra else None
    transport.describe(family, sock.proto)
    transport.sockname = base.local_name(sock)
    transport.peername = extra["peername"] if extra and "peername" in extra else base.peer_name(sock)
    if transport.family == AF_INET or transport.family == AF_INET6:
        sockets.nodelay(transport.fd)
    sockets.no_sigpipe(transport.fd)
    transport.sock = sock
    transport.lent = sock if lent else None
    loop.schedule(transport._start, (waiter,), loop.context)
    return transport


def accepted(loop, fd, family, proto, peername, sockname, protocol, server, context):
    """A transport over a descriptor that was accepted; the protocol hears of it on the spot."""
    try:
        if sockname is None:
            sockname = sockets.local_address(fd, family)
        transport = StreamTransport(loop, fd, protocol, server, context)
    except BaseException:
        events.close(fd)
        raise
    transport.describe(family, proto)
    transport.peername = peername
    transport.sockname = sockname
    try:
        transport.begin()
    finally:
        transport.start()
        transport.watch()
    return transport
