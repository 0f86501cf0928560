"""Operations on a non-blocking datagram socket: recvmmsg(2), sendmmsg(2); one by one where there are none. Compiled twin.

Addresses of IP and Unix sockets are translated here; for those of other families, and for what is no plain address in
figures, the socket's own methods are called, one datagram at a time, so that they raise what they always raise.

A few addresses are remembered in both directions: to print and to read one takes as long as a small datagram's way
through the kernel.
"""

import os
import socket
from errno import EMSGSIZE

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from cpython.object cimport PyObject
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset, strlen

from epoque.kernel cimport sockets

cdef extern from "<sys/socket.h>" nogil:
    struct sockaddr_storage:
        unsigned short ss_family
    enum:
        AF_INET
        AF_INET6
        AF_UNIX
        MSG_TRUNC

cdef extern from *:
    """
    #include <string.h>

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

    /* How many were received, and what went wrong behind them, which is told only once. */
    static int epoque_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int *failure) {
        unsigned int index;
    #ifndef EPOQUE_ONE_BY_ONE
        *failure = 0;
        if (count > 1) return recvmmsg(fd, messages, count, MSG_DONTWAIT, NULL);
    #endif
    #if defined(__linux__) && !defined(EPOQUE_ONE_BY_ONE)
        if (count == 1) { /* with less to copy; MSG_TRUNC asks for the true size, recv(2) */
            struct msghdr *header = &messages->msg_hdr;
            ssize_t size = recvfrom(fd, header->msg_iov->iov_base, header->msg_iov->iov_len, MSG_DONTWAIT | MSG_TRUNC,
                                    header->msg_name, &header->msg_namelen);
            if (size < 0) return -1;
            messages->msg_len = (unsigned int)size;
            header->msg_flags = (size_t)size > header->msg_iov->iov_len ? MSG_TRUNC : 0;
            return 1;
        }
    #endif
        for (index = 0; index < count; index++) {
            ssize_t size = recvmsg(fd, &messages[index].msg_hdr, MSG_DONTWAIT);
            if (size < 0) break;
            messages[index].msg_len = (unsigned int)size;
        }
        *failure = index == count || index == 0 || errno == EAGAIN || errno == EINTR ? 0 : errno;
        return index || !count ? (int)index : -1;
    }

    static int epoque_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count) {
        if (count == 1) { /* the usual case, with less to copy */
            const struct msghdr *header = &messages->msg_hdr;
            return sendto(fd, header->msg_iov->iov_base, header->msg_iov->iov_len, MSG_DONTWAIT | EPOQUE_NOSIGNAL,
                          header->msg_name, header->msg_namelen) < 0 ? -1 : 1;
        }
    #ifdef EPOQUE_ONE_BY_ONE
        unsigned int index;
        for (index = 0; index < count; index++)
            if (sendmsg(fd, &messages[index].msg_hdr, MSG_DONTWAIT | EPOQUE_NOSIGNAL) < 0) break;
        return index || !count ? (int)index : -1;
    #else
        return sendmmsg(fd, messages, count, MSG_DONTWAIT | EPOQUE_NOSIGNAL);
    #endif
    }

    /* Where in a small table an address is remembered. */
    static unsigned int epoque_place(const void *name, unsigned int length) {
        unsigned int hash = length, word;
        for (; length >= sizeof word; length -= sizeof word, name = (const char *)name + sizeof word) {
            memcpy(&word, name, sizeof word);
            hash = (hash ^ word) * 2654435761u;
        }
        return hash >> 26;
    }
    """
    int epoque_recvmmsg(int fd, mmsghdr *messages, unsigned int count, int *failure)
    int epoque_sendmmsg(int fd, mmsghdr *messages, unsigned int count)
    unsigned int epoque_place(const void *name, unsigned int length) nogil
    bint EPOQUE_ABSTRACT

cdef extern from "<netinet/in.h>" nogil:
    struct in_addr:
        pass
    struct in6_addr:
        pass
    struct sockaddr_in:
        unsigned short sin_family
        uint16_t sin_port
        in_addr sin_addr
    struct sockaddr_in6:
        unsigned short sin6_family
        uint16_t sin6_port
        uint32_t sin6_flowinfo
        in6_addr sin6_addr
        uint32_t sin6_scope_id
    uint16_t htons(uint16_t value)
    uint32_t htonl(uint32_t value)

cdef extern from "<arpa/inet.h>" nogil:
    int inet_pton(int family, const char *text, void *target)

cdef extern from "<sys/un.h>" nogil:
    struct sockaddr_un:
        unsigned short sun_family
        char sun_path[108]

cdef extern from "<stddef.h>" nogil:
    size_t UNIX_PATH_OFFSET "offsetof(struct sockaddr_un, sun_path)"

cdef extern from "Python.h":
    Py_buffer *PyMemoryView_GET_BUFFER(object view)
    bint PyMemoryView_Check(object view)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    long PyLong_AsLongAndOverflow(object number, int *overflow) except? -1

# As in masks.py.
cdef enum:
    DATAGRAMS = 64
    DATAGRAM_SIZE = 65536
    LARGEST_DATAGRAM = 262144

cdef enum:
    NAME = sizeof(sockaddr_storage)
    PLACES = 64  # as many as epoque_place() tells apart
    FLOW_MAX = 0xFFFFF  # RFC 6437: 20 bits


cdef class Receiver:
    """Where a loop receives datagrams: what one system call brings, each as bytes of exactly its length.

    The memory is 4 MiB of address space, of which only those pages exist that datagrams have filled.
    """

    def __cinit__(self):
        self._buffer = <char *>malloc(DATAGRAMS * DATAGRAM_SIZE)
        self._messages = <mmsghdr *>calloc(DATAGRAMS, sizeof(mmsghdr))
        self._vectors = <iovec *>calloc(DATAGRAMS, sizeof(iovec))
        self._names = <char *>calloc(DATAGRAMS, NAME)
        self._slot = 0
        self._known = [None] * PLACES
        self._known_names = <char *>calloc(PLACES, NAME)
        if not (self._buffer and self._messages and self._vectors and self._names and self._known_names):
            raise MemoryError

    def __dealloc__(self):
        free(self._buffer)
        free(self._messages)
        free(self._vectors)
        free(self._names)
        free(self._known_names)

    cdef list recv(self, object sock, int fd, int family, Py_ssize_t most):
        """What waits, at most `most`: pairs (data, address), empty when it would block; errors as OSError.

        The socket's descriptor is `fd`, the most that can be asked for `DATAGRAMS`. A datagram that was too large, and
        cut off, is such an error: EMSGSIZE.
        """
        cdef Py_ssize_t slot
        cdef list found
        cdef int count, failure
        if family == AF_INET or family == AF_INET6:
            slot = DATAGRAM_SIZE
        elif family == AF_UNIX:
            slot = LARGEST_DATAGRAM
        else:
            return _recv_other(sock)
        if self._slot != slot:
            _lay_out(self, slot)
        most = min(most, DATAGRAMS * DATAGRAM_SIZE // slot)
        while True:
            count = epoque_recvmmsg(fd, self._messages, <unsigned int>most, &failure)
            if count >= 0:
                found = _collect(self, count)
                if failure:
                    found.append(_error(failure))
                return found
            if errno == EAGAIN:
                return []
            if errno != EINTR:
                return [_error(errno)]
            PyErr_CheckSignals()


cdef int _lay_out(Receiver receiver, Py_ssize_t slot) except -1:
    cdef iovec *vector
    cdef msghdr *header
    cdef Py_ssize_t index
    for index in range(DATAGRAMS * DATAGRAM_SIZE // slot):
        vector = receiver._vectors + index
        vector.iov_base = receiver._buffer + index * slot
        vector.iov_len = slot
        header = &receiver._messages[index].msg_hdr
        header.msg_name = receiver._names + index * NAME
        header.msg_namelen = NAME
        header.msg_iov = vector
        header.msg_iovlen = 1
    receiver._slot = slot
    return 0


cdef list _collect(Receiver receiver, int count):
    cdef list found = []
    cdef Py_ssize_t slot = receiver._slot
    cdef Py_ssize_t index
    cdef msghdr *header
    receiver._slot = 0  # if this raises, all is laid out anew
    for index in range(count):
        header = &receiver._messages[index].msg_hdr
        if header.msg_flags & MSG_TRUNC:
            found.append(_error(EMSGSIZE))
        else:
            data = PyBytes_FromStringAndSize(<char *>header.msg_iov.iov_base, receiver._messages[index].msg_len)
            found.append((data, _address(receiver, header)))
        header.msg_namelen = NAME
    receiver._slot = slot
    return found


cdef object _address(Receiver receiver, msghdr *header):
    cdef socklen_t length = header.msg_namelen
    cdef unsigned int place
    cdef char *known
    if length == 0:  # a Unix socket without a name; recvfrom() gives None for it
        return None
    place = epoque_place(header.msg_name, length)
    known = receiver._known_names + place * NAME
    if length != receiver._known_lengths[place] or memcmp(header.msg_name, known, length):
        receiver._known_lengths[place] = 0
        receiver._known[place] = sockets._named(header.msg_name, length)
        memcpy(known, header.msg_name, length)
        receiver._known_lengths[place] = length
    return receiver._known[place]


def _error(code):
    return OSError(code, os.strerror(code))


def _recv_other(sock):
    try:
        data, _, flags, address = sock.recvmsg(LARGEST_DATAGRAM)
    except (BlockingIOError, InterruptedError):
        return []
    except OSError as exc:
        return [exc]
    return [_error(EMSGSIZE)] if flags & socket.MSG_TRUNC else [(data, address)]


cdef Py_ssize_t send(object sock, int fd, int family, list pairs, Py_ssize_t most, bint connected) except -2:
    """Send the first `most`, or fewer, of the pairs (data, address); return how many are gone, or -1 if it would block.

    Data are `bytes` or a contiguous `memoryview` of the caller's own; a connected socket sends to its peer, whatever
    the addresses. What is raised is about the first pair.
    """
    cdef mmsghdr messages[DATAGRAMS]
    cdef iovec vectors[DATAGRAMS]
    cdef char names[DATAGRAMS * NAME]
    cdef socklen_t length
    cdef Py_buffer *view
    cdef Py_ssize_t index = 0
    cdef int count
    cdef tuple pair
    most = min(most, len(pairs), DATAGRAMS)
    while index < most:
        pair = pairs[index]
        data, address = pair
        length = 0
        if not connected:
            length = _pack(family, address, names + index * NAME)
            if length == 0:
                break
        if PyMemoryView_Check(data):
            view = PyMemoryView_GET_BUFFER(data)
            vectors[index].iov_base = view.buf
            vectors[index].iov_len = view.len
        else:
            vectors[index].iov_base = PyBytes_AS_STRING(<bytes?>data)
            vectors[index].iov_len = PyBytes_GET_SIZE(data)
        memset(&messages[index], 0, sizeof(mmsghdr))
        if length:
            messages[index].msg_hdr.msg_name = names + index * NAME
        messages[index].msg_hdr.msg_namelen = length
        messages[index].msg_hdr.msg_iov = &vectors[index]
        messages[index].msg_hdr.msg_iovlen = 1
        index += 1
    if index == 0:
        return _send_other(sock, pairs[0]) if most > 0 else 0
    while True:
        count = epoque_sendmmsg(fd, messages, index)
        if count >= 0:
            return count
        if errno == EAGAIN:
            return -1
        if errno != EINTR:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()


def _send_other(sock, pair):
    try:
        sock.sendto(*pair)
    except (BlockingIOError, InterruptedError):
        return -1
    return 1


# The length of the address at `target`, 0 if it is not a plain one.
cdef socklen_t _pack(int family, object address, char *target) except? 0:
    cdef Py_ssize_t size
    cdef const char *text
    cdef socklen_t length
    if family == AF_INET or family == AF_INET6:
        if type(address) is not tuple:
            return 0
        length = _recall(family, address)
        if length:
            memcpy(target, _names[_place(address)], length)
        return length
    if family != AF_UNIX or type(address) not in (str, bytes):
        return 0
    path = os.fsencode(address)
    size = PyBytes_GET_SIZE(path)
    text = PyBytes_AS_STRING(path)
    if size == 0 or size >= <Py_ssize_t>sizeof(sockaddr_un) - <Py_ssize_t>UNIX_PATH_OFFSET or (
        <Py_ssize_t>strlen(text) != size if text[0] else not EPOQUE_ABSTRACT
    ):
        return 0
    memset(target, 0, sizeof(sockaddr_un))
    (<sockaddr_un *>target).sun_family = AF_UNIX
    memcpy(target + UNIX_PATH_OFFSET, text, size)
    return <socklen_t>(UNIX_PATH_OFFSET + size + (1 if text[0] else 0))


# Addresses in figures that were sent to, and what the kernel calls them. A tuple of str and int does not change, so
# that it is the same one is enough to know; a tuple that a datagram came from is the one that its answer goes to.
cdef list _addresses = [None] * PLACES
cdef char[PLACES][NAME] _names
cdef socklen_t[PLACES] _lengths
cdef int[PLACES] _families


cdef unsigned int _place(tuple address) noexcept:
    return <unsigned int>(<size_t><PyObject *>address >> 4) % PLACES


# The length of the address's name in _names[_place(address)], 0 if it is not a plain one.
cdef socklen_t _recall(int family, tuple address) except? 0:
    cdef unsigned int place = _place(address)
    if _addresses[place] is not address or _families[place] != family:
        _addresses[place] = None
        _lengths[place] = _pack_inet(family, address, _names[place])
        if _lengths[place] == 0:
            return 0
        _families[place] = family
        _addresses[place] = address
    return _lengths[place]


cdef socklen_t _pack_inet(int family, tuple address, char *target) except? 0:
    cdef sockaddr_in *inet = <sockaddr_in *>target
    cdef sockaddr_in6 *inet6 = <sockaddr_in6 *>target
    cdef Py_ssize_t parts = len(address)
    cdef long port, flow = 0, scope = 0
    if parts < 2 or parts > (2 if family == AF_INET else 4):
        return 0
    port = _number(address[1], 0xFFFF)
    if parts > 2:
        flow = _number(address[2], FLOW_MAX)
    if parts > 3:
        scope = _number(address[3], 0xFFFFFFFF)
    if port < 0 or flow < 0 or scope < 0:
        return 0
    memset(target, 0, NAME)
    if family == AF_INET:
        inet.sin_family = AF_INET
        inet.sin_port = htons(<uint16_t>port)
        return sizeof(sockaddr_in) if _in_figures(family, address[0], &inet.sin_addr) else 0
    inet6.sin6_family = AF_INET6
    inet6.sin6_port = htons(<uint16_t>port)
    inet6.sin6_flowinfo = htonl(<uint32_t>flow)
    inet6.sin6_scope_id = <uint32_t>scope
    return sizeof(sockaddr_in6) if _in_figures(family, address[0], &inet6.sin6_addr) else 0


cdef long _number(object value, long most) except? -1:
    cdef int overflow
    cdef long number
    if type(value) is not int:
        return -1
    number = PyLong_AsLongAndOverflow(value, &overflow)
    return number if 0 <= number <= most else -1


cdef bint _in_figures(int family, object host, void *target) except -1:
    cdef Py_ssize_t size
    cdef const char *text
    if type(host) is not str:
        return False
    try:
        text = PyUnicode_AsUTF8AndSize(host, &size)
    except UnicodeError:
        return False
    return <Py_ssize_t>strlen(text) == size and inet_pton(family, text, target) == 1


cdef bint is_name(int family, object address) except -1:
    """Would the module `socket` have to look up the host of this address, and block, to send to it?"""
    cdef char target[16]
    if (family != AF_INET and family != AF_INET6) or not isinstance(address, tuple):
        return False
    if type(address) is tuple and _recall(family, address):
        return False
    if not 2 <= len(address) <= (2 if family == AF_INET else 4) or _in_figures(family, address[0], target):
        return False
    return _is_name(address)


def _is_name(address):
    host, *numbers = address
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in ("", "<broadcast>") or not all(type(number) is int for number in numbers):
        return False
    for family, text in ((AF_INET, host), (AF_INET6, host.partition("%")[0])):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return False
    return True
