cdef extern from * nogil:
    """
    typedef struct ssl_st SSL;
    typedef struct bio_st BIO;
    """
    ctypedef struct SSL:
        pass
    ctypedef struct BIO:
        pass

from epoque.kernel cimport sockets


cdef class Engine:
    cdef readonly object ssl_object  # ssl.SSLObject
    cdef object _incoming  # ssl.MemoryBIO: ciphertext that has come
    cdef object _outgoing  # ssl.MemoryBIO: ciphertext to be sent
    cdef object _inner  # _ssl._SSLSocket, which owns _ssl; ssl_object might let it go
    cdef SSL *_ssl  # OpenSSL's own, below ssl_object; NULL if only the ssl module may touch it
    cdef BIO *_input  # below _incoming, if _ssl is not NULL
    cdef BIO *_output  # below _outgoing
    cdef bytes _held  # ciphertext that OpenSSL has not seen, from _offset on; or None
    cdef Py_ssize_t _offset
    cdef object _end  # what ended the reading, once it was met: b"" or an exception

    cdef int receive(self, bytes data) except -1
    cdef Py_ssize_t waiting(self) except -1
    cdef bint idle(self) except -1
    cdef bint handshake(self) except -1
    cdef bint unwrap(self) except -1
    cdef object read(self, sockets.Receiver receiver)
    cdef Py_ssize_t read_into(self, object buffer) except -2
    cdef Py_ssize_t write(self, object data) except -2
    cdef object output(self)
