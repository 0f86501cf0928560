"""Descriptors that a loop wakes itself with: eventfd(2) or pipe(2). Interpreted twin."""

import contextlib
import itertools
import os
import sys

__all__ = ["close", "pipe_open", "wakeup_answer", "wakeup_open", "wakeup_ring"]

_has_eventfd = sys.platform == "linux" and hasattr(os, "eventfd")
_has_pipe2 = hasattr(os, "pipe2")  # not on macOS


def wakeup_open():
    """A bell: the descriptor that becomes readable, and the one to ring. Both non-blocking and closed on exec.

    They are one where there is an eventfd; elsewhere the ends of a pipe.
    """
    if _has_eventfd:
        fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return fd, fd
    return pipe_open()


def wakeup_ring(fd):
    try:  # noqa: SIM105  as in close
        if _has_eventfd:
            os.eventfd_write(fd, 1)
        else:
            os.write(fd, b"!")
    except BlockingIOError:  # a full counter, or pipe, already is an event
        pass


def wakeup_answer(fd):
    """Make room for the next ring. An eventfd, whose counter cannot be filled in a lifetime, is not read."""
    if not _has_eventfd:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 4096)


def pipe_open():
    """A pipe (read end, write end); both non-blocking and closed on exec."""
    ends = []
    try:
        # The system call gives up the GIL, so another thread's ^C may come just then. The interpreter raises it when a
        # call has ended: by then the numbers must be known.
        if _has_pipe2:
            ends.extend(map(os.pipe2, [os.O_NONBLOCK | os.O_CLOEXEC]))
        else:
            ends.extend(itertools.starmap(os.pipe, [()]))
            for fd in ends[0]:
                os.set_blocking(fd, False)
        return ends[0]
    except BaseException:
        for fd in itertools.chain.from_iterable(ends):
            os.close(fd)
        raise


def close(fd):
    """Close `fd`; never to be repeated, whatever it says: the number is gone either way (close(2), Linux)."""
    try:  # noqa: SIM105  a context manager for each descriptor takes longer than the system call
        os.close(fd)
    except OSError:
        pass
