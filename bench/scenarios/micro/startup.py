"""What does it cost to get a loop at all?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter

from bench.loops import LOOPS, another, environment
from bench.process import Child
from bench.rows.inside import Batch
from bench.rows.row import Row, Setting


async def nothing() -> None:
    pass


def creation(_: asyncio.AbstractEventLoop, size: int) -> float:
    start = perf_counter()
    for _ in range(size):
        another().close()
    return perf_counter() - start


def run(_: asyncio.AbstractEventLoop, size: int) -> float:
    start = perf_counter()
    for _ in range(size):
        with asyncio.Runner(loop_factory=another) as runner:
            runner.run(nothing())
    return perf_counter() - start


SCRIPT = """
from time import perf_counter
start = perf_counter()
import asyncio, {module}
print('{{"value": %f}}' % (1e3 * (perf_counter() - start)))
"""


@dataclass(frozen=True, kw_only=True)
class Import(Row):
    """A fresh interpreter each time, its files in the page cache."""

    unit: str = "ms"

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        script = SCRIPT.format(module=LOOPS[loop].module)
        with Child([setting.python, "-c", script], setting.cores.measured, environment(loop), 20) as child:
            sample: dict[str, float] = child.read()
            return sample


ROWS = (
    Batch(name="micro/loop", what="a new loop, and closing it", batch=creation, size=10),
    Batch(name="micro/run", what="asyncio.run() of a coroutine that returns at once", batch=run, size=10),
    Import(name="micro/import", what="import asyncio and the loop's package in a fresh interpreter"),
)
