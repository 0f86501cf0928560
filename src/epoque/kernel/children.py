"""How is one child process watched, whatever becomes of its number? pidfd_open(2) on Linux, EVFILT_PROC of kqueue(2).

Both give a descriptor that is readable once the process has ended. They tell how it ended even if somebody else has
reaped it: pidfds from Linux 6.15 on (PIDFD_GET_INFO), kqueue always (NOTE_EXIT carries the status; macOS: with
NOTE_EXITSTATUS, for children only). Used by code that is not compiled, so there is no other form of this module.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import sys

__all__ = ["Sentinel", "watch"]

# <linux/pidfd.h>: struct pidfd_info in its first size, and the request that fills it.
_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = 0xC000_FF0B | _INFO.size << 16
_INFO_EXIT = 1 << 3

_pidfd_open = getattr(os, "pidfd_open", None)
_kqueue = getattr(select, "kqueue", None)
_NOTE_EXITSTATUS = 0x0400_0000 if sys.platform == "darwin" else 0  # <sys/event.h> there; `select` does not have it


class Sentinel:
    """A descriptor that is readable once the process has ended."""

    def fileno(self) -> int:
        raise NotImplementedError

    def send(self, signum: int) -> None:
        """Send a signal; ProcessLookupError if the process has been reaped, or just ended."""
        raise NotImplementedError

    def status(self) -> int | None:
        """The wait status, None where the system does not tell."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the descriptor back."""


class _Pidfd(Sentinel):
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def send(self, signum: int) -> None:
        signal.pidfd_send_signal(self._fd, signum)

    def status(self) -> int | None:
        info = bytearray(_INFO.pack(_INFO_EXIT, *[0] * 13))
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._fd, _GET_INFO, info)
            mask, *_, status = _INFO.unpack(info)
            if mask & _INFO_EXIT:
                return int(status)
        return None

    def close(self) -> None:
        os.close(self._fd)


class _Knote(Sentinel):
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._queue = _kqueue()  # type: ignore[misc]
        flags = select.KQ_NOTE_EXIT | _NOTE_EXITSTATUS
        change = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, flags)
        try:
            self._queue.control([change], 0, 0)
        except BaseException:
            self._queue.close()
            raise

    def fileno(self) -> int:
        return self._queue.fileno()  # type: ignore[no-any-return]

    def send(self, signum: int) -> None:
        poll = select.poll()
        poll.register(self._queue, select.POLLIN)
        if poll.poll(0):  # it has ended, and the number may be another process's
            raise ProcessLookupError
        os.kill(self._pid, signum)

    def status(self) -> int | None:
        for event in self._queue.control(None, 1, 0):
            return int(event.data)
        return None

    def close(self) -> None:
        with contextlib.suppress(OSError):  # in a child process, which does not inherit it
            self._queue.close()


def watch(pid: int) -> Sentinel | None:
    """Watch a child of this process; None where that cannot be, or no descriptor is left.

    ProcessLookupError if it has been reaped already; with kqueue, on some systems, also if it has only ended.
    """
    try:
        if _pidfd_open is not None:
            return _Pidfd(_pidfd_open(pid))
        if _kqueue is not None:
            return _Knote(pid)
    except ProcessLookupError:
        raise
    except OSError:
        pass
    return None
