"""Descriptors that stand for events: eventfd(2), timerfd_create(2), and pipe(2). Compiled twin, by system call."""

from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EAGAIN, errno
from libc.stdint cimport uint64_t
from posix.time cimport CLOCK_MONOTONIC, itimerspec
from posix.unistd cimport close as c_close

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int initval, int flags)
    int eventfd_write(int fd, uint64_t value)
    enum:
        EFD_CLOEXEC
        EFD_NONBLOCK

cdef extern from "<sys/timerfd.h>" nogil:
    int timerfd_create(int clockid, int flags)
    int timerfd_settime(int fd, int flags, const itimerspec *new_value, itimerspec *old_value)
    enum:
        TFD_CLOEXEC
        TFD_NONBLOCK
        TFD_TIMER_ABSTIME

cdef extern from "<fcntl.h>" nogil:
    enum:
        O_CLOEXEC
        O_NONBLOCK

cdef extern from "<unistd.h>" nogil:
    int pipe2(int *fds, int flags)


cdef int eventfd_open() except -1:
    """A counter to ring; non-blocking, closed on exec."""
    cdef int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
    if fd < 0:
        PyErr_SetFromErrno(OSError)
    return fd


cdef int eventfd_ring(int fd) except -1:
    # A full counter already is an event.
    if eventfd_write(fd, 1) < 0 and errno != EAGAIN:
        PyErr_SetFromErrno(OSError)
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


cdef tuple pipe_open():
    """A pipe (read end, write end); both non-blocking and closed on exec."""
    cdef int ends[2]
    if pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0:
        PyErr_SetFromErrno(OSError)
    return ends[0], ends[1]


cdef int close(int fd) noexcept:
    """Close `fd`; never to be repeated, whatever it says: the number is gone either way (close(2), Linux)."""
    return c_close(fd)
