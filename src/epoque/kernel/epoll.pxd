from libc.stdint cimport uint32_t, uint64_t

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        uint64_t u64
    struct epoll_event:
        uint32_t events
        epoll_data_t data


cpdef bint available() noexcept


cdef class Poller:
    cdef int _fd  # of the epoll instance, -1 once closed
    cdef int _capacity  # events a batch may hold
    cdef epoll_event *_batch

    cdef int fileno(self) noexcept
    cdef int add(self, int fd, unsigned int generation, int mask, int mode) except -1
    cdef int modify(self, int fd, unsigned int generation, int mask, int mode) except -1
    cdef int remove(self, int fd) except -1
    cdef int wait(self, long long timeout) except -1
    cdef (int, unsigned int, int) event(self, int index) noexcept
    cdef int close(self) except -1


cdef int timerfd_open() except -2
cdef int timerfd_arm(int fd, long long deadline) except -1
