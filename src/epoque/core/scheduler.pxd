cimport cython

from epoque.core cimport handle as handles
from epoque.core.handle cimport Handle
from epoque.core.ready cimport ReadyQueue
from epoque.core.timers cimport Timers
from epoque.kernel cimport clock, fifo, interp

cdef dict _TASKS
cdef dict _FUTURES
cdef bint _NAMED_BY_FACTORY


cdef class Scheduler:
    cdef ReadyQueue queue
    cdef Timers timers
    cdef bint usable  # initialised and not closed; whatever touches a field of ours that may be None checks it first
    cdef bint debug
    cdef unsigned long thread  # that runs the loop, 0 when it does not run
    cdef object task_factory
    cdef object context  # contextvars.Context of our own callbacks, which enter a connection's

    @cython.locals(handle=Handle)
    cdef Handle schedule(self, object callback, tuple args, object context)
    cdef int check_call(self, object callback, str method) except -1
    cdef int check_closed(self) except -1
    cdef int check_thread(self) except -1


cdef object named(object task, object name)
