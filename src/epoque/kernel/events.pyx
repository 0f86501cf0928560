"""Descriptors that a loop wakes itself with: eventfd(2) or pipe(2). Compiled twin, by system call."""

from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EAGAIN, errno
from posix.unistd cimport close as c_close

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <unistd.h>

    static int epoque_pipe(int *ends) {
    #if !defined(__APPLE__) && !defined(EPOQUE_PORTABLE)
        return pipe2(ends, O_NONBLOCK | O_CLOEXEC);
    #else
        int index;
        if (pipe(ends) < 0) return -1;
        for (index = 0; index < 2; index++) {
            fcntl(ends[index], F_SETFD, FD_CLOEXEC);
            fcntl(ends[index], F_SETFL, fcntl(ends[index], F_GETFL) | O_NONBLOCK);
        }
        return 0;
    #endif
    }

    #if defined(__linux__) && !defined(EPOQUE_PORTABLE)
    #include <sys/eventfd.h>
    static int epoque_wakeup(int *ends) { return ends[0] = ends[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
    static int epoque_ring(int fd) { return eventfd_write(fd, 1); }
    static void epoque_answer(int fd) { (void)fd; }
    #else
    static int epoque_wakeup(int *ends) { return epoque_pipe(ends); }
    static int epoque_ring(int fd) { return write(fd, "!", 1) < 0 ? -1 : 0; }
    static void epoque_answer(int fd) {
        char bytes[4096];
        if (read(fd, bytes, sizeof bytes) < 0) return; /* EAGAIN */
    }
    #endif
    """
    int epoque_wakeup(int *ends)
    int epoque_ring(int fd) nogil
    void epoque_answer(int fd)
    int epoque_pipe(int *ends)


cdef tuple wakeup_open():
    """A bell: the descriptor that becomes readable, and the one to ring. Both non-blocking and closed on exec.

    They are one where there is an eventfd; elsewhere the ends of a pipe.
    """
    cdef int ends[2]
    if epoque_wakeup(ends) < 0:
        PyErr_SetFromErrno(OSError)
    return ends[0], ends[1]


cdef int wakeup_ring(int fd) except -1:
    cdef int result
    with nogil:  # who wakes up wants it at once
        result = epoque_ring(fd)
    # A full counter, or pipe, already is an event.
    if result < 0 and errno != EAGAIN:
        PyErr_SetFromErrno(OSError)
    return 0


cdef int wakeup_answer(int fd) except -1:
    """Make room for the next ring. An eventfd, whose counter cannot be filled in a lifetime, is not read."""
    epoque_answer(fd)
    return 0


cdef tuple pipe_open():
    """A pipe (read end, write end); both non-blocking and closed on exec."""
    cdef int ends[2]
    if epoque_pipe(ends) < 0:
        PyErr_SetFromErrno(OSError)
    return ends[0], ends[1]


cdef int close(int fd) noexcept:
    """Close `fd`; never to be repeated, whatever it says: the number is gone either way (close(2), Linux)."""
    return c_close(fd)
