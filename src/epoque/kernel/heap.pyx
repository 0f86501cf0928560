# cython: nonecheck=False
"""What comes first? A priority queue from which anything can be taken out wherever it stands. Compiled twin.

A heap in which each node has four children: half as deep as with two, and the four lie together in memory. What is added
late or taken out early (a timeout is usually cancelled long before it is due) mostly touches the leaves. What is new waits
behind the heap, in no order, until somebody asks what comes first: what is gone by then has cost no comparison. To compare
and to move, no item is looked at: a ticket tells where its item stands. Nothing here runs Python code.
"""

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc

cdef enum:
    FIRST_ROOM = 64


@cython.boundscheck(False)
@cython.wraparound(False)
cdef class Heap:
    """Items in the order of their integer keys; those with equal keys in the order in which they came."""

    def __cinit__(self):
        self._items = []

    def __dealloc__(self):
        PyMem_RawFree(self._nodes)
        PyMem_RawFree(self._indices)

    cdef Py_ssize_t push(self, object item, long long key) except -1:
        """Add an item; return the ticket by which it can be removed."""
        cdef Node *node
        if self.count == len(self._items):
            _grow(self)
        self._sequence += 1
        node = &self._nodes[self.count]
        node.key = key
        node.sequence = self._sequence
        node.ticket = self._free
        self._free = self._indices[node.ticket]
        self._indices[node.ticket] = self.count
        self._items[node.ticket] = item
        self.count += 1
        return node.ticket

    cdef int remove(self, Py_ssize_t ticket) except -1:
        """Take an item out that is there."""
        cdef Py_ssize_t index = self._indices[ticket]
        cdef Node last
        if index < self._ordered:
            self._ordered -= 1
            if index != self._ordered:  # the last of the heap fills the gap; it may belong further up or down
                last = self._nodes[self._ordered]
                if _before(&last, &self._nodes[index]):
                    _rise(self, index, &last)
                else:
                    _sink(self, index, &last)
            index = self._ordered
        self.count -= 1
        if index != self.count:
            _put(self, index, &self._nodes[self.count])
        self._indices[ticket] = self._free
        self._free = ticket
        self._items[ticket] = None
        return 0

    cdef object pop(self, long long limit):
        """Take out the first item unless its key is beyond the limit; None if there is none."""
        if self.count == 0 or self.first_key() > limit:
            return None
        item = self._items[self._nodes[0].ticket]
        self.remove(self._nodes[0].ticket)
        return item

    cdef long long first_key(self) noexcept:
        """The key of the first item; the caller has seen that there is one."""
        cdef Node node
        while self._ordered < self.count:
            node = self._nodes[self._ordered]
            _rise(self, self._ordered, &node)
            self._ordered += 1
        return self._nodes[0].key

    cdef int clear(self) except -1:
        """Take all out. What dies with them may push again."""
        cdef list gone = self._items
        self._items = []
        self.count = 0
        self._ordered = 0
        gone.clear()
        return 0

    cdef list items(self):
        """What is there, without an order."""
        return [item for item in self._items if item is not None]


# Double the room. Making a list may collect garbage (Python 3.11), and a finalizer may push: it has made room then, or
# more of it is needed than it seemed.
cdef int _grow(Heap heap) except -1:
    cdef list more = [None] * max(heap.count, FIRST_ROOM)
    cdef Py_ssize_t before = len(heap._items)
    cdef Py_ssize_t room = before + len(more)
    cdef Py_ssize_t ticket
    if heap.count < before:
        return 0
    heap._nodes = <Node *>_resized(heap._nodes, room * sizeof(Node))
    heap._indices = <Py_ssize_t *>_resized(heap._indices, room * sizeof(Py_ssize_t))
    heap._items.extend(more)
    for ticket in range(before, room):
        heap._indices[ticket] = ticket + 1
    heap._free = before
    return 0


cdef void *_resized(void *memory, size_t size) except NULL:
    memory = PyMem_RawRealloc(memory, size)
    if memory == NULL:
        raise MemoryError
    return memory


cdef bint _before(Node *one, Node *other) noexcept:
    return one.key < other.key or (one.key == other.key and one.sequence < other.sequence)


cdef void _put(Heap heap, Py_ssize_t index, Node *node) noexcept:
    heap._nodes[index] = node[0]
    heap._indices[node.ticket] = index


# Something comes to stand at `index`, or above.
cdef void _rise(Heap heap, Py_ssize_t index, Node *node) noexcept:
    cdef Py_ssize_t parent
    while index > 0:
        parent = (index - 1) >> 2
        if not _before(node, &heap._nodes[parent]):
            break
        _put(heap, index, &heap._nodes[parent])
        index = parent
    _put(heap, index, node)


# The same, or below.
cdef void _sink(Heap heap, Py_ssize_t index, Node *node) noexcept:
    cdef Py_ssize_t child, best
    while True:
        best = 4 * index + 1
        if best >= heap._ordered:
            break
        for child in range(best + 1, min(best + 4, heap._ordered)):
            if _before(&heap._nodes[child], &heap._nodes[best]):
                best = child
        if not _before(&heap._nodes[best], node):
            break
        _put(heap, index, &heap._nodes[best])
        index = best
    _put(heap, index, node)
