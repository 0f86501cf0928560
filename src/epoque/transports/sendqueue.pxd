cimport cython

from epoque.kernel cimport pipes, sockets

cdef Py_ssize_t LARGE
cdef Py_ssize_t SEND_PIECES


@cython.final
cdef class SendQueue:
    cdef object only  # the piece, while there is one; then
    cdef list pieces  # has them all; None until it is needed
    cdef bint plain  # written to, not sent to
    cdef Py_ssize_t offset  # bytes of the first piece that are gone already
    cdef readonly Py_ssize_t size  # bytes still to be sent

    cpdef int push(self, object piece) except -1
    @cython.locals(count=Py_ssize_t, sent=Py_ssize_t)
    cpdef int send(self, int fd) except -1
    cdef Py_ssize_t write(self, int fd) except -2
    @cython.locals(size=Py_ssize_t, position=Py_ssize_t, taken=list)
    cpdef object front(self, Py_ssize_t most)
    @cython.locals(whole=Py_ssize_t)
    cpdef int drop(self, Py_ssize_t count) except -1
    cpdef list views(self)
    cpdef int clear(self) except -1


cpdef object own(object data)
