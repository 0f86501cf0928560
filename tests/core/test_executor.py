"""run_in_executor, set_default_executor and shutdown_default_executor."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import os
import sys
import threading
import warnings
import weakref

import pytest

from tests.loops import new_loop, run, script


@pytest.fixture
def release():
    """An event that a busy executor waits for; set at the end whatever happened."""
    event = threading.Event()
    yield event
    event.set()


def test_a_function_runs_in_another_thread_and_its_result_comes_back(loop):
    def work(*args):
        return threading.get_ident(), args

    ident, args = run(loop, loop.run_in_executor(None, work, 1, "two"))
    assert ident != threading.get_ident()
    assert args == (1, "two")


def test_the_exception_of_the_function_comes_back(loop):
    with pytest.raises(ZeroDivisionError):
        run(loop, loop.run_in_executor(None, lambda: 1 / 0))


def test_it_returns_a_future_of_the_loop_at_once(loop):
    future = loop.run_in_executor(None, int)
    assert asyncio.isfuture(future)
    assert future.get_loop() is loop
    assert run(loop, future) == 0


def test_a_given_executor_is_used(loop):
    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        name = run(loop, loop.run_in_executor(pool, lambda: threading.current_thread().name))
    assert name.startswith("mine")


def test_an_executor_needs_only_a_submit_method(loop):
    class Immediate(concurrent.futures.Executor):
        def submit(self, function, /, *args):
            future = concurrent.futures.Future()
            future.set_result(function(*args))
            return future

    assert run(loop, loop.run_in_executor(Immediate(), pow, 2, 5)) == 32


def test_the_default_executor_is_kept_between_calls_and_can_be_replaced(loop):
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="mine")
    loop.set_default_executor(pool)
    for _ in range(3):
        assert run(loop, loop.run_in_executor(None, lambda: threading.current_thread().name)) == "mine_0"


@pytest.mark.parametrize("wrong", [None, 1, "text", concurrent.futures.Executor()])
def test_a_default_executor_without_threads_is_a_type_error(loop, wrong):
    with pytest.raises(TypeError, match="executor must be ThreadPoolExecutor instance"):
        loop.set_default_executor(wrong)


def test_calls_run_at_the_same_time(loop):
    barrier = threading.Barrier(3)

    async def main():
        await asyncio.gather(*(loop.run_in_executor(None, barrier.wait, 5) for _ in range(3)))

    run(loop, main())
    assert not barrier.broken


def test_many_calls_all_come_back(loop):
    async def main():
        return await asyncio.gather(*(loop.run_in_executor(None, pow, i, 2) for i in range(500)))

    assert run(loop, main()) == [i * i for i in range(500)]


def test_a_cancelled_call_leaves_the_loop_and_the_executor_working(loop, release):
    async def main():
        future = loop.run_in_executor(None, release.wait, 5)
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future
        release.set()
        return await loop.run_in_executor(None, int)

    assert run(loop, main()) == 0


def occupy(loop, release):
    """Keep all threads of the default executor at work until `release` is set."""
    return [loop.run_in_executor(None, release.wait, 5) for _ in range(40)]


def test_a_call_that_is_cancelled_before_it_begins_is_never_made(loop, release):
    calls = []

    async def main():
        busy = occupy(loop, release)
        future = loop.run_in_executor(None, calls.append, "cancelled")
        future.cancel()
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*busy, loop.run_in_executor(None, calls.append, "made"))

    run(loop, main())
    run(loop, loop.shutdown_default_executor())
    assert calls == ["made"]


def test_threads_start_when_all_others_are_busy_and_only_so_many(loop, release):
    async def main():
        names = {await loop.run_in_executor(None, lambda: threading.current_thread().name) for _ in range(20)}
        busy = occupy(loop, release)
        cores = getattr(os, "process_cpu_count", os.cpu_count)()
        assert sum(thread.name.startswith("asyncio_") for thread in threading.enumerate()) == min(32, cores + 4)
        release.set()
        await asyncio.gather(*busy)
        return names

    assert run(loop, main()) <= {"asyncio_0", "asyncio_1"}  # a thread may not rest yet when the next call comes


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (concurrent.futures.CancelledError("why"), asyncio.CancelledError),
        (concurrent.futures.InvalidStateError("why"), asyncio.InvalidStateError),
        (asyncio.CancelledError("why"), asyncio.CancelledError),
        (TimeoutError("why"), asyncio.TimeoutError),
        (SystemExit("why"), SystemExit),
        (KeyboardInterrupt("why"), KeyboardInterrupt),
    ],
    ids=repr,
)
def test_an_exception_of_the_function_comes_back_as_asyncio_has_it(loop, raised, kind):
    def fail():
        raise raised

    async def main():
        future = loop.run_in_executor(None, fail)
        await asyncio.wait([future])
        return future.exception()

    exception = run(loop, main())
    assert type(exception) is kind
    assert exception.args == ("why",)


def test_arguments_and_result_are_let_go_without_the_collector(loop):
    class Thing:
        pass

    async def main(function):
        thing = Thing()
        references.append(weakref.ref(thing))
        future = loop.run_in_executor(None, function, thing)
        del thing
        try:
            result = await future
            references.append(weakref.ref(result))
        except ZeroDivisionError:
            pass
        finally:
            result = future = None

    references = []
    gc.collect()
    gc.disable()
    try:
        run(loop, main(lambda thing: Thing()))
        run(loop, main(lambda thing: 1 / 0))
        run(loop, loop.run_in_executor(None, int))
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_who_replaces_the_executors_submit_is_heard(loop, monkeypatch):
    submitted = []
    submit = concurrent.futures.ThreadPoolExecutor.submit

    def replaced(self, fn, /, *args, **kwargs):
        submitted.append(fn)
        return submit(self, fn, *args, **kwargs)

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", replaced)
    assert run(loop, loop.run_in_executor(None, int)) == 0
    assert submitted == [int]


def test_who_replaces_the_executors_class_is_heard(loop, monkeypatch):
    class Replaced(concurrent.futures.ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            return super().submit(str, "replaced")

    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", Replaced)
    assert run(loop, loop.run_in_executor(None, int)) == "replaced"


def test_a_loop_that_nobody_closes_lets_its_threads_end():
    def abandoned():
        loop = new_loop()
        return run(loop, loop.run_in_executor(None, threading.current_thread))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        thread = abandoned()
        gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_work_that_nobody_waits_for_is_done_before_the_program_ends():
    done = script(
        """
        loop = new_loop()
        run(loop, loop.run_in_executor(None, int))
        for number in range(50):
            loop.run_in_executor(None, lambda: (time.sleep(0.001), os.write(1, b"done\\n")))
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n" * 50, "")


def test_no_work_is_taken_when_the_program_ends():
    done = script(
        """
        import atexit
        loop = new_loop()
        run(loop, loop.run_in_executor(None, int))
        @atexit.register
        def late():
            try:
                loop.run_in_executor(None, int)
            except RuntimeError as error:
                print(error)
            loop.close()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cannot schedule new futures after ")


def test_it_can_be_called_before_the_loop_runs(loop):
    future = loop.run_in_executor(None, pow, 3, 3)
    assert run(loop, future) == 27


@pytest.mark.parametrize("kind", ["coroutine function", "coroutine", "no callable"])
def test_debug_mode_refuses_what_is_no_plain_function(loop, kind):
    async def work():
        pass

    loop.set_debug(True)
    wrong = {"coroutine function": work, "coroutine": work(), "no callable": 1}
    with pytest.raises(TypeError):
        loop.run_in_executor(None, wrong[kind])
    wrong["coroutine"].close()


def test_after_the_shutdown_the_default_executor_is_refused(loop):
    run(loop, loop.run_in_executor(None, int))
    run(loop, loop.shutdown_default_executor())
    with pytest.raises(RuntimeError, match="Executor shutdown has been called"):
        loop.run_in_executor(None, int)


def test_after_the_shutdown_another_executor_still_serves(loop):
    run(loop, loop.shutdown_default_executor())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert run(loop, loop.run_in_executor(pool, int)) == 0


def test_the_shutdown_waits_for_work_in_progress(loop, release):
    done = []

    async def main():
        loop.run_in_executor(None, lambda: (release.wait(5), done.append(1)))
        shutdown = loop.create_task(loop.shutdown_default_executor())
        await asyncio.sleep(0.01)
        assert not shutdown.done()
        release.set()
        await shutdown

    run(loop, main())
    assert done == [1]


def test_the_shutdown_ends_the_threads(loop):
    before = set(threading.enumerate())
    run(loop, loop.run_in_executor(None, int))
    assert set(threading.enumerate()) - before
    run(loop, loop.shutdown_default_executor())
    assert not set(threading.enumerate()) - before


def test_the_shutdown_without_an_executor_returns_and_can_be_repeated(loop):
    run(loop, loop.shutdown_default_executor())
    run(loop, loop.shutdown_default_executor())


@pytest.mark.since(3, 12)
@pytest.mark.asyncio_wrong(
    "3.12.1 waits without a limit before it looks at the timeout", when=sys.version_info < (3, 13)
)
def test_the_shutdown_gives_up_with_a_warning_after_its_timeout(loop, release):
    loop.run_in_executor(None, release.wait, 5)
    with pytest.warns(RuntimeWarning, match="The executor did not finishing joining its threads within 0.01 seconds"):
        run(loop, loop.shutdown_default_executor(timeout=0.01))


@pytest.mark.since(3, 12)
def test_the_shutdown_within_its_timeout_is_silent(loop, recwarn):
    run(loop, loop.run_in_executor(None, int))
    run(loop, loop.shutdown_default_executor(timeout=5))
    assert not recwarn.list


def test_close_does_not_wait_for_the_default_executor(loop, release):
    started = threading.Event()

    def work():
        started.set()
        release.wait(5)

    future = loop.run_in_executor(None, work)
    assert started.wait(5)
    future.cancel()
    loop.close()
    assert not release.is_set()


def test_to_thread_carries_the_context(loop):
    variable = contextvars.ContextVar("variable")

    async def main():
        variable.set("carried")
        return await asyncio.to_thread(variable.get)

    assert run(loop, main()) == "carried"
