cimport cython

from epoque.core.handle cimport Handle
from epoque.core.wakeup cimport Wakeup


@cython.final
cdef class ReadyQueue:
    cdef list handles  # to run in the next turn
    cdef list spare  # empty; changes places with handles
    cdef object remote  # collections.deque, whose append and popleft are atomic
    cdef Wakeup wakeup
    cdef bint idle  # the loop sleeps, or is about to: a bell must ring

    cdef int put(self, Handle handle) except -1
    cdef int put_threadsafe(self, Handle handle) except -1
    cdef bint waiting(self) except -1
    cdef int collect(self) except -1
    @cython.locals(todo=list, count=Py_ssize_t, position=Py_ssize_t, handle=Handle)
    cdef int run(self, object watcher) except -1
    cdef int clear(self) except -1
