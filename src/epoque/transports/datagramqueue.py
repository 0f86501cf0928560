"""Which datagrams are still to be sent, and which of them can be sent already? No I/O here.

They leave in the order of their ``sendto()``: one whose host name is still being looked up holds up those behind it.
"""

import sys

from epoque.kernel.masks import DATAGRAMS

__all__ = ["DatagramQueue", "Name"]

HEADER = 8 if sys.version_info >= (3, 13) else 0  # bytes that asyncio adds for a datagram's header


class Name:
    """Stands for an address whose host is being looked up."""

    __slots__ = ("address",)

    def __init__(self, address):
        self.address = address


class DatagramQueue:
    """The output of one endpoint."""

    __slots__ = ("names", "pairs", "size")

    def __init__(self):
        self.pairs = []
        self.size = 0
        self.names = {}

    def push(self, data, address):
        """Append a datagram: what `sendqueue.own` returned, and where to."""
        self.pairs.append((data, address))
        self.size += len(data) + HEADER

    def expect(self, address):
        """Begin to wait for what the host in `address` stands for."""
        name = Name(address)
        self.names[address] = name
        return name

    def ready(self):
        """How many datagrams can be sent, counted as far as one system call may take."""
        if not self.names:
            return len(self.pairs)
        count = 0
        for pair in self.pairs:
            if count == DATAGRAMS or isinstance(pair[1], Name):
                break
            count += 1
        return count

    def drop(self, count):
        """The first `count` datagrams are gone."""
        if count == len(self.pairs):
            self.size = 0
            if count == 1:
                self.pairs.pop()
            else:
                self.pairs.clear()
            return 0
        for index in range(count):
            self.size -= len(self.pairs[index][0]) + HEADER
        del self.pairs[:count]

    def answer(self, name, address):
        """The look-up gave `address`."""
        self.names.pop(name.address, None)
        self.pairs = [(data, address if where is name else where) for data, where in self.pairs]

    def refuse(self, name):
        """The look-up failed: forget what was to go there; return how many datagrams that were."""
        self.names.pop(name.address, None)
        kept = [pair for pair in self.pairs if pair[1] is not name]
        count = len(self.pairs) - len(kept)
        self.pairs = kept
        self.size = sum([len(pair[0]) + HEADER for pair in kept])
        return count

    def as_given(self):
        """All of them, with their addresses as ``sendto()`` was given them."""
        given = []
        for data, address in self.pairs:
            if isinstance(address, Name):
                name = address
                address = name.address
            given.append((data, address))
        return given

    def clear(self):
        """Forget all."""
        self.pairs = []
        self.size = 0
        self.names.clear()
