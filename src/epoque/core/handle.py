# cython: nonecheck=False
"""What is a scheduled callback? `Handle`, which decides what becomes of its exception; most are run by the ready queue.

A handle passes for `asyncio.Handle` by way of ``__class__``: a compiled class cannot inherit from one written in
Python.
"""

import asyncio
import sys
import threading

from epoque.core import debug
from epoque.kernel import fifo, freelist, interp

__all__ = ["Handle", "ThreadSafeHandle", "new_handle", "new_threadsafe_handle"]

_WAITING = sys.version_info >= (3, 14)
_ended = threading.Condition()  # for all handles: hardly ever does anybody wait


class Handle:
    """A callback with its arguments and its context, to be run once. Returned by `call_soon` and its like."""

    __slots__ = ("__weakref__", "args", "callback", "canceled", "context", "loop", "origin")

    def __init__(self, callback, args, loop, context):
        self.callback = callback
        self.args = args
        self.loop = loop
        self.context = context
        self.canceled = False
        self.origin = None

    @property
    def __class__(self):
        return asyncio.Handle

    def cancel(self):
        """Keep the callback from running. Its references are dropped at once; cancelling twice is harmless."""
        self.drop()

    def drop(self):
        if not self.canceled:
            self.canceled = True
            if self.origin is not None and self.loop.get_debug():
                self.origin.text = repr(self)  # a StackSummary is a list, and may have attributes
            self.callback = None
            self.args = None

    def cancelled(self):
        """Whether `cancel` was called."""
        return self.canceled

    def get_context(self):
        """The `contextvars.Context` that the callback runs in."""
        return self.context

    def run(self):
        """Run the callback. Only SystemExit and KeyboardInterrupt come out, as in asyncio."""
        exc = interp.attempt(self.context, self.callback, self.args)
        if exc is not None:
            self.report(exc)
        self = exc = None  # as in interp.call: a kept traceback holds this frame

    def report(self, exc):
        """Tell the loop's exception handler; for it `exc` is being handled (`sys.exc_info`)."""
        fifo.show(self)  # the exception handler may keep it
        try:
            raise exc
        except BaseException:
            self.loop.call_exception_handler(self.failure(exc))
        finally:
            self = exc = None

    def failure(self, exc):
        # A callback may cancel the handle that runs it.
        call = "<cancelled>" if self.canceled else debug.describe_call(self.callback, self.args, self.loop.get_debug())
        details = {
            "message": f"Exception in callback {call}",
            "exception": exc,
            "handle": self,
        }
        if self.origin is not None:
            details["source_traceback"] = self.origin
        return details

    def describe(self):
        parts = [type(self).__name__]
        if self.canceled:
            parts.append("cancelled")
        if self.callback is not None:
            parts.append(debug.describe_call(self.callback, self.args, self.loop.get_debug()))
        if self.origin:
            parts.append(debug.created_at(self.origin))
        return parts

    def __repr__(self):
        return self._repr or f"<{' '.join(self.describe())}>"

    def __dir__(self):
        return dir(type(self))  # not of what ``__class__`` says

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    # Names under which asyncio's own handles are inspected by debuggers and test suites.

    def _run(self):
        if self.args is not None:  # neither cancelled nor made without its constructor
            self.run()
        self = None

    def _repr_info(self):
        return self.describe()

    @property
    def _repr(self):
        return getattr(self.origin, "text", None)

    @property
    def _callback(self):
        return self.callback

    @property
    def _args(self):
        return self.args

    @property
    def _loop(self):
        return self.loop

    @property
    def _context(self):
        return self.context

    @property
    def _cancelled(self):
        return self.canceled

    @property
    def _source_traceback(self):
        return self.origin


class ThreadSafeHandle(Handle):
    """What `call_soon_threadsafe` returns from Python 3.14 on: other threads that want to cancel wait while it runs.

    Who cancels says so and then looks whether the callback runs; who runs it says so and then looks whether it was
    cancelled. One of the two sees the other: no handle needs a lock of its own.
    """

    __slots__ = ("awaited", "refused", "runner")

    def __init__(self, callback, args, loop, context):
        Handle.__init__(self, callback, args, loop, context)
        self.runner = 0
        self.refused = False
        self.awaited = False

    @property
    def __class__(self):
        return asyncio.events._ThreadSafeHandle

    def cancel(self):
        """Keep the callback from running, unless it has; if it runs in another thread, wait for its end."""
        self.refused = True
        self.settle()
        self.drop()

    def cancelled(self):
        """Whether `cancel` was called; if the callback runs in another thread, at its end."""
        self.settle()
        return self.canceled

    def settle(self):
        while self.runner not in (0, interp.thread_ident()):
            with _ended:
                self.awaited = True
                if self.runner:
                    _ended.wait()

    def run(self):
        try:
            self.runner = interp.thread_ident()
            if not self.refused:
                Handle.run(self)
        finally:
            self.runner = 0
            if self.awaited:
                with _ended:
                    _ended.notify_all()
        self = None


def new_handle(callback, args, loop, context):
    """A Handle without the detour through ``__init__``; every scheduling comes by here."""
    handle = Handle.__new__(Handle)
    handle.callback = callback
    handle.args = args
    handle.loop = loop
    handle.context = context
    handle.canceled = False
    handle.origin = None
    return handle


def new_threadsafe_handle(callback, args, loop, context):
    """A handle for `call_soon_threadsafe`."""
    if not _WAITING:
        return new_handle(callback, args, loop, context)
    handle = ThreadSafeHandle.__new__(ThreadSafeHandle)
    handle.callback = callback
    handle.args = args
    handle.loop = loop
    handle.context = context
    handle.canceled = False
    handle.origin = None
    handle.runner = 0
    handle.refused = False
    handle.awaited = False
    return handle


freelist.keep(Handle)
freelist.keep(ThreadSafeHandle)
