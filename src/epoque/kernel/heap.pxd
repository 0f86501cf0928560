from cpython.object cimport PyObject


cdef struct Node:
    long long key
    unsigned long long sequence
    Py_ssize_t ticket


cdef class Heap:
    cdef list _items
    cdef Node *_nodes  # of the items, at the same index
    cdef Py_ssize_t *_indices  # of each ticket that was given out; of the others, the next free one
    cdef Py_ssize_t _room  # of both
    cdef Py_ssize_t _free  # the ticket to be given out next
    cdef unsigned long long _sequence  # the last one given out

    cdef Py_ssize_t push(self, object item, long long key) except -1
    cdef int remove(self, Py_ssize_t ticket) except -1
    cdef object pop(self, long long limit)
    cdef long long first_key(self) noexcept
    cdef int clear(self) except -1
    cdef list items(self)
    cdef Py_ssize_t size(self) noexcept


cdef int _resize(Heap heap, Py_ssize_t room) except -1
cdef bint _before(Node *one, Node *other) noexcept
cdef void _put(Heap heap, Py_ssize_t index, PyObject *item, Node *node) noexcept
cdef void _rise(Heap heap, Py_ssize_t index, PyObject *item, Node *node) noexcept
cdef void _sink(Heap heap, Py_ssize_t size, Py_ssize_t index, PyObject *item, Node *node) noexcept
