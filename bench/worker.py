"""One measurement of a row inside this process: ``python -m bench.worker ROW LOOP WORK``, WORK being JSON.

A batch is repeated for the given time after a warm-up of a quarter of that; the figure is the median batch. The garbage
collector stays on: what a loop leaves for it to do is part of its cost.
"""

from __future__ import annotations

import asyncio
import json
import sys
from statistics import median
from time import perf_counter

from bench import scenarios
from bench.loops import make
from bench.machine import waited
from bench.rows.inside import Batch, Inside, Work


def repeat(row: Batch, loop: asyncio.AbstractEventLoop, seconds: float) -> dict[str, float]:
    end = perf_counter() + seconds / 4
    row.batch(loop, row.size)
    while perf_counter() < end:
        row.batch(loop, row.size)
    times: list[float] = []
    before, start = waited(), perf_counter()
    while perf_counter() < start + seconds or len(times) < 3:
        times.append(row.batch(loop, row.size))
    delay = (waited() - before) / (perf_counter() - start)
    return {"value": median(times) / row.size * 1e9, "batches": len(times), "delay": delay}


def main() -> None:
    name, loop_name, text = sys.argv[1:]
    row = scenarios.rows(name.partition("/")[0])[name]
    work = Work(**json.loads(text))
    loop = make(loop_name)
    assert isinstance(row, Inside)
    sample = repeat(row, loop, work.seconds) if isinstance(row, Batch) else row.body(loop, work)
    print(json.dumps(sample), flush=True)


if __name__ == "__main__":
    main()
