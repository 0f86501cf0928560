cimport cython

from epoque.core.handle cimport Handle
from epoque.core.ready cimport ReadyQueue
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef int LEVEL
cdef int READ
cdef int WRITE
cdef unsigned int VERIFY_EVERY


@cython.final
cdef class Watcher(Source):
    cdef object fileobj  # as given to add_reader; None while only coroutines wait
    cdef Selector selector
    cdef ReadyQueue queue
    cdef object reader  # Handle, Future, or None when nobody waits to read
    cdef object writer  # likewise
    cdef unsigned int wakeups

    @cython.locals(handle=Handle)
    cdef bint tell(self, int direction) except -1
    cdef object get(self, int direction)
    cdef int put(self, int direction, object waiting) except -1
    cdef bint is_live(self, object waiting) except -1
    @cython.locals(interest=int)
    cdef int set(self, int direction, object waiting) except -1
    cdef bint clear(self, int direction) except -1
    cdef int leave(self, int direction) except -1


cpdef int fileno(object fileobj) except -1
cdef int refuse(Source source) except -1
