cimport cython

from epoque.kernel cimport events, interp, signals
from epoque.core cimport handle as handles
from epoque.core.handle cimport Handle
from epoque.core.ready cimport ReadyQueue
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef int READ


cdef class Doorbell(Source):
    cdef Signals signals


cdef class HeldSignals(Source):
    cdef Signals signals


cdef class Signals:
    cdef object loop
    cdef ReadyQueue queue
    cdef Selector selector
    cdef dict handlers  # signal number -> Handle
    cdef signals.SignalSet held
    cdef Doorbell bell  # None before the first run in the main thread
    cdef HeldSignals door  # None before the first handler, and where there is no signalfd
    cdef int write_fd  # of the pipe whose read end is the bell
    cdef int user_fd  # the wake-up descriptor that was set before the run, or -1
    cdef bint active  # the loop runs, in the main thread

    cdef int prepare(self) except -1
    cdef int add(self, int signum, object callback, tuple args) except -1
    cdef bint remove(self, int signum) except -1
    cdef int hold_handlers(self) except -1
    cdef int enter(self) except -1
    cdef int leave(self) except -1
    cdef bint listen(self) except -1
    cdef int rest(self) except -1
    cdef int unlisten(self) except -1
    cdef bint hold(self) except -1
    cdef int release(self) except -1
    @cython.locals(handle=Handle)
    cdef int deliver(self, int signum) except -1
    cdef int take(self, int signum) except -1
    cdef int rung(self, bytes signums) except -1
    cdef int open_bell(self) except -1
    cdef int after_fork(self) except -1
    cdef int close(self) except -1
    cdef int close_fds(self) except -1
