from posix.signal cimport sigset_t


cdef class SignalSet:
    cdef sigset_t _signals
    cdef sigset_t _saved  # the thread's mask before block()
    cdef int fd  # the signalfd, -1 before the first assign()

    cdef int assign(self, object signums) except -1
    cdef int block(self) except -1
    cdef int restore(self) except -1
    cdef list drain(self)
    cdef int close(self) noexcept
