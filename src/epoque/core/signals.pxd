cimport cython

from epoque.core cimport bell as bells
from epoque.core cimport handle as handles
from epoque.core.handle cimport Handle
from epoque.core.ready cimport ReadyQueue
from epoque.kernel cimport interp, signals
from epoque.selector.selector cimport Selector
from epoque.selector.source cimport Source

cdef int READ


cdef class Doorbell(Source):
    pass


cdef class HeldSignals(Source):
    cdef Signals signals


cdef class Signals:
    cdef object loop
    cdef ReadyQueue queue
    cdef Selector selector
    cdef dict handlers  # signal number -> Handle
    cdef list caught  # numbers of signals that were read from the signalfd and not handled yet
    cdef signals.SignalSet held
    cdef Doorbell doorbell  # None unless the loop has waited, or has handlers, in the main thread
    cdef HeldSignals door  # None before the first handler, and where there is no signalfd
    cdef bint active  # the loop runs, in the main thread, and the bell is its wake-up descriptor
    cdef bint settled  # false in a run that has not waited yet: who rings the bell is an open question
    cdef object __weakref__

    cpdef int prepare(self) except -1
    cdef int add(self, int signum, object callback, tuple args) except -1
    cdef bint remove(self, int signum) except -1
    cdef int handlers_changed(self) except -1
    cdef int enter(self) except -1
    cdef int leave(self) except -1
    cdef int listen(self) except -1
    cdef bint hold(self) except -1
    cdef int release(self) except -1
    cdef int answer(self) except -1
    cdef int take_caught(self) except -1
    @cython.locals(handle=Handle)
    cdef int deliver(self, int signum) except -1
    cdef int take(self, int signum) except -1
    cpdef int overheard(self, int signum) except -1
    cdef int after_fork(self) except -1
    cdef int close(self) except -1
    cdef int unwatch(self) except -1
    cpdef bint leave_bell(self) except -1
