cimport cython

from epoque.core.handle cimport Handle
from epoque.core.ready cimport ReadyQueue
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef int READ
cdef int WRITE
cdef unsigned int VERIFY_EVERY


@cython.final
cdef class Watcher(Source):
    cdef object fileobj  # as given to add_reader
    cdef Selector selector
    cdef ReadyQueue queue
    cdef Handle reader  # None when only writing is watched
    cdef Handle writer  # None when only reading is watched
    cdef unsigned int wakeups

    cdef int schedule(self, Handle handle, int direction) except -1
    @cython.locals(previous=Handle, interest=int)
    cdef int set(self, int direction, Handle handle) except -1
    @cython.locals(handle=Handle)
    cdef bint clear(self, int direction) except -1


cpdef int fileno(object fileobj) except -1
