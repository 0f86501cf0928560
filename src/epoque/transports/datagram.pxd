cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport datagrams, interp
from epoque.transports cimport flow, sendqueue
from epoque.transports.base cimport BaseTransport
from epoque.transports.datagramqueue cimport DatagramQueue, Name
from epoque.transports.flow cimport FlowControl

cdef int HANGUP
cdef int READ
cdef int WRITE
cdef Py_ssize_t DATAGRAMS
cdef Py_ssize_t AT_ONCE
cdef int ERROR_QUEUE
cdef bint SENDS_EMPTY
cdef double FIRST_PAUSE
cdef double LONGEST_PAUSE


@cython.final
cdef class DatagramTransport(BaseTransport):
    cdef dict __dict__  # tests of applications put mocks in the place of methods
    cdef datagrams.Receiver receiver  # the loop's
    cdef DatagramQueue queue
    cdef FlowControl flow
    cdef object remote  # the one address that sendto() may name, or None
    cdef bint connected  # connect(2) was called: the kernel knows the peer
    cdef bint started  # connection_made was called
    cdef bint paused  # pause_reading
    cdef bint ended  # nothing more can arrive: SHUT_RD, or the end of a SOCK_SEQPACKET connection
    cdef bint ending  # in loop.ending: to be called at the end of this turn
    cdef bint flushing  # inside flush
    cdef bint on_the_spot  # inside a call of the protocol's
    cdef list arrived  # received together, (data, address) or OSError
    cdef Py_ssize_t delivered  # how many of them the protocol has
    cdef object retry  # TimerHandle while another socket's queue is full
    cdef double pause  # seconds to the next retry

    cdef int read_on(self) except -1
    cdef int read_from_now_on(self) except -1
    cdef int drop_input(self) except -1
    cdef int collect(self, int mask) except -1
    cdef int drop_queued_errors(self) except -1
    cdef int end_of_input(self) except -1
    cdef int deliver(self) except -1
    cdef int hand_over(self) except -1
    cdef int tell(self, str name, tuple arguments) except -1
    cdef Name look_up(self, object address)
    cdef int resolve(self, Name name, object infos, object error) except -1
    cdef bint waits(self) except -1
    cdef int commit(self) except -1
    cdef int ask_for_turn_end(self) except -1
    cdef int flush_now(self) except -1
    cdef int flush_here(self) except -1
    cdef int flush(self) except -1
    @cython.locals(left=Py_ssize_t, ready=Py_ssize_t, sent=Py_ssize_t)
    cdef bint send(self) except -1
    cdef int watch(self, bint full) except -1
    cdef int settle(self) except -1
    cdef int finish(self) except -1
    cdef int failed(self, object exc, str message) except -1


@cython.locals(transport=DatagramTransport)
cpdef DatagramTransport opened(Reactor loop, object sock, object protocol, object remote, object waiter)
