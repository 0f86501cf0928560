"""What do timers cost?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from time import perf_counter

from bench.rows.inside import Batch


def nothing() -> None:
    pass


def later_cancel(pending: int) -> Callable[[asyncio.AbstractEventLoop, int], float]:
    """The batch for so many timers that are pending all the while."""
    handles: list[asyncio.TimerHandle] = []

    def batch(loop: asyncio.AbstractEventLoop, size: int) -> float:
        start = 0.0
        taken = 0.0

        def flood() -> None:
            nonlocal start
            later = loop.call_later
            start = perf_counter()
            for _ in range(size):
                later(60.0, nothing).cancel()
            # A loop that leaves cancelled timers to be swept up later pays for that before the next callback.
            loop.call_soon(finish)

        def finish() -> None:
            nonlocal taken
            taken = perf_counter() - start
            loop.stop()

        while len(handles) < pending:
            handles.append(loop.call_later(3600 + len(handles) % 600, nothing))
        loop.call_soon(flood)
        loop.run_forever()
        return taken

    return batch


# Scheduling 10,000 timers takes longer than the longest delay, so they fire without idle time in between; and each
# delay rounds to 1 ms: uvloop, which rounds to milliseconds, would make a plain call_soon of less.
_SEEDED = random.Random(1)
DELAYS = [_SEEDED.uniform(0.6e-3, 1.0e-3) for _ in range(10_000)]


def fire(loop: asyncio.AbstractEventLoop, size: int) -> float:
    left = size
    later = loop.call_later

    def fired() -> None:
        nonlocal left
        left -= 1
        if not left:
            loop.stop()

    start = perf_counter()
    for delay in DELAYS[:size]:
        later(delay, fired)
    loop.run_forever()
    return perf_counter() - start


def cancelling(name: str, pending: int) -> Batch:
    return Batch(
        name=f"micro/later_cancel_{name}",
        what=f"call_later(60) and cancel(), 1,000 in one callback, with {pending:,} timers pending",
        batch=later_cancel(pending),
        size=1_000,
    )


ROWS = (
    cancelling("1", 1),
    cancelling("1k", 1_000),
    cancelling("100k", 100_000),
    Batch(
        name="micro/timers",
        what="call_later with about 1 ms, 10,000 together: scheduling and firing",
        batch=fire,
        size=10_000,
    ),
)
