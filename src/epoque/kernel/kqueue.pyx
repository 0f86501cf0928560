"""One kqueue: kqueue(2), kevent(2). Compiled twin, by system call; `kqueue.py` tells about the quirks.

The fields of struct kevent have other types, and another order, on each system (docs/platforms.md): they are named in
the C functions here only.
"""

import os

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, EINVAL, ENODEV, EOPNOTSUPP, EPERM, EPIPE, errno
from libc.stdlib cimport free, malloc, realloc
from libc.time cimport time_t
from posix.unistd cimport close as c_close

cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/event.h>
    #include <sys/time.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <stdint.h>
    #include <string.h>

    static int epoque_kqueue(void) {
        int fd = kqueue();
        if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }

    /* timeout in nanoseconds, below 0 without end */
    static int epoque_kevent(int fd, const struct kevent *changes, int count, struct kevent *events, int room,
                             long long timeout) {
        struct timespec left;
        if (timeout >= 0) {
            left.tv_sec = (time_t)(timeout / 1000000000);
            left.tv_nsec = (long)(timeout % 1000000000);
        }
        return kevent(fd, changes, count, events, room, timeout < 0 ? NULL : &left);
    }

    static void epoque_change(struct kevent *change, int fd, int writing, int flags, unsigned int generation) {
        memset(change, 0, sizeof *change);
        change->ident = (uintptr_t)fd;
        change->filter = writing ? EVFILT_WRITE : EVFILT_READ;
        change->flags = flags;
        change->udata = (__typeof__(change->udata))(uintptr_t)generation;
    }

    static inline int epoque_fd(const struct kevent *event) { return (int)event->ident; }

    static inline unsigned int epoque_generation(const struct kevent *event) {
        return (unsigned int)(uintptr_t)event->udata;
    }

    static inline int epoque_error(const struct kevent *event) {
        return event->flags & EV_ERROR ? (int)event->data : 0;
    }

    static inline int epoque_mask(const struct kevent *event) {
        if (event->flags & EV_ERROR) return event->data == EPIPE ? 7 : 0;
        if (event->filter == EVFILT_READ)
            return event->flags & EV_EOF ? (event->fflags ? 7 : 5) : 1;
        return event->flags & EV_EOF ? 7 : 2;
    }
    """
    int epoque_kqueue() nogil
    int epoque_kevent(
        int fd, const kevent_t *changes, int count, kevent_t *events, int room, long long timeout
    ) nogil
    void epoque_change(kevent_t *change, int fd, bint writing, int flags, unsigned int generation)
    int epoque_fd(const kevent_t *event)
    unsigned int epoque_generation(const kevent_t *event)
    int epoque_error(const kevent_t *event)
    int epoque_mask(const kevent_t *event)
    enum:
        EV_ADD
        EV_CLEAR
        EV_DELETE
        EV_ENABLE

cdef enum:
    # As in masks.py; a C enum so that the compiler sees constants.
    READ = 1
    WRITE = 2
    HANGUP = 4
    EDGE = 1
    LARGEST_BATCH = 4096
    MOST_CHANGES = 4  # of one descriptor

cdef long long LONGEST_WAIT = 86_400_000_000_000  # nanoseconds


cpdef bint available() noexcept:
    return True


# How the knote of one direction is registered: EV_ADD, with EV_CLEAR if told once per change; 0 if there is none.
cdef int _kind(int direction, int mask, int mode) noexcept:
    if mask & direction:
        return EV_ADD | EV_CLEAR if mode == EDGE else EV_ADD
    return EV_ADD | EV_CLEAR if mask & HANGUP else 0


cdef int _difference(kevent_t *changes, int fd, unsigned int generation, int before, int after, int mode) noexcept:
    cdef int count = 0, direction, old, new
    for direction in range(READ, WRITE + 1):
        old = _kind(direction, before, mode)
        new = _kind(direction, after, mode)
        if new and old and old != new:
            epoque_change(&changes[count], fd, direction == WRITE, EV_DELETE, generation)
            count += 1
        if new:
            if old == new:
                new = new & ~EV_ADD | EV_ENABLE
            epoque_change(&changes[count], fd, direction == WRITE, new, generation)
            count += 1
    for direction in range(READ, WRITE + 1):  # last what cannot fail
        if _kind(direction, before, mode) and not _kind(direction, after, mode):
            epoque_change(&changes[count], fd, direction == WRITE, EV_DELETE, generation)
            count += 1
    return count


cdef class Poller:
    """Watches descriptors, each under a generation that its events carry back."""

    def __cinit__(self, int capacity):
        self._fd = -1
        self._capacity = self._room = capacity
        self._collected = self._space = 0
        self._changes = NULL
        self._batch = <kevent_t *>malloc(capacity * sizeof(kevent_t))
        if self._batch == NULL:
            raise MemoryError
        self._fd = epoque_kqueue()
        if self._fd < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self._fd >= 0:
            c_close(self._fd)
        free(self._batch)
        free(self._changes)

    cdef int fileno(self) noexcept:
        return self._fd

    cdef int change(self, int fd, unsigned int generation, int before, int after, int mode) except -1:
        """Go from mask `before` to mask `after`, now. OSError: ENOENT or EBADF if the descriptor has gone."""
        cdef kevent_t changes[MOST_CHANGES]
        cdef int failure, count = _difference(changes, fd, generation, before, after, mode)
        if epoque_kevent(self._fd, changes, count, NULL, 0, 0) >= 0:
            return 0
        failure = errno
        if before == 0 and failure != EPIPE:
            count = _difference(changes, fd, generation, after, 0, mode)  # what there is of it
            epoque_kevent(self._fd, changes, count, NULL, 0, 0)
        if failure == EINVAL or failure == ENODEV or failure == EOPNOTSUPP:
            failure = EOPNOTSUPP if before else EPERM
        raise OSError(failure, os.strerror(failure))

    cdef int collect(self, int fd, unsigned int generation, int before, int after, int mode) except -1:
        """The same with the next wait; a failure comes as an event."""
        cdef kevent_t *changes
        if self._space < self._collected + MOST_CHANGES:
            changes = <kevent_t *>realloc(self._changes, (2 * self._space + 16) * sizeof(kevent_t))
            if changes == NULL:
                raise MemoryError
            self._changes = changes
            self._space = 2 * self._space + 16
        self._collected += _difference(self._changes + self._collected, fd, generation, before, after, mode)
        return 0

    cdef int wait(self, long long timeout) except -1:
        """Submit what was collected, and fetch a batch; return how many events it has.

        `timeout` is in nanoseconds, 0 to poll, below 0 to wait without end. A wait may end early with no event.
        """
        cdef kevent_t *batch
        cdef int count, collected = self._collected
        if self._capacity < collected:  # each of them may fail, and a failure is an event
            self._capacity = collected
        if self._room < self._capacity:
            batch = <kevent_t *>malloc(self._capacity * sizeof(kevent_t))
            if batch == NULL:
                raise MemoryError
            free(self._batch)
            self._batch = batch
            self._room = self._capacity
        self._collected = 0  # a call that a signal interrupts has made its changes: kevent(2)
        if timeout:
            timeout = min(timeout, LONGEST_WAIT)
            with nogil:
                count = epoque_kevent(self._fd, self._changes, collected, self._batch, self._capacity, timeout)
        else:
            # A poll takes less time than giving up the GIL and taking it back would.
            count = epoque_kevent(self._fd, self._changes, collected, self._batch, self._capacity, 0)
        if count >= 0:
            if count == self._capacity and self._capacity < LARGEST_BATCH:
                self._capacity *= 2
            return count
        if errno != EINTR:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()
        return 0

    cdef (int, unsigned int, int) event(self, int index) noexcept:
        """Event `index` of the batch: descriptor, generation, and a mask that is empty if a change was refused."""
        cdef const kevent_t *event = &self._batch[index]
        return epoque_fd(event), epoque_generation(event), epoque_mask(event)

    cdef bint refused(self, int index) noexcept:
        """Is event `index` a change that failed, other than for a pipe without reader?"""
        cdef int failure = epoque_error(&self._batch[index])
        return failure != 0 and failure != EPIPE

    cdef int forget(self) except -1:
        """In a child process: a kqueue is not inherited, and its number may be another descriptor's."""
        self._fd = -1
        self._collected = 0
        return 0

    cdef int close(self) except -1:
        if self._fd >= 0:
            c_close(self._fd)
            self._fd = -1
        self._collected = 0
        return 0
