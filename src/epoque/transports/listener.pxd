cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport clock, events, interp, sockets
from epoque.selector.source cimport Source
from epoque.transports cimport stream

cdef int EXCLUSIVE
cdef int READ
cdef int BATCH
cdef int BOLDNESS
cdef long long LONG_AGO
cdef long long REPORT_EVERY


cdef class Listener(Source):
    cdef Reactor loop
    cdef object sock
    cdef object factory  # of protocols
    cdef object server  # Server, or None
    cdef int family
    cdef int proto
    cdef int backlog
    cdef object context  # contextvars.Context that each connection starts with a copy of
    cdef object sockname  # of what it accepts, None if that must be asked of each
    cdef int run  # of connections accepted since nobody was waiting
    cdef long long asked  # when it last had its turn, in nanoseconds
    cdef object retry  # TimerHandle while descriptors have run out
    cdef long long reported  # when that was last reported, in nanoseconds; 0 for never

    @cython.locals(now="long long", most=int)
    cdef int on_ready(self, int mask) except -1
    cdef int admit(self, int fd, object peername) except -1
    @cython.locals(now="long long")
    cdef int failed(self, object exc) except -1


cdef object shared_name(object sock)
