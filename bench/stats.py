"""How sure is a ratio of two medians?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

DRAWS = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Ratio of medians with its bootstrap interval."""

    value: float
    low: float
    high: float


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> Ratio | None:
    """Ratio of the medians over the rounds both have; None if they share none, or there is nothing to divide by.

    Whole rounds are drawn (the pair stays together), so a slow minute of the machine, which hits both loops of a
    round, widens the interval less than drawing each loop by itself would. The generator is seeded: the same samples
    give the same interval.
    """
    rounds = sorted(ours.keys() & theirs.keys())
    if not rounds or statistics.median(theirs[i] for i in rounds) <= 0:
        return None
    drawn = draws(ours, theirs, rounds)
    value = statistics.median(ours[i] for i in rounds) / statistics.median(theirs[i] for i in rounds)
    return interval(value, drawn, CONFIDENCE)


def draws(ours: dict[int, float], theirs: dict[int, float], rounds: Sequence[int], seed: int = 0) -> numpy.ndarray:
    """The ratio in each of DRAWS resamplings of the rounds."""
    import numpy

    chosen = numpy.random.default_rng(seed).integers(len(rounds), size=(DRAWS, len(rounds)))
    above, below = (numpy.array([figures[i] for i in rounds])[chosen] for figures in (ours, theirs))
    with numpy.errstate(divide="ignore"):
        found: numpy.ndarray = numpy.median(above, axis=1) / numpy.median(below, axis=1)
    return found


def interval(value: float, drawn: numpy.ndarray, confidence: float) -> Ratio:
    import numpy

    tail = (1 - confidence) / 2
    low, high = numpy.quantile(drawn, (tail, 1 - tail))
    return Ratio(value, float(low), float(high))


def spread(figures: Iterable[float]) -> float:
    """Distance from lowest to highest, as a share of the median."""
    values = list(figures)
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(statistics.fmean(logs)) if logs else None


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """A sample of latencies: the median as the figure, and the tail."""
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    return {"value": statistics.median(ordered), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p100": ordered[-1]}
