"""The server under test, in this process: ``python -m bench.server KIND LOOP OPTIONS``, OPTIONS being JSON.

KIND is a function in bench/servers/, as module.function. Prints its address, then answers on standard input: `usage`
(CPU seconds of the process so far, and what was served) and `memory` (bytes as well). A thread answers, asleep in
read(2) while the loop is measured, so that nothing is asked of the loop besides serving. End of input ends the process
at once, whatever state the loop is in.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import resource
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

from bench.loops import make
from bench.machine import waited
from bench.servers import SERVED


def resident() -> int:
    """Bytes of this process in memory; where there is no /proc, the most it ever had (macOS counts bytes there)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def answer(word: str) -> dict[str, float]:
    found: dict[str, float] = dict(vars(SERVED))
    if word == "memory":
        gc.collect()
        return found | {"rss": resident(), "traced": tracemalloc.get_traced_memory()[0]}
    used = resource.getrusage(resource.RUSAGE_SELF)
    return found | {"user": used.ru_utime, "system": used.ru_stime, "waited": waited()}


def settle_malloc() -> None:
    """Free one large block: glibc then stops asking the kernel for every allocation of up to that size.

    Most programs come to this point by themselves. One that does not pays three system calls for each 256 KiB buffer
    that asyncio reads into, which would double the cost of its echo and say nothing about the loop (mallopt(3),
    M_MMAP_THRESHOLD).
    """
    bytearray(1 << 20)


def control(address: str) -> None:
    print(json.dumps({"address": address}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.strip())), flush=True)
    os._exit(0)


async def serve(kind: str, options: dict[str, Any]) -> None:
    module, _, function = kind.partition(".")
    begin = getattr(importlib.import_module(f"bench.servers.{module}"), function)
    address = await begin(options)
    threading.Thread(target=control, args=(address,), daemon=True).start()
    await asyncio.Event().wait()


def main() -> None:
    kind, loop_name, text = sys.argv[1:]
    options = json.loads(text)
    if options.get("traced"):
        tracemalloc.start()
    settle_malloc()
    make(loop_name).run_until_complete(serve(kind, options))


if __name__ == "__main__":
    main()
