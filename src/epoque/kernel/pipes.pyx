"""Operations on a non-blocking descriptor of any kind: read(2), write(2), writev(2). Compiled twin.

Pipes, FIFOs, terminals and other character devices; sockets too. Python ignores SIGPIPE.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EINTR, errno

from epoque.kernel.sockets cimport Receiver

cdef extern from "<unistd.h>" nogil:
    ssize_t c_read "read"(int fd, void *buffer, size_t size)
    ssize_t c_write "write"(int fd, const void *buffer, size_t size)

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t c_writev "writev"(int fd, const iovec *vector, int count)

cdef extern from "Python.h":
    Py_buffer *PyMemoryView_GET_BUFFER(object view)
    bint PyMemoryView_Check(object view)

cdef enum:
    SEND_PIECES = 256  # as in masks.py


cdef object read(int fd, Receiver receiver):
    """What one read() brings, as bytes; empty at the end, None when it would block."""
    cdef ssize_t count
    while True:
        count = c_read(fd, receiver._buffer, receiver._size)
        if count >= 0:
            return PyBytes_FromStringAndSize(receiver._buffer, count)
        if _would_block():
            return None


# After a call that failed: true when it would have blocked, false when it is to be repeated, else OSError.
cdef bint _would_block() except -1:
    if errno == EAGAIN:
        return True
    if errno != EINTR:
        PyErr_SetFromErrno(OSError)
    PyErr_CheckSignals()
    return False


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
            if _would_block():
                return -1
    finally:
        PyBuffer_Release(&view)


cdef Py_ssize_t writev(int fd, list pieces, Py_ssize_t offset) except -2:
    """Write a list of buffers, the first from `offset` on, in one system call; return the count, or -1.

    A piece is `bytes`, or a contiguous `memoryview` of the caller's own.
    """
    cdef iovec vector[SEND_PIECES]
    cdef Py_buffer *view
    cdef int index = 0
    cdef ssize_t count
    for piece in pieces:
        if PyMemoryView_Check(piece):
            view = PyMemoryView_GET_BUFFER(piece)
            vector[index].iov_base = view.buf
            vector[index].iov_len = view.len
        else:
            vector[index].iov_base = PyBytes_AS_STRING(<bytes?>piece)
            vector[index].iov_len = PyBytes_GET_SIZE(piece)
        index += 1
        if index == SEND_PIECES:
            break
    if index == 0:
        return 0
    vector[0].iov_base = <char *>vector[0].iov_base + offset
    vector[0].iov_len -= offset
    while True:
        count = c_writev(fd, vector, index)
        if count >= 0:
            return count
        if _would_block():
            return -1
