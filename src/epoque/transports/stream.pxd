cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport events, interp, sockets
from epoque.transports cimport base, sendqueue
from epoque.transports.tlsconnection cimport TLSConnection
from epoque.transports.writer cimport ByteTransport

cdef int HANGUP
cdef int READ
cdef int URGENT
cdef int WRITE
cdef int AF_INET
cdef int AF_INET6
cdef int IPPROTO_TCP
cdef int READS_AFTER_HANGUP
cdef tuple MEASURED


@cython.final
cdef class StreamTransport(ByteTransport):
    cdef sockets.Receiver receiver  # the loop's
    cdef bint buffered  # the protocol is a BufferedProtocol
    cdef bint secured  # the protocol is TLS
    cdef bint eof_received
    cdef bint eof_written
    cdef bint eof_sent  # FIN
    cdef bint sending  # a sendfile is in progress: nobody else writes, nothing is read
    cdef object room  # asyncio.Future that the sendfile waits for, or None

    @cython.locals(count=Py_ssize_t)
    cdef bint receive_ciphertext(self) except -1
    @cython.locals(count=Py_ssize_t, room=Py_ssize_t)
    cdef bint receive_into(self) except -1
    cdef int describe(self, int family, int proto) except -1
    cdef int deliver(self, str name, object argument) except -1
    cdef int end_of_stream(self) except -1
    @cython.locals(sent=Py_ssize_t)
    cdef object take(self, object data)
    cdef int grant(self) except -1


@cython.locals(transport=StreamTransport)
cpdef StreamTransport connected(
    Reactor loop, object sock, object protocol, object waiter=*, object extra=*, object server=*, object context=*,
    bint lent=*
)


@cython.locals(transport=StreamTransport)
cdef StreamTransport accepted(
    Reactor loop,
    int fd,
    int family,
    int proto,
    object peername,
    object sockname,
    object protocol,
    object server,
    object context,
)
