cdef struct Node:
    long long key
    unsigned long long sequence
    Py_ssize_t ticket


cdef class Heap:
    cdef Py_ssize_t count  # of items, and of nodes; there is room for as many as there are tickets
    cdef list _items  # by ticket; None where it has not been given out
    cdef Node *_nodes  # the heap, and behind it what is new
    cdef Py_ssize_t _ordered  # nodes of the heap
    cdef Py_ssize_t *_indices  # there, by ticket; of one that has not been given out: the next such
    cdef Py_ssize_t _free  # the ticket to be given out next
    cdef unsigned long long _sequence  # the last one given out

    cdef Py_ssize_t push(self, object item, long long key) except -1
    cdef int remove(self, Py_ssize_t ticket) except -1
    cdef object pop(self, long long limit)
    cdef long long first_key(self) noexcept
    cdef int clear(self) except -1
    cdef list items(self)


cdef int _grow(Heap heap) except -1
cdef void *_resized(void *memory, size_t size) except NULL
cdef bint _before(Node *one, Node *other) noexcept
cdef void _put(Heap heap, Py_ssize_t index, Node *node) noexcept
cdef void _rise(Heap heap, Py_ssize_t index, Node *node) noexcept
cdef void _sink(Heap heap, Py_ssize_t index, Node *node) noexcept
