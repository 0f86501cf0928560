"""A set of signals to hold back and to hear of from a descriptor. Interpreted twin, by signalfd(2) or kqueue(2).

The standard library has no signalfd; ctypes asks the C library for it. With kqueue nothing is held back: EVFILT_SIGNAL
tells that a signal has come, and the signal itself goes the usual way. With neither there is no descriptor, and a
signal that comes during a wait interrupts it.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys

from epoque.kernel import events

__all__ = ["SignalSet"]

_SIGINFO_SIZE = 128  # struct signalfd_siginfo; its first field, a 32-bit number, is the signal's
_SIGSET_SIZE = 128  # sigset_t of glibc and musl
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_kqueue = getattr(select, "kqueue", None) if _libc is None else None


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
    """The signals of `assign`: `block` holds them back in this thread, a readable `fd` says that one waits.

    With kqueue nothing is held back: the descriptor says that a signal has come, which goes the usual way.
    """

    __slots__ = ("_queue", "_saved", "_signals", "fd")

    def __init__(self):
        self._queue = None
        self._signals = frozenset()
        self._saved = frozenset()
        self.fd = -1

    def __del__(self):
        self.close()

    def assign(self, signums):
        before = self._signals if self.fd >= 0 else frozenset()
        self._signals = frozenset(signums)
        if _kqueue is None:
            self.fd = _signalfd(self.fd, self._signals)
            return
        if self._queue is None:
            self._queue = _kqueue()
            self.fd = self._queue.fileno()
        gone, new = before - self._signals, self._signals - before
        changes = [select.kevent(number, select.KQ_FILTER_SIGNAL, select.KQ_EV_DELETE) for number in gone]
        changes += [select.kevent(number, select.KQ_FILTER_SIGNAL) for number in new]
        self._queue.control(changes, 0, 0)

    def block(self):
        if self._queue is not None:
            return
        self._saved = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        except BaseException:  # of a Python handler that it ran after changing the mask
            self.restore()
            raise

    def restore(self):
        if self._queue is None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._saved)

    def drain(self):
        """Take the signals that wait; return the numbers of those that were held back."""
        signums = []
        if self._queue is not None:
            while self._queue.control(None, 32, 0):
                pass
            return signums
        size = most = 32 * _SIGINFO_SIZE
        while size == most:
            try:
                data = os.read(self.fd, most)
            except BlockingIOError:
                break
            size = len(data)
            for start in range(0, size, _SIGINFO_SIZE):
                signums.append(int.from_bytes(data[start : start + 4], sys.byteorder))
        return signums

    def close(self):
        if self._queue is not None:
            with contextlib.suppress(OSError):  # in a child process, which does not inherit it
                self._queue.close()
            self._queue = None
        elif self.fd >= 0:
            events.close(self.fd)
        self.fd = -1
