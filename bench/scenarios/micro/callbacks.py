"""What do bare callbacks cost?"""

from __future__ import annotations

import asyncio
from time import perf_counter

from bench.rows.inside import Batch


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


def call_soon_arguments(loop: asyncio.AbstractEventLoop, size: int) -> float:
    start = 0.0
    taken = 0.0

    def take(one: int, two: int, three: int) -> None:
        pass

    def flood() -> None:
        nonlocal start
        soon = loop.call_soon
        start = perf_counter()
        for _ in range(size):
            soon(take, 1, 2, 3)
        soon(finish)

    def finish() -> None:
        nonlocal taken
        taken = perf_counter() - start
        loop.stop()

    loop.call_soon(flood)
    loop.run_forever()
    return taken


ROWS = (
    Batch(
        name="micro/call_soon",
        what="one callback schedules 10,000 others: call_soon and running it",
        batch=call_soon,
        size=10_000,
    ),
    Batch(
        name="micro/call_soon_arguments",
        what="the same with three arguments each",
        batch=call_soon_arguments,
        size=10_000,
    ),
    Batch(
        name="micro/chain",
        what="each callback schedules the next: one callback a turn of the loop",
        batch=chain,
        size=10_000,
    ),
)
