"""How does a TLS connection look to its protocol? `TLSTransport`: asyncio's `Transport` interface.

The water marks count what waits here, and below while there is no room there.
"""

import asyncio
from asyncio import constants, sslproto

from epoque.core import debug
from epoque.transports import sendqueue
from epoque.transports.flow import FlowControl
from epoque.transports.tlsconnection import TLSConnection

__all__ = ["TLSTransport"]

HIGH_WATER = constants.FLOW_CONTROL_HIGH_WATER_SSL_WRITE * 1024  # bytes
READ_HIGH_WATER = constants.FLOW_CONTROL_HIGH_WATER_SSL_READ * 1024  # bytes

STATES = ("handshake", "open", "closing", "shutdown", "closed")
FACTS = {"peercert": "getpeercert", "cipher": "cipher", "compression": "compression"}  # known after the handshake


class TLSTransport(TLSConnection):
    """A connection under TLS. It cannot be half closed."""

    __slots__ = ("extra", "read_marks")

    max_size = 256 * 1024  # bytes that one delivery can bring; the name is asyncio's

    def __init__(self, loop, protocol, engine, waiter, handshake_timeout, shutdown_timeout):
        TLSConnection.__init__(self, loop, protocol, engine, waiter, handshake_timeout, shutdown_timeout)
        self.buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self.flow.set_limits(HIGH_WATER, None)
        self.extra = None
        self.read_marks = None

    @property
    def __class__(self):
        return sslproto._SSLProtocolTransport

    def is_reading(self):
        """Whether data can be received: not paused and not closing."""
        return not self.closing and not self.paused

    def pause_reading(self):
        """Stop calling ``data_received`` until `resume_reading`. Without effect when paused or closing."""
        if self.closing or self.paused:
            return
        self.paused = True
        self.lower.pause_reading()

    def resume_reading(self):
        """Undo `pause_reading`. Without effect when not paused or closing."""
        if self.closing or not self.paused:
            return
        self.paused = False
        if self.eof or not self.engine.idle():
            self.loop.schedule(self._read_on, (), self.context)
        self.lower.resume_reading()

    def set_read_buffer_limits(self, high=None, low=None):
        """Set asyncio's water marks for received bytes; ValueError unless high >= low >= 0.

        They change nothing: `pause_reading` stops the transport below at once, so that no more is kept than one receive
        brings.
        """
        if high is None and low is None:
            high = READ_HIGH_WATER
        marks = FlowControl()
        marks.set_limits(high, low)
        self.read_marks = marks

    def get_read_buffer_limits(self):
        """The water marks (low, high), in bytes."""
        if self.read_marks is None:
            return READ_HIGH_WATER // 4, READ_HIGH_WATER
        return self.read_marks.low, self.read_marks.high

    def get_read_buffer_size(self):
        """Bytes that were received and not delivered: none but while reading is paused."""
        return self.engine.waiting()

    def write(self, data):
        """Encrypt and send `data`, bytes-like, no later than at the end of the turn; the buffer may be reused at once.

        TypeError for other types. Once the transport is closing data is dropped, and from the fifth time on a warning
        logged.
        """
        if type(data) is not bytes:
            data = sendqueue.own(data)
        if not data:
            return
        if self.closing:
            self.count_lost_write()
            return
        self.queue.push(data)
        self.commit(len(data) > sendqueue.LARGE)

    def writelines(self, list_of_data):
        """Send several buffers, as `write` would; if one of them has a wrong type, none."""
        pieces = [sendqueue.own(data) for data in list_of_data]
        if self.closing and pieces:
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
        """NotImplementedError: TLS as asyncio uses it cannot be half closed."""
        raise NotImplementedError

    def can_write_eof(self):
        """False."""
        return False

    def count_lost_write(self):
        if self.dropped >= constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES:
            debug.logger.warning("SSL connection is closed")
        self.dropped += 1

    def set_write_buffer_limits(self, high=None, low=None):
        """Set the water marks, in bytes: `high` pauses the protocol's writing, `low` resumes it.

        By default 512 KiB and a quarter of `high`. ValueError unless high >= low >= 0. The transport below gets the
        same ones, unless its default ones are lower.
        """
        if high is None and low is None:
            high = HIGH_WATER
        self.flow.set_limits(high, low)
        if self.lower is not None:
            usual = FlowControl()
            self.lower.set_write_buffer_limits(min(self.flow.high, usual.high), min(self.flow.low, usual.low))
        self.filled()

    def get_write_buffer_limits(self):
        """The water marks (low, high), in bytes."""
        return self.flow.low, self.flow.high

    def get_write_buffer_size(self):
        """Bytes that the kernel has not taken yet: plaintext, and what the transport below holds of ciphertext."""
        return self.unsent()

    def is_closing(self):
        """Whether the transport is closed or about to be."""
        return self.closing

    def close(self):
        """Stop reading, send what was written, say goodbye (close_notify), then end the connection.

        It ends as soon as the peer says goodbye too or goes on sending data, and is aborted (TimeoutError) when there
        was no progress for the shutdown timeout. Closing twice is harmless.
        """
        self.shut_down()

    def abort(self):
        """End the connection at once; what the kernel has not taken is lost."""
        self.lose(None)

    def _force_close(self, exc):
        self.lose(exc)

    # What it is.

    def set_protocol(self, protocol):
        """Hand the connection to another protocol, from the next event on."""
        self.protocol = protocol
        self.buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self):
        """The protocol, None once the connection has ended."""
        return self.protocol

    def get_extra_info(self, name, default=None):
        """``ssl_object``, ``sslcontext``, ``peercert``, ``cipher``, ``compression``, or what is known below."""
        if name == "ssl_object":
            return self.engine.ssl_object
        if name == "sslcontext":
            return self.engine.ssl_object.context
        if name in FACTS and self.established:
            if self.extra is None:
                self.extra = {}
            if name not in self.extra:  # a certificate takes longer to describe than many requests to answer
                self.extra[name] = getattr(self.engine.ssl_object, FACTS[name])()
            return self.extra[name]
        return default if self.lower is None else self.lower.get_extra_info(name, default)

    @property
    def _sslcontext(self):
        """By this name programs reach for it where a transport has no `_ssl_protocol`."""
        return self.engine.ssl_object.context

    def __repr__(self):
        return f"<{type(self).__name__} {STATES[self.state]} over {self.lower!r}>"

    def __dir__(self):
        return dir(type(self))  # not of what ``__class__`` says

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    # Names under which asyncio's own transports are inspected and used.

    @property
    def _loop(self):
        return self.loop

    @property
    def _ssl_protocol(self):
        return self  # the protocol of the transport below

    @property
    def _closed(self):
        return self.closing

    @property
    def _start_tls_compatible(self):
        return True

    @property
    def _sendfile_compatible(self):
        return constants._SendfileMode.FALLBACK

    @property
    def _extra(self):
        return {name: self.get_extra_info(name) for name in ("sslcontext", "ssl_object", *FACTS)}

    def _set_write_buffer_limits(self, high=None, low=None):
        self.flow.set_limits(high, low)

    def _maybe_pause_protocol(self):
        self.filled()

    def _maybe_resume_protocol(self):
        self.settle(self.context)

    @property
    def _high_water(self):
        return self.flow.high

    @property
    def _low_water(self):
        return self.flow.low

    @property
    def _protocol_paused(self):
        return self.flow.paused
