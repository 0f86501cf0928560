"""A set of signals to hold back and to hear of from a descriptor. Compiled twin, by signalfd(2) or kqueue(2)."""

from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from posix.signal cimport sigaddset, sigemptyset, sigset_t
from posix.unistd cimport close as c_close, getpid

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <signal.h>
    #include <string.h>
    #include <unistd.h>

    #if defined(__linux__) && !defined(EPOQUE_PORTABLE)
    #include <sys/signalfd.h>
    #define EPOQUE_HOLDS 1

    static int epoque_open(const sigset_t *signals) { return signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC); }
    static int epoque_assign(int fd, const sigset_t *signals) { return signalfd(fd, signals, 0); }
    static int epoque_watch(int fd, int signum, int on) { (void)fd; (void)signum; (void)on; return 0; }

    /* The number of a signal that waits, 0 if none does, -1 for an error. */
    static int epoque_next(int fd) {
        struct signalfd_siginfo info;
        if (read(fd, &info, sizeof info) == (ssize_t)sizeof info) return (int)info.ssi_signo;
        return errno == EAGAIN ? 0 : -1;
    }
    #else
    #include <sys/types.h>
    #include <sys/event.h>
    #include <sys/time.h>
    #define EPOQUE_HOLDS 0

    static int epoque_open(const sigset_t *signals) {
        int fd = kqueue();
        (void)signals;
        if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    static int epoque_assign(int fd, const sigset_t *signals) { (void)signals; return fd; }

    static int epoque_watch(int fd, int signum, int on) {
        struct kevent change;
        struct timespec now = {0, 0};
        memset(&change, 0, sizeof change);
        change.ident = signum;
        change.filter = EVFILT_SIGNAL;
        change.flags = on ? EV_ADD : EV_DELETE;
        return kevent(fd, &change, 1, NULL, 0, &now);
    }

    /* Takes what is reported. The signals themselves go the usual way, so there is no number to give. */
    static int epoque_next(int fd) {
        struct kevent events[32];
        struct timespec now = {0, 0};
        int count;
        while ((count = kevent(fd, NULL, 0, events, 32, &now)) == 32) continue;
        return count < 0 ? -1 : 0;
    }
    #endif
    """
    bint EPOQUE_HOLDS
    int epoque_open(const sigset_t *signals)
    int epoque_assign(int fd, const sigset_t *signals)
    int epoque_watch(int fd, int signum, bint on)
    int epoque_next(int fd)

cdef extern from "<signal.h>" nogil:
    int pthread_sigmask(int how, const sigset_t *set, sigset_t *oldset)
    enum:
        SIG_BLOCK
        SIG_SETMASK


cdef class SignalSet:
    """The signals of `assign`: `block` holds them back in this thread, a readable `fd` says that one waits.

    With kqueue nothing is held back: the descriptor says that a signal has come, which goes the usual way.
    """

    def __cinit__(self):
        self.fd = -1
        self._owner = 0
        self._numbers = frozenset()
        sigemptyset(&self._signals)
        sigemptyset(&self._saved)

    def __dealloc__(self):
        self.close()

    cdef int assign(self, object signums) except -1:
        cdef int fd
        before = self._numbers
        self._numbers = frozenset(signums)
        sigemptyset(&self._signals)
        for signum in self._numbers:
            sigaddset(&self._signals, signum)
        if self.fd < 0:
            before = frozenset()
            fd = epoque_open(&self._signals)
        else:
            fd = epoque_assign(self.fd, &self._signals)
        if fd < 0:
            PyErr_SetFromErrno(OSError)
        self.fd = fd
        self._owner = getpid()
        for signum in before - self._numbers:
            epoque_watch(fd, signum, False)
        for signum in self._numbers - before:
            if epoque_watch(fd, signum, True) < 0:
                PyErr_SetFromErrno(OSError)
        return 0

    cdef int block(self) except -1:
        if EPOQUE_HOLDS:
            pthread_sigmask(SIG_BLOCK, &self._signals, &self._saved)
        return 0

    cdef int restore(self) except -1:
        if EPOQUE_HOLDS:
            pthread_sigmask(SIG_SETMASK, &self._saved, NULL)
        return 0

    cdef list drain(self):
        """Take the signals that wait; return the numbers of those that were held back."""
        cdef list signums = []
        cdef int signum
        while True:
            signum = epoque_next(self.fd)
            if signum > 0:
                signums.append(signum)
            elif signum == 0:
                return signums
            elif errno != EINTR:
                PyErr_SetFromErrno(OSError)

    cdef int close(self) noexcept:
        # A kqueue is not inherited by a child process: there its number may be another descriptor's.
        if self.fd >= 0 and (EPOQUE_HOLDS or self._owner == getpid()):
            c_close(self.fd)
        self.fd = -1
        return 0
