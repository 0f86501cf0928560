cdef int eventfd_open() except -1
cdef int eventfd_ring(int fd) except -1
cdef int timerfd_open() except -2
cdef int timerfd_arm(int fd, long long deadline) except -1
cdef tuple pipe_open()
cdef int close(int fd) noexcept
