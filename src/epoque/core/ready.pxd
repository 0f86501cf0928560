cimport cython

from epoque.core.handle cimport Handle, ThreadSafeHandle
from epoque.core.wakeup cimport Wakeup
from epoque.kernel cimport fifo, interp


@cython.final
cdef class ReadyQueue:
    cdef fifo.Fifo handles
    cdef Wakeup wakeup
    cdef bint idle  # the loop sleeps, or is about to: a bell must ring

    cdef int put_threadsafe(self, Handle handle) except -1
    @cython.locals(handles=fifo.Fifo, handle=Handle)
    cdef int run(self, object watcher, Py_ssize_t count) except -1
    cdef int put_back(self, Py_ssize_t count) except -1
