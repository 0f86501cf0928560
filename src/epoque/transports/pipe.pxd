cimport cython

from epoque.kernel cimport events, interp, pipes, sockets
from epoque.selector.source cimport Source
from epoque.transports cimport sendqueue
from epoque.transports.base cimport BaseTransport
from epoque.transports.writer cimport ByteTransport

cdef int HANGUP
cdef int READ
cdef Py_ssize_t FULL
cdef int WRITE
cdef int UNNOTICED


@cython.final
cdef class Sharing:
    cdef int users  # transports
    cdef list pipes  # to be closed with the last one

    cdef int leave(self) except -1


@cython.final
cdef class Descriptor:
    cdef object pipe  # what the caller brought
    cdef object mode  # st_mode
    cdef Sharing sharing  # the pipe, with whoever uses it too
    cdef int duplicate  # of the pipe's number, ours to close; or -1
    cdef bint unpolled  # the selector cannot watch it: it never blocks
    cdef bint elastic  # it may be enlarged when it is found full
    cdef bint in_line  # unpolled, and to be called in the next turn

    cdef bint is_pipe_or_socket(self) except -1
    @cython.locals(fd=int, source=Source)
    cdef int take(self, object pipe, BaseTransport transport) except -1
    cdef int enlarge(self, int fd) except -1
    cdef int watch(self, BaseTransport transport) except -1
    cdef int call_ready(self, BaseTransport transport) except -1
    cdef int lost(self) except -1
    cpdef int fileno(self) except -2
    cpdef int close(self) except -1


@cython.locals(descriptor=Descriptor)
cpdef int make_elastic(BaseTransport transport) except -1


@cython.locals(transport=BaseTransport, descriptor=Descriptor)
cdef Sharing sharing_of(Source source)


@cython.final
cdef class ReadPipeTransport(BaseTransport):
    cdef Descriptor descriptor
    cdef sockets.Receiver receiver  # the loop's

    cdef int end_of_stream(self) except -1


@cython.final
cdef class WritePipeTransport(ByteTransport):
    cdef Descriptor descriptor
    cdef bint apart  # what one write() brings must not be joined with what another does
    cdef int dropped  # writes since it was closed


cdef bint keeps_boundaries(int fd, object mode) except -1
