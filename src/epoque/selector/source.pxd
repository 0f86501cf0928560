cdef int LEVEL


cdef class Source:
    cdef int fd  # -1 once closed
    cdef int interest  # what it wants to be told: READ | WRITE
    cdef int mode  # LEVEL, EDGE or EXCLUSIVE; fixed once it is armed
    cdef int armed  # what the kernel reports; may lag behind interest until an event for it arrives
    cdef bint owned  # the descriptor is the source's own, to be closed with it
    cdef unsigned int generation  # of this registration, 0 when there is none

    cdef int set_up(self, int fd, int interest, int mode) except -1
    cdef int on_ready(self, int mask) except -1
    cdef int on_turn_end(self) except -1
    cdef int before_fork(self) except -1
    cdef int on_lost(self) except -1
