cimport cython

from epoque.core.reactor cimport Reactor
from epoque.kernel cimport events, interp, sockets
from epoque.selector.source cimport Source

cdef int LEVEL
cdef int READ
cdef int WRITE
cdef int LAST_RECEIVES
cdef object _family
cdef object _type
cdef object _getsockname
cdef object _getpeername
cdef frozenset _COMMON

cdef class BaseTransport(Source):
    cdef Reactor loop
    cdef object context  # contextvars.Context of the protocol's callbacks
    cdef object protocol  # None once the connection has ended
    cdef object server  # that accepted it, or None
    cdef object sock  # what owns the descriptor: usually a socket.socket; None while nobody has asked for one
    cdef object lent  # what the caller brought and could close; None if all is our own
    cdef int family
    cdef int proto
    cdef object peername
    cdef object sockname
    cdef dict extra  # for get_extra_info; None if empty
    cdef bint started  # connection_made was called
    cdef bint fresh  # whoever waits for the transport has not gone on yet: nothing is watched
    cdef bint paused  # pause_reading
    cdef bint closing
    cdef int lost  # 0; then 1, when connection_lost is in line, plus the writes dropped since
    cdef object __weakref__
    cdef dict __dict__  # tests of applications put mocks in the place of methods

    cdef int prepare(self, Reactor loop, object protocol, object server, object context) except -1
    cdef int take_over(self, int fd) except -1
    cdef int number(self) except -2
    cdef bint still_ours(self) except -1
    cdef int watch(self) except -1
    cdef object get_socket(self)
    cdef str state(self)
    cdef int begin(self) except -1
    cdef int start(self) except -1
    cdef int note(self, object exc, str message) except -1
    cdef int blame(self, object exc, str name) except -1
    cdef int report(self, object exc, str message) except -1
    cdef int lose(self, object exc) except -1
    cdef int end(self, object exc, int last) except -1
    @cython.locals(fd=int, owned=bint)
    cdef int release(self) except -1
    cdef int read_on(self) except -1
    cdef bint want_data(self) except -1
    cdef bint receive(self) except -1
    cdef int drop_output(self) except -1


cdef object local_name(object sock)
cdef object peer_name(object sock)
cpdef object family_of(object sock)
cpdef object type_of(object sock)
