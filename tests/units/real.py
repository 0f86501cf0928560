"""Short ways to drive an `EpollSelector`, and to see what the kernel knows of it."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from epoque.kernel.masks import LEVEL, POLL, READ
from epoque.selector.fake import RecordingSource

MS = 1_000_000  # nanoseconds
FAR = 3600_000 * MS
EPOLLEXCLUSIVE = 1 << 28


def close(fd):
    with contextlib.suppress(OSError):
        os.close(fd)


def watched(selector, file, interest=READ, mode=LEVEL, action=None):
    source = RecordingSource(file if isinstance(file, int) else file.fileno(), interest, mode, action)
    selector.add(source)
    return source


def turn(selector, deadline=POLL):
    selector.wait(deadline)
    selector.dispatch()


def kernel(selector):
    """What the kernel watches for this selector: descriptor -> EPOLL* flags; proc_pid_fdinfo(5)."""
    text = Path(f"/proc/self/fdinfo/{selector.fileno()}").read_text()
    return {int(fd): int(flags, 16) for fd, flags in re.findall(r"tfd:\s*(\d+) events:\s*([0-9a-f]+)", text)}


def quiet(selector):
    """Whether a wait sleeps until its deadline, so that nothing makes the loop spin."""
    deadline = time.monotonic_ns() + MS
    selector.wait(deadline)
    slept = time.monotonic_ns() >= deadline
    selector.dispatch()
    return slept
