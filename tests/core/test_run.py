"""run_forever, run_until_complete, stop and close: what they do and which misuse they refuse."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import weakref

import pytest

from tests.loops import new_loop, run, turn


@pytest.fixture
def other():
    """A second loop, not the current one."""
    loop = new_loop()
    yield loop
    loop.close()


async def value(result=None):
    return result


def refused(call, coroutine=None):
    """The message of the RuntimeError that `call` raises; a coroutine it did not take is closed."""
    with pytest.raises(RuntimeError) as caught:
        call(coroutine) if coroutine else call()
    if coroutine:
        coroutine.close()
    return str(caught.value)


def test_a_loop_is_an_abstract_event_loop_and_shows_its_state(loop):
    assert isinstance(loop, asyncio.AbstractEventLoop)
    assert "running=False closed=False debug=False" in repr(loop)
    loop.close()
    assert "closed=True" in repr(loop)


def test_a_coroutine_is_run_to_its_result(loop):
    assert loop.run_until_complete(value(42)) == 42


def test_a_future_a_task_and_any_awaitable_are_run_to_their_result(loop):
    class Awaitable:
        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return "awaited"

    future = loop.create_future()
    loop.call_soon(future.set_result, "future")
    assert loop.run_until_complete(future) == "future"
    assert loop.run_until_complete(loop.create_task(value("task"))) == "task"
    assert loop.run_until_complete(Awaitable()) == "awaited"


def test_a_future_that_is_done_already_gives_its_result_after_a_turn(loop):
    future, ran = loop.create_future(), []
    future.set_result(1)
    loop.call_soon(ran.append, 1)
    assert loop.run_until_complete(future) == 1
    assert ran == [1]


@pytest.mark.parametrize("wrong", [None, 1, "text", object(), print, value, [1]])
def test_what_cannot_be_awaited_is_a_type_error(loop, wrong):
    with pytest.raises(TypeError):
        loop.run_until_complete(wrong)
    assert loop.run_until_complete(value(1)) == 1


def test_the_exception_of_the_coroutine_is_raised(loop):
    async def fail():
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        loop.run_until_complete(fail())
    assert not loop.is_running()


def test_a_cancelled_task_raises_cancelled_error(loop):
    async def main():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(main())


def test_a_future_of_another_loop_is_refused(loop, other):
    future = other.create_future()
    with pytest.raises(ValueError, match="belongs to a different loop"):
        loop.run_until_complete(future)
    assert loop.run_until_complete(value(1)) == 1


def test_stopping_before_completion_is_a_runtime_error(loop):
    future = loop.create_future()
    loop.call_soon(loop.stop)
    with pytest.raises(RuntimeError, match="Event loop stopped before Future completed."):
        loop.run_until_complete(future)
    loop.call_soon(future.set_result, 1)
    assert loop.run_until_complete(future) == 1


def test_completion_of_an_interrupted_run_does_not_stop_a_later_one(loop):
    """The callback that ends run_until_complete must be gone from a future the loop was stopped before."""
    future, ran = loop.create_future(), []
    loop.call_soon(loop.stop)
    with pytest.raises(RuntimeError):
        loop.run_until_complete(future)
    loop.call_soon(future.set_result, None)
    loop.call_later(0.001, lambda: (ran.append(1), loop.stop()))
    loop.run_forever()
    assert ran == [1]


def test_the_loop_says_that_it_runs_only_while_it_runs(loop):
    seen = []
    assert not loop.is_running()
    loop.call_soon(lambda: seen.append((loop.is_running(), loop.is_closed())))
    turn(loop)
    assert seen == [(True, False)]
    assert not loop.is_running()


@pytest.mark.asyncio_wrong("a refused run_forever unmarks the loop that runs", when=sys.version_info[:3] == (3, 13, 0))
@pytest.mark.parametrize("same", [True, False], ids=["same loop", "other loop"])
def test_a_nested_run_forever_is_refused_and_the_outer_run_unharmed(loop, other, same):
    async def main():
        message = refused(loop.run_forever if same else other.run_forever)
        assert loop.is_running()
        assert not other.is_running()
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0.001)
        return message

    message = run(loop, main())
    assert ("already running" if same else "while another loop is running") in message
    assert run(other, value(1)) == 1
    assert run(loop, value(1)) == 1


@pytest.mark.parametrize("same", [True, False], ids=["same loop", "other loop"])
def test_a_nested_run_until_complete_is_refused_and_the_outer_run_unharmed(loop, other, same):
    async def main():
        before = asyncio.all_tasks()
        message = refused((loop if same else other).run_until_complete, value())
        assert loop.is_running()
        assert not other.is_running()
        assert asyncio.get_running_loop() is loop
        assert asyncio.all_tasks() == before
        await asyncio.sleep(0.001)
        return message

    message = run(loop, main())
    assert ("already running" if same else "while another loop is running") in message
    assert run(other, value(1)) == 1


def test_a_nested_run_from_a_plain_callback_is_reported_and_the_loop_goes_on(loop, errors):
    ran = []
    loop.call_soon(lambda: loop.run_until_complete(loop.create_future()))
    loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == [1]
    assert ["already running" in str(context["exception"]) for context in errors] == [True]


def test_running_it_in_a_second_thread_is_refused(loop):
    caught = []

    def second():
        coroutine = value()
        try:
            loop.run_until_complete(coroutine)
        except RuntimeError as exc:
            caught.append(str(exc))
        coroutine.close()

    async def main():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        assert loop.is_running()
        await asyncio.sleep(0)

    run(loop, main())
    assert caught == ["This event loop is already running"]


def test_stop_before_the_run_gives_one_turn(loop):
    ran = []
    loop.call_soon(ran.append, 1)
    loop.call_soon(lambda: loop.call_soon(ran.append, 2))
    loop.stop()
    loop.stop()
    loop.run_forever()
    assert ran == [1]
    turn(loop)
    assert ran == [1, 2]


def test_one_turn_of_a_stopped_loop_looks_after_timers_that_are_due(loop):
    ran = []
    loop.call_later(-1, ran.append, 1)
    turn(loop)
    assert ran == [1]


def test_stop_lets_the_turn_finish_and_keeps_the_rest_for_the_next_run(loop):
    ran = []

    def first():
        ran.append(1)
        loop.stop()
        loop.call_soon(ran.append, 3)

    loop.call_soon(first)
    loop.call_soon(ran.append, 2)
    loop.run_forever()
    assert ran == [1, 2]
    turn(loop)
    assert ran == [1, 2, 3]


def test_a_stop_is_used_up_by_the_run_it_ended(loop):
    ran = []
    turn(loop)
    loop.call_later(0.001, lambda: (ran.append(1), loop.stop()))
    loop.run_forever()
    assert ran == [1]


def test_a_loop_is_run_many_times(loop):
    assert [loop.run_until_complete(value(i)) for i in range(200)] == list(range(200))


def test_tasks_go_on_in_the_next_run(loop):
    log = []

    async def work():
        for i in range(4):
            log.append(i)
            await asyncio.sleep(0)

    task = loop.create_task(work())
    turn(loop)
    assert log == [0]
    loop.run_until_complete(task)
    assert log == [0, 1, 2, 3]


def test_close_is_idempotent_and_marks_the_loop(loop):
    assert not loop.is_closed()
    loop.close()
    loop.close()
    assert loop.is_closed()
    assert not loop.is_running()


def test_close_of_a_running_loop_is_refused_and_harmless(loop):
    async def main():
        message = refused(loop.close)
        await asyncio.sleep(0)
        return message

    assert run(loop, main()) == "Cannot close a running event loop"
    assert not loop.is_closed()


def test_close_drops_what_waited(loop):
    def callback():
        raise AssertionError("ran after the close")

    loop.call_soon(callback)
    loop.call_later(0, callback)
    loop.call_soon_threadsafe(callback)
    reference = weakref.ref(callback)
    del callback
    loop.close()
    gc.collect()
    assert reference() is None


CALLS_OF_A_CLOSED_LOOP = {
    "run_forever": lambda loop: loop.run_forever(),
    "call_soon": lambda loop: loop.call_soon(print),
    "call_soon_threadsafe": lambda loop: loop.call_soon_threadsafe(print),
    "call_later": lambda loop: loop.call_later(1, print),
    "call_at": lambda loop: loop.call_at(1, print),
    "run_in_executor": lambda loop: loop.run_in_executor(None, print),
    "add_reader": lambda loop: loop.add_reader(0, print),
    "add_writer": lambda loop: loop.add_writer(1, print),
    "add_signal_handler": lambda loop: loop.add_signal_handler(10, print),
}


@pytest.mark.parametrize("name", CALLS_OF_A_CLOSED_LOOP)
def test_a_closed_loop_refuses_work(loop, name):
    loop.close()
    assert refused(lambda: CALLS_OF_A_CLOSED_LOOP[name](loop)) == "Event loop is closed"


@pytest.mark.parametrize("name", ["run_until_complete", "create_task"])
def test_a_closed_loop_refuses_coroutines(loop, name):
    loop.close()
    assert refused(getattr(loop, name), value()) == "Event loop is closed"


def test_a_closed_loop_still_answers_what_needs_no_kernel(loop):
    loop.close()
    assert loop.remove_reader(0) is False
    assert loop.remove_writer(1) is False
    assert loop.remove_signal_handler(10) is False
    assert loop.get_debug() is False
    assert loop.get_task_factory() is None
    assert loop.create_future().get_loop() is loop
    assert loop.time() > 0
    loop.stop()


def test_a_loop_that_was_never_run_is_closed(loop):
    assert not loop.is_closed()


def test_two_loops_are_run_in_turn_in_one_thread(loop, other):
    ran = []
    loop.call_soon(ran.append, "loop")
    other.call_soon(ran.append, "other")
    turn(other)
    turn(loop)
    assert ran == ["other", "loop"]


def test_a_loop_takes_attributes_and_is_compared_by_identity(loop, other):
    loop.of_the_user = 1
    assert loop.of_the_user == 1
    assert loop == loop
    assert loop != other
    assert {loop: 1}[loop] == 1


def test_a_subclass_may_override_what_asyncio_calls(loop):
    calls = []

    def call_soon(self, callback, *args, **options):
        calls.append("call_soon")
        return type(loop).call_soon(self, callback, *args, **options)

    def create_task(self, coroutine, **options):
        calls.append("create_task")
        return type(loop).create_task(self, coroutine, **options)

    kind = type("Loop", (type(loop),), {"call_soon": call_soon, "create_task": create_task})
    with contextlib.closing(kind()) as own:
        assert run(own, asyncio.sleep(0, "done")) == "done"
        assert isinstance(own, type(loop))
    assert {"call_soon", "create_task"} <= set(calls)


def test_close_from_another_thread_while_the_loop_is_idle_is_refused(loop):
    caught = []

    def attempt():
        caught.append(refused(loop.close))
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=attempt)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert caught == ["Cannot close a running event loop"]
