# cython: nonecheck=False
"""What is to run, and when? `Scheduler`: the calls that put callbacks in line, on the clock, or into a task."""

import sys
from asyncio import futures, tasks
from asyncio.events import _get_running_loop
from collections import deque
from contextvars import Context

from epoque.core import debug
from epoque.core import handle as handles
from epoque.core.ready import ReadyQueue
from epoque.core.timers import Timers
from epoque.kernel import clock, fifo, interp

__all__ = ["Scheduler"]

# The classes in them may be replaced: they are looked up for each task and future, which takes half as long like this.
_TASKS = vars(tasks)
_FUTURES = vars(futures)
_NAMED_BY_FACTORY = sys.version_info >= (3, 14)


class Scheduler:
    """The ready queue and the timers of a loop, as asyncio's interface shows them."""

    __slots__ = ("context", "debug", "queue", "task_factory", "thread", "timers", "usable")

    def __init__(self):
        try:
            running = self.usable
        except AttributeError:  # interpreted, a field is missing at first; compiled, it is false
            running = False
        if running:
            raise RuntimeError("the event loop has been initialised already")
        self.usable = False
        self.queue = ReadyQueue()
        self.timers = Timers()
        self.debug = debug.env_debug()
        self.thread = 0
        self.task_factory = None
        self.context = Context()

    def time(self):
        """The loop's clock, `time.monotonic()`, in seconds."""
        return clock.now()

    def call_soon(self, callback, *args, context=None):
        """Run ``callback(*args)`` in the next turn, in the order of the calls. Not thread-safe.

        `context` is a `contextvars.Context`, by default a copy of the current one. RuntimeError on a closed loop.
        """
        if self.debug or not self.usable:
            self.check_call(callback, "call_soon")
        handle = handles.new_handle(callback, args, self, interp.copy_context() if context is None else context)
        if self.debug:
            handle.origin = debug.origin()
        self.queue.handles.append(handle)
        return handle

    def schedule(self, callback, args, context):
        """Our own `call_soon`, without its checks."""
        handle = handles.new_handle(callback, args, self, context)
        if self.debug:
            handle.origin = debug.origin()
        self.queue.handles.append(handle)
        return handle

    def call_soon_threadsafe(self, callback, *args, context=None):
        """As `call_soon`, from any thread, or from a signal handler.

        From Python 3.14 on the handle's `cancel` and `cancelled`, in another thread, wait while the callback runs.
        """
        if self.debug:
            self.check_closed()
            debug.check_callback(callback, "call_soon_threadsafe")
        context = interp.copy_context() if context is None else context
        handle = handles.new_threadsafe_handle(callback, args, self, context)
        if self.debug:
            handle.origin = debug.origin()
        if not self.usable:
            self.check_closed()
        self.queue.put_threadsafe(handle)
        return handle

    def call_later(self, delay, callback, *args, context=None):
        """Run ``callback(*args)`` once `delay` seconds have passed, never earlier. ValueError for NaN."""
        if delay is None:
            raise TypeError("delay must not be None")
        if self.debug or not self.usable:
            self.check_call(callback, "call_at")  # asyncio's call_later calls that
        context = interp.copy_context() if context is None else context
        timer = self.timers.add(clock.after(delay), None, callback, args, self, context)
        if self.debug:
            timer.origin = debug.origin()
        return timer

    def call_at(self, when, callback, *args, context=None):
        """Run ``callback(*args)`` once `time` has reached `when` seconds, never earlier.

        ValueError for NaN, OverflowError for a number that no float can hold.
        """
        if when is None:
            raise TypeError("when cannot be None")
        if self.debug or not self.usable:
            self.check_call(callback, "call_at")
        timer = self.timers.add(when, when, callback, args, self, interp.copy_context() if context is None else context)
        if self.debug:
            timer.origin = debug.origin()
        return timer

    def create_future(self):
        """An `asyncio.Future` of this loop."""
        if _get_running_loop() is self:  # it takes that one by itself, and needs no dictionary of keywords
            return _FUTURES["Future"]()
        return _FUTURES["Future"](loop=self)

    def create_task(self, coro, *, name=None, context=None, **kwargs):
        """Wrap a coroutine in a task, through the task factory if there is one.

        Keywords are those of the running Python's `asyncio.Task` (``eager_start`` from 3.12), or of the factory.
        """
        if not self.usable:
            self.check_closed()
        # No local variable for the task: that of an eager one may hold the frames that made it, by its exception.
        if self.task_factory is None:
            if name is None and context is None and not kwargs and not self.debug:
                if _get_running_loop() is self:  # as in create_future
                    return _TASKS["Task"](coro)
                return _TASKS["Task"](coro, loop=self)  # each keyword would cost some 20 ns
            if self.debug:
                return debug.without_own_frame(_TASKS["Task"](coro, loop=self, name=name, context=context, **kwargs))
            return _TASKS["Task"](coro, loop=self, name=name, context=context, **kwargs)
        if context is not None:
            kwargs["context"] = context
        if name is None:
            return self.task_factory(self, coro, **kwargs)
        if _NAMED_BY_FACTORY:
            return self.task_factory(self, coro, name=name, **kwargs)
        return named(self.task_factory(self, coro, **kwargs), name)

    def set_task_factory(self, factory):
        """Let ``factory(loop, coro, **kwargs)`` make the tasks; None restores `asyncio.Task`."""
        if factory is not None and not callable(factory):
            raise TypeError("task factory must be a callable or None")
        self.task_factory = factory

    def get_task_factory(self):
        """The task factory, or None."""
        return self.task_factory

    def is_closed(self):
        """Whether `close` was called."""
        return not self.usable

    def get_debug(self):
        """Whether the loop is in debug mode."""
        return self.debug

    def check_call(self, callback, method):
        self.check_closed()
        if self.debug:
            self.check_thread()
            debug.check_callback(callback, method)

    def check_closed(self):
        if not self.usable:
            raise RuntimeError("Event loop is closed")

    def check_thread(self):
        if self.thread != 0 and self.thread != interp.thread_ident():
            raise RuntimeError("Non-thread-safe operation invoked on an event loop other than the current one")

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    # Names under which asyncio's own loop is inspected and driven. Collections are snapshots.

    def _check_closed(self):
        self.check_closed()

    def _check_thread(self):
        self.check_thread()

    def _check_callback(self, callback, method):
        debug.check_callback(callback, method)

    def _call_soon(self, callback, args, context):
        self.check_closed()
        return self.schedule(callback, args, interp.copy_context() if context is None else context)

    def _add_callback(self, handle):
        self._add_callback_signalsafe(handle)

    def _add_callback_signalsafe(self, handle):
        self.check_closed()
        if not handle._cancelled:
            self.queue.put_threadsafe(handle)

    @property
    def _closed(self):
        return not self.usable

    @property
    def _debug(self):
        return self.debug

    @property
    def _scheduled(self):
        return self.timers.heap.items() if self.usable else []

    @property
    def _timer_cancelled_count(self):
        return 0  # cancelled, a timer is out of the heap

    @property
    def _ready(self):
        return deque(fifo.items(self.queue.handles) if self.usable else ())

    @property
    def _task_factory(self):
        return self.task_factory

    @property
    def _thread_id(self):
        return self.thread or None


def named(task, name):
    """A task factory's task with the name that the factory could not be told before 3.14."""
    if hasattr(task, "set_name"):
        task.set_name(name)
    return task
