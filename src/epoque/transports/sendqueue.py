"""What is still to be sent? Pieces in order, each sent once (the only I/O here is the kernel's send, or its write).

A piece belongs to the queue: nobody can change it between ``write()`` and the system call that sends it. `bytes` are
kept as they are; a view of `bytes` is kept as a view of our own, which its maker cannot release; anything else is
copied.
"""

from epoque.kernel import pipes, sockets
from epoque.kernel.masks import SEND_PIECES

__all__ = ["LARGE", "SendQueue", "own"]

# Bytes of one piece. A larger one should leave while the processor has it at hand, and its memory serve the next
# connection: if all kept theirs until the end of the turn, each turn would fault new pages in.
LARGE = 16 * 1024


class SendQueue:
    """The output of one connection; of a `plain` descriptor, which need not be a socket, with write(2)."""

    __slots__ = ("offset", "only", "pieces", "plain", "size")

    def __init__(self, plain=False):
        self.plain = plain
        self.only = None
        self.pieces = None
        self.offset = 0
        self.size = 0

    def push(self, piece):
        """Append what `own` returned; never an empty piece."""
        if self.size == 0:
            self.only = piece  # a list would be allocated and freed for every answer to a request
        else:
            if self.pieces is None:
                self.pieces = []
            if self.only is not None:
                self.pieces.append(self.only)
                self.only = None
            self.pieces.append(piece)
        self.size += len(piece)

    def send(self, fd):
        """Send until nothing is left or the kernel takes no more. OSError when the connection is broken."""
        while self.size:
            if self.plain:
                sent = self.write(fd)
            elif self.only is not None:
                sent = sockets.send(fd, self.only, self.offset)
            else:
                sent = sockets.send_many(fd, self.pieces, self.offset, self.size)
            if sent < 0:
                return 0
            if sent == self.size and self.only is not None:  # the usual case, without a call
                self.only = None
                self.offset = self.size = 0
                return 0
            count = len(self.pieces) if self.only is None else 1
            self.drop(sent)
            if count <= SEND_PIECES:  # all were offered; if some are left, the kernel has no room
                return 0

    def write(self, fd):
        if self.only is not None:
            return pipes.write(fd, self.only, self.offset)
        return pipes.writev(fd, self.pieces, self.offset)

    def front(self, most):
        """The first bytes, at most `most`, as one object."""
        first = self.pieces[0] if self.only is None else self.only
        size = len(first) - self.offset
        if size > most:
            return memoryview(first)[self.offset : self.offset + most]
        if self.offset:
            first = memoryview(first)[self.offset :]
        if size == self.size or size == most:
            return first
        taken = [first]
        position = 1
        while size < most and position < len(self.pieces):
            piece = self.pieces[position]
            taken.append(piece if len(piece) <= most - size else memoryview(piece)[: most - size])
            size += len(piece)
            position += 1
        return b"".join(taken)

    def drop(self, count):
        """The first `count` bytes are gone."""
        if count == self.size:
            self.clear()
            return 0
        self.size -= count
        count += self.offset
        if self.only is None:
            whole = 0
            while count >= len(self.pieces[whole]):
                count -= len(self.pieces[whole])
                whole += 1
            del self.pieces[:whole]
        self.offset = count

    def views(self):
        """What is still to be sent, as views."""
        views = [memoryview(piece) for piece in ([self.only] if self.only is not None else self.pieces or ())]
        if self.offset:
            views[0] = views[0][self.offset :]
        return views

    def clear(self):
        self.only = None
        if self.pieces:
            self.pieces.clear()
        self.offset = 0
        self.size = 0


def own(data):
    """`data` as a piece: flat bytes that nobody can change. TypeError for what is not bytes-like, as asyncio's."""
    if type(data) is bytes:
        return data
    if isinstance(data, memoryview):
        if type(data.obj) is bytes and data.c_contiguous and data.nbytes:
            return data.cast("B")
        return data.tobytes()
    if isinstance(data, (bytes, bytearray)):
        return memoryview(data).tobytes()  # a subclass may have ideas of its own about bytes()
    raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
