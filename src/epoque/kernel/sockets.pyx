"""Operations on a non-blocking stream socket: recv(2), send(2), sendmsg(2), accept4(2), shutdown(2). Compiled twin.

Sockets are named by descriptor, so that a transport need not hold a `socket.socket`. None of these calls blocks, so none
gives up the GIL: taking it back may cost more than the call.

The functions whose name begins with try_ are for coroutines, which have a `socket.socket`: an exception for each time
that there is nothing costs more than all the rest. What is not of this very type does it itself, in its own way.
"""

import os
import socket

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_REFCNT, Py_XDECREF
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memcpy, memset

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct sockaddr:
        unsigned short sa_family
    struct sockaddr_storage:
        unsigned short ss_family
    struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen
    ssize_t c_recv "recv"(int fd, void *buffer, size_t size, int flags)
    ssize_t c_send "send"(int fd, const void *buffer, size_t size, int flags)
    ssize_t sendmsg(int fd, const msghdr *message, int flags)
    int c_shutdown "shutdown"(int fd, int how)
    int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
    int getsockname(int fd, sockaddr *address, socklen_t *length)
    int getpeername(int fd, sockaddr *address, socklen_t *length)
    enum:
        AF_INET
        AF_INET6
        AF_UNIX
        INET6_ADDRSTRLEN
        MSG_DONTWAIT
        SHUT_WR

cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/socket.h>
    #include <fcntl.h>

    /* macOS has neither accept4() nor, before 14, MSG_NOSIGNAL: there a socket option says the same. */
    #if defined(__APPLE__) || defined(EPOQUE_PORTABLE)
    static int epoque_accept(int listening, struct sockaddr *address, socklen_t *length) {
        int fd = accept(listening, address, length);
        if (fd < 0) return fd;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        return fd;
    }
    #else
    static int epoque_accept(int listening, struct sockaddr *address, socklen_t *length) {
        return accept4(listening, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    #endif

    /* inet_ntop() goes through sprintf(), which takes longer than accept4()'s own work on the address. */
    static size_t epoque_figures(const void *address, char *text) {
        const unsigned char *octets = address;
        char *end = text;
        for (int i = 0; i < 4; i++) {
            if (i) *end++ = '.';
            if (octets[i] > 99) *end++ = '0' + octets[i] / 100;
            if (octets[i] > 9) *end++ = '0' + octets[i] / 10 % 10;
            *end++ = '0' + octets[i] % 10;
        }
        return end - text;
    }

    #ifdef SO_NOSIGPIPE
    static void epoque_no_sigpipe(int fd) {
        int on = 1;
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    }
    #else
    static void epoque_no_sigpipe(int fd) { (void)fd; }
    #endif
    #ifdef MSG_NOSIGNAL
    #define EPOQUE_NOSIGNAL MSG_NOSIGNAL
    #else
    #define EPOQUE_NOSIGNAL 0
    #endif

    #ifdef __linux__
    #define EPOQUE_ABSTRACT 1 /* names of Unix sockets that begin with a zero byte, unix(7) */
    #else
    #define EPOQUE_ABSTRACT 0
    #endif
    """
    int epoque_accept(int listening, sockaddr *address, socklen_t *length)
    size_t epoque_figures(const void *address, char *text)
    void epoque_no_sigpipe(int fd)
    int EPOQUE_NOSIGNAL
    bint EPOQUE_ABSTRACT

cdef extern from "<netinet/in.h>" nogil:
    struct in_addr:
        uint32_t s_addr
    struct in6_addr:
        pass
    struct sockaddr_in:
        uint16_t sin_port
        in_addr sin_addr
    struct sockaddr_in6:
        uint16_t sin6_port
        uint32_t sin6_flowinfo
        in6_addr sin6_addr
        uint32_t sin6_scope_id
    uint16_t ntohs(uint16_t value)
    uint32_t ntohl(uint32_t value)
    enum:
        IPPROTO_TCP

cdef extern from "<arpa/inet.h>" nogil:
    const char *inet_ntop(int family, const void *source, char *target, socklen_t size)

cdef extern from "<netinet/tcp.h>" nogil:
    enum:
        TCP_NODELAY

cdef extern from "<sys/un.h>" nogil:
    struct sockaddr_un:
        char *sun_path

cdef extern from "<string.h>" nogil:
    size_t strnlen(const char *text, size_t most)

cdef extern from "<stddef.h>" nogil:
    size_t UNIX_PATH_OFFSET "offsetof(struct sockaddr_un, sun_path)"

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject **data, Py_ssize_t size) except -1
    Py_buffer *PyMemoryView_GET_BUFFER(object view)
    bint PyMemoryView_Check(object view)

cdef enum:
    LARGE = 16 * 1024  # bytes; what is larger costs more to copy than new memory does
    LARGEST_BLOCK = 8 * 1024 * 1024  # bytes; never touched
    TRIED = 256 * 1024  # bytes that one try_recv() can bring without memory of its own

_WOULD_BLOCK = (BlockingIOError, InterruptedError)
_Socket = socket.socket


# glibc returns freed memory to the kernel beyond a threshold, twice the largest mapped block that was freed (mallopt(3),
# M_MMAP_THRESHOLD). Below what the messages under way need, each of them would fault its pages in anew.
PyMem_RawFree(PyMem_RawMalloc(LARGEST_BLOCK))


cdef class Receiver:
    """Where a loop receives: `recv` gives what one system call brings, as bytes of exactly that length.

    The memory is a bytes object, which is given away when a receive brings much. Who reads from it holds it, and so
    keeps it from being filled again.
    """

    def __cinit__(self, Py_ssize_t size):
        self._size = size
        self._filled = 0
        self.full = False

    cdef object recv(self, int fd):
        """Bytes, empty at the end of the stream, or None when it would block."""
        cdef ssize_t count = self.fill(fd)
        return None if count < 0 else _take(self, count)

    cdef Py_ssize_t fill(self, int fd) except -2:
        """Receive without making bytes of it; return the count, 0 at the end of the stream, or -1."""
        cdef ssize_t count
        while True:
            count = c_recv(fd, _memory(self), self._size, 0)
            if count >= 0:
                self.full = count == self._size
                self._filled = count
                return count
            if _would_block():
                return -1

    cdef object get(self):
        """What `fill` brought, as bytes."""
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self._spare), self._filled)


cdef Receiver _shared = Receiver(TRIED)  # by all loops; the GIL is not given up while it is in use


# Where to receive: memory that nobody else has.
cdef char *_memory(Receiver receiver) except NULL:
    if receiver._spare is None or Py_REFCNT(receiver._spare) > 1:
        receiver._spare = PyBytes_FromStringAndSize(NULL, receiver._size)
    return PyBytes_AS_STRING(receiver._spare)


# The first `count` bytes of that memory.
cdef object _take(Receiver receiver, Py_ssize_t count):
    cdef PyObject *data = <PyObject *>receiver._spare
    if count < LARGE:
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(receiver._spare), count)
    Py_INCREF(receiver._spare)
    receiver._spare = None
    try:
        _PyBytes_Resize(&data, count)
        return <object>data
    finally:
        Py_XDECREF(data)


# After a call that failed: true when it would have blocked, false when it is to be repeated, else OSError.
cdef bint _would_block() except -1:
    if errno == EAGAIN:
        return True
    if errno != EINTR:
        PyErr_SetFromErrno(OSError)
    PyErr_CheckSignals()
    return False


cpdef object try_recv(object sock, Py_ssize_t size):
    """Up to `size` bytes, none at the end of the stream, or None when it would block."""
    cdef ssize_t count
    cdef int fd
    if type(sock) is not _Socket or size <= 0 or size > TRIED:  # nothing asked for never blocks
        return _own_recv(sock, size)
    fd = sock.fileno()
    while True:
        count = c_recv(fd, _memory(_shared), size, MSG_DONTWAIT)
        if count >= 0:
            return _take(_shared, count)
        if _would_block():
            return None


cpdef Py_ssize_t try_recv_into(object sock, object buffer) except -2:
    """Receive into a writable buffer; return the count, 0 at the end of the stream, or -1 when it would block."""
    cdef Py_buffer view
    cdef ssize_t count
    cdef int fd
    if type(sock) is not _Socket:
        return _own_recv_into(sock, buffer)
    fd = sock.fileno()
    try:
        PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    except (BufferError, TypeError):
        return _own_recv_into(sock, buffer)  # refuses it in its own words
    try:
        if view.len == 0:
            return 0  # without a look at the socket, as in the module `socket`
        while True:
            count = c_recv(fd, view.buf, view.len, MSG_DONTWAIT)
            if count >= 0:
                return count
            if _would_block():
                return -1
    finally:
        PyBuffer_Release(&view)


cpdef Py_ssize_t try_send(object sock, object data) except -2:
    """Send from a buffer; return the count, or -1 when it would block."""
    cdef Py_buffer view
    cdef ssize_t count
    cdef int fd
    if type(sock) is not _Socket:
        return _own_send(sock, data)
    fd = sock.fileno()
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while True:
            count = c_send(fd, view.buf, view.len, EPOQUE_NOSIGNAL | MSG_DONTWAIT)
            if count >= 0:
                return count
            if _would_block():
                return -1
    finally:
        PyBuffer_Release(&view)


def _own_recv(sock, size):
    try:
        return sock.recv(size)
    except _WOULD_BLOCK:
        return None


def _own_recv_into(sock, buffer):
    try:
        return sock.recv_into(buffer)
    except _WOULD_BLOCK:
        return -1


def _own_send(sock, data):
    try:
        return sock.send(data)
    except _WOULD_BLOCK:
        return -1


cdef Py_ssize_t recv_into(int fd, object buffer) except -2:
    """Receive into a writable buffer; return the count, 0 at the end of the stream, or -1 when it would block."""
    cdef Py_buffer view
    cdef ssize_t count
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        while True:
            count = c_recv(fd, view.buf, view.len, 0)
            if count >= 0:
                return count
            if _would_block():
                return -1
    finally:
        PyBuffer_Release(&view)


cdef Py_ssize_t send(int fd, object data, Py_ssize_t offset) except -2:
    """Send `data` from `offset` on; return the count, or -1 when it would block."""
    cdef Py_buffer view
    if PyBytes_CheckExact(data):
        return _send(fd, PyBytes_AS_STRING(data) + offset, PyBytes_GET_SIZE(data) - offset)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return _send(fd, <char *>view.buf + offset, view.len - offset)
    finally:
        PyBuffer_Release(&view)


cdef Py_ssize_t _send(int fd, const char *data, Py_ssize_t size) except -2:
    cdef ssize_t count
    while True:
        count = c_send(fd, data, size, EPOQUE_NOSIGNAL)
        if count >= 0:
            return count
        if _would_block():
            return -1


cdef Py_ssize_t send_many(int fd, list pieces, Py_ssize_t offset, Py_ssize_t size) except -2:
    """Send a list of buffers, the first from `offset` on, `size` bytes in all, by one system call; the count, or -1.

    Small ones are joined: for the kernel to find one after the other takes longer. A piece is `bytes`, or a contiguous
    `memoryview` of the caller's own.
    """
    cdef iovec vector[SEND_PIECES]
    cdef char joined[JOINED]
    cdef msghdr message
    cdef ssize_t count
    cdef Py_ssize_t used = _gather(pieces, offset, vector)
    cdef Py_ssize_t whole = _join(vector, used, joined) if size <= used * SMALL and used == len(pieces) else 0
    memset(&message, 0, sizeof(message))
    message.msg_iov = vector
    message.msg_iovlen = used
    while True:
        count = c_send(fd, joined, whole, EPOQUE_NOSIGNAL) if whole else sendmsg(fd, &message, EPOQUE_NOSIGNAL)
        if count >= 0:
            return count
        if _would_block():
            return -1


cdef Py_ssize_t _join(const iovec *vector, Py_ssize_t used, char *joined) noexcept:
    """Copy all of it to `joined` and return the size; 0 if that is more than `JOINED`."""
    cdef Py_ssize_t index, size = 0
    for index in range(used):
        if vector[index].iov_len > <size_t>(JOINED - size):
            return 0
        memcpy(joined + size, vector[index].iov_base, vector[index].iov_len)
        size += vector[index].iov_len
    return size


cdef Py_ssize_t _gather(list pieces, Py_ssize_t offset, iovec *vector) except -1:
    """Fill `vector`, SEND_PIECES long, with what one system call is to send; return how much of it was used."""
    cdef Py_buffer *view
    cdef Py_ssize_t index = 0
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
    if index:
        vector[0].iov_base = <char *>vector[0].iov_base + offset
        vector[0].iov_len -= offset
    return index


cdef object accept(object listener):
    """Accept from a non-blocking `socket.socket`: (descriptor, peer's address), or None when nobody waits."""
    cdef sockaddr_storage address
    cdef socklen_t length
    cdef int listening = listener.fileno()
    cdef int fd
    while True:
        length = sizeof(address)
        fd = epoque_accept(listening, <sockaddr *>&address, &length)
        if fd >= 0:
            epoque_no_sigpipe(fd)
            return fd, _address(fd, &address, length, True)
        if _would_block():
            return None


cdef object local_address(int fd, int family):
    """getsockname(2) of a connected socket, as `socket.socket.getsockname` gives it."""
    cdef sockaddr_storage address
    cdef socklen_t length = sizeof(address)
    if getsockname(fd, <sockaddr *>&address, &length) < 0:
        PyErr_SetFromErrno(OSError)
    return _address(fd, &address, length, False)


cdef object peer_address(int fd, int family):
    """getpeername(2), likewise."""
    cdef sockaddr_storage address
    cdef socklen_t length = sizeof(address)
    if getpeername(fd, <sockaddr *>&address, &length) < 0:
        PyErr_SetFromErrno(OSError)
    return _address(fd, &address, length, True)


def is_connected(int fd):
    """Whether getpeername(2) knows of a peer."""
    cdef sockaddr_storage address
    cdef socklen_t length = sizeof(address)
    return getpeername(fd, <sockaddr *>&address, &length) == 0


cdef object _address(int fd, sockaddr_storage *address, socklen_t length, bint peer):
    if address.ss_family in (AF_INET, AF_INET6, AF_UNIX):
        return _named(address, length)
    return _address_of_rare_family(fd, address.ss_family, peer)


cdef object _named(void *storage, unsigned int length):
    """A socket address of one of the three common families, as the module `socket` shows it. For the kernel's own use."""
    cdef char text[INET6_ADDRSTRLEN]
    cdef sockaddr_storage *address = <sockaddr_storage *>storage
    cdef sockaddr_in *inet = <sockaddr_in *>storage
    cdef sockaddr_in6 *inet6 = <sockaddr_in6 *>storage
    cdef char *path
    if address.ss_family == AF_INET:
        return text[:epoque_figures(&inet.sin_addr, text)].decode("ascii"), ntohs(inet.sin_port)
    if address.ss_family == AF_INET6:
        inet_ntop(AF_INET6, &inet6.sin6_addr, text, sizeof(text))
        return text.decode("ascii"), ntohs(inet6.sin6_port), ntohl(inet6.sin6_flowinfo), inet6.sin6_scope_id
    if length <= UNIX_PATH_OFFSET:
        return ""
    path = (<sockaddr_un *>storage).sun_path
    length -= <socklen_t>UNIX_PATH_OFFSET
    if EPOQUE_ABSTRACT and path[0] == 0:  # all of it counts, NULs too
        return path[:length]
    return os.fsdecode(path[:strnlen(path, length)])


def _address_of_rare_family(int fd, int family, bint peer):
    connection = socket.socket(family, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        return connection.getpeername() if peer else connection.getsockname()
    except OSError:
        return None
    finally:
        connection.detach()


cdef int nodelay(int fd) except -1:
    """Set TCP_NODELAY; a socket that is not TCP's stays as it is."""
    cdef int on = 1
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on))
    return 0


cdef int no_sigpipe(int fd) except -1:
    """Let sending to a peer that has gone be an error only, where flags cannot say so: SO_NOSIGPIPE, macOS."""
    epoque_no_sigpipe(fd)
    return 0


cdef int shutdown(int fd) except -1:
    """Send FIN: shutdown(SHUT_WR). A peer that is gone already is no error."""
    c_shutdown(fd, SHUT_WR)
    return 0
