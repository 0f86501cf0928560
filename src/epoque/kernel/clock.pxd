cdef long long QUIET

cdef long long monotonic_ns() noexcept
cdef double to_seconds(long long ns) noexcept
cdef long long from_seconds(double when) noexcept
