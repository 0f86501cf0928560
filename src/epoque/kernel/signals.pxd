from posix.signal cimport sigset_t
from posix.types cimport pid_t


cdef class SignalSet:
    cdef object _numbers  # a frozenset
    cdef sigset_t _signals
    cdef sigset_t _saved  # the thread's mask before block()
    cdef pid_t _owner  # the process that has opened the descriptor
    cdef int fd  # the signalfd or kqueue, -1 before the first assign()

    cdef int assign(self, object signums) except -1
    cdef int block(self) except -1
    cdef int restore(self) except -1
    cdef list drain(self)
    cdef int close(self) noexcept
