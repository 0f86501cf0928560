from cpython.object cimport PyObject


cdef class Fifo:
    cdef list _slots  # a ring; its length is a power of two, empty places hold None
    cdef Py_ssize_t _head  # index of the first item
    cdef Py_ssize_t _count  # items
    cdef bint _hiding

    cdef int append(self, object item) except -1
    cdef object popleft(self)
    cdef int clear(self) except -1


cdef int hide(Fifo queue, bint hiding) except -1
cdef int show(object item) noexcept
cdef list items(Fifo queue)


cdef inline Py_ssize_t size(Fifo queue) noexcept:
    return queue._count


cdef PyObject *_at(Fifo queue, Py_ssize_t index) noexcept
cdef int _track(PyObject *item) noexcept
