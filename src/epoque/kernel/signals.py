"""A set of signals to hold back and to read from a descriptor: signalfd(2), pthread_sigmask(3). Interpreted twin.

The standard library has no signalfd; ctypes asks the C library for it. Where that fails nothing is held back, and a
signal that comes during a wait interrupts it instead.
"""

import ctypes
import os
import signal
import sys

from epoque.kernel import events

__all__ = ["SignalSet"]

_SIGINFO_SIZE = 128  # struct signalfd_siginfo; its first field, a 32-bit number, is the signal's
_SIGSET_SIZE = 128  # sigset_t of glibc and musl
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _signalfd(fd, signums):
    if not hasattr(_libc, "signalfd"):
        return -1
    signals = (ctypes.c_char * _SIGSET_SIZE)()
    _libc.sigemptyset(signals)
    for signum in signums:
        _libc.sigaddset(signals, signum)
    fd = _libc.signalfd(fd, signals, os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd


class SignalSet:
    """The signals of `assign`: `block` holds them back in this thread, a readable `fd` says that one waits."""

    __slots__ = ("_saved", "_signals", "fd")

    def __init__(self):
        self._signals = frozenset()
        self._saved = frozenset()
        self.fd = -1

    def __del__(self):
        self.close()

    def assign(self, signums):
        self._signals = frozenset(signums)
        self.fd = _signalfd(self.fd, self._signals)

    def block(self):
        self._saved = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        except BaseException:  # of a Python handler that it ran after changing the mask
            self.restore()
            raise

    def restore(self):
        signal.pthread_sigmask(signal.SIG_SETMASK, self._saved)

    def drain(self):
        """Take the signals that wait; return their numbers."""
        signums = []
        while True:
            try:
                data = os.read(self.fd, _SIGINFO_SIZE)
            except BlockingIOError:
                return signums
            signums.append(int.from_bytes(data[:4], sys.byteorder))

    def close(self):
        if self.fd >= 0:
            events.close(self.fd)
            self.fd = -1
