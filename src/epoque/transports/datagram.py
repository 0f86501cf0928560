"""How does a datagram socket serve a protocol? `DatagramTransport`, over UDP, Unix and any other such sockets.

Reading: what waits is received in one system call, `DATAGRAMS` at most before the other descriptors have their turn,
and handed over one by one. What the protocol leaves by pausing in the middle is kept for it. Where datagrams come one
at a time, only one is asked for, most times: to ask for more would have the kernel look again.

Writing: see `writer`; `DATAGRAMS` of them leave at once, too. An error belongs to one datagram: the protocol hears of
it, the rest is sent. Host names are looked up on the resolver's threads; the order is kept.

Whatever the protocol raises is reported; the endpoint stays, as asyncio's does.
"""

import asyncio
import functools
import socket
import sys
from collections import deque

from epoque.kernel import datagrams, interp
from epoque.kernel.masks import DATAGRAMS, HANGUP, READ, WRITE
from epoque.transports import base, flow, sendqueue
from epoque.transports.datagramqueue import DatagramQueue
from epoque.transports.writer import WritingTransport

__all__ = ["DatagramTransport", "opened"]

ERROR_QUEUE = getattr(socket, "MSG_ERRQUEUE", 0)  # Linux
SENDS_EMPTY = sys.version_info >= (3, 13)  # before, asyncio drops empty datagrams

NOTHING = []  # has arrived; never changed, since a new list is what each receive gives
PROBE = 8  # receives; after so many that brought one each, only one is asked for, but for each eighth time

# Seconds between attempts to enter the full queue of another Unix socket: epoll(7) tells about the room of a connected
# peer only, and calls the socket writable all the while.
FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.05


class Both(asyncio.DatagramTransport, asyncio.Transport):
    """What asyncio's datagram transports say they are: `Transport` as well, for historical reasons."""


class DatagramTransport(WritingTransport):
    """An endpoint. asyncio's `DatagramTransport` interface, and pausing."""

    __slots__ = (
        "alone",
        "arrived",
        "connected",
        "delivered",
        "ended",
        "flushing",
        "on_the_spot",
        "pause",
        "queue",
        "receiver",
        "remote",
        "retry",
    )

    max_size = 256 * 1024  # bytes of a datagram that can be received

    def __init__(self, loop, sock, protocol, remote, context):
        self.prepare(loop, protocol, None, context)
        self.receiver = self.loop.get_datagram_receiver()
        self.queue = DatagramQueue()
        self.remote = remote
        self.connected = False
        self.ended = False
        self.flushing = False
        self.on_the_spot = False
        self.arrived = NOTHING
        self.delivered = 0
        self.alone = 0
        self.retry = None
        self.pause = FIRST_PAUSE
        self.take_over(sock.fileno())

    @property
    def __class__(self):
        return Both

    # asyncio.BaseTransport

    def close(self):
        """Stop reading, send what is queued, then end. Closing twice is harmless."""
        if not self.closing:
            self.drop_input()
        WritingTransport.close(self)

    # Reading.

    def read_on(self):
        if self.delivered < len(self.arrived):
            self.loop.schedule(self._deliver, (), self.loop.context)
        WritingTransport.read_on(self)

    def want_data(self):
        if self.started and not self.paused and not self.closing and not self.ended:
            self.interest |= READ
            return True
        return False

    def begin(self):
        self.tell("connection_made", (self,))

    def on_ready(self, mask):
        if mask & READ and self.interest & READ:
            if self.delivered == len(self.arrived):
                self.collect(mask)
            self.deliver()
        if mask & WRITE and self.interest & WRITE:
            self.flush()
            self.settle()

    def collect(self, mask):
        try:
            most = 1 if self.alone > PROBE and self.alone % PROBE else DATAGRAMS
            self.arrived = self.receiver.recv(self.sock, self.number(), self.family, most)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            self.failed(exc, "Fatal read error on datagram transport")
            return 0
        self.delivered = 0
        self.alone = self.alone + 1 if len(self.arrived) == 1 else 0
        if mask & HANGUP:
            if not self.arrived:
                if ERROR_QUEUE:
                    self.drop_queued_errors()
            elif self.arrived[len(self.arrived) - 1] == (b"", None):
                self.end_of_input()

    def drop_queued_errors(self):
        """Only errors were reported that the application has the kernel queue (IP_RECVERR, ip(7)).

        It had its chance in ``error_received``; what stays in the queue is reported for ever.
        """
        for _ in range(DATAGRAMS):
            try:
                self.sock.recvmsg(1, 1, ERROR_QUEUE)
            except OSError:
                break

    def end_of_input(self):
        """What has ended stays readable for ever, and gives empty datagrams: one is enough."""
        self.ended = True
        self.interest &= ~READ
        self.loop.selector.update(self)
        while len(self.arrived) > 1 and self.arrived[len(self.arrived) - 2] == (b"", None):
            self.arrived.pop()

    def deliver(self):
        try:
            self.hand_over()
        except BaseException:
            self.loop.schedule(self._deliver, (), self.loop.context)
            raise

    def _deliver(self):
        self.deliver()

    def hand_over(self):
        while self.delivered < len(self.arrived) and not self.paused and not self.closing:
            item = self.arrived[self.delivered]
            self.delivered += 1
            if isinstance(item, tuple):
                self.give(item)
            else:
                self.tell("error_received", (item,))
        if self.delivered == len(self.arrived):
            self.drop_input()  # the datagrams need not live until the next ones come

    def give(self, datagram):
        try:
            interp.call_method_2(self.context, self.protocol, "datagram_received", datagram[0], datagram[1])
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            flow.report(exc, "datagram_received", self, self.protocol, self.loop)

    def drop_input(self):
        self.arrived = NOTHING
        self.delivered = 0

    def tell(self, name, arguments):
        """Call the protocol, which may fail: the endpoint stays."""
        try:
            if self.on_the_spot:
                getattr(self.protocol, name)(*arguments)
            else:
                interp.call(self.context, getattr(self.protocol, name), arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            flow.report(exc, name, self, self.protocol, self.loop)

    # Writing.

    # asyncio's endpoints pass for an asyncio.Transport, and have these methods of it.

    def write(self, data):
        raise NotImplementedError

    def writelines(self, list_of_data):
        raise NotImplementedError

    def write_eof(self):
        raise NotImplementedError

    def can_write_eof(self):
        raise NotImplementedError

    def get_write_buffer_size(self):
        """Bytes that the kernel has not taken yet, those sent in this turn among them; from 3.13 on, 8 per header."""
        return self.unsent()

    def sendto(self, data, addr=None):
        """Send `data`, bytes-like, no later than at the end of the turn; the buffer may be reused at once.

        `addr` is as `socket.socket.sendto` takes it, or None for the endpoint's own remote address. TypeError for
        other types of data, ValueError for an address that is not the remote one. What the kernel refuses the protocol
        hears by ``error_received``; an address that is none ends the endpoint. Before Python 3.13 empty datagrams are
        not sent.
        """
        if type(data) is not bytes:
            data = sendqueue.own(data)
        if not data and not SENDS_EMPTY:
            return
        if self.remote is not None:
            if addr is not None and addr != self.remote:
                raise ValueError(f"Invalid address: must be None or {self.remote}")
            addr = self.remote
        if self.lost:
            self.say_last(data, addr)
            return
        if not self.connected and datagrams.is_name(self.family, addr):
            addr = self.look_up(addr)
        self.queue.push(data, addr)
        self.commit(len(self.queue.pairs) >= DATAGRAMS)

    def say_last(self, data, addr):
        """Like asyncio's, an endpoint without a remote address sends until connection_lost, what there is room for."""
        if self.remote is not None or self.fd < 0 or (not self.connected and datagrams.is_name(self.family, addr)):
            self.count_lost_write()
            return 0
        on_the_spot, self.on_the_spot = self.on_the_spot, True
        try:
            datagrams.send(self.sock, self.number(), self.family, [(data, addr)], 1, self.connected)
        except OSError as exc:
            self.tell("error_received", (exc,))
        finally:
            self.on_the_spot = on_the_spot

    def look_up(self, address):
        name = self.queue.names.get(address)
        if name is None:
            waiter = self.loop._look_up(address[0], self.family)
            name = self.queue.expect(address)
            waiter.add_done_callback(functools.partial(self._looked_up, name), context=self.loop.context)
        return name

    def _looked_up(self, name, waiter):
        infos, error = waiter.result()
        self.resolve(name, infos, error)

    def resolve(self, name, infos, error):
        """The look-up is done."""
        if self.lost:
            return 0
        if error is None:
            self.queue.answer(name, (infos[0][4][0], *name.address[1:]))
        else:
            for _ in range(self.queue.refuse(name)):
                if self.lost == 0:
                    self.failed(error, "Fatal write error on datagram transport")
        if self.sendable():
            self.flush()
        self.settle()

    def unsent(self):
        return self.queue.size

    def sendable(self):
        return not self.flushing and not self.interest & WRITE and self.retry is None and self.queue.ready() > 0

    def flush_here(self):
        """Flush, and call ``error_received`` as a part of what the protocol does: in its context, whichever that is."""
        self.on_the_spot = True
        try:
            self.flush()
        finally:
            self.on_the_spot = False

    def send_last(self):
        self.flush_here()

    def flush(self):
        if self.flushing or self.lost:
            return 0
        self.flushing = True
        try:
            full = self.send()
        except BaseException:
            self.ask_for_turn_end()
            raise
        finally:
            self.flushing = False
        if self.lost == 0:
            self.await_room(full)

    def send(self):
        """Send; true if the kernel has no room. What ``error_received`` adds has its turn later."""
        left = len(self.queue.pairs)
        while left > 0 and self.lost == 0:
            ready = self.queue.ready()
            if ready == 0:
                return False
            try:
                sent = datagrams.send(
                    self.sock, self.number(), self.family, self.queue.pairs, min(ready, left), self.connected
                )
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as exc:
                if self.lost:
                    return False
                left -= 1
                self.queue.drop(1)
                self.failed(exc, "Fatal write error on datagram transport")
                continue
            if self.lost:  # aborted by what ran meanwhile, a signal handler or a finalizer: the queue is empty
                return False
            if sent < 0:
                return True
            left -= sent
            self.queue.drop(sent)
            self.pause = FIRST_PAUSE
        return False

    def await_room(self, full):
        """Wait for what the queue waits for: room, or, with a name at its head, an answer that comes by itself."""
        interest = self.interest & ~WRITE
        if full and self.family == socket.AF_UNIX and not self.connected:
            self.retry = self.loop.call_later(self.pause, self._try_again)
            self.pause = min(2 * self.pause, LONGEST_PAUSE)
        elif self.queue.ready():
            interest |= WRITE
        if interest != self.interest:
            self.interest = interest
            self.loop.selector.update(self)
        if self.queue.pairs:
            self.filled()

    def _try_again(self):
        self.retry = None
        self.flush()
        self.settle()

    def failed(self, exc, message):
        """The kernel refused: the protocol hears of it. Anything but an OSError is a mistake, and ends the endpoint."""
        if isinstance(exc, OSError):
            self.tell("error_received", (exc,))
            return 0
        self.report(exc, message)
        self.lose(exc)

    # Names of asyncio's own, as in `base`.

    def _sendto_ready(self):
        self.on_ready(WRITE)

    @property
    def _address(self):
        return self.remote

    @property
    def _buffer(self):
        return deque(self.queue.as_given())

    @property
    def _buffer_size(self):
        return self.unsent()

    # The end.

    def drop_output(self):
        self.drop_input()
        self.queue.clear()
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None


def opened(loop, sock, protocol, remote, waiter, lent):
    """A transport over a non-blocking datagram `socket.socket`, which it takes over; `lent` if others still have it.

    The protocol hears of it from the ready queue; then `waiter` gets its result, then reading starts. If this raises,
    the socket is still the caller's.
    """
    transport = DatagramTransport(loop, sock, protocol, remote, interp.copy_context())
    transport.family = sock.family
    transport.proto = sock.proto
    transport.sock = sock
    transport.lent = sock if lent else None
    transport.sockname = base.local_name(sock)
    transport.peername = base.peer_name(sock)
    transport.connected = transport.peername is not None
    loop.schedule(transport._start, (waiter,), loop.context)
    return transport
