"""One epoll instance, and timers to watch: epoll(7), timerfd_create(2). Compiled twin, by system call."""

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from posix.time cimport CLOCK_MONOTONIC, itimerspec
from posix.unistd cimport close as c_close

cdef extern from "<sys/epoll.h>" nogil:
    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event *event)
    int epoll_wait(int epfd, epoll_event *events, int maxevents, int timeout)
    enum:
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_MOD
        EPOLL_CTL_DEL
        EPOLLIN
        EPOLLOUT
        EPOLLPRI
        EPOLLRDHUP
        EPOLLHUP
        EPOLLERR

cdef extern from "<sys/timerfd.h>" nogil:
    int timerfd_create(int clockid, int flags)
    int timerfd_settime(int fd, int flags, const itimerspec *new_value, itimerspec *old_value)
    enum:
        TFD_CLOEXEC
        TFD_NONBLOCK
        TFD_TIMER_ABSTIME

cdef extern from *:
    """
    #ifndef EPOLLEXCLUSIVE
    #define EPOLLEXCLUSIVE (1u << 28)
    #endif
    /* Unsigned on purpose: EPOLLET is bit 31. */
    #define EPOQUE_EPOLLET (1u << 31)
    """
    uint32_t EPOLLEXCLUSIVE
    uint32_t EPOQUE_EPOLLET

cdef enum:
    # As in masks.py; a C enum so that the compiler sees constants.
    READ = 1
    WRITE = 2
    HANGUP = 4
    URGENT = 8
    EDGE = 1
    EXCLUSIVE = 2

cdef long long LONGEST_WAIT = 86_400_000_000_000  # nanoseconds


cpdef bint available() noexcept:
    return True


cdef uint32_t _events(int mask, int mode) noexcept:
    cdef uint32_t events = 0
    if mask & READ:
        # EPOLLRDHUP does not go with EPOLLEXCLUSIVE, and a listener has no peer anyway.
        events |= EPOLLIN if mode == EXCLUSIVE else EPOLLIN | EPOLLRDHUP
    if mask & WRITE:
        events |= EPOLLOUT
    if mask & HANGUP:
        events |= EPOLLRDHUP
    if mode == EDGE:
        events |= EPOQUE_EPOLLET | EPOLLPRI  # tcp(7): urgent data
    elif mode == EXCLUSIVE:
        events |= EPOLLEXCLUSIVE
    return events


cdef int _control(int epfd, int operation, int fd, unsigned int generation, int mask, int mode) except -1:
    cdef epoll_event event
    event.events = _events(mask, mode)
    event.data.u64 = <uint32_t>fd | <uint64_t>generation << 32
    if epoll_ctl(epfd, operation, fd, &event) < 0:
        PyErr_SetFromErrno(OSError)
    return 0


cdef class Poller:
    """Watches descriptors, each under a generation that its events carry back."""

    def __cinit__(self, int capacity):
        self._fd = -1
        self._capacity = capacity
        self._batch = <epoll_event *>malloc(capacity * sizeof(epoll_event))
        if self._batch == NULL:
            raise MemoryError
        self._fd = epoll_create1(EPOLL_CLOEXEC)
        if self._fd < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self._fd >= 0:
            c_close(self._fd)
        free(self._batch)

    cdef int fileno(self) noexcept:
        return self._fd

    cdef int add(self, int fd, unsigned int generation, int mask, int mode) except -1:
        return _control(self._fd, EPOLL_CTL_ADD, fd, generation, mask, mode)

    cdef int modify(self, int fd, unsigned int generation, int mask, int mode) except -1:
        return _control(self._fd, EPOLL_CTL_MOD, fd, generation, mask, mode)

    cdef int remove(self, int fd) except -1:
        return _control(self._fd, EPOLL_CTL_DEL, fd, 0, 0, 0)

    cdef int wait(self, long long timeout) except -1:
        """Fetch a batch; return how many events it has. A wait may end early with none, when a signal came.

        `timeout` is in nanoseconds, rounded up to milliseconds; 0 to poll, below 0 to wait without end.
        """
        cdef int count
        if timeout == 0:
            # A poll takes less time than giving up the GIL and taking it back would.
            count = epoll_wait(self._fd, self._batch, self._capacity, 0)
        else:
            if timeout > 0:
                timeout = (min(timeout, LONGEST_WAIT) + 999_999) // 1_000_000
            with nogil:
                count = epoll_wait(self._fd, self._batch, self._capacity, -1 if timeout < 0 else <int>timeout)
        if count >= 0:
            return count
        if errno != EINTR:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()
        return 0

    cdef (int, unsigned int, int) event(self, int index) noexcept:
        """Event `index` of the batch: descriptor, generation, and what it says as READ, WRITE and HANGUP."""
        cdef uint32_t events = self._batch[index].events
        cdef uint64_t whose = self._batch[index].data.u64
        cdef int mask = 0
        if events & EPOLLIN:
            mask |= READ
        if events & EPOLLOUT:
            mask |= WRITE
        if events & EPOLLRDHUP:
            mask |= READ | HANGUP
        if events & EPOLLPRI:
            mask |= READ | URGENT
        if events & (EPOLLHUP | EPOLLERR):
            mask |= READ | WRITE | HANGUP
        return <int>whose, <unsigned int>(whose >> 32), mask

    cdef int close(self) except -1:
        if self._fd >= 0:
            c_close(self._fd)
            self._fd = -1
        return 0


cdef int timerfd_open() except -2:
    """A timer on the monotonic clock, or -1 where the system has none."""
    cdef int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)
    if fd < 0:
        PyErr_SetFromErrno(OSError)
    return fd


cdef int timerfd_arm(int fd, long long deadline) except -1:
    """Let the timer expire once, at `deadline` (nanoseconds of the monotonic clock, above 0)."""
    cdef itimerspec value
    value.it_interval.tv_sec = value.it_interval.tv_nsec = 0
    value.it_value.tv_sec = deadline // 1_000_000_000
    value.it_value.tv_nsec = deadline - value.it_value.tv_sec * 1_000_000_000
    if timerfd_settime(fd, TFD_TIMER_ABSTIME, &value, NULL) < 0:
        PyErr_SetFromErrno(OSError)
    return 0
