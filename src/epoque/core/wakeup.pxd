cimport cython

from epoque.kernel cimport events
from epoque.selector.source cimport Source

cdef int EDGE
cdef int READ


@cython.final
cdef class Wakeup(Source):
    cdef int ring_fd  # the descriptor that others write to; fd itself where that is an eventfd
    cdef int ringing  # calls of ring() that are under way

    cdef int ring(self) except -1
    cdef int open(self) except -1
    cdef int reopen(self) except -1
    cdef int close(self) except -1
    cdef int give_back(self) except -1
