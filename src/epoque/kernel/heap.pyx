# cython: nonecheck=False
"""What comes first? A priority queue from which anything can be taken out wherever it stands. Compiled twin.

A heap in which each node has four children: half as deep as with two, and the four lie together in memory. What is added
late or taken out early (a timeout is usually cancelled long before it is due) mostly touches the leaves. To compare and
to move, no item is looked at: a ticket tells where its item stands. Nothing here runs Python code.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject *item_at "PyList_GET_ITEM"(PyObject *items, Py_ssize_t index) noexcept
    void put_at "PyList_SET_ITEM"(PyObject *items, Py_ssize_t index, PyObject *item) noexcept

cdef enum:
    FIRST_ROOM = 64


cdef class Heap:
    """Items in the order of their integer keys; those with equal keys in the order in which they came."""

    def __cinit__(self):
        self._items = []
        _resize(self, FIRST_ROOM)

    def __dealloc__(self):
        PyMem_RawFree(self._nodes)
        PyMem_RawFree(self._indices)

    cdef Py_ssize_t push(self, object item, long long key) except -1:
        """Add an item; return the ticket by which it can be removed."""
        cdef Py_ssize_t last = self.size()
        cdef Node node
        if last == self._room:
            _resize(self, 2 * self._room)
        self._items.append(item)
        self._sequence += 1
        node.key = key
        node.sequence = self._sequence
        node.ticket = self._free
        self._free = self._indices[node.ticket]
        _rise(self, last, <PyObject *>item, &node)
        return node.ticket

    cdef int remove(self, Py_ssize_t ticket) except -1:
        """Take an item out that is there."""
        cdef Py_ssize_t index = self._indices[ticket]
        cdef Py_ssize_t last = self.size() - 1
        cdef Node gone = self._nodes[index]
        cdef Node moved = self._nodes[last]
        cdef PyObject *item = item_at(<PyObject *>self._items, last)
        put_at(<PyObject *>self._items, last, item_at(<PyObject *>self._items, index))
        if index != last:  # the last one fills the gap; it may belong further up or down
            if _before(&moved, &gone):
                _rise(self, index, item, &moved)
            else:
                _sink(self, last, index, item, &moved)
        self._indices[ticket] = self._free
        self._free = ticket
        self._items.pop()
        return 0

    cdef object pop(self, long long limit):
        """Take out the first item unless its key is beyond the limit; None if there is none."""
        if not self._items or self._nodes[0].key > limit:
            return None
        item = <object>item_at(<PyObject *>self._items, 0)
        self.remove(self._nodes[0].ticket)
        return item

    cdef long long first_key(self) noexcept:
        """The key of the first item; the caller has seen that there is one."""
        return self._nodes[0].key

    cdef int clear(self) except -1:
        """Take all out. What dies with them may push again."""
        cdef list gone = self._items
        self._items = []
        self._room = 0
        _resize(self, FIRST_ROOM)
        gone.clear()
        return 0

    cdef list items(self):
        """What is there, without an order."""
        return list(self._items)

    cdef Py_ssize_t size(self) noexcept:
        """How many items there are."""
        return len(self._items)


# Make room for so many, of which as many as there was room for are in use.
cdef int _resize(Heap heap, Py_ssize_t room) except -1:
    cdef void *nodes = PyMem_RawRealloc(heap._nodes, room * sizeof(Node))
    if nodes == NULL:
        raise MemoryError
    heap._nodes = <Node *>nodes
    cdef void *indices = PyMem_RawRealloc(heap._indices, room * sizeof(Py_ssize_t))
    if indices == NULL:
        raise MemoryError
    heap._indices = <Py_ssize_t *>indices
    heap._free = heap._room
    for ticket in range(heap._room, room):
        heap._indices[ticket] = ticket + 1
    heap._room = room
    return 0


cdef bint _before(Node *one, Node *other) noexcept:
    return one.key < other.key or (one.key == other.key and one.sequence < other.sequence)


cdef void _put(Heap heap, Py_ssize_t index, PyObject *item, Node *node) noexcept:
    put_at(<PyObject *>heap._items, index, item)
    heap._nodes[index] = node[0]
    heap._indices[node.ticket] = index


# An item that comes to stand at `index`, or above.
cdef void _rise(Heap heap, Py_ssize_t index, PyObject *item, Node *node) noexcept:
    cdef Py_ssize_t parent
    while index > 0:
        parent = (index - 1) >> 2
        if not _before(node, &heap._nodes[parent]):
            break
        _put(heap, index, item_at(<PyObject *>heap._items, parent), &heap._nodes[parent])
        index = parent
    _put(heap, index, item, node)


# The same, or below, where `size` items stand.
cdef void _sink(Heap heap, Py_ssize_t size, Py_ssize_t index, PyObject *item, Node *node) noexcept:
    cdef Py_ssize_t child, best
    while True:
        best = 4 * index + 1
        if best >= size:
            break
        for child in range(best + 1, min(best + 4, size)):
            if _before(&heap._nodes[child], &heap._nodes[best]):
                best = child
        if not _before(&heap._nodes[best], node):
            break
        _put(heap, index, item_at(<PyObject *>heap._items, best), &heap._nodes[best])
        index = best
    _put(heap, index, item, node)
