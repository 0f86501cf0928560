"""A loop that has nothing to do: sending it a signal at that moment, and measuring that it really does nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator

SPIN = 0.5  # share of a core above which an idle loop counts as spinning
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


async def cpu_share(seconds: float = 0.2) -> float:
    """The share of a core that this thread used while the loop should have been idle."""
    cpu, wall = time.thread_time(), time.monotonic()
    await asyncio.sleep(seconds)
    return (time.thread_time() - cpu) / (time.monotonic() - wall)
