"""The monotonic clock in nanoseconds: CLOCK_MONOTONIC, clock_gettime(2); the clock of `time.monotonic()`.

A loop shows times as float seconds and keeps them as integers; both conversions stand here, so that neither can make
a timer early by a rounding.
"""

from math import ldexp
from time import monotonic as now
from time import monotonic_ns

from epoque.kernel.masks import NEVER

__all__ = ["QUIET", "after", "from_seconds", "monotonic_ns", "now", "ticks"]


ticks = monotonic_ns

# Ticks for which callbacks may run before the descriptors are looked at again: 10 us, about what a request takes.
# Turns in which tasks only hand over to each other take 1 us, and a look at each would cost a quarter.
QUIET = 10_000


def after(delay):
    """The time in `delay` seconds."""
    return now() + delay


LAST = NEVER / 1e9  # seconds
FIRST = -LAST


def from_seconds(when):
    """The first nanosecond that is not before `when`: ``from_seconds(x) / 1e9 >= x``, short of 292 years.

    ValueError for NaN, which is neither before nor after anything.
    """
    if type(when) is not float:
        when = ldexp(when, 0)  # whatever has __float__, but no text
    if not FIRST < when < LAST:
        if when != when:
            raise ValueError("the time of a timer cannot be NaN")
        return NEVER if when > 0 else -NEVER
    ns = int(when * 1e9)
    while ns / 1e9 < when:  # the product was rounded down
        ns += 1
    return ns
