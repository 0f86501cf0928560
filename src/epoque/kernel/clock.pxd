cdef unsigned long long QUIET

cdef long long monotonic_ns() noexcept
cdef unsigned long long ticks() noexcept
cdef double now() noexcept
cdef double after(object delay) except? -1
cdef long long from_seconds(double when) except? -1
