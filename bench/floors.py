"""What is promised of epoque, as data, and was it kept?"""

from __future__ import annotations

from dataclasses import dataclass

from bench.results import Document, Results


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
    Floor("micro/chain", "epoque", 0.35, "uvloop"),
    Floor("micro/sleep0", "epoque", 0.60, "uvloop"),
    Floor("micro/later_cancel_1", "epoque", 0.50, "uvloop"),
    Floor("micro/future_wakeup", "epoque", 0.65, "uvloop"),
    Floor("echo/protocol_1KiB", "epoque", 0.95, "uvloop"),
    Floor("micro/chain", "epoque-pure", 1.00, "asyncio"),
    Floor("echo/protocol_1KiB", "epoque-pure", 1.00, "asyncio"),
    Floor("connections/idle_memory_python", "epoque", 2048),
)


def of(row: str, loop: str) -> list[Floor]:
    """The floors of one cell of the report."""
    return [floor for floor in FLOORS if (floor.row, floor.loop) == (row, loop)]


def missed(document: Document) -> list[str]:
    """The floors of the measured rows and loops that were not kept, in words."""
    return [
        f"{floor.row}, {floor.loop} {floor.promise()}: {verdict}"
        for results in document.results
        for floor in FLOORS
        if floor.row in results.rows and floor.loop in results.loops
        if (verdict := floor.verdict(results)) != "kept"
    ]
