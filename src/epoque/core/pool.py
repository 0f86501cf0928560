"""On which threads does blocking work run by default? `DefaultExecutor`, a `ThreadPoolExecutor` that has a shorter way.

An executor makes a `concurrent.futures.Future` for each call, with a condition of its own, and asyncio chains one of
the loop's to it by callbacks in both threads: most of what a call costs. Here a thread calls, and tells the loop.
Threads, their names, their number and their end are the base class's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import queue
import threading
import weakref
from collections import deque
from concurrent.futures import thread
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from epoque.loop import EventLoop

__all__ = ["DefaultExecutor", "default_executor"]


# Threads, as many as the base class has by default.
LIMIT = min(32, (getattr(os, "process_cpu_count", os.cpu_count)() or 1) + 4)


class Job(Protocol):
    def run(self) -> None: ...

    def cancel(self) -> object: ...


class LoopCall:
    """A call whose result a future of a loop gets."""

    __slots__ = ("args", "func", "future", "loop")

    def __init__(self, loop: EventLoop, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.loop = loop
        self.func = func
        self.args = args
        self.future = loop.create_future()

    def run(self) -> None:
        if self.future.cancelled():
            return
        settle, value = _succeed, None
        try:
            value = self.func(*self.args)
        except BaseException as exc:
            settle, value = _fail, exc
        try:
            self.loop.call_soon_threadsafe(settle, self.future, value)
        except RuntimeError:  # the loop is closed, nobody waits
            pass
        self = value = None  # a traceback that is kept holds this frame

    def cancel(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.future.cancel)


class FutureCall:
    """A call whose result a `concurrent.futures.Future` gets."""

    __slots__ = ("args", "func", "future", "kwargs")

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func = func
        self.args = args
        self.kwargs = kwargs
        self.future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.func(*self.args, **self.kwargs)
        except BaseException as exc:
            self.future.set_exception(exc)
            self = None
        else:
            self.future.set_result(result)

    def cancel(self) -> None:
        self.future.cancel()


class DefaultExecutor(concurrent.futures.ThreadPoolExecutor):
    """What `run_in_executor(None, ...)` uses: to the base class, each of its threads has one job that does not end."""

    def __init__(self) -> None:
        super().__init__(LIMIT, thread_name_prefix="asyncio")
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._resting: deque[None] = deque()  # an entry for each thread that waits for a job
        self._serving = 0  # threads
        self._entrance = threading.RLock()  # a signal handler may come in between
        self._refusal = ""
        # Whoever drops the executor without a shutdown lets its threads end, too.
        weakref.finalize(self, self._jobs.put, None).atexit = False
        _executors.add(self)

    def call_for(self, loop: EventLoop, func: Callable[..., Any], args: tuple[Any, ...]) -> asyncio.Future[Any]:
        """Call ``func(*args)`` in a thread; return a future of `loop`. RuntimeError after the shutdown."""
        job = LoopCall(loop, func, args)
        self._begin(job)
        return job.future

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        job = FutureCall(fn, args, kwargs)
        self._begin(job)
        return job.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._refuse("cannot schedule new futures after shutdown")
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while True:
                    if job := self._jobs.get_nowait():
                        job.cancel()
            self._jobs.put(None)
        super().shutdown(wait=wait, cancel_futures=cancel_futures)

    def _begin(self, job: Job) -> None:
        with self._entrance:
            if self._refusal:
                raise RuntimeError(self._refusal)
            if self._resting:
                self._resting.pop()
            elif self._serving < LIMIT:
                super().submit(_serve, self._jobs, self._resting)
                self._serving += 1
            self._jobs.put(job)

    def _refuse(self, why: str) -> None:
        """Take no more jobs; the threads end when those that are there are done."""
        with self._entrance:
            self._refusal = self._refusal or why
            self._jobs.put(None)


def _serve(jobs: queue.SimpleQueue[Job | None], resting: deque[None]) -> None:
    while job := jobs.get():
        job.run()
        del job  # it would live until the next one
        resting.append(None)
    jobs.put(None)  # for the other threads


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], exc: BaseException) -> None:
    # As between two futures: what `concurrent.futures` raises becomes what asyncio raises in its place.
    if type(exc) is concurrent.futures.CancelledError:
        exc = asyncio.CancelledError(*exc.args).with_traceback(exc.__traceback__)
    elif type(exc) is concurrent.futures.InvalidStateError:
        exc = asyncio.InvalidStateError(*exc.args).with_traceback(exc.__traceback__)
    if not future.done():
        future.set_exception(exc)


_executors: weakref.WeakSet[DefaultExecutor] = weakref.WeakSet()


def _at_exit() -> None:
    for executor in list(_executors):
        executor._refuse("cannot schedule new futures after interpreter shutdown")


# The base class's threads are waited for when the interpreter exits, before any `atexit` function is called. Of the
# functions registered here the last comes first, so theirs, which waits, has been registered before.
threading._register_atexit(_at_exit)
os.register_at_fork(after_in_child=_executors.clear)  # the threads are not there, and a lock may be held for ever


def default_executor() -> concurrent.futures.ThreadPoolExecutor:
    """A new executor; the usual one if somebody has replaced the class or its `submit`, who would not be heard here."""
    submit = concurrent.futures.ThreadPoolExecutor.submit
    ours = type(submit) is FunctionType and submit.__globals__ is vars(thread)
    if not ours or concurrent.futures.ThreadPoolExecutor is not DefaultExecutor.__base__:
        return concurrent.futures.ThreadPoolExecutor(thread_name_prefix="asyncio")
    return DefaultExecutor()
