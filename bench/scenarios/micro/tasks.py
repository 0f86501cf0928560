"""What do tasks and futures cost on top of callbacks?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from bench.rows.inside import Batch


async def nothing() -> None:
    pass


def sleep0(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        sleep = asyncio.sleep
        start = perf_counter()
        for _ in range(size):
            await sleep(0)
        return perf_counter() - start

    return loop.run_until_complete(main())


def future_wakeup(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        create, soon = loop.create_future, loop.call_soon
        start = perf_counter()
        for _ in range(size):
            future = create()
            soon(future.set_result, None)
            await future
        return perf_counter() - start

    return loop.run_until_complete(main())


def handover(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        create = loop.create_future
        turn = [create(), create()]

        async def player(mine: int) -> None:
            for _ in range(size // 2):
                await turn[mine]
                turn[mine] = create()
                turn[1 - mine].set_result(None)

        players = [loop.create_task(player(0)), loop.create_task(player(1))]
        start = perf_counter()
        turn[0].set_result(None)
        await players[0]
        await players[1]
        return perf_counter() - start

    return loop.run_until_complete(main())


def create_task(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        create = loop.create_task
        start = perf_counter()
        for _ in range(size):
            await create(nothing())
        return perf_counter() - start

    return loop.run_until_complete(main())


def gather(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        start = perf_counter()
        await asyncio.gather(*[nothing() for _ in range(size)])
        return perf_counter() - start

    return loop.run_until_complete(main())


def timeout(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        start = perf_counter()
        for _ in range(size):
            async with asyncio.timeout(60):
                pass
        await asyncio.sleep(0)  # a loop that leaves cancelled timers to be swept up later pays for that here
        return perf_counter() - start

    return loop.run_until_complete(main())


def queue(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        there: asyncio.Queue[None] = asyncio.Queue()
        back: asyncio.Queue[None] = asyncio.Queue()

        async def partner() -> None:
            for _ in range(size // 2):
                await there.get()
                back.put_nowait(None)

        task = loop.create_task(partner())
        start = perf_counter()
        for _ in range(size // 2):
            there.put_nowait(None)
            await back.get()
        await task
        return perf_counter() - start

    return loop.run_until_complete(main())


def lock(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        shared = asyncio.Lock()
        sleep = asyncio.sleep

        async def player() -> None:
            for _ in range(size // 2):
                async with shared:
                    await sleep(0)  # the other one comes to wait meanwhile

        start = perf_counter()
        await asyncio.gather(player(), player())
        return perf_counter() - start

    return loop.run_until_complete(main())


def event(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        events = [asyncio.Event(), asyncio.Event()]

        async def player(mine: int) -> None:
            for _ in range(size // 2):
                await events[mine].wait()
                events[mine].clear()
                events[1 - mine].set()

        start = perf_counter()
        events[0].set()
        await asyncio.gather(player(0), player(1))
        return perf_counter() - start

    return loop.run_until_complete(main())


def row(name: str, what: str, batch: Callable[[asyncio.AbstractEventLoop, int], float], size: int) -> Batch:
    return Batch(name=f"micro/{name}", what=what, batch=batch, size=size)


ROWS = (
    row("sleep0", "await asyncio.sleep(0) in one task", sleep0, 10_000),
    row("future_wakeup", "await a future that a call_soon callback sets", future_wakeup, 10_000),
    row("handover", "two tasks in turn: set the other's future, await one's own", handover, 10_000),
    row("create_task", "await loop.create_task(coroutine that returns at once)", create_task, 5_000),
    row("gather", "asyncio.gather of 1,000 coroutines that return at once, each", gather, 1_000),
    row("timeout", "async with asyncio.timeout(60) around nothing", timeout, 2_000),
    row("queue", "hand-over between two tasks by asyncio.Queue", queue, 5_000),
    row("lock", "hand-over between two tasks by asyncio.Lock", lock, 5_000),
    row("event", "hand-over between two tasks by asyncio.Event", event, 5_000),
)
