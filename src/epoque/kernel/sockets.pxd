cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len

cdef enum:
    # As in masks.py.
    SEND_PIECES = 256
    SMALL = 1024
    JOINED = 16384


cdef class Receiver:
    cdef bytes _spare  # what the next receive fills, unless somebody else has it; or None
    cdef Py_ssize_t _size  # bytes that it has room for
    cdef Py_ssize_t _filled  # bytes that fill() has put there
    cdef bint full  # the last receive has taken all the room there was; there may be more

    cdef object recv(self, int fd)
    cdef Py_ssize_t fill(self, int fd) except -2
    cdef object get(self)


cpdef object try_recv(object sock, Py_ssize_t size)
cpdef Py_ssize_t try_recv_into(object sock, object buffer) except -2
cpdef Py_ssize_t try_send(object sock, object data) except -2
cdef Py_ssize_t recv_into(int fd, object buffer) except -2
cdef Py_ssize_t send(int fd, object data, Py_ssize_t offset) except -2
cdef Py_ssize_t _send(int fd, const char *data, Py_ssize_t size) except -2
cdef Py_ssize_t send_many(int fd, list pieces, Py_ssize_t offset, Py_ssize_t size) except -2
cdef object accept(object listener)
cdef object local_address(int fd, int family)
cdef object peer_address(int fd, int family)
cdef int nodelay(int fd) except -1
cdef int no_sigpipe(int fd) except -1
cdef int shutdown(int fd) except -1
cdef object _named(void *storage, unsigned int length)
cdef Py_ssize_t _join(const iovec *vector, Py_ssize_t used, char *joined) noexcept
cdef Py_ssize_t _gather(list pieces, Py_ssize_t offset, iovec *vector) except -1
cdef bint _would_block() except -1
cdef char *_memory(Receiver receiver) except NULL
cdef object _take(Receiver receiver, Py_ssize_t count)
