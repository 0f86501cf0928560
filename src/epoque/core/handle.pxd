cimport cython

from epoque.kernel cimport fifo, freelist, interp

cdef bint _WAITING
cdef object _ended


cdef class Handle:
    cdef object callback  # None once cancelled
    cdef object args  # tuple; None once cancelled
    cdef object loop
    cdef object context  # contextvars.Context
    cdef object origin  # in debug mode: where it was made, and (`text`) its repr from before cancel(); else None
    cdef bint canceled
    cdef object __weakref__

    cdef int drop(self) except -1
    cdef int run(self) except -1
    cdef int report(self, object exc) except -1
    cdef dict failure(self, object exc)
    cdef list describe(self)


@cython.final
cdef class ThreadSafeHandle(Handle):
    cdef unsigned long runner  # the thread that runs the callback now, or 0
    cdef bint refused  # cancelled, or about to be
    cdef bint awaited  # another thread waits for the end of the callback

    cdef int settle(self) except -1


@cython.locals(handle=Handle)
cdef Handle new_handle(object callback, tuple args, object loop, object context)
@cython.locals(handle=ThreadSafeHandle)
cdef Handle new_threadsafe_handle(object callback, tuple args, object loop, object context)
