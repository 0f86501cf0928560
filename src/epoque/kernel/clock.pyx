"""The monotonic clock in nanoseconds: CLOCK_MONOTONIC, clock_gettime(2); the clock of `time.monotonic()`.

A loop shows times as float seconds and keeps them as integers; both conversions stand here, so that neither can make a timer
early by a rounding.
"""

from cpython.float cimport PyFloat_CheckExact

cdef extern from *:
    """
    #include <time.h>

    #ifdef __APPLE__
    /* There CLOCK_MONOTONIC goes on while the machine sleeps, and time.monotonic() does not: mach_absolute_time(3). */
    static inline long long epoque_now(void) { return (long long)clock_gettime_nsec_np(CLOCK_UPTIME_RAW); }
    #else
    static inline long long epoque_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    #endif

    #if defined(__x86_64__) || defined(__i386__)
    /* The time stamp counter: a third of the price of clock_gettime(). Its frequency is the processor's, 2 to 5 GHz. */
    #include <x86intrin.h>
    #define EPOQUE_QUIET 25000
    static inline unsigned long long epoque_ticks(void) { return __rdtsc(); }
    #else
    #define EPOQUE_QUIET 10000
    static inline unsigned long long epoque_ticks(void) { return (unsigned long long)epoque_now(); }
    #endif
    """
    long long epoque_now() noexcept
    unsigned long long EPOQUE_QUIET
    unsigned long long epoque_ticks() noexcept

# Ticks for which callbacks may run before the descriptors are looked at again: 5 to 12 us, about what a request takes.
# Turns in which tasks only hand over to each other take less than one, and a look at each would cost a quarter.
cdef unsigned long long QUIET = EPOQUE_QUIET
cdef long long NEVER = 0x7FFF_FFFF_FFFF_FFFF  # as in masks.py


cdef long long monotonic_ns() noexcept:
    return epoque_now()


cdef unsigned long long ticks() noexcept:
    return epoque_ticks()


cdef double now() noexcept:
    """What `time.monotonic()` would say, in seconds: it divides too."""
    return <double>epoque_now() / 1e9


cdef double after(object delay) except? -1:
    """The time in `delay` seconds."""
    if PyFloat_CheckExact(delay):
        return now() + <double>delay
    return now() + delay  # what cannot be added to a float is no delay


cdef long long from_seconds(double when) except? -1:
    """The first nanosecond that is not before `when`: ``from_seconds(x) / 1e9 >= x``, short of 292 years.

    ValueError for NaN, which is neither before nor after anything.
    """
    cdef long long ns
    if when != when:
        raise ValueError("the time of a timer cannot be NaN")
    if when >= <double>NEVER / 1e9:
        return NEVER
    if when <= -<double>NEVER / 1e9:
        return -NEVER
    ns = <long long>(when * 1e9)
    while <double>ns / 1e9 < when:  # the product was rounded down
        ns += 1
    return ns
