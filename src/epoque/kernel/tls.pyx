"""TLS without I/O: ciphertext goes in and comes out, plaintext likewise. Compiled twin.

The connection is the `ssl` module's, and so are handshake and shutdown. Reading and writing call OpenSSL itself, in the
library that the `ssl` module has loaded (dlsym(3)): no bytes object per record, no exception where more ciphertext is
needed, no lock. That needs the SSL object inside `_ssl._SSLSocket`, whose layout is checked for each connection against
what is known of it; if it is another one, the `ssl` module's methods serve.

That more ciphertext is needed is no exception here but False, None or -1. What fails raises what the `ssl` module
raises. Received ciphertext is shown to OpenSSL in portions: a memory BIO never gives back what it has grown to.
"""

import os

try:
    import _ssl
    import ssl
except ImportError:  # an interpreter built without OpenSSL: nothing here is called
    ssl = None

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.string cimport memcpy

cdef extern from * nogil:
    """
    #include <dlfcn.h>
    static struct {
        int (*SSL_read)(SSL *, void *, int);
        int (*SSL_write)(SSL *, const void *, int);
        int (*SSL_pending)(const SSL *);
        int (*SSL_get_error)(const SSL *, int);
        void *(*SSL_get_ex_data)(const SSL *, int);
        BIO *(*SSL_get_rbio)(const SSL *);
        BIO *(*SSL_get_wbio)(const SSL *);
        int (*BIO_read)(BIO *, void *, int);
        int (*BIO_write)(BIO *, const void *, int);
        size_t (*BIO_ctrl_pending)(BIO *);
        void (*ERR_clear_error)(void);
        unsigned long (*ERR_peek_last_error)(void);
        const char *(*ERR_reason_error_string)(unsigned long);
    } openssl;

    /* Finds the functions in a library (NULL: the program itself) or what it depends on; true if they are all there. */
    static int openssl_link(const char *name)
    {
        void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    #define FIND(function) ((*(void **)&openssl.function = dlsym(library, #function)) != NULL)
        return library != NULL && FIND(SSL_read) && FIND(SSL_write) && FIND(SSL_pending) && FIND(SSL_get_error)
            && FIND(SSL_get_ex_data) && FIND(SSL_get_rbio) && FIND(SSL_get_wbio) && FIND(BIO_read) && FIND(BIO_write)
            && FIND(BIO_ctrl_pending) && FIND(ERR_clear_error) && FIND(ERR_peek_last_error)
            && FIND(ERR_reason_error_string);
    #undef FIND
    }
    """
    int openssl_link(const char *name)
    int SSL_read "openssl.SSL_read"(SSL *, void *buffer, int size)
    int SSL_write "openssl.SSL_write"(SSL *, const void *buffer, int size)
    int SSL_pending "openssl.SSL_pending"(const SSL *)
    int SSL_get_error "openssl.SSL_get_error"(const SSL *, int result)
    void *SSL_get_ex_data "openssl.SSL_get_ex_data"(const SSL *, int index)
    BIO *SSL_get_rbio "openssl.SSL_get_rbio"(const SSL *)
    BIO *SSL_get_wbio "openssl.SSL_get_wbio"(const SSL *)
    int BIO_read "openssl.BIO_read"(BIO *bio, void *buffer, int size)
    int BIO_write "openssl.BIO_write"(BIO *bio, const void *buffer, int size)
    size_t BIO_ctrl_pending "openssl.BIO_ctrl_pending"(BIO *bio)
    void ERR_clear_error "openssl.ERR_clear_error"()
    unsigned long ERR_peek_last_error "openssl.ERR_peek_last_error"()
    const char *ERR_reason_error_string "openssl.ERR_reason_error_string"(unsigned long error)

cdef enum:
    TLS_RECORD = 16 * 1024  # as in masks.py
    PORTION = 2 * TLS_RECORD  # bytes; a record with its header, and more
    MOST = 1 << 30  # bytes; OpenSSL counts in int
    NEEDS_MORE = -1
    ENDED = -2

# ssl.h
cdef enum:
    SSL_ERROR_SSL = 1
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_ZERO_RETURN = 6

# The beginning of _ssl._SSLSocket, the same in Modules/_ssl.c of CPython 3.11 to 3.15.
ctypedef struct SSLSocket:
    PyObject head
    void *socket  # a weak reference; NULL over memory BIOs
    SSL *ssl
    void *context


# Can OpenSSL's functions be called, as the ssl module's extension module (or the program that it is part of) calls them?
cdef bint _link() except -1:
    cdef bytes name
    if ssl is None:
        return False
    if not getattr(_ssl, "__file__", None):
        return openssl_link(NULL)
    name = os.fsencode(_ssl.__file__)
    return openssl_link(name)

cdef bint _linked = _link()


# OpenSSL's connection inside the ssl module's, or NULL if it is not where it is expected.
cdef SSL *_inside(object inner):
    if not _linked or type(inner) is not _ssl._SSLSocket:
        return NULL
    context = inner.context
    cdef SSLSocket *fields = <SSLSocket *>inner
    if fields.socket != NULL or fields.context != <void *>context or fields.ssl == NULL:
        return NULL
    return fields.ssl if SSL_get_ex_data(fields.ssl, 0) == <void *>inner else NULL


cdef object _error(int code):
    """What the `ssl` module would raise."""
    cdef unsigned long error = ERR_peek_last_error()
    cdef const char *text = ERR_reason_error_string(error) if error else NULL
    ERR_clear_error()
    if code != SSL_ERROR_SSL or text == NULL:
        return ssl.SSLSyscallError(code, "Some I/O error occurred")
    reason = text.decode()
    mnemonic = reason.upper().replace(" ", "_")
    exc = ssl.SSLError(code, f"[SSL: {mnemonic}] {reason}")
    exc.library = "SSL"
    exc.reason = mnemonic
    return exc


@cython.no_gc_clear  # as long as it can be called, _ssl must stay; whoever has an engine breaks the cycle
cdef class Engine:
    """Both directions of one TLS connection."""

    def __init__(self, context, server_side, server_hostname):
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self._inner = getattr(self.ssl_object, "_sslobj", None)
        self._ssl = _inside(self._inner)
        if self._ssl != NULL:
            self._input = SSL_get_rbio(self._ssl)
            self._output = SSL_get_wbio(self._ssl)
        self._held = None
        self._offset = 0
        self._end = None

    cdef int receive(self, bytes data) except -1:
        """Take ciphertext, to be looked at by the calls below."""
        if self._held is None:
            self._held = data
            self._offset = 0
            if _seen(self) == 0:
                _feed(self)
        else:
            self._held = self._held[self._offset :] + data
            self._offset = 0
        return 0

    cdef Py_ssize_t waiting(self) except -1:
        """Bytes that were received and not read."""
        return _seen(self) + (0 if self._held is None else PyBytes_GET_SIZE(self._held) - self._offset)

    cdef bint idle(self) except -1:
        """Whether there is nothing to read, not even an end."""
        return self._end is None and self._held is None and _seen(self) == 0

    cdef bint handshake(self) except -1:
        """Go on with the handshake; True when it is done."""
        return _attempt(self, self.ssl_object.do_handshake)

    cdef bint unwrap(self) except -1:
        """Go on with the shutdown: send close_notify, see the peer's; True when both are done."""
        return _attempt(self, self.ssl_object.unwrap)

    cdef object read(self, sockets.Receiver receiver):
        """Decrypt all that is there, up to the receiver's size.

        Empty bytes once the peer has sent close_notify, None when more ciphertext is needed.
        """
        cdef Py_ssize_t size = 0
        cdef Py_ssize_t count
        while size < receiver._size and not self.idle():
            count = _read(self, receiver._buffer + size, receiver._size - size)
            if count < 0:
                break
            size += count
        if size:
            return PyBytes_FromStringAndSize(receiver._buffer, size)
        return _ended(self)

    cdef Py_ssize_t read_into(self, object buffer) except -2:
        """Decrypt into a writable buffer; return the count, 0 after close_notify, or -1 when more is needed."""
        cdef Py_buffer view
        cdef Py_ssize_t count = NEEDS_MORE
        if not self.idle():
            PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
            try:
                count = _read(self, <char *>view.buf, view.len)
            finally:
                PyBuffer_Release(&view)
        if count > 0:
            return count
        return -1 if _ended(self) is None else 0

    cdef Py_ssize_t write(self, object data) except -2:
        """Encrypt at most one record's worth; return the count, or -1 when OpenSSL must read first."""
        cdef Py_buffer view
        cdef int count
        cdef int code
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            while True:
                if self._ssl == NULL:
                    try:
                        return self.ssl_object.write(data)
                    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                        pass
                else:
                    ERR_clear_error()
                    count = SSL_write(self._ssl, view.buf, <int>min(view.len, MOST))
                    if count > 0:
                        return count
                    code = SSL_get_error(self._ssl, count)
                    if code != SSL_ERROR_WANT_READ and code != SSL_ERROR_WANT_WRITE:
                        raise _error(code)
                if self._held is None:
                    return -1
                _feed(self)
        finally:
            PyBuffer_Release(&view)

    cdef object output(self):
        """The ciphertext to be sent, which is forgotten here."""
        cdef size_t size
        if self._ssl == NULL:
            return self._outgoing.read() if self._outgoing.pending else b""
        size = BIO_ctrl_pending(self._output)
        if size == 0:
            return b""
        data = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
        BIO_read(self._output, PyBytes_AS_STRING(data), <int>size)
        return data


# Bytes that OpenSSL has, of ciphertext or of plaintext, and has not given away.
cdef Py_ssize_t _seen(Engine engine) except -1:
    if engine._ssl == NULL:
        return engine._incoming.pending + engine.ssl_object.pending()
    return <Py_ssize_t>BIO_ctrl_pending(engine._input) + SSL_pending(engine._ssl)


# Show OpenSSL the next portion of what is held.
cdef int _feed(Engine engine) except -1:
    cdef Py_ssize_t left = PyBytes_GET_SIZE(engine._held) - engine._offset
    cdef Py_ssize_t size = min(left, PORTION)
    if engine._ssl == NULL:
        engine._incoming.write(engine._held[engine._offset : engine._offset + size])
    elif size and BIO_write(engine._input, PyBytes_AS_STRING(engine._held) + engine._offset, <int>size) != size:
        raise MemoryError
    if size == left:
        engine._held = None
    else:
        engine._offset += size
    return 0


# The bytes that one read brings, or NEEDS_MORE; or ENDED, and engine._end says how.
cdef Py_ssize_t _read(Engine engine, char *buffer, Py_ssize_t size) except -3:
    cdef int count
    cdef int code
    while engine._end is None:
        if engine._ssl == NULL:
            count = _read_slowly(engine, buffer, size)
            if count != NEEDS_MORE:
                return count
        else:
            ERR_clear_error()
            count = SSL_read(engine._ssl, buffer, <int>min(size, MOST))
            if count > 0:
                return count
            code = SSL_get_error(engine._ssl, count)
            if code == SSL_ERROR_ZERO_RETURN:
                engine._end = b""
                return ENDED
            if code != SSL_ERROR_WANT_READ and code != SSL_ERROR_WANT_WRITE:
                engine._end = _error(code)
                return ENDED
        if engine._held is None:
            return NEEDS_MORE
        _feed(engine)
    return ENDED


cdef Py_ssize_t _read_slowly(Engine engine, char *buffer, Py_ssize_t size) except -3:
    cdef bytes data
    try:
        data = engine.ssl_object.read(min(size, TLS_RECORD))
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return NEEDS_MORE
    except ssl.SSLError as exc:
        engine._end = exc
        return ENDED
    if not data:
        engine._end = b""
        return ENDED
    memcpy(buffer, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return PyBytes_GET_SIZE(data)


# None if more can come, else b"" or the exception.
cdef object _ended(Engine engine):
    if isinstance(engine._end, ssl.SSLError):
        raise engine._end
    return engine._end


# False if the operation needs more ciphertext than there is.
cdef bint _attempt(Engine engine, object operation) except -1:
    while True:
        try:
            operation()
            return True
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if engine._held is None:
                return False
        _feed(engine)
