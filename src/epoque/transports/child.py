"""When has a child process ended, and how? `Child`, for a `subprocess.Popen` that runs.

A pidfd (pidfd_open(2), Linux 5.3) stands for one process, whatever becomes of its number: it is readable once the
process has ended, in whichever thread the loop runs, and a signal sent through it cannot reach another process. Where
there is none, a thread waits, without reaping: the number stays taken until the loop's thread has let go of it.

SIGCHLD belongs to the user, whose handler may reap our child. From Linux 6.15 on the pidfd still tells how it ended
(PIDFD_GET_INFO); before, the return code is 255, with a warning, as asyncio's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import threading
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from epoque.core.signals import Signals

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["NONE", "Child", "open_pidfd", "sigchld_held_back"]

NONE, GONE = -1, -2  # instead of a pidfd
LOST = 255  # the return code that nobody knows
RETRY = 0.01  # seconds until a process that has ended, but for a debugger that holds it, is asked again

# <linux/pidfd.h>: struct pidfd_info in its first size, and the request that fills it.
_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = 0xC000_FF0B | _INFO.size << 16
_INFO_EXIT = 1 << 3


def open_pidfd(pid: int) -> int:
    """The pidfd of a child; NONE where there are none, or no descriptor is left; GONE if it has been reaped already.

    To be called as soon as the child has started: nothing but a pidfd opened before tells what becomes of a process
    that somebody else reaps.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return GONE
    except (AttributeError, OSError):
        return NONE


@contextlib.contextmanager
def sigchld_held_back() -> Iterator[None]:
    """Let a SIGCHLD handler of the user's, which may reap every child, wait until a new one has its pidfd.

    A child that exits at once may have ended before Popen() returns. Blocking the signal would not do, for the child
    would inherit that. Handlers run in the main thread only; what `loop.add_signal_handler` installs waits anyway.
    """
    handler = signal.getsignal(signal.SIGCHLD)
    came: list[FrameType | None] = []
    ours = isinstance(getattr(handler, "__self__", None), Signals)
    held = callable(handler) and not ours and threading.current_thread() is threading.main_thread()
    if held:
        try:
            signal.signal(signal.SIGCHLD, lambda _, frame: came.append(frame))
        except ValueError:  # a sub-interpreter, in which handlers do not run
            held = False
    try:
        yield
    finally:
        if held:
            signal.signal(signal.SIGCHLD, handler)
    if callable(handler):
        for frame in came:
            handler(signal.SIGCHLD, frame)


class Child:
    """A process to be reaped, with what `open_pidfd` gave for it.

    ``exited(returncode)`` is called once, by the loop, after `Popen.returncode` is set.
    """

    def __init__(self, loop: Any, popen: subprocess.Popen[bytes], exited: Callable[[int], object], pidfd: int) -> None:
        self._loop = loop
        self._popen = popen
        self._exited = exited
        self._parent = os.getpid()
        self._pidfd = pidfd
        self._gone = pidfd == GONE  # the number may be another process's by now
        popen.send_signal = self.send_signal  # type: ignore[method-assign]  # Popen's own goes by the number
        if self._gone:
            loop.call_soon(self._ended)
        elif pidfd >= 0:
            loop.add_reader(pidfd, self._ended)
        else:
            threading.Thread(target=self._wait, name=f"epoque-wait-{popen.pid}", daemon=True).start()

    def send_signal(self, signum: int) -> None:
        """Send a signal. Without effect once the process has been reaped; OSError for a wrong number, or EPERM."""
        with contextlib.suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signum)
                return
            with self._popen._waitpid_lock:  # type: ignore[attr-defined]
                if self._popen.returncode is None and not self._gone:
                    os.kill(self._popen.pid, signum)

    def is_ours(self) -> bool:
        """Is this process the parent? A fork of it inherits this object, but not the child."""
        return os.getpid() == self._parent

    def abandon(self) -> None:
        """The loop is closed and will not reap: leave that to a thread."""
        self.release()
        with contextlib.suppress(RuntimeError):  # no new threads while the interpreter shuts down
            threading.Thread(target=self._popen.wait, daemon=True).start()

    def _ended(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        try:
            returncode = self._reap()
        except BaseException:
            self.release()
            raise
        if returncode is None:
            self._loop.call_later(RETRY, self._ended)
            return
        self.release()
        vars(self._popen).pop("send_signal", None)
        exited, self._exited = self._exited, _ignore
        exited(returncode)

    def _reap(self) -> int | None:
        """Reap and publish the return code in one step; None if the process cannot be reaped yet."""
        popen = self._popen
        with popen._waitpid_lock:  # type: ignore[attr-defined]  # Popen.wait() and poll(), in whichever thread
            if popen.returncode is None:
                try:
                    pid, status = os.waitpid(popen.pid, os.WNOHANG)
                except ChildProcessError:
                    popen.returncode = self._recall()
                else:
                    if pid == 0:
                        return None
                    popen.returncode = os.waitstatus_to_exitcode(status)
            return popen.returncode

    def _recall(self) -> int:
        """How did it end, now that somebody else has reaped it?"""
        if self._pidfd >= 0:
            info = bytearray(_INFO.pack(_INFO_EXIT, *[0] * 13))
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._pidfd, _GET_INFO, info)
                mask, *_, status = _INFO.unpack(info)
                if mask & _INFO_EXIT:
                    return os.waitstatus_to_exitcode(status)
        logger.warning(
            "child process pid %d exit status already read: will report returncode %d", self._popen.pid, LOST
        )
        return LOST

    def _wait(self) -> None:
        """In a thread of its own: wait until there is something to reap."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)
        try:
            self._loop.call_soon_threadsafe(self._ended)
        except RuntimeError:  # closed
            self._reap()

    def release(self) -> None:
        """Give the pidfd back."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = NONE


def _ignore(returncode: int) -> None:
    pass
