"""Did ours get slower since an earlier run, beyond the noise?

A machine is not equally fast every day, so what is compared is the ratio to another loop of the same run, asyncio if
both runs have it: that loop takes the place of a clock.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bench.loops import LOOPS
from bench.results import Document, Results
from bench.stats import Ratio, draws, interval, paired

# With some hundred comparisons, one in twenty is no news; and a small shift is no reason to stop a release.
CONFIDENCE = 0.99
MARGIN = 1.05
CLOCKS = ("asyncio", "uvloop")


@dataclass(frozen=True)
class Change:
    """How one row of one loop moved: now / then, each as a ratio to *clock*."""

    python: str
    row: str
    loop: str
    clock: str
    change: Ratio

    @property
    def regression(self) -> bool:
        return self.change.low > MARGIN

    @property
    def improvement(self) -> bool:
        return self.change.high < 1 / MARGIN

    def describe(self) -> str:
        found = self.change
        return f"{self.row}, {self.loop}: {found.value:.2f} times the baseline ({found.low:.2f}–{found.high:.2f})"


def compare(earlier: Document, later: Document) -> list[Change]:
    """Every cell of our loops that both have. Interpreters are matched by version, alone ones with each other."""
    old = {minor(results): results for results in earlier.results}
    changes = []
    for now in later.results:
        then = old.get(minor(now))
        if then is None and len(old) == len(later.results) == 1:
            then = next(iter(old.values()))
        if then is not None:
            changes += [found for row in now.rows for loop in now.loops if (found := change(then, now, row, loop))]
    return changes


def minor(results: Results) -> str:
    """CPython 3.13 of CPython 3.13.0 (...)."""
    return results.python.split(" (")[0].rpartition(".")[0]


def change(then: Results, now: Results, row: str, loop: str) -> Change | None:
    if not LOOPS[loop].own or row not in then.rows:
        return None
    for clock in CLOCKS:
        before, after = (paired(run.figures(row, loop), run.figures(row, clock)) for run in (then, now))
        if before and after and statistics.median(before) > 0:
            found = interval(
                statistics.median(after) / statistics.median(before), draws(after, 1) / draws(before, 0), CONFIDENCE
            )
            return Change(now.python, row, loop, clock, found)
    return None
