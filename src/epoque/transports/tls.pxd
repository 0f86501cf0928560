cimport cython

from epoque.transports cimport sendqueue
from epoque.transports.flow cimport FlowControl
from epoque.transports.tlsconnection cimport TLSConnection

cdef tuple STATES
cdef dict FACTS


@cython.final
cdef class TLSTransport(TLSConnection):
    cdef dict extra  # what get_extra_info has looked up; None if nothing
    cdef FlowControl read_marks  # for get_read_buffer_limits; None: as asyncio has them

    cdef int count_lost_write(self) except -1
