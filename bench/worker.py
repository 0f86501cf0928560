"""One measurement of a batch row, in this process: ``python -m bench.worker ROW LOOP SECONDS``.

The batch is repeated for SECONDS after a warm-up of a quarter of that; the figure is the median batch. The garbage
collector stays on: what a loop leaves for it to do is part of its cost.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.loops import make
from bench.rows import BATCHES

SCHEDSTAT = Path("/proc/self/schedstat")


def waited() -> float:
    """Seconds the main thread was runnable while another process had its core (Linux; elsewhere 0)."""
    try:
        return int(SCHEDSTAT.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def main() -> None:
    name, loop_name, budget = sys.argv[1], sys.argv[2], float(sys.argv[3])
    row = BATCHES[name]
    loop = make(loop_name)
    end = perf_counter() + budget / 4
    row.body(loop, row.size)
    while perf_counter() < end:
        row.body(loop, row.size)
    times: list[float] = []
    before, start = waited(), perf_counter()
    while perf_counter() < start + budget or len(times) < 3:
        times.append(row.body(loop, row.size))
    delay = (waited() - before) / (perf_counter() - start)
    print(json.dumps({"value": median(times) / row.size * 1e9, "batches": len(times), "delay": delay}), flush=True)


if __name__ == "__main__":
    main()
