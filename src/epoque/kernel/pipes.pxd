from epoque.kernel.sockets cimport Receiver


cdef object read(int fd, Receiver receiver)
cdef Py_ssize_t write(int fd, object data, Py_ssize_t offset) except -2
cdef Py_ssize_t writev(int fd, list pieces, Py_ssize_t offset) except -2
