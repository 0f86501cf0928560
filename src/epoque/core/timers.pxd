cimport cython

from epoque.core.handle cimport Handle
from epoque.kernel cimport clock, fifo, freelist, heap

cdef long long NEVER


@cython.final
cdef class TimerHandle(Handle):
    cdef double moment  # the scheduled time in seconds
    cdef object given  # the same as the caller has it, if he has
    cdef Py_ssize_t ticket  # of its place there
    cdef heap.Heap heap  # that it stands in, None outside


@cython.final
cdef class Timers:
    cdef heap.Heap heap

    cpdef long long earliest(self) noexcept
    @cython.locals(timer=TimerHandle)
    cpdef TimerHandle add(self, double moment, object given, object callback, tuple args, object loop, object context)
    @cython.locals(timer=TimerHandle)
    cpdef int expire(self, long long now, fifo.Fifo ready) except -1
    @cython.locals(timer=TimerHandle)
    cpdef int clear(self) except -1


cdef bint alike(TimerHandle one, TimerHandle other) except -1
