cimport cython

from epoque.core.handle cimport Handle
from epoque.kernel cimport clock, fifo

cdef long long NEVER


@cython.final
cdef class TimerHandle(Handle):
    cdef object whence  # scheduled time as given, in seconds
    cdef long long deadline  # the same in nanoseconds, rounded up
    cdef unsigned long long sequence  # order of making
    cdef Py_ssize_t place  # index in the heap, -1 outside
    cdef Timers timers  # the heap it stands in, None outside



@cython.locals(timer=TimerHandle)
cdef TimerHandle new_timer(object when, object callback, tuple args, object loop, object context)


@cython.final
cdef class Timers:
    cdef list heap
    cdef unsigned long long sequence  # the last one given out

    cpdef long long earliest(self) noexcept
    cdef TimerHandle first(self)
    cpdef int add(self, TimerHandle timer) except -1
    @cython.locals(last=TimerHandle, place=Py_ssize_t)
    cpdef int remove(self, TimerHandle timer) except -1
    @cython.locals(timer=TimerHandle)
    cpdef int expire(self, long long now, fifo.Fifo ready) except -1
    @cython.locals(heap=list, timer=TimerHandle)
    cpdef int clear(self) except -1
    @cython.locals(heap=list, above=Py_ssize_t, parent=TimerHandle)
    cdef int rise(self, TimerHandle timer, Py_ssize_t place) except -1
    @cython.locals(
        heap=list,
        size=Py_ssize_t,
        child=Py_ssize_t,
        other=Py_ssize_t,
        gap=Py_ssize_t,
        best=TimerHandle,
        candidate=TimerHandle,
    )
    cdef int sink(self, TimerHandle timer, Py_ssize_t place) except -1


cdef bint before(TimerHandle one, TimerHandle other) noexcept
cdef bint alike(TimerHandle one, TimerHandle other) except -1
