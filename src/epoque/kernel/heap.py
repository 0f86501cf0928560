"""What comes first? A priority queue from which anything can be taken out wherever it stands. Interpreted twin.

The standard library's heap of lists, which it compares without running Python code. What is taken out leaves an empty
entry behind, unless it is the last of the list, until that comes first or until most entries are empty.
"""

from heapq import heapify, heappop, heappush

__all__ = ["Heap"]

SWEPT = 64  # entries; with fewer, empty ones are not worth looking for


class Heap:
    """Items in the order of their integer keys; those with equal keys in the order in which they came."""

    __slots__ = ("_entries", "_sequence", "count")

    def __init__(self):
        self._entries = []
        self._sequence = 0
        self.count = 0

    def push(self, item, key):
        """Add an item; return the ticket by which it can be removed."""
        self._sequence += 1
        entry = [key, self._sequence, item]
        heappush(self._entries, entry)
        self.count += 1
        return entry

    def remove(self, ticket):
        """Take an item out that is there."""
        ticket[2] = None
        self.count -= 1
        entries = self._entries
        if entries[-1] is ticket:  # a timeout that did not come to pass: nothing stands behind it
            entries.pop()
        elif len(entries) > 2 * self.count + SWEPT:
            self._entries = [entry for entry in entries if entry[2] is not None]
            heapify(self._entries)

    def pop(self, limit):
        """Take out the first item unless its key is beyond the limit; None if there is none."""
        entries = self._entries
        while entries and entries[0][0] <= limit:
            entry = heappop(entries)
            item = entry[2]
            if item is not None:
                entry[2] = None  # whoever keeps the ticket does not keep the item
                self.count -= 1
                return item
        return None

    def first_key(self):
        """The key of the first item; the caller has seen that there is one."""
        while self._entries[0][2] is None:
            heappop(self._entries)
        return self._entries[0][0]

    def clear(self):
        """Take all out. What dies with them may push again."""
        gone, self._entries, self.count = self._entries, [], 0
        for entry in gone:
            entry[2] = None

    def items(self):
        """What is there, without an order."""
        return [entry[2] for entry in self._entries if entry[2] is not None]
