"""TLS without I/O: ciphertext goes in and comes out, plaintext likewise. Compiled twin.

The connection is the `ssl` module's, and so are handshake and shutdown. Reading and writing call OpenSSL itself, in the
library that the `ssl` module has loaded: no bytes object per record, no exception where more ciphertext is
needed, no lock. A BIO of our own takes the place of the two memory BIOs: OpenSSL gets ciphertext from where it lies, and
puts it where it is wanted. All that needs the SSL object inside `_ssl._SSLSocket`, whose layout is checked for each
connection against what is known of it; if it is another one, the `ssl` module's methods serve.

That more ciphertext is needed is no exception here but False, None or -1. What fails raises what the `ssl` module
raises.
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
from libc.string cimport memcpy, memmove

cdef extern from "openssl.h" nogil:
    int openssl_link(const char *name)
    TLSMemory *tls_memory_attach(SSL *)
    void tls_memory_release(TLSMemory *)
    void tls_memory_lend(TLSMemory *)
    void tls_memory_forget(TLSMemory *)
    int SSL_read "openssl.SSL_read"(SSL *, void *, int)
    int SSL_write "openssl.SSL_write"(SSL *, const void *, int)
    int SSL_pending "openssl.SSL_pending"(const SSL *)
    int SSL_has_pending "openssl.SSL_has_pending"(const SSL *)
    int SSL_get_error "openssl.SSL_get_error"(const SSL *, int)
    void *SSL_get_ex_data "openssl.SSL_get_ex_data"(const SSL *, int)
    unsigned long ERR_peek_error "openssl.ERR_peek_error"()
    unsigned long ERR_peek_last_error "openssl.ERR_peek_last_error"()
    void ERR_clear_error "openssl.ERR_clear_error"()
    const char *ERR_reason_error_string "openssl.ERR_reason_error_string"(unsigned long)

cdef extern from "Python.h":
    PyObject *bytes_new "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size)
    char *bytes_start "PyBytes_AS_STRING"(PyObject *data)
    int _PyBytes_Resize(PyObject **data, Py_ssize_t size) except -1
    void Py_XDECREF(PyObject *data)

cdef enum:
    TLS_RECORD = 16 * 1024  # as in masks.py
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
        _let_go(self)  # of what an earlier call has made
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self._held = None
        self._end = None
        self._inner = getattr(self.ssl_object, "_sslobj", None)
        self._ssl = _inside(self._inner)
        if self._ssl != NULL:
            self._memory = tls_memory_attach(self._ssl)
            if self._memory == NULL:
                self._ssl = NULL
                raise MemoryError
            self._incoming = self._outgoing = None

    def __dealloc__(self):
        _let_go(self)

    cdef int receive(self, object data) except -1:
        """Take ciphertext, to be looked at by the calls below."""
        if type(data) is not bytes:
            data = bytes(data)
        if self._ssl == NULL:
            self._incoming.write(data)
            return 0
        if self._memory.left:
            data = self._memory.next[: self._memory.left] + data
        _hold(self, data)
        return 0

    cdef int receive_from(self, sockets.Receiver receiver) except -1:
        """Take what `receiver` was filled with, which `settle` must follow."""
        if self._ssl == NULL or self._memory.left:
            self.receive(receiver.get())
        else:
            _hold(self, receiver._spare)
            self._memory.left = receiver._filled
        return 0

    cdef int settle(self, sockets.Receiver receiver) except -1:
        """Let the receiver have its memory back, of which only the rest of a record is still wanted."""
        if self._held is not None and self._held is receiver._spare:
            _hold(self, self._memory.next[: self._memory.left])
        return 0

    cdef Py_ssize_t waiting(self) except -1:
        """Bytes that were received and not read."""
        if self._ssl == NULL:
            return self._incoming.pending + self.ssl_object.pending()
        return <Py_ssize_t>self._memory.left + SSL_pending(self._ssl)

    cdef bint idle(self) except -1:
        """Whether there is nothing to read, not even an end."""
        return self._end is None and self.waiting() == 0

    cdef bint handshake(self) except -1:
        """Go on with the handshake; True when it is done."""
        return _attempt(self.ssl_object.do_handshake)

    cdef bint unwrap(self) except -1:
        """Go on with the shutdown: send close_notify, see the peer's; True when both are done."""
        return _attempt(self.ssl_object.unwrap)

    cdef object read(self, Py_ssize_t most):
        """Decrypt all that is there, up to `most` bytes.

        Empty bytes once the peer has sent close_notify, None when more ciphertext is needed.
        """
        cdef Py_ssize_t size = 0
        cdef Py_ssize_t room = self.waiting()  # plaintext is never longer than its ciphertext
        cdef Py_ssize_t count
        cdef PyObject *data
        if self._end is not None or room == 0:
            return _ended(self)
        if self._ssl != NULL and SSL_has_pending(self._ssl):
            room += TLS_RECORD  # the beginning of a record, which came with an earlier receive
        room = min(room, most)
        data = bytes_new(NULL, room)
        if data == NULL:
            raise MemoryError
        try:
            while size < room and self.waiting():
                count = _read(self, bytes_start(data) + size, room - size)
                if count < 0:
                    break
                size += count
            if size == 0:
                return _ended(self)
            _PyBytes_Resize(&data, size)
            return <object>data
        finally:
            Py_XDECREF(data)

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
        """Encrypt `data`, or the beginning of it; return the count, or -1 when OpenSSL must read first."""
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if self._ssl != NULL:
                return _write(self, <const char *>view.buf, view.len)
            try:
                return self.ssl_object.write(data)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return -1
        finally:
            PyBuffer_Release(&view)

    cdef object output(self):
        """The ciphertext to be sent, which is forgotten here."""
        if self._ssl == NULL:
            return self._outgoing.read() if self._outgoing.pending else b""
        if self._memory.size == 0:
            return b""
        data = PyBytes_FromStringAndSize(self._memory.output, <Py_ssize_t>self._memory.size)
        tls_memory_forget(self._memory)
        return data

    cdef bint send(self, int fd) except -1:
        """Offer the kernel the ciphertext to be sent; true if it took all. The rest is `output`."""
        cdef ssize_t count
        if self._ssl == NULL:
            return False
        if self._memory.size:
            count = sockets._send(fd, self._memory.output, <Py_ssize_t>self._memory.size)
            if count < 0:
                count = 0
            self._memory.size -= <size_t>count
            if self._memory.size:
                memmove(self._memory.output, self._memory.output + count, self._memory.size)
                return False
            tls_memory_forget(self._memory)
        return True


# OpenSSL's connection may live on, and what it was to read be gone.
cdef void _let_go(Engine engine) noexcept:
    cdef TLSMemory *memory = engine._memory
    engine._ssl = NULL
    engine._memory = NULL
    if memory != NULL:
        memory.left = 0
        tls_memory_release(memory)


# OpenSSL is to read from `data` next, which is kept as long.
cdef int _hold(Engine engine, bytes data) except -1:
    engine._held = data
    engine._memory.next = PyBytes_AS_STRING(data)
    engine._memory.left = PyBytes_GET_SIZE(data)
    return 0


# The bytes that one read brings, or NEEDS_MORE; or ENDED, and engine._end says how.
cdef Py_ssize_t _read(Engine engine, char *buffer, Py_ssize_t size) except -3:
    cdef int count
    cdef int code
    if engine._end is not None:
        return ENDED
    if engine._ssl == NULL:
        return _read_slowly(engine, buffer, size)
    if ERR_peek_error():  # another's, which SSL_get_error() would take for ours
        ERR_clear_error()
    count = SSL_read(engine._ssl, buffer, <int>min(size, MOST))
    if engine._memory.left == 0:
        engine._held = None
    if count > 0:
        return count
    code = SSL_get_error(engine._ssl, count)
    if code == SSL_ERROR_WANT_READ or code == SSL_ERROR_WANT_WRITE:
        return NEEDS_MORE
    engine._end = b"" if code == SSL_ERROR_ZERO_RETURN else _error(code)
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


# Record after record; each write of OpenSSL's makes one (the ssl module sets SSL_MODE_ENABLE_PARTIAL_WRITE).
cdef Py_ssize_t _write(Engine engine, const char *data, Py_ssize_t size) except -2:
    cdef Py_ssize_t done = 0
    cdef int count
    cdef int code = 0
    tls_memory_lend(engine._memory)
    if ERR_peek_error():
        ERR_clear_error()
    while done < size:
        count = SSL_write(engine._ssl, data + done, <int>min(size - done, MOST))
        if count <= 0:
            code = SSL_get_error(engine._ssl, count)
            break
        done += count
    if engine._memory.left == 0:
        engine._held = None
    if engine._memory.size == 0:
        tls_memory_forget(engine._memory)
    if done or not size:
        return done  # what has failed then will fail again
    if code == SSL_ERROR_WANT_READ or code == SSL_ERROR_WANT_WRITE:
        return -1
    raise _error(code)


# False if the operation needs more ciphertext than there is.
cdef bint _attempt(object operation) except -1:
    try:
        operation()
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return False
    return True
