cimport cython

from epoque.kernel cimport interp

cdef Py_ssize_t DEFAULT_HIGH
cdef long long BEYOND


@cython.final
cdef class FlowControl:
    cdef object high  # bytes, as set: asyncio takes whatever compares like a number
    cdef object low  # bytes, as set
    cdef double most  # high, for comparing
    cdef double rest  # low, for comparing
    cdef bint paused  # the protocol was told to pause

    cpdef int set_limits(self, object high, object low) except -1
    cpdef int filled(self, Py_ssize_t size, object transport, object protocol, object loop) except -1
    cpdef int drained(self, Py_ssize_t size, object transport, object protocol, object loop, object context) except -1


cdef int report(object exc, str name, object transport, object protocol, object loop) except -1
