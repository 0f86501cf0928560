"""Descriptors that stand for events: eventfd(2), timerfd_create(2), and pipe(2). Interpreted twin.

`os.timerfd_create` came with Python 3.13; before that the C library is asked through ctypes.
"""

import contextlib
import ctypes
import os
import sys
import time

__all__ = ["close", "eventfd_open", "eventfd_ring", "pipe_open", "timerfd_arm", "timerfd_open"]


class _Itimerspec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("interval_sec", "interval_nsec", "value_sec", "value_nsec")]


_TFD_TIMER_ABSTIME = 1
_has_timerfd = hasattr(os, "timerfd_create")
_libc = None if _has_timerfd or sys.platform != "linux" else ctypes.CDLL(None, use_errno=True)


def eventfd_open():
    """A counter to ring; non-blocking, closed on exec."""
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def eventfd_ring(fd):
    # A full counter already is an event.
    with contextlib.suppress(BlockingIOError):
        os.eventfd_write(fd, 1)


def timerfd_open():
    """A timer on the monotonic clock, or -1 where the system has none."""
    if _has_timerfd:
        return os.timerfd_create(time.CLOCK_MONOTONIC, flags=os.TFD_NONBLOCK | os.TFD_CLOEXEC)
    if not hasattr(_libc, "timerfd_create"):
        return -1
    fd = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        raise _failure()
    return fd


def timerfd_arm(fd, deadline):
    """Let the timer expire once, at `deadline` (nanoseconds of the monotonic clock, above 0)."""
    if _has_timerfd:
        os.timerfd_settime_ns(fd, flags=_TFD_TIMER_ABSTIME, initial=deadline)
        return
    seconds, nanoseconds = divmod(deadline, 1_000_000_000)
    value = _Itimerspec(0, 0, seconds, nanoseconds)
    if _libc.timerfd_settime(fd, _TFD_TIMER_ABSTIME, ctypes.byref(value), None) < 0:
        raise _failure()


def pipe_open():
    """A pipe (read end, write end); both non-blocking and closed on exec."""
    return os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)


def close(fd):
    """Close `fd`; never to be repeated, whatever it says: the number is gone either way (close(2), Linux)."""
    with contextlib.suppress(OSError):
        os.close(fd)


def _failure():
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
