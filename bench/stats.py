"""How do two loops compare, and how sure is that?"""

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
    """The median of the rounds' ratios with its bootstrap interval."""

    value: float
    low: float
    high: float


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> Ratio | None:
    """The median of the ratios of the rounds that both have; None if there is none, or nothing to divide by.

    A machine may have two speeds, one for some minutes and then the other. The two samples of a round stand near each
    other in time; the medians of two loops may come of different speeds, and their ratio then says nothing.
    """
    ratios = paired(ours, theirs)
    if not ratios:
        return None
    return interval(statistics.median(ratios), draws(ratios), CONFIDENCE)


def paired(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """The ratio in each round."""
    return [ours[i] / theirs[i] for i in sorted(ours.keys() & theirs.keys()) if theirs[i] > 0]


def draws(ratios: Sequence[float], seed: int = 0) -> numpy.ndarray:
    """The median in each of DRAWS resamplings of the rounds. Seeded: the same samples give the same interval."""
    import numpy

    chosen = numpy.random.default_rng(seed).integers(len(ratios), size=(DRAWS, len(ratios)))
    found: numpy.ndarray = numpy.median(numpy.array(ratios)[chosen], axis=1)
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
