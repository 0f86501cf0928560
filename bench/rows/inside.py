"""Rows whose operation runs, and is timed, inside one process, that of `bench.worker`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.loops import environment
from bench.native import program
from bench.process import Child
from bench.rows.row import Row, Setting


@dataclass(frozen=True)
class Work:
    """What a body is told about its measurement."""

    seconds: float
    quick: bool
    other: int | None  # the core for children of the measured process
    peer: str = ""  # address of the program that the row names


@dataclass(frozen=True, kw_only=True)
class Inside(Row):
    """*body(loop, work)* measures for `work.seconds` and returns the sample; *peer* is a C program it speaks to."""

    body: Callable[[asyncio.AbstractEventLoop, Work], dict[str, float]]
    peer: tuple[str, ...] = ()
    unit: str = "µs"

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        env, limit = environment(loop), setting.limit
        with contextlib.ExitStack() as stack:
            address = ""
            if self.peer:
                name, *arguments = self.peer
                peer = stack.enter_context(Child([program(name), *arguments], setting.cores.other, env, limit))
                address = peer.read()["address"]
            work = Work(setting.seconds, setting.quick, setting.cores.other, address)
            argv = [setting.python, "-m", "bench.worker", self.name, loop, json.dumps(vars(work))]
            child = stack.enter_context(Child(argv, setting.cores.measured, env, limit))
            sample: dict[str, float] = child.read()
            if self.peer and "sent" in sample:
                sample["arrived"] = peer.ask("usage")["received"] / sample["sent"]
        return sample


@dataclass(frozen=True, kw_only=True)
class Batch(Inside):
    """*batch(loop, size)* does *size* operations and returns the seconds they took; the figure is the median batch."""

    batch: Callable[[asyncio.AbstractEventLoop, int], float]
    size: int
    body: Any = None  # `bench.worker` repeats the batch
    unit: str = "ns"
