cimport cython

from epoque.kernel cimport events, interp


cdef class Bell:
    cdef object owners  # WeakSet of the Signals of all loops that may run in the main thread
    cdef object handling  # WeakSet of those that have handlers
    cdef int read_fd  # -1 when no loop is enrolled
    cdef int write_fd
    cdef int user_fd  # the wake-up descriptor that ours took the place of, or -1
    cdef bint running  # a loop runs in the main thread
    cdef bint installed  # ours is the wake-up descriptor
    cdef bint inherited  # the pipe is our parent's
    cdef object __weakref__

    cdef int enroll(self, object owner) except -1
    cdef int dismiss(self, object owner) except -1
    cdef int begin(self) except -1
    cdef int end(self) except -1
    cdef int settle(self) except -1
    cdef int install(self) except -1
    cdef int give_back(self) except -1
    cdef bytes answer(self)
    @cython.locals(watching=list)
    cdef int replace(self) except -1
    cdef int close(self) except -1


cpdef bint in_main_thread() except -1

cdef Bell bell
