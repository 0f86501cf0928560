"""What was measured: every sample of every row, loop and round."""

from __future__ import annotations

import statistics
from typing import Any

from bench.stats import Ratio, ratio


class Results:
    """Samples by row, loop and round; a failure takes the place of further samples."""

    def __init__(self) -> None:
        self.samples: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
        self.failures: dict[tuple[str, str], str] = {}

    def add(self, row: str, loop: str, round_: int, sample: dict[str, float]) -> None:
        self.samples.setdefault((row, loop), {})[round_] = sample

    def fail(self, row: str, loop: str, reason: str) -> None:
        self.failures[row, loop] = reason

    def figures(self, row: str, loop: str, key: str = "value") -> dict[int, float]:
        """One figure of all rounds; empty if there is none."""
        found = self.samples.get((row, loop), {})
        return {round_: sample[key] for round_, sample in found.items() if key in sample}

    def median(self, row: str, loop: str, key: str = "value") -> float | None:
        found = self.figures(row, loop, key)
        return statistics.median(found.values()) if found else None

    def ratio(self, row: str, loop: str, against: str) -> Ratio | None:
        return ratio(self.figures(row, loop), self.figures(row, against))

    def delay(self) -> float | None:
        """Median share of the measured time in which the process waited for its core; None if nobody counted."""
        found = [s["delay"] for rounds in self.samples.values() for s in rounds.values() if "delay" in s]
        return statistics.median(found) if found else None

    def plain(self) -> list[dict[str, Any]]:
        """All of it for JSON."""
        keys = sorted(self.samples.keys() | self.failures.keys())
        return [
            {
                "row": row,
                "loop": loop,
                "median": self.median(row, loop),
                "samples": self.samples.get((row, loop), {}),
                "failure": self.failures.get((row, loop)),
            }
            for row, loop in keys
        ]
