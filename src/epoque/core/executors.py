"""Where does blocking work go? Executors, as asyncio has them."""

from __future__ import annotations

import concurrent.futures
import threading
import warnings
from asyncio import futures, timeouts
from typing import TYPE_CHECKING, Any

from epoque.core import debug, pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from epoque.loop import EventLoop

__all__ = ["run_in_executor", "set_default_executor", "shutdown_default_executor"]


def run_in_executor(
    loop: EventLoop, executor: concurrent.futures.Executor | None, func: Callable[..., Any], *args: Any
) -> futures.Future[Any]:
    """Run ``func(*args)`` in `executor`, or in the default one, a pool of threads; return a future of its result.

    RuntimeError on a closed loop, or when the default executor has been shut down.
    """
    loop._check_closed()
    if loop.get_debug():
        debug.check_callback(func, "run_in_executor")
    if executor is None:
        loop._check_default_executor()
        executor = loop._default_executor
        if executor is None:
            executor = loop._default_executor = pool.default_executor()
        if type(executor) is pool.DefaultExecutor:
            return executor.call_for(loop, func, args)
    return futures.wrap_future(executor.submit(func, *args), loop=loop)


def check_default_executor(loop: EventLoop) -> None:
    if loop._executor_shutdown_called:
        raise RuntimeError("Executor shutdown has been called")


def set_default_executor(loop: EventLoop, executor: concurrent.futures.ThreadPoolExecutor) -> None:
    """Use `executor`, a `ThreadPoolExecutor`, where `run_in_executor` is given None; TypeError for anything else."""
    if not isinstance(executor, concurrent.futures.ThreadPoolExecutor):
        raise TypeError("executor must be ThreadPoolExecutor instance")
    loop._default_executor = executor


async def shutdown_default_executor(loop: EventLoop, timeout: float | None = None) -> None:
    """Wait until the default executor's threads have ended; after `timeout` seconds warn and go on without."""
    loop._executor_shutdown_called = True
    if loop._default_executor is None:
        return
    done = loop.create_future()
    thread = threading.Thread(target=loop._do_shutdown, args=(done,))
    thread.start()
    try:
        async with timeouts.timeout(timeout):
            await done
    except TimeoutError:
        warnings.warn(
            f"The executor did not finishing joining its threads within {timeout} seconds.",
            RuntimeWarning,
            stacklevel=2,
        )
        loop._default_executor.shutdown(wait=False)
    else:
        thread.join()


def do_shutdown(loop: EventLoop, future: futures.Future[None]) -> None:
    """In a thread: wait for the default executor, then tell the loop, if it is still there to be told."""
    try:
        loop._default_executor.shutdown(wait=True)
        result = None
    except Exception as exc:
        result = exc
    try:
        loop.call_soon_threadsafe(_settle, future, result)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _settle(done: futures.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
