"""When has a child process ended, and how? `Child`, for a `subprocess.Popen` that runs.

The kernel gives a descriptor that stands for one process, whatever becomes of its number: it is readable once the
process has ended, in whichever thread the loop runs; on Linux a signal sent through it cannot reach another process.
Where there is none, a thread waits, without reaping: the number stays taken until the loop's thread has let go of it.

SIGCHLD belongs to the user, whose handler may reap our child. Where the descriptor tells how it ended all the same,
that counts; elsewhere the return code is 255, with a warning, as asyncio's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from epoque.core.signals import Signals
from epoque.kernel import children

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["Child", "sigchld_held_back", "watch"]

LOST = 255  # the return code that nobody knows
RETRY = 0.01  # seconds until a process that has ended, but for a debugger that holds it, is asked again
GONE = children.Sentinel()  # of one that had ended too early to be watched


def watch(pid: int) -> children.Sentinel | None:
    """Have a child watched by the kernel; None where that cannot be.

    To be called as soon as the child has started: nothing else tells what becomes of a process that somebody else
    reaps.
    """
    try:
        return children.watch(pid)
    except ProcessLookupError:
        return GONE


@contextlib.contextmanager
def sigchld_held_back() -> Iterator[None]:
    """Let a SIGCHLD handler of the user's, which may reap every child, wait until a new one is watched.

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
    """A process to be reaped, with what `watch` gave for it.

    ``exited(returncode)`` is called once, by the loop, after `Popen.returncode` is set.
    """

    def __init__(
        self,
        loop: Any,
        popen: subprocess.Popen[bytes],
        exited: Callable[[int], object],
        sentinel: children.Sentinel | None,
    ) -> None:
        self._loop = loop
        self._popen = popen
        self._exited = exited
        self._parent = os.getpid()
        self._gone = sentinel is GONE  # the number may be another process's by now
        self._sentinel = None if self._gone else sentinel
        popen.send_signal = self.send_signal  # type: ignore[method-assign]  # Popen's own goes by the number
        if self._gone:
            loop.call_soon(self._ended)
        elif self._sentinel is not None:
            loop.add_reader(self._sentinel, self._ended)
        else:
            threading.Thread(target=self._wait, name=f"epoque-wait-{popen.pid}", daemon=True).start()

    def send_signal(self, signum: int) -> None:
        """Send a signal. Without effect once the process has been reaped; OSError for a wrong number, or EPERM."""
        with contextlib.suppress(ProcessLookupError):
            if self._sentinel is not None:
                self._sentinel.send(signum)
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
        if self._sentinel is not None:
            self._loop.remove_reader(self._sentinel)
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
        status = None if self._sentinel is None else self._sentinel.status()
        if status is not None:
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
        """Give the descriptor back."""
        if self._sentinel is not None:
            self._sentinel.close()
            self._sentinel = None


def _ignore(returncode: int) -> None:
    pass
