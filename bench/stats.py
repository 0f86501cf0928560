"""How sure is a ratio of two medians?"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median

DRAWS = 2000


@dataclass(frozen=True)
class Ratio:
    """Ratio of medians with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> Ratio | None:
    """Ratio of the medians over the rounds both have; None if they share none.

    Whole rounds are drawn (the pair stays together), so a slow minute of the machine, which hits both loops of a
    round, widens the interval less than drawing each loop by itself would. The generator is seeded: the same JSON gives
    the same interval.
    """
    rounds = sorted(ours.keys() & theirs.keys())
    if not rounds:
        return None
    generator = random.Random(0)
    drawn = []
    for _ in range(DRAWS):
        chosen = generator.choices(rounds, k=len(rounds))
        drawn.append(median(ours[i] for i in chosen) / median(theirs[i] for i in chosen))
    drawn.sort()
    value = median(ours[i] for i in rounds) / median(theirs[i] for i in rounds)
    return Ratio(value, drawn[int(DRAWS * 0.025)], drawn[int(DRAWS * 0.975)])
