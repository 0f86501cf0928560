"""The monotonic clock in nanoseconds: CLOCK_MONOTONIC, clock_gettime(2); the clock of `time.monotonic()`.

A loop shows times as float seconds and keeps them as integers; both conversions stand here, so that neither can make a timer
early by a rounding.
"""

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

# Nanoseconds for which callbacks may run before the descriptors are looked at again. A turn with a system call in it is
# longer; turns in which tasks only hand over to each other are shorter, and a look at each would cost them a quarter.
cdef long long QUIET = 1_000
cdef long long NEVER = 0x7FFF_FFFF_FFFF_FFFF  # as in masks.py


cdef long long monotonic_ns() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec


cdef double to_seconds(long long ns) noexcept:
    """What `time.monotonic()` would say at `ns`: it divides too."""
    return <double>ns / 1e9


cdef long long from_seconds(double when) noexcept:
    """The first nanosecond that is not before `when`: ``to_seconds(from_seconds(x)) >= x``, short of 292 years."""
    cdef long long ns
    if when >= <double>NEVER / 1e9:
        return NEVER
    if when <= -<double>NEVER / 1e9:
        return -NEVER
    ns = <long long>(when * 1e9)
    while <double>ns / 1e9 < when:  # the product was rounded down
        ns += 1
    return ns
