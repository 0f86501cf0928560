cimport cython

from epoque.selector.source cimport Source


cdef unsigned int LAST
cdef int EDGE
cdef int LEVEL


cdef class Selector:
    cdef list table  # fd -> Source or None
    cdef unsigned int generation  # the last one given out
    cdef int count  # events of the batch
    cdef int position  # of the next one to deliver
    cdef int removals  # while this batch was being delivered: its events for unknown sources are explained by them
    cdef int ghosts  # events that nothing explains
    cdef int stream_mode  # how to watch what is read and written until the kernel has no more
    cdef bint forked  # the instance belongs to our parent process
    cdef object __weakref__

    cpdef Source find(self, int fd)
    @cython.locals(fd=Py_ssize_t, missing=Py_ssize_t, previous=Source)
    cpdef int add(self, Source source) except -1
    cpdef int update(self, Source source) except -1
    cpdef bint verify(self, Source source) except -1
    cpdef int again(self, Source source) except -1
    cpdef int remove(self, Source source) except -1
    cdef int evict(self, Source source) except -1
    cdef int disarm(self, Source source) except -1
    @cython.locals(source=Source, fd=int, generation="unsigned int", mask=int, interest=int)
    cpdef int dispatch(self) except -1
    @cython.locals(index=int, fd=int)
    cdef bint has_fetched(self, Source source) except -1
    cdef int calm(self, Source source) except -1
    @cython.locals(inherited=bint)
    cdef int reopen(self) except -1
    @cython.locals(source=Source)
    cdef int rearm(self) except -1
    @cython.locals(source=Source)
    cpdef int close(self) except -1

    cpdef int wait(self, long long deadline) except -1
    cdef (int, unsigned int, int) event(self, int index) noexcept
    cdef int arm(self, Source source) except -1
    cdef int discard(self, Source source) except -1
    cdef int found_replaced(self, Source source) except -1
    cdef int renew(self) except -1
    cdef int leave_to_parent(self) except -1
