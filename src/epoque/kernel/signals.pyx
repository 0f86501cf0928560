"""A set of signals to hold back and to read from a descriptor: signalfd(2), pthread_sigmask(3). Compiled twin."""

from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint32_t
from posix.signal cimport sigaddset, sigemptyset, sigset_t
from posix.unistd cimport close as c_close, read

cdef extern from "<sys/signalfd.h>" nogil:
    struct signalfd_siginfo:
        uint32_t ssi_signo
    int signalfd(int fd, const sigset_t *mask, int flags)
    enum:
        SFD_CLOEXEC
        SFD_NONBLOCK

cdef extern from "<signal.h>" nogil:
    int pthread_sigmask(int how, const sigset_t *set, sigset_t *oldset)
    enum:
        SIG_BLOCK
        SIG_SETMASK


cdef class SignalSet:
    """The signals of `assign`: `block` holds them back in this thread, a readable `fd` says that one waits."""

    def __cinit__(self):
        self.fd = -1
        sigemptyset(&self._signals)
        sigemptyset(&self._saved)

    def __dealloc__(self):
        self.close()

    cdef int assign(self, object signums) except -1:
        cdef int fd
        sigemptyset(&self._signals)
        for signum in signums:
            sigaddset(&self._signals, signum)
        fd = signalfd(self.fd, &self._signals, SFD_NONBLOCK | SFD_CLOEXEC)
        if fd < 0:
            PyErr_SetFromErrno(OSError)
        self.fd = fd
        return 0

    cdef int block(self) except -1:
        pthread_sigmask(SIG_BLOCK, &self._signals, &self._saved)
        return 0

    cdef int restore(self) except -1:
        pthread_sigmask(SIG_SETMASK, &self._saved, NULL)
        return 0

    cdef list drain(self):
        """Take the signals that wait; return their numbers."""
        cdef signalfd_siginfo info
        cdef list signums = []
        while True:
            if read(self.fd, &info, sizeof(info)) == sizeof(info):
                signums.append(info.ssi_signo)
            elif errno == EAGAIN:
                return signums
            elif errno != EINTR:
                PyErr_SetFromErrno(OSError)

    cdef int close(self) noexcept:
        if self.fd >= 0:
            c_close(self.fd)
            self.fd = -1
        return 0
