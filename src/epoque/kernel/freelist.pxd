cdef int keep(object cls) except -1
