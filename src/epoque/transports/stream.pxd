cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport events, interp, sockets
from epoque.transports cimport sendqueue
from epoque.transports.base cimport BaseTransport
from epoque.transports.flow cimport FlowControl
from epoque.transports.sendqueue cimport SendQueue

cdef int HANGUP
cdef int READ
cdef int WRITE
cdef Py_ssize_t AT_ONCE
cdef int READS_AFTER_HANGUP


@cython.final
cdef class StreamTransport(BaseTransport):
    cdef sockets.Receiver receiver  # the loop's
    cdef SendQueue queue
    cdef FlowControl flow
    cdef bint buffered  # the protocol is a BufferedProtocol
    cdef bint started  # connection_made was called
    cdef bint paused  # pause_reading
    cdef bint ending  # in loop.ending: to be called at the end of this turn
    cdef bint eof_received
    cdef bint eof_written
    cdef bint eof_sent  # FIN
    cdef bint sending  # a sendfile is in progress: nobody else writes, nothing is read
    cdef object room  # asyncio.Future that the sendfile waits for, or None

    cdef int read_on(self) except -1
    cdef int begin(self) except -1
    @cython.locals(count=Py_ssize_t)
    cdef bint receive_into(self) except -1
    cdef int deliver(self, str name, object argument) except -1
    cdef int end_of_stream(self) except -1
    @cython.locals(sent=Py_ssize_t)
    cdef object take(self, object data)
    @cython.locals(size=Py_ssize_t)
    cdef int commit(self) except -1
    cdef int flush_now(self) except -1
    cdef int flush(self) except -1
    cdef int ask_for_turn_end(self) except -1
    cdef int settle(self) except -1
    cdef int finish(self) except -1
    cdef int count_lost_write(self) except -1
    cdef int grant(self) except -1
    cdef int write_failed(self, object exc) except -1


@cython.locals(transport=StreamTransport)
cpdef StreamTransport connected(
    Reactor loop, object sock, object protocol, object waiter=*, object extra=*, object server=*, object context=*
)


@cython.locals(transport=StreamTransport)
cdef StreamTransport accepted(
    Reactor loop,
    int fd,
    object listener,
    object peername,
    object sockname,
    object protocol,
    object server,
    object context,
)


cdef object name_of(object ask)
