cimport cython

from epoque.kernel cimport clock, epoll, events
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef int EDGE
cdef int EXCLUSIVE
cdef int READ
cdef long long NEVER
cdef long long POLL
cdef int BATCH


cdef class Alarm(Source):
    cdef long long deadline  # it is set to, in nanoseconds of the monotonic clock; NEVER once it has expired

    cdef int close(self) except -1


cdef class EpollSelector(Selector):
    cdef epoll.Poller poller
    cdef Alarm alarm  # None before the first deadline, and where there is no timerfd

    @cython.locals(timeout="long long")
    cpdef int wait(self, long long deadline) except -1
    @cython.locals(alarm=Alarm)
    cdef bint open_alarm(self) except -1
    @cython.locals(poller=epoll.Poller)
    cdef int renew(self) except -1
    @cython.locals(alarm=Alarm)
    cdef int leave_to_parent(self) except -1
