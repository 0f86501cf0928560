cimport cython

from epoque.kernel cimport fifo, interp

cdef bint _LOCKED


cdef class Handle:
    cdef object callback  # None once cancelled
    cdef object args  # tuple; None once cancelled
    cdef object loop
    cdef object context  # contextvars.Context
    cdef object origin  # traceback.StackSummary of where it was made, in debug mode; else None
    cdef object text  # repr from before cancel(), in debug mode; else None
    cdef bint canceled
    cdef object __weakref__

    cdef int drop(self) except -1
    cdef int run(self) except -1
    cdef int report(self, object exc) except -1
    cdef list describe(self)


@cython.final
cdef class ThreadSafeHandle(Handle):
    cdef object lock  # threading.RLock


@cython.locals(handle=Handle)
cdef Handle new_handle(object callback, tuple args, object loop, object context)
cdef Handle new_threadsafe_handle(object callback, tuple args, object loop, object context)
