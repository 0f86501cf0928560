cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport datagrams, interp
from epoque.transports cimport base, flow, sendqueue
from epoque.transports.datagramqueue cimport DatagramQueue, Name
from epoque.transports.writer cimport WritingTransport

cdef int HANGUP
cdef int READ
cdef int WRITE
cdef Py_ssize_t DATAGRAMS
cdef list NOTHING
cdef unsigned int PROBE
cdef int ERROR_QUEUE
cdef bint SENDS_EMPTY
cdef double FIRST_PAUSE
cdef double LONGEST_PAUSE


@cython.final
cdef class DatagramTransport(WritingTransport):
    cdef datagrams.Receiver receiver  # the loop's
    cdef DatagramQueue queue
    cdef object remote  # the one address that sendto() may name, or None
    cdef bint connected  # connect(2) was called: the kernel knows the peer
    cdef bint ended  # nothing more can arrive: SHUT_RD, or the end of a SOCK_SEQPACKET connection
    cdef bint flushing  # inside flush
    cdef bint on_the_spot  # inside a call of the protocol's
    cdef list arrived  # received together, (data, address) or OSError
    cdef Py_ssize_t delivered  # how many of them the protocol has
    cdef unsigned int alone  # receives in a row that brought one
    cdef object retry  # TimerHandle while another socket's queue is full
    cdef double pause  # seconds to the next retry

    cdef int drop_input(self) except -1
    @cython.locals(most=Py_ssize_t)
    cdef int collect(self, int mask) except -1
    cdef int drop_queued_errors(self) except -1
    cdef int end_of_input(self) except -1
    cdef int deliver(self) except -1
    cdef int hand_over(self) except -1
    cdef int give(self, tuple datagram) except -1
    cdef int tell(self, str name, tuple arguments) except -1
    @cython.locals(on_the_spot=bint)
    cdef int say_last(self, object data, object addr) except -1
    cdef Name look_up(self, object address)
    cdef int resolve(self, Name name, object infos, object error) except -1
    @cython.locals(left=Py_ssize_t, ready=Py_ssize_t, sent=Py_ssize_t)
    cdef bint send(self) except -1
    cdef int await_room(self, bint full) except -1
    cdef int failed(self, object exc, str message) except -1


@cython.locals(transport=DatagramTransport)
cpdef DatagramTransport opened(Reactor loop, object sock, object protocol, object remote, object waiter, bint lent)
