"""Operations on a non-blocking descriptor of any kind: read(2), write(2), writev(2). Compiled twin.

Pipes, FIFOs, terminals and other character devices; sockets too. Python ignores SIGPIPE.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from epoque.kernel cimport sockets
from epoque.kernel.sockets cimport Receiver

cdef extern from "<unistd.h>" nogil:
    ssize_t c_read "read"(int fd, void *buffer, size_t size)
    ssize_t c_write "write"(int fd, const void *buffer, size_t size)

cdef extern from "<sys/uio.h>" nogil:
    ssize_t c_writev "writev"(int fd, const sockets.iovec *vector, int count)


cdef object read(int fd, Receiver receiver):
    """What one read() brings, as bytes; empty at the end, None when it would block."""
    cdef ssize_t count
    while True:
        count = c_read(fd, sockets._memory(receiver), receiver._size)
        if count >= 0:
            return sockets._take(receiver, count)
        if sockets._would_block():
            return None


cdef Py_ssize_t write(int fd, object data, Py_ssize_t offset) except -2:
    """Write `data` from `offset` on; return the count, or -1 when it would block."""
    cdef Py_buffer view
    cdef ssize_t count
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while True:
            count = c_write(fd, <char *>view.buf + offset, view.len - offset)
            if count >= 0:
                return count
            if sockets._would_block():
                return -1
    finally:
        PyBuffer_Release(&view)


cdef Py_ssize_t writev(int fd, list pieces, Py_ssize_t offset) except -2:
    """Write a list of buffers, the first from `offset` on, in one system call; return the count, or -1.

    A piece is `bytes`, or a contiguous `memoryview` of the caller's own.
    """
    cdef sockets.iovec vector[sockets.SEND_PIECES]
    cdef Py_ssize_t used = sockets._gather(pieces, offset, vector)
    cdef ssize_t count
    while True:
        count = c_writev(fd, vector, used)
        if count >= 0:
            return count
        if sockets._would_block():
            return -1
