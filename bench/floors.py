"""What is promised of epoque, as data, and was it kept?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.results import Results


@dataclass(frozen=True)
class Floor:
    """*loop* takes on *row* at most *limit* times what *against* takes, or *limit* of the row's unit without one."""

    row: str
    loop: str
    limit: float
    against: str | None = None

    def promise(self) -> str:
        return f"≤ {self.limit:g}" + (f" × {self.against}" if self.against else "")

    def measured(self, results: Results) -> float | None:
        """The figure that *limit* bounds; None if the run does not have it."""
        if self.against is None:
            return results.median(self.row, self.loop)
        found = results.ratio(self.row, self.loop, self.against)
        return found.value if found else None

    def verdict(self, results: Results) -> str:
        value = self.measured(results)
        if value is None:
            return "not measured"
        return "kept" if value <= self.limit else "MISSED"


FLOORS = (
    Floor("chain", "epoque", 0.35, "uvloop"),
    Floor("sleep0", "epoque", 0.60, "uvloop"),
    Floor("later_cancel", "epoque", 0.50, "uvloop"),
    Floor("future_wakeup", "epoque", 0.65, "uvloop"),
    Floor("echo", "epoque", 0.95, "uvloop"),
    Floor("chain", "epoque-pure", 1.00, "asyncio"),
    Floor("echo", "epoque-pure", 1.00, "asyncio"),
    Floor("idle_memory_python", "epoque", 2048),
)
