from epoque.kernel cimport sockets

cdef extern from * nogil:
    """
    #include <stddef.h>

    typedef struct ssl_st SSL;
    typedef struct bio_st BIO;

    /* Where OpenSSL reads ciphertext and writes it to. */
    typedef struct {
        const char *next;  /* ciphertext that OpenSSL has not seen */
        size_t left;       /* bytes there */
        char *output;      /* ciphertext to be sent */
        size_t size;       /* bytes of it */
        size_t room;       /* bytes that output has room for */
        int holders;
    } TLSMemory;
    """
    ctypedef struct SSL:
        pass
    ctypedef struct TLSMemory:
        const char *next
        size_t left
        char *output
        size_t size
        size_t room


cdef class Engine:
    cdef readonly object ssl_object  # ssl.SSLObject
    cdef object _inner  # _ssl._SSLSocket, which owns _ssl; ssl_object might let it go
    cdef object _incoming  # ssl.MemoryBIO: ciphertext that has come; None if OpenSSL reads from _memory
    cdef object _outgoing  # ssl.MemoryBIO: ciphertext to be sent; None likewise
    cdef SSL *_ssl  # OpenSSL's own, below ssl_object; NULL if only the ssl module may touch it
    cdef TLSMemory *_memory  # below _ssl, NULL likewise
    cdef bytes _held  # what _memory points into, while something is left there
    cdef object _end  # what ended the reading, once it was met: b"" or an exception

    cdef int receive(self, object data) except -1
    cdef int receive_from(self, sockets.Receiver receiver) except -1
    cdef int settle(self, sockets.Receiver receiver) except -1
    cdef Py_ssize_t waiting(self) except -1
    cdef bint idle(self) except -1
    cdef bint handshake(self) except -1
    cdef bint unwrap(self) except -1
    cdef object read(self, Py_ssize_t most)
    cdef Py_ssize_t read_into(self, object buffer) except -2
    cdef Py_ssize_t write(self, object data) except -2
    cdef object output(self)
    cdef bint send(self, int fd) except -1
