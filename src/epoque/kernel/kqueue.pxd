cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/event.h>
    """
    ctypedef struct kevent_t "struct kevent":
        pass


cpdef bint available() noexcept


cdef class Poller:
    cdef int _fd  # of the kqueue, -1 once closed
    cdef int _capacity  # events a batch may hold
    cdef int _room  # events the array has room for
    cdef kevent_t *_batch
    cdef int _collected  # changes that go with the next wait
    cdef int _space  # changes the array has space for
    cdef kevent_t *_changes

    cdef int fileno(self) noexcept
    cdef int change(self, int fd, unsigned int generation, int before, int after, int mode) except -1
    cdef int collect(self, int fd, unsigned int generation, int before, int after, int mode) except -1
    cdef int wait(self, long long timeout) except -1
    cdef (int, unsigned int, int) event(self, int index) noexcept
    cdef bint refused(self, int index) noexcept
    cdef int forget(self) except -1
    cdef int close(self) except -1
