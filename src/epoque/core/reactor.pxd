cimport cython

from epoque.core cimport handle as handles
from epoque.core cimport watch
from epoque.core.handle cimport Handle
from epoque.core.scheduler cimport Scheduler
from epoque.core.signals cimport Signals
from epoque.core.watch cimport Watcher
from epoque.kernel cimport clock, datagrams, fifo, interp, sockets
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef int READ
cdef int WRITE
cdef long long NEVER
cdef long long POLL
cdef Py_ssize_t RECEIVE_SIZE


cdef class Reactor(Scheduler):
    cdef Selector selector
    cdef Signals signals
    cdef fifo.Fifo ending  # sources to call at the end of this turn
    cdef sockets.Receiver receiver
    cdef datagrams.Receiver datagram_receiver
    cdef bint stopping  # stop() was called in this run
    cdef bint turning  # the loop runs, and does not sleep: there will be an end of the turn
    cdef bint forked  # the loop was inherited by this process and has not run here yet
    cdef unsigned long long looked  # clock.ticks() of the last look at descriptors and timers
    cdef Handle current  # being run, in debug mode
    cdef object previous_hooks  # sys.get_asyncgen_hooks() from before the run
    cdef int origin_depth  # coroutine origin tracking from before debug mode, -1 outside

    cdef sockets.Receiver get_receiver(self)
    cdef datagrams.Receiver get_datagram_receiver(self)
    cdef int enter(self) except -1
    cdef int leave(self) except -1
    @cython.locals(waiting=Py_ssize_t, fresh=Py_ssize_t, began="long long")
    cdef int first_turn(self) except -1
    cdef int turn(self) except -1
    cdef int look_around(self, long long now) except -1
    @cython.locals(held=bint, deadline="long long")
    cdef int sleep(self) except -1
    @cython.locals(source=Source)
    cdef int end_turn(self) except -1
    @cython.locals(source=Source, told=Py_ssize_t)
    cpdef int _about_to_fork(self) except -1
    cdef int after_fork(self) except -1
    @cython.locals(watcher=Watcher)
    cdef object wait_for(self, object sock, int direction)
    @cython.locals(watcher=Watcher, handle=Handle)
    cdef Handle watch(self, object fileobj, int direction, object callback, tuple args, bint bare)
    @cython.locals(source=Source)
    cdef Watcher get_watcher(self, int fd, bint bare)
    @cython.locals(watcher=Watcher)
    cdef bint unwatch(self, Source source, int direction, object handle) except -1
    @cython.locals(source=Source)
    cdef Source bare_source(self, object fileobj)
    @cython.locals(source=Source, watcher=Watcher)
    cdef Source find_source(self, object fileobj)
    cdef int check_running(self) except -1
