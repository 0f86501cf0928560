cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport interp, sockets, tls
from epoque.selector.source cimport Source
from epoque.transports.base cimport BaseTransport
from epoque.transports.flow cimport FlowControl
from epoque.transports.sendqueue cimport SendQueue
from epoque.transports.writer cimport ByteTransport

cdef int HANDSHAKE
cdef int OPEN
cdef int CLOSING
cdef int SHUTDOWN
cdef int LOST
cdef Py_ssize_t AT_ONCE
cdef Py_ssize_t MOST_UNREAD
cdef Py_ssize_t CHUNK
cdef Py_ssize_t MOST


cdef class TLSConnection(Source):
    cdef Reactor loop
    cdef tls.Engine engine
    cdef SendQueue queue  # plaintext
    cdef FlowControl flow
    cdef object lower  # the transport below; None before connection_made
    cdef ByteTransport stream  # the same, if it is one of ours with a socket; or None
    cdef object context  # contextvars.Context of the protocol's callbacks
    cdef object protocol  # None once the connection has ended
    cdef object waiter  # asyncio.Future of the handshake, or None once it is over
    cdef object timer  # TimerHandle of the handshake or the shutdown, or None
    cdef object handshake_timeout  # seconds
    cdef object shutdown_timeout  # seconds
    cdef int state
    cdef bint told  # connection_made was called, connection_lost not yet
    cdef bint buffered  # the protocol is a BufferedProtocol
    cdef bint closing
    cdef bint paused  # pause_reading
    cdef bint suspended  # pause_writing: the transport below has no room
    cdef bint stuck  # OpenSSL must read before it can write
    cdef bint ending  # in loop.ending: to be called at the end of this turn
    cdef bint established  # the handshake is done
    cdef bint fresh  # whoever waited for the handshake has not gone on yet: nothing is delivered
    cdef bint eof  # the transport below has seen its end of stream
    cdef bint notified  # the peer's close_notify has come
    cdef int dropped  # writes after the end
    cdef Py_ssize_t pending  # bytes that were to be sent when the shutdown's timer was set
    cdef Py_ssize_t unread  # bytes of answers that were sent while the transport below had no room
    cdef object __weakref__
    cdef dict __dict__  # tests of applications put mocks in the place of methods

    cpdef int _take(self, sockets.Receiver receiver) except -1
    cdef int go_on(self) except -1
    cdef int shake(self) except -1
    cdef int open_up(self) except -1
    cdef int wake(self, object exc) except -1
    cdef int read_on(self) except -1
    cdef bint read(self) except -1
    @cython.locals(count=Py_ssize_t)
    cdef bint read_into(self) except -1
    cdef int end_of_stream(self) except -1
    cdef int commit(self, bint at_once) except -1
    cdef int ask_for_turn_end(self) except -1
    cdef int progress(self) except -1
    cdef int filled(self) except -1
    @cython.locals(lower=Source)
    cdef int before_fork(self) except -1
    cdef Py_ssize_t counted(self) except -1
    cdef Py_ssize_t unsent(self) except -1
    cdef int settle(self, object context) except -1
    @cython.locals(count=Py_ssize_t)
    cdef int pump(self) except -1
    cdef int send_output(self) except -1
    cdef int answer(self) except -1
    @cython.locals(first=bint, done=bint)
    cdef int say_goodbye(self) except -1
    cdef int shut_down(self) except -1
    cdef int await_shutdown(self) except -1
    cdef int fail(self, object exc, str message) except -1
    cdef int blame(self, object exc, str name) except -1
    cdef int report(self, object exc, str message) except -1
    cdef int lose(self, object exc) except -1
    cdef int cancel_timer(self) except -1


@cython.locals(base=BaseTransport, upper=TLSConnection)
cdef object context_of(object transport)
