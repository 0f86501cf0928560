"""The monotonic clock in nanoseconds: CLOCK_MONOTONIC, clock_gettime(2); the clock of `time.monotonic()`.

A loop shows times as float seconds and keeps them as integers; both conversions stand here, so that neither can make
a timer early by a rounding.
"""

from math import ldexp
from time import monotonic_ns

from epoque.kernel.masks import NEVER

__all__ = ["QUIET", "from_seconds", "monotonic_ns", "since", "ticks", "to_seconds"]


def since(ticks):
    """How far the counter has gone since it said `ticks`: coarse, cheap, and large should it ever have gone back."""
    return monotonic_ns() - ticks


ticks = monotonic_ns

# Ticks for which callbacks may run before the descriptors are looked at again: 4 us. A turn with a system call in
# it is longer; turns in which tasks only hand over to each other are shorter, and a look at each would cost a quarter.
QUIET = 4_000


def to_seconds(ns):
    """What `time.monotonic()` would say at `ns`: it divides too."""
    return ns / 1e9


def from_seconds(when):
    """The first nanosecond that is not before `when`: ``to_seconds(from_seconds(x)) >= x``, short of 292 years."""
    when = ldexp(when, 0)  # whatever has __float__ as a float, but no text
    if when >= NEVER / 1e9:
        return NEVER
    if when <= -NEVER / 1e9:
        return -NEVER
    ns = int(when * 1e9)
    while ns / 1e9 < when:  # the product was rounded down
        ns += 1
    return ns
