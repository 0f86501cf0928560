# cython: nonecheck=False
"""What comes first? A priority queue from which anything can be taken out wherever it stands. Compiled twin.

A heap in which each node has four children: half as deep as with two, and the four lie together in memory. What is added
late or taken out early (a timeout is usually cancelled long before it is due) mostly touches the leaves. What is new waits
behind the heap, in no order, until somebody asks what comes first: what is gone by then has cost no comparison. A flood of it
is sorted then and waits beside the heap, if no other does. To compare and to move, no item is looked at: a ticket tells where
its item stands. Nothing here runs Python code.
"""

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.string cimport memcpy, memset

cdef enum:
    FIRST_ROOM = 64
    FLOOD = 256  # items; from some 64 on sorting is faster than a heap
    GONE = -1  # the ticket of what was taken out after the sorting
    DIGIT = 11  # bits
    VALUES = 2048  # of a digit


@cython.boundscheck(False)
@cython.wraparound(False)
cdef class Heap:
    """Items in the order of their integer keys; those with equal keys in the order in which they came."""

    def __cinit__(self):
        self._items = []

    def __dealloc__(self):
        PyMem_RawFree(self._nodes)
        PyMem_RawFree(self._sorted)
        PyMem_RawFree(self._indices)

    cdef Py_ssize_t push(self, object item, long long key) except -1:
        """Add an item; return the ticket by which it can be removed."""
        cdef Node *node
        if self.count == len(self._items):
            _grow(self)
        self._sequence += 1
        node = &self._nodes[self._standing]
        node.key = key
        node.sequence = self._sequence
        node.ticket = self._free
        self._free = self._indices[node.ticket]
        self._indices[node.ticket] = self._standing
        self._items[node.ticket] = item
        self._standing += 1
        self.count += 1
        return node.ticket

    cdef int remove(self, Py_ssize_t ticket) except -1:
        """Take an item out that is there."""
        cdef Py_ssize_t index = self._indices[ticket]
        if index < 0:
            _leave_sorted(self, ~index)
        else:
            _leave(self, index)
        self.count -= 1
        self._indices[ticket] = self._free
        self._free = ticket
        self._items[ticket] = None
        return 0

    cdef object pop(self, long long limit):
        """Take out the first item unless its key is beyond the limit; None if there is none."""
        cdef Node *node
        cdef Py_ssize_t ticket
        if self.count == 0:
            return None
        node = _first(self)
        if node.key > limit:
            return None
        ticket = node.ticket
        item = self._items[ticket]
        self.remove(ticket)
        return item

    cdef long long first_key(self) noexcept:
        """The key of the first item; the caller has seen that there is one."""
        return _first(self).key

    cdef int clear(self) except -1:
        """Take all out. What dies with them may push again."""
        cdef list gone = self._items
        self._items = []
        self.count = self._standing = self._ordered = 0
        _drop_sorted(self)
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


cdef Node *_first(Heap heap) noexcept:
    cdef Node node
    if heap._sorted == NULL and heap._standing - heap._ordered >= FLOOD:
        _sort_new(heap)
    while heap._ordered < heap._standing:
        node = heap._nodes[heap._ordered]
        _rise(heap, heap._ordered, &node)
        heap._ordered += 1
    if heap._sorted == NULL:
        return &heap._nodes[0]
    if heap._ordered == 0 or _before(&heap._sorted[heap._sorted_first], &heap._nodes[0]):
        return &heap._sorted[heap._sorted_first]
    return &heap._nodes[0]


cdef void _leave(Heap heap, Py_ssize_t index) noexcept:
    cdef Node last
    if index < heap._ordered:
        heap._ordered -= 1
        if index != heap._ordered:  # the last of the heap fills the gap; it may belong further up or down
            last = heap._nodes[heap._ordered]
            if _before(&last, &heap._nodes[index]):
                _rise(heap, index, &last)
            else:
                _sink(heap, index, &last)
        index = heap._ordered
    heap._standing -= 1
    if index != heap._standing:
        _put(heap, index, &heap._nodes[heap._standing])


cdef void _leave_sorted(Heap heap, Py_ssize_t index) noexcept:
    heap._sorted[index].ticket = GONE
    while heap._sorted[heap._sorted_first].ticket == GONE:
        heap._sorted_first += 1
        if heap._sorted_first == heap._sorted_end:
            _drop_sorted(heap)
            break


cdef void _drop_sorted(Heap heap) noexcept:
    PyMem_RawFree(heap._sorted)
    heap._sorted = NULL


# Sort what is new, unless there is no memory for it.
cdef void _sort_new(Heap heap) noexcept:
    cdef Py_ssize_t count = heap._standing - heap._ordered
    cdef Py_ssize_t index
    cdef Node *nodes = <Node *>PyMem_RawMalloc(count * sizeof(Node))
    cdef Node *spare = <Node *>PyMem_RawMalloc(count * sizeof(Node))
    if nodes != NULL and spare != NULL:
        memcpy(nodes, &heap._nodes[heap._ordered], count * sizeof(Node))
        _sort(&nodes, &spare, count, False)  # what was taken out has left gaps, which others filled
        _sort(&nodes, &spare, count, True)
        for index in range(count):
            heap._indices[nodes[index].ticket] = ~index
        heap._standing = heap._ordered
        heap._sorted = nodes
        heap._sorted_first = 0
        heap._sorted_end = count
        nodes = NULL
    PyMem_RawFree(nodes)
    PyMem_RawFree(spare)


cdef long long _number(Node *node, bint by_key) noexcept:
    return node.key if by_key else <long long>node.sequence


# By key or by sequence; what is equal stays as it stands. A radix sort, beginning with the lowest digit.
cdef void _sort(Node **nodes, Node **spare, Py_ssize_t count, bint by_key) noexcept:
    cdef Py_ssize_t[VALUES] places
    cdef Py_ssize_t index, place, before
    cdef long long number
    cdef long long least = _number(nodes[0], by_key)
    cdef long long most = least
    cdef bint ordered = True
    cdef unsigned long long spread
    cdef int digit, shift = 0
    for index in range(1, count):
        number = _number(&nodes[0][index], by_key)
        if number < most:
            ordered = False
            least = min(least, number)
        else:
            most = number
    spread = <unsigned long long>most - <unsigned long long>least
    while not ordered and shift < 64 and spread >> shift:
        memset(places, 0, sizeof(places))
        for index in range(count):
            places[_digit(&nodes[0][index], by_key, least, shift)] += 1
        place = 0
        for digit in range(VALUES):
            before = place
            place += places[digit]
            places[digit] = before
        for index in range(count):
            digit = _digit(&nodes[0][index], by_key, least, shift)
            spare[0][places[digit]] = nodes[0][index]
            places[digit] += 1
        nodes[0], spare[0] = spare[0], nodes[0]
        shift += DIGIT


cdef int _digit(Node *node, bint by_key, long long least, int shift) noexcept:
    return ((<unsigned long long>_number(node, by_key) - <unsigned long long>least) >> shift) & (VALUES - 1)


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
