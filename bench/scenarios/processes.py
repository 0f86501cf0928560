"""What do child processes cost?"""

from __future__ import annotations

import asyncio
import os
import resource
from functools import partial
from subprocess import DEVNULL, PIPE
from time import perf_counter

from bench.rows.inside import Inside, Work
from bench.stats import percentiles

MIB = 1 << 20
CHUNK = b"x" * (64 << 10)


def spawn(heap: int, loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    """Time to start /bin/true and see it end, in a process that has *heap* bytes of its own."""
    held = b"x" * heap

    async def main() -> list[float]:
        taken = []
        end = perf_counter() + work.seconds
        while len(taken) < 4 or perf_counter() < end:
            start = perf_counter()
            process = await asyncio.create_subprocess_exec("/bin/true", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
            await process.wait()
            taken.append(1e6 * (perf_counter() - start))
        return taken[1:]

    found = percentiles(loop.run_until_complete(main()))
    assert len(held) == heap
    return found


def throughput(loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    """CPU time of this process for each MiB that it sends through cat and gets back."""

    async def pump(process: asyncio.subprocess.Process, amount: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None

        async def feed() -> None:
            for _ in range(0, amount, len(CHUNK)):
                process.stdin.write(CHUNK)
                await process.stdin.drain()

        feeding = loop.create_task(feed())
        left = amount
        while left:
            left -= len(await process.stdout.read(len(CHUNK)))
        await feeding

    async def main() -> dict[str, float]:
        process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        if work.other is not None:
            os.sched_setaffinity(process.pid, {work.other})
        await pump(process, MIB)
        amount = 0
        before, start = resource.getrusage(resource.RUSAGE_SELF), perf_counter()
        while perf_counter() < start + work.seconds:
            await pump(process, 4 * MIB)
            amount += 4
        after, taken = resource.getrusage(resource.RUSAGE_SELF), perf_counter() - start
        process.stdin.close()
        await process.wait()
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        sample = {"value": user + system, "user": user, "system": system}
        return {key: 1e6 * value / amount for key, value in sample.items()} | {"rate": amount / taken}

    return loop.run_until_complete(main())


ROWS = (
    Inside(name="processes/spawn", what="start /bin/true and see it end: median", body=partial(spawn, 0)),
    Inside(
        name="processes/spawn_800MB",
        what="the same from a process with 800 MB of memory",
        body=partial(spawn, 800 * 10**6),
    ),
    Inside(
        name="processes/pipe",
        what="send through cat and get back: own CPU a MiB",
        body=throughput,
    ),
)
