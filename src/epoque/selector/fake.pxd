from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source


cdef class RecordingSource(Source):
    cdef readonly list calls  # the masks of on_ready, in order
    cdef readonly bint lost  # on_lost was called
    cdef object action  # callable(mask), or None


cdef class FakeSelector(Selector):
    cdef list batches  # still to come
    cdef list current  # the batch being delivered: (fd, generation, mask)
    cdef readonly dict kernel  # fd -> (generation, mask)
    cdef readonly list log  # (operation, fd)
    cdef dict refused  # fd -> errno
    cdef readonly list waits  # the deadlines that were asked for

    cdef int check(self, str operation, int fd) except -1
