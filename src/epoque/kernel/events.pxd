cdef tuple wakeup_open()
cdef int wakeup_ring(int fd) except -1
cdef int wakeup_answer(int fd) except -1
cdef tuple pipe_open()
cdef int close(int fd) noexcept
