"""What does it cost to cross between threads? Both threads share the one core, as the GIL would have it anyway."""

from __future__ import annotations

import asyncio
import threading
from time import perf_counter, sleep

from bench.rows.inside import Batch, Inside, Work
from bench.stats import percentiles


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


def latency(loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    taken: list[float] = []
    arrived = threading.Event()

    def arrive(start: float) -> None:
        taken.append(perf_counter() - start)
        arrived.set()

    def ring() -> None:
        end = perf_counter() + work.seconds
        while perf_counter() < end or not taken:
            sleep(0.0005)  # the loop falls asleep
            arrived.clear()
            loop.call_soon_threadsafe(arrive, perf_counter())
            arrived.wait()
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=ring)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    return percentiles([1e6 * time for time in taken])


ROWS = (
    Batch(
        name="micro/threadsafe",
        what="another thread schedules 5,000 callbacks with call_soon_threadsafe",
        batch=call_soon_threadsafe,
        size=5_000,
    ),
    Inside(
        name="micro/threadsafe_latency",
        what="from call_soon_threadsafe in a thread to the callback in a loop that sleeps: median",
        body=latency,
    ),
    Batch(
        name="micro/run_in_executor",
        what="await run_in_executor(None, function), one after the other",
        batch=run_in_executor,
        size=200,
    ),
)
