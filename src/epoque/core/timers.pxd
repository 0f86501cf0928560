cimport cython

from epoque.core.handle cimport Handle
from epoque.kernel cimport clock, fifo, heap

cdef long long NEVER


@cython.final
cdef class TimerHandle(Handle):
    cdef object whence  # scheduled time as given, in seconds
    cdef long long deadline  # the same in nanoseconds, rounded up
    cdef Py_ssize_t ticket  # of the heap it stands in
    cdef Timers timers  # the heap it stands in, None outside


@cython.locals(timer=TimerHandle)
cdef TimerHandle new_timer(object when, object callback, tuple args, object loop, object context)


@cython.final
cdef class Timers:
    cdef heap.Heap heap

    cpdef long long earliest(self) noexcept
    cpdef int add(self, TimerHandle timer) except -1
    cpdef int remove(self, TimerHandle timer) except -1
    @cython.locals(timer=TimerHandle)
    cpdef int expire(self, long long now, fifo.Fifo ready) except -1
    @cython.locals(timer=TimerHandle)
    cpdef int clear(self) except -1


cdef bint alike(TimerHandle one, TimerHandle other) except -1
