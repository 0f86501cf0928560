"""What does it cost to cross between threads? Both threads share the one core, as the GIL would have it anyway."""

from __future__ import annotations

import asyncio
import threading
from time import perf_counter

from bench.row import Batch


def call_soon_threadsafe(loop: asyncio.AbstractEventLoop, size: int) -> float:
    left = size

    def arrive() -> None:
        nonlocal left
        left -= 1
        if not left:
            loop.stop()

    def flood() -> None:
        threadsafe = loop.call_soon_threadsafe
        for _ in range(size):
            threadsafe(arrive)

    thread = threading.Thread(target=flood)
    start = perf_counter()
    loop.call_soon(thread.start)
    loop.run_forever()
    taken = perf_counter() - start
    thread.join()
    return taken


def nothing() -> None:
    pass


def run_in_executor(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        await loop.run_in_executor(None, nothing)  # the first call makes the pool
        start = perf_counter()
        for _ in range(size):
            await loop.run_in_executor(None, nothing)
        return perf_counter() - start

    return loop.run_until_complete(main())


ROWS = (
    Batch("call_soon_threadsafe", "another thread schedules 5,000 callbacks", call_soon_threadsafe, 5_000),
    Batch("run_in_executor", "await run_in_executor(None, function), one after the other", run_in_executor, 200),
)
