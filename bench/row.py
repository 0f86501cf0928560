"""What is a row: one operation whose cost is compared, and the way to measure it once on one loop."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from bench.loops import environment
from bench.machine import Cores
from bench.process import Child

Body = Callable[[asyncio.AbstractEventLoop, int], float]


@dataclass(frozen=True)
class Setting:
    """What all measurements of a run share."""

    python: str
    cores: Cores
    quick: bool


@dataclass(frozen=True)
class Row(ABC):
    """*what* is one operation in words; *limits* names what can be measured beside the loops, such as a server in C."""

    unit: ClassVar[str]
    limits: ClassVar[tuple[str, ...]] = ()
    name: str
    what: str

    @abstractmethod
    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        """One sample: `value` is the figure of the row, the others are details. Raises Failed."""


@dataclass(frozen=True)
class Batch(Row):
    """A row inside one process: *body(loop, size)* does *size* operations and returns the seconds they took."""

    unit = "ns"
    body: Body
    size: int

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        budget = 0.06 if setting.quick else 0.5
        argv = [setting.python, "-m", "bench.worker", self.name, loop, str(budget)]
        with Child(argv, setting.cores.measured, environment(loop), limit=10 + 10 * budget) as child:
            sample: dict[str, float] = child.read()
            return sample
