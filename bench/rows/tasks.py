"""What do tasks and futures cost on top of callbacks?"""

from __future__ import annotations

import asyncio
from time import perf_counter

from bench.row import Batch


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


ROWS = (
    Batch("sleep0", "await asyncio.sleep(0) in one task", sleep0, 10_000),
    Batch("future_wakeup", "await a future that a call_soon callback sets", future_wakeup, 10_000),
    Batch("handover", "two tasks in turn: set the other's future, await one's own", handover, 10_000),
    Batch("create_task", "await loop.create_task(coroutine that returns at once)", create_task, 5_000),
)
