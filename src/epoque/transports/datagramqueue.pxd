cimport cython


cdef int HEADER


@cython.final
cdef class Name:
    cdef object address  # as the protocol gave it


@cython.final
cdef class DatagramQueue:
    cdef list pairs  # (data, address), in the order of sending; the address may be a Name
    cdef readonly Py_ssize_t size  # bytes still to be sent, headers as asyncio counts them
    cdef dict names  # address with a host name -> Name, while its look-up is under way

    cpdef int push(self, object data, object address) except -1
    cpdef Name expect(self, object address)
    @cython.locals(count=Py_ssize_t)
    cpdef Py_ssize_t ready(self) except -1
    @cython.locals(index=Py_ssize_t)
    cpdef int drop(self, Py_ssize_t count) except -1
    cpdef int answer(self, Name name, object address) except -1
    cpdef Py_ssize_t refuse(self, Name name) except -1
    @cython.locals(name=Name)
    cpdef list as_given(self)
    cpdef int clear(self) except -1
