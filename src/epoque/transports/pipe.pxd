cimport cython

from epoque.kernel cimport events, interp, pipes, sockets
from epoque.selector.source cimport Source
from epoque.transports cimport sendqueue
from epoque.transports.base cimport BaseTransport
from epoque.transports.flow cimport FlowControl
from epoque.transports.sendqueue cimport SendQueue

cdef int HANGUP
cdef int READ
cdef int WRITE
cdef Py_ssize_t AT_ONCE
cdef int UNNOTICED


@cython.final
cdef class Sharing:
    cdef int users  # transports
    cdef list pipes  # to be closed with the last one

    cdef int leave(self) except -1


cdef class PipeTransport(BaseTransport):
    cdef dict __dict__  # tests of applications put mocks in the place of methods
    cdef object file_mode  # st_mode of the descriptor
    cdef Sharing sharing  # the pipe, with whoever uses it too
    cdef bint duplicate  # fd is a duplicate of the pipe's number, and ours to close
    cdef bint unpolled  # the selector cannot watch it: it never blocks
    cdef bint in_line  # unpolled, and to be called in the next turn

    @cython.locals(fd=int, source=Source, partner=PipeTransport)
    cdef int open(self, object pipe, str complaint) except -1
    cdef int begin(self) except -1
    cdef int start(self) except -1
    cdef int watch(self) except -1
    cdef int failed(self, object exc, str message) except -1


@cython.final
cdef class ReadPipeTransport(PipeTransport):
    cdef sockets.Receiver receiver  # the loop's
    cdef bint started  # connection_made was called
    cdef bint paused  # pause_reading

    cdef int read_on(self) except -1
    cdef int end_of_stream(self) except -1


@cython.final
cdef class WritePipeTransport(PipeTransport):
    cdef SendQueue queue
    cdef FlowControl flow
    cdef bint apart  # what one write() brings must not be joined with what another does
    cdef bint ending  # in loop.ending: to be called at the end of this turn
    cdef int dropped  # writes since it was closed

    @cython.locals(size=Py_ssize_t)
    cdef int commit(self) except -1
    cdef int ask_for_turn_end(self) except -1
    cdef int flush_now(self) except -1
    cdef int flush(self) except -1
    cdef int settle(self) except -1
    cdef int finish(self) except -1


cdef bint keeps_boundaries(int fd, object mode) except -1
