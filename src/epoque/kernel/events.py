"""Descriptors that a loop wakes itself with: eventfd(2) or pipe(2). Interpreted twin."""

import contextlib
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
    if _has_pipe2:
        return os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    ends = os.pipe()
    for fd in ends:
        os.set_blocking(fd, False)
    return ends


def close(fd):
    """Close `fd`; never to be repeated, whatever it says: the number is gone either way (close(2), Linux)."""
    try:  # noqa: SIM105  a context manager for each descriptor takes longer than the system call
        os.close(fd)
    except OSError:
        pass
