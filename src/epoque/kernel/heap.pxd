cdef struct Node:
    long long key
    unsigned long long sequence
    Py_ssize_t ticket


cdef class Heap:
    cdef Py_ssize_t count  # of items
    cdef list _items  # by ticket; None where it has not been given out
    cdef Node *_nodes  # the heap, and behind it what is new; there is room for as many as there are tickets
    cdef Py_ssize_t _standing  # nodes there
    cdef Py_ssize_t _ordered  # of them in the heap
    cdef Node *_sorted  # a flood in order, NULL if there is none
    cdef Py_ssize_t _sorted_first  # the first of it that has not been taken out
    cdef Py_ssize_t _sorted_end
    cdef Py_ssize_t *_indices  # by ticket, in _nodes or (~) in _sorted; of one that has not been given out: the next such
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
cdef Node *_first(Heap heap) noexcept
cdef void _leave(Heap heap, Py_ssize_t index) noexcept
cdef void _leave_sorted(Heap heap, Py_ssize_t index) noexcept
cdef void _drop_sorted(Heap heap) noexcept
cdef void _sort_new(Heap heap) noexcept
cdef long long _number(Node *node, bint by_key) noexcept
cdef void _sort(Node **nodes, Node **spare, Py_ssize_t count, bint by_key) noexcept
cdef int _digit(Node *node, bint by_key, long long least, int shift) noexcept
cdef void _rise(Heap heap, Py_ssize_t index, Node *node) noexcept
cdef void _sink(Heap heap, Py_ssize_t index, Node *node) noexcept
