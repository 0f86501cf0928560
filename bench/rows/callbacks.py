"""What do bare callbacks and timers cost?"""

from __future__ import annotations

import asyncio
import random
from time import perf_counter

from bench.row import Batch


def nothing() -> None:
    pass


def call_soon(loop: asyncio.AbstractEventLoop, size: int) -> float:
    start = 0.0
    taken = 0.0

    def flood() -> None:
        nonlocal start
        soon = loop.call_soon
        start = perf_counter()
        for _ in range(size):
            soon(nothing)
        soon(finish)

    def finish() -> None:
        nonlocal taken
        taken = perf_counter() - start
        loop.stop()

    loop.call_soon(flood)
    loop.run_forever()
    return taken


def chain(loop: asyncio.AbstractEventLoop, size: int) -> float:
    left = size
    soon = loop.call_soon

    def step() -> None:
        nonlocal left
        left -= 1
        if left:
            soon(step)
        else:
            loop.stop()

    soon(step)
    start = perf_counter()
    loop.run_forever()
    return perf_counter() - start


def later_cancel(loop: asyncio.AbstractEventLoop, size: int) -> float:
    start = 0.0
    taken = 0.0

    def flood() -> None:
        nonlocal start
        later = loop.call_later
        start = perf_counter()
        for _ in range(size):
            later(60.0, nothing).cancel()
        # A loop that leaves cancelled timers to be swept up later pays for that before it gets to the next callback.
        loop.call_soon(finish)

    def finish() -> None:
        nonlocal taken
        taken = perf_counter() - start
        loop.stop()

    loop.call_soon(flood)
    loop.run_forever()
    return taken


# Scheduling 10,000 timers takes longer than the longest delay, so they fire without idle time in between; and each
# delay rounds to 1 ms: uvloop, which rounds to milliseconds, would make a plain call_soon of less.
DELAYS = [random.Random(1).uniform(0.6e-3, 1.0e-3) for _ in range(10_000)]


def timers(loop: asyncio.AbstractEventLoop, size: int) -> float:
    left = size
    later = loop.call_later

    def fire() -> None:
        nonlocal left
        left -= 1
        if not left:
            loop.stop()

    start = perf_counter()
    for delay in DELAYS[:size]:
        later(delay, fire)
    loop.run_forever()
    return perf_counter() - start


ROWS = (
    Batch("call_soon", "one callback schedules 10,000 others: call_soon and running it", call_soon, 10_000),
    Batch("chain", "each callback schedules the next: one callback a turn of the loop", chain, 10_000),
    Batch("later_cancel", "call_later(60) and cancel(), 1,000 in one callback", later_cancel, 1_000),
    Batch("timers", "call_later with about 1 ms, 10,000 together: scheduling and firing", timers, 10_000),
)
