"""Sending a signal to this process at the moment its loop has nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator

PAUSE = 0.005  # seconds from the loop's last callback until the signal: the loop waits for the kernel by then


@contextlib.contextmanager
def sent_when_idle(loop: asyncio.AbstractEventLoop, number: int) -> Iterator[None]:
    """Within the block, the loop gets the signal as soon as it runs and is idle."""
    idle = threading.Event()

    def send() -> None:
        idle.wait()
        time.sleep(PAUSE)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    loop.call_soon(idle.set)
    try:
        yield
    finally:
        idle.set()
        thread.join()
