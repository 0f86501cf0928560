"""TLS without I/O: ciphertext goes in and comes out, plaintext likewise. Interpreted twin, over the `ssl` module.

That more ciphertext is needed is no exception here but False, None or -1. What fails raises what the `ssl` module
raises. Received ciphertext is shown to OpenSSL in portions: a memory BIO never gives back what it has grown to.
"""

try:
    import ssl
except ImportError:  # an interpreter built without OpenSSL: nothing here is called
    ssl = None

from epoque.kernel.masks import TLS_RECORD

PORTION = 2 * TLS_RECORD  # bytes; a record with its header, and more


class Engine:
    """Both directions of one TLS connection."""

    __slots__ = ("end", "held", "incoming", "offset", "outgoing", "ssl_object")

    def __init__(self, context, server_side, server_hostname):
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(self.incoming, self.outgoing, server_side, server_hostname)
        self.held = None
        self.offset = 0
        self.end = None  # what ended the reading, once it was met: b"" or an exception

    def receive(self, data):
        """Take ciphertext, to be looked at by the calls below."""
        if self.held is None and not self.incoming.pending and len(data) <= PORTION:
            self.incoming.write(data)
        else:
            self.held = data if self.held is None else self.held[self.offset :] + data
            self.offset = 0

    def receive_from(self, receiver):
        """Take what `receiver` was filled with, which `settle` must follow."""
        self.receive(receiver.get())

    def settle(self, receiver):
        """Let the receiver have its memory back, of which only the rest of a record is still wanted."""

    def waiting(self):
        """Bytes that were received and not read."""
        held = 0 if self.held is None else len(self.held) - self.offset
        return held + self.incoming.pending + self.ssl_object.pending()

    def idle(self):
        """Whether there is nothing to read, not even an end."""
        return self.end is None and self.waiting() == 0

    def handshake(self):
        """Go on with the handshake; True when it is done."""
        return self._attempt(self.ssl_object.do_handshake) is not False

    def unwrap(self):
        """Go on with the shutdown: send close_notify, see the peer's; True when both are done."""
        return self._attempt(self.ssl_object.unwrap) is not False

    def read(self, most):
        """Decrypt all that is there, up to `most` bytes.

        Empty bytes once the peer has sent close_notify, None when more ciphertext is needed.
        """
        pieces = []
        size = 0
        while size < most and not self.idle():
            data = self._read(TLS_RECORD)
            if not data:
                break
            pieces.append(data)
            size += len(data)
        if pieces:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._ended()

    def read_into(self, buffer):
        """Decrypt into a writable buffer; return the count, 0 after close_notify, or -1 when more is needed."""
        count = 0 if self.idle() else self._read(len(buffer), buffer)
        if count:
            return count
        return -1 if self._ended() is None else 0

    def write(self, data):
        """Encrypt `data`, or the beginning of it; return the count, or -1 when OpenSSL must read first."""
        count = self._attempt(self.ssl_object.write, data)
        return -1 if count is False else count

    def output(self):
        """The ciphertext to be sent, which is forgotten here."""
        return self.outgoing.read() if self.outgoing.pending else b""

    def send(self, fd):
        """Offer the kernel the ciphertext to be sent; true if it took all. The rest is `output`."""
        return False

    def _read(self, *args):
        """What reading brings, or nothing, be it for want of ciphertext or because this is the end of it."""
        if self.end is None:
            try:
                data = self._attempt(self.ssl_object.read, *args)
            except ssl.SSLError as exc:
                self.end = exc  # what was decrypted before goes first
            else:
                if data is not False and not data:
                    self.end = b""
                return data
        return False

    def _ended(self):
        """None if more can come, else b"" or the exception."""
        if isinstance(self.end, ssl.SSLError):
            raise self.end
        return self.end

    def _attempt(self, operation, *args):
        """What the operation returns, or False if it needs more ciphertext than there is."""
        while True:
            try:
                return operation(*args)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if self.held is None:
                    return False
            end = self.offset + PORTION
            self.incoming.write(self.held[self.offset : end])
            if end < len(self.held):
                self.offset = end
            else:
                self.held = None
