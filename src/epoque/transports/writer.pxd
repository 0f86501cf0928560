cimport cython

from epoque.kernel cimport tls
from epoque.transports.base cimport BaseTransport
from epoque.transports.flow cimport FlowControl
from epoque.transports.sendqueue cimport SendQueue

cdef int READ
cdef int WRITE
cdef Py_ssize_t AT_ONCE


cdef class WritingTransport(BaseTransport):
    cdef FlowControl flow
    cdef bint ending  # in loop.ending: to be called at the end of this turn

    @cython.locals(size=Py_ssize_t, much=bint)
    cdef int commit(self, bint at_once) except -1
    cdef int ask_for_turn_end(self) except -1
    cdef int hasten(self) except -1
    cdef int flush_now(self) except -1
    cdef int flush_here(self) except -1
    cdef int filled(self) except -1
    cdef int drained(self) except -1
    cdef int settle(self) except -1
    cdef int finish(self) except -1
    cdef int count_lost_write(self) except -1
    cdef Py_ssize_t unsent(self) except -1
    cdef bint sendable(self) except -1
    cdef int flush(self) except -1
    cdef int send_last(self) except -1


cdef class ByteTransport(WritingTransport):
    cdef SendQueue queue

    @cython.locals(size=Py_ssize_t)
    cdef int commit(self, bint at_once) except -1
    cdef bint offer(self, tls.Engine engine) except -1

    cdef int write_failed(self, object exc) except -1
