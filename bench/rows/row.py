"""What is a row: one operation whose cost is compared, and the way to measure it once on one loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from bench.machine import Cores


@dataclass(frozen=True)
class Setting:
    """What all measurements of a run share."""

    python: str
    cores: Cores
    seconds: float  # length of one measurement; the warm-up is a quarter of it
    quick: bool  # does it work? Nothing needs to be sound
    scratch: Path

    @property
    def limit(self) -> float:
        """Seconds after which a child hangs."""
        return (10 if self.quick else 40) + 10 * self.seconds


@dataclass(frozen=True, kw_only=True)
class Row(ABC):
    """One line of the comparison. In every row less is better."""

    name: str  # scenario/row
    what: str  # the operation in words
    unit: str
    message: int | None = None  # bytes, where a plot goes along them
    connections: int | None = None  # the same

    @property
    def limits(self) -> tuple[str, ...]:
        """What is measured beside the loops, such as a server in C."""
        return ()

    @abstractmethod
    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        """One sample: `value` is the figure of the row, the others are details. Raises Failed."""

    def syscalls(self, setting: Setting, loop: str) -> dict[str, float] | None:
        """System calls an operation by name, and their `total`; None where that is not counted. Raises Failed."""
        return None
