"""Which descriptors are ready? The selector of macOS and the BSDs."""
cimport cython

from epoque.kernel cimport clock, kqueue
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef long long NEVER
cdef long long POLL
cdef int FIRST_BATCH


cdef class KqueueSelector(Selector):
    cdef kqueue.Poller poller
    cdef dict lagging  # fd -> what the kernel watches it for: what has changed since goes with the next wait

    @cython.locals(timeout="long long")
    cpdef int wait(self, long long deadline) except -1
    @cython.locals(fd=int, source=Source)
    cdef int catch_up(self) except -1
    @cython.locals(poller=kqueue.Poller)
    cdef int renew(self) except -1
