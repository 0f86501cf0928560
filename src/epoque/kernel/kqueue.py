"""One kqueue: kqueue(2), kevent(2). Interpreted twin, over `select.kqueue`.

A registration (knote) is one descriptor under one filter, so reading and writing are two, and come as two events. Each
carries a generation in `udata`. A knote goes when its descriptor is closed, whatever duplicates there are.

- Interest in a hang-up alone is both filters with EV_CLEAR, told once per change: a pipe that can be written would be
  told about for ever.
- EVFILT_WRITE on a pipe whose reader has gone is refused with EPIPE (FreeBSD: pipe_kqfilter).
- A descriptor that kqueue cannot watch is refused with EINVAL, ENODEV or EOPNOTSUPP, by system; here that is EPERM, as
  epoll calls it, and EOPNOTSUPP if it is watched in the other direction.
- A change of what is registered already goes with EV_ENABLE for what stays: ENOENT says that the number is not the
  descriptor that it was.
"""

import contextlib
import errno
import os
import select

from epoque.kernel.masks import EDGE, HANGUP, READ, WRITE

__all__ = ["Poller", "available"]

LONGEST_WAIT = 86_400 * 10**9  # nanoseconds
_LEVEL, _CLEAR = 1, 2
_UNWATCHABLE = (errno.EINVAL, errno.ENODEV, errno.EOPNOTSUPP, errno.ENOTSUP)


def available():
    """True where this system has kqueue."""
    return hasattr(select, "kqueue")


def _kind(direction, mask, mode):
    """How the knote of one direction is registered; 0 if there is none."""
    if mask & direction:
        return _CLEAR if mode == EDGE else _LEVEL
    return _CLEAR if mask & HANGUP else 0


def _difference(fd, generation, before, after, mode):
    """The changes that lead from one mask to another; those that can fail go first."""
    changes, last = [], []
    for direction, number in ((READ, select.KQ_FILTER_READ), (WRITE, select.KQ_FILTER_WRITE)):
        old, new = _kind(direction, before, mode), _kind(direction, after, mode)
        if old and old != new:
            target = changes if new else last
            target.append(select.kevent(fd, number, select.KQ_EV_DELETE, 0, 0, generation))
        if new:
            flags = select.KQ_EV_ENABLE if old == new else select.KQ_EV_ADD
            if new == _CLEAR:
                flags |= select.KQ_EV_CLEAR
            changes.append(select.kevent(fd, number, flags, 0, 0, generation))
    return changes + last


def _mask(event):
    """What an event says, as READ, WRITE and HANGUP."""
    if event.flags & select.KQ_EV_ERROR:
        return READ | WRITE | HANGUP if event.data == errno.EPIPE else 0
    if event.filter == select.KQ_FILTER_READ:
        if not event.flags & select.KQ_EV_EOF:
            return READ
        return READ | WRITE | HANGUP if event.fflags else READ | HANGUP
    return READ | WRITE | HANGUP if event.flags & select.KQ_EV_EOF else WRITE


class Poller:
    """Watches descriptors, each under a generation that its events carry back."""

    __slots__ = ("_batch", "_capacity", "_changes", "_kqueue")

    def __init__(self, capacity):
        self._kqueue = select.kqueue()
        self._capacity = capacity
        self._batch = []
        self._changes = []

    def fileno(self):
        return -1 if self._kqueue.closed else self._kqueue.fileno()

    def change(self, fd, generation, before, after, mode):
        """Go from mask `before` to mask `after`, now. OSError: ENOENT or EBADF if the descriptor has gone."""
        try:
            self._kqueue.control(_difference(fd, generation, before, after, mode), 0, 0)
        except OSError as exc:
            if before == 0 and exc.errno != errno.EPIPE:
                with contextlib.suppress(OSError):  # what there is of it
                    self._kqueue.control(_difference(fd, generation, after, 0, mode), 0, 0)
            if exc.errno in _UNWATCHABLE:
                code = errno.EOPNOTSUPP if before else errno.EPERM
                raise OSError(code, os.strerror(code)) from exc
            raise

    def collect(self, fd, generation, before, after, mode):
        """The same with the next wait; a failure comes as an event."""
        self._changes += _difference(fd, generation, before, after, mode)

    def wait(self, timeout):
        """Submit what was collected, and fetch a batch; return how many events it has.

        `timeout` is in nanoseconds, 0 to poll, below 0 to wait without end. A wait may end early with no event.
        """
        changes = self._changes
        self._changes = []
        pairs = []
        if changes:  # on their own: an interrupted call is repeated, and a deletion succeeds only once
            self._capacity = max(self._capacity, len(changes))
            pairs = self._kqueue.control(changes, self._capacity, 0)
        if not pairs and (timeout or not changes):
            seconds = None if timeout < 0 else min(timeout, LONGEST_WAIT) / 1e9
            pairs = self._kqueue.control(None, self._capacity, seconds)
        self._batch = pairs
        if len(pairs) == self._capacity and self._capacity < 4096:
            self._capacity *= 2
        return len(pairs)

    def event(self, index):
        """Event `index` of the batch: descriptor, generation, and a mask that is empty if a change was refused."""
        event = self._batch[index]
        return event.ident, event.udata, _mask(event)

    def refused(self, index):
        """Is event `index` a change that failed, other than for a pipe without reader?"""
        event = self._batch[index]
        return bool(event.flags & select.KQ_EV_ERROR) and event.data != errno.EPIPE

    def forget(self):
        """In a child process: a kqueue is not inherited, and its number may be another descriptor's."""
        with contextlib.suppress(OSError):
            self._kqueue.close()
        self._batch = []
        self._changes = []

    def close(self):
        self._kqueue.close()
        self._batch = []
        self._changes = []
