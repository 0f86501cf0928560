"""How far does a sleep miss its time?"""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter

from bench.rows.inside import Inside, Work
from bench.stats import percentiles


def lateness(delay: float, loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    """The figure is the median distance from the time asked for, either way; `early` the farthest before it."""

    async def main() -> list[float]:
        missed = []
        end = perf_counter() + work.seconds
        while len(missed) < 3 or perf_counter() < end:
            start = perf_counter()
            await asyncio.sleep(delay)
            missed.append(perf_counter() - start - delay)
        return missed

    missed = [1e6 * time for time in loop.run_until_complete(main())]
    return percentiles([abs(time) for time in missed]) | {"early": max(0.0, -min(missed))}


ROWS = tuple(
    Inside(
        name=f"timers/sleep_{name}",
        what=f"asyncio.sleep({delay:g}): how far off, median",
        body=partial(lateness, delay),
    )
    for name, delay in {"100us": 1e-4, "500us": 5e-4, "1ms": 1e-3, "10ms": 1e-2, "100ms": 1e-1}.items()
)
