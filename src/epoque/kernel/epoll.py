"""One epoll instance, and timers to watch: epoll(7), timerfd_create(2). Interpreted twin, over `select.epoll`.

`os.timerfd_create` came with Python 3.13; before that the C library is asked through ctypes.
"""

import contextlib
import ctypes
import os
import select
import sys
import time

from epoque.kernel.masks import EDGE, EXCLUSIVE, HANGUP, READ, URGENT, WRITE

__all__ = ["Poller", "available", "timerfd_arm", "timerfd_open"]


class _Itimerspec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("interval_sec", "interval_nsec", "value_sec", "value_nsec")]


LONGEST_WAIT = 86_400 * 10**9  # nanoseconds

_FAILED = 0
_MODES = 0
_TFD_TIMER_ABSTIME = 1
_has_timerfd = hasattr(os, "timerfd_create")
_libc = None if _has_timerfd or sys.platform != "linux" else ctypes.CDLL(None, use_errno=True)


def available():
    """True where this system has epoll."""
    return hasattr(select, "epoll")


if available():
    _FAILED = select.EPOLLHUP | select.EPOLLERR
    _MODES = select.EPOLLET | select.EPOLLEXCLUSIVE


def _events(mask, mode):
    events = 0
    if mask & READ:
        events |= select.EPOLLIN if mode == EXCLUSIVE else select.EPOLLIN | select.EPOLLRDHUP
    if mask & WRITE:
        events |= select.EPOLLOUT
    if mask & HANGUP:
        events |= select.EPOLLRDHUP
    if mode == EDGE:
        events |= select.EPOLLET | select.EPOLLPRI  # tcp(7): urgent data
    elif mode == EXCLUSIVE:
        events |= select.EPOLLEXCLUSIVE
    return events


class _Masks(dict):
    """What events say, as READ, WRITE and HANGUP; computed once for each of the few combinations that occur."""

    def __missing__(self, events):
        mask = 0
        if events & select.EPOLLIN:
            mask |= READ
        if events & select.EPOLLOUT:
            mask |= WRITE
        if events & select.EPOLLRDHUP:
            mask |= READ | HANGUP
        if events & select.EPOLLPRI:
            mask |= READ | URGENT
        if events & _FAILED:
            mask |= READ | WRITE | HANGUP
        self[events] = mask
        return mask


_masks = _Masks()


class Poller:
    """Watches descriptors, each under a generation that its events carry back."""

    __slots__ = ("_batch", "_capacity", "_doubtful", "_epoll", "_generations", "_stale", "_wanted")

    def __init__(self, capacity):
        self._epoll = select.epoll()
        self._capacity = capacity
        # `select.epoll` hands back the bare descriptor; which registration a batch speaks of is what was in force when
        # the batch was fetched.
        self._generations = {}
        self._batch = []
        self._wanted = {}
        # Numbers that were closed while they were registered, and registered again. If a duplicate keeps the former
        # file alive, the kernel goes on to report it, under a number that now means another one.
        self._doubtful = set()
        self._stale = False

    def fileno(self):
        return -1 if self._epoll.closed else self._epoll.fileno()

    def add(self, fd, generation, mask, mode):
        events = _events(mask, mode)
        self._epoll.register(fd, events)
        if fd in self._wanted:
            self._doubtful.add(fd)
            if 2 * len(self._doubtful) > len(self._wanted):
                self._stale = True
        self._wanted[fd] = events
        self._generations[fd] = generation

    def modify(self, fd, generation, mask, mode):
        events = _events(mask, mode)
        self._epoll.modify(fd, events)
        self._wanted[fd] = events
        self._generations[fd] = generation

    def remove(self, fd):
        self._generations.pop(fd, None)
        self._wanted.pop(fd, None)
        try:
            self._epoll.unregister(fd)
        except OSError:
            self._stale = True
            raise

    def _renew(self):
        """Get rid of what reports under a number that we have given up: events here do not say whom they mean."""
        try:
            fresh = select.epoll()
        except OSError:  # no descriptor left; another time
            return
        for fd, events in self._wanted.items():
            with contextlib.suppress(OSError):
                fresh.register(fd, events)
        self._epoll.close()
        self._epoll = fresh
        self._doubtful.clear()
        self._stale = False

    def _confirmed(self, pairs):
        """The events but those that speak of a former file."""
        confirmed = []
        for fd, events in pairs:
            if fd in self._doubtful and fd in self._wanted:
                poll = select.poll()
                poll.register(fd, self._wanted[fd] & ~_MODES)
                present = [(fd, events) for fd, events in poll.poll(0) if not events & select.POLLNVAL]
                self._stale |= not present
                confirmed += present
            else:
                confirmed.append((fd, events))
        return confirmed

    def wait(self, timeout):
        """Fetch a batch; return how many events it has. A wait may end early with none, when a signal came.

        `timeout` is in nanoseconds, rounded up to milliseconds; 0 to poll, below 0 to wait without end.
        """
        if self._stale:
            self._renew()
        try:
            pairs = self._epoll.poll(min(timeout, LONGEST_WAIT) / 1e9 if timeout > 0 else timeout, self._capacity)
            if not pairs:
                return 0
            if self._doubtful:
                pairs = self._confirmed(pairs)
            generations = self._generations
            self._batch = [(fd, generations.get(fd, 0), _masks[events]) for fd, events in pairs]
            return len(pairs)
        except BaseException:  # a signal's handler: what is told only once must be told to a new instance
            self._stale = True
            raise

    def event(self, index):
        """Event `index` of the batch: descriptor, generation, and what it says as READ, WRITE and HANGUP."""
        return self._batch[index]

    def close(self):
        self._epoll.close()
        self._generations.clear()
        self._batch = []


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


def _failure():
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
