"""Debug mode: slow callbacks, wrong threads, wrong callbacks, where handles were made, loops never closed."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
import threading

import pytest

from tests.conftest import open_descriptors
from tests.core.places import PLACES
from tests.loops import checked_script, new_loop, run, turn


@pytest.fixture
def debug(loop):
    loop.set_debug(True)
    loop.slow_callback_duration = 60
    return loop


@pytest.fixture
def warnings_logged(caplog):
    caplog.set_level(logging.WARNING, "asyncio")
    return caplog


def test_debug_mode_is_off_unless_asked_for_and_shown(loop):
    assert loop.get_debug() is False
    loop.set_debug(True)
    assert loop.get_debug() is True
    assert "debug=True" in repr(loop)
    loop.set_debug(False)
    assert loop.get_debug() is False


@pytest.mark.parametrize("env", [{"PYTHONASYNCIODEBUG": "1"}, {"PYTHONDEVMODE": "1"}])
def test_debug_mode_is_on_where_the_environment_asks_for_it(env):
    assert checked_script("loop = new_loop(); print(loop.get_debug()); loop.close()", env=env) == "True\n"


def test_a_slow_callback_is_counted_from_a_tenth_of_a_second(loop):
    assert loop.slow_callback_duration == 0.1


def test_a_slow_callback_is_reported(debug, warnings_logged):
    def slow_one():
        pass

    debug.slow_callback_duration = 0
    debug.call_soon(slow_one)
    turn(debug)
    [record] = warnings_logged.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("Executing <Handle ")
    assert "slow_one" in record.getMessage()
    assert "seconds" in record.getMessage()


def test_a_slow_step_of_a_task_is_reported_with_the_name_of_the_task(debug, warnings_logged):
    async def work():
        pass

    debug.slow_callback_duration = 0
    debug.create_task(work(), name="slow task")
    turn(debug)
    assert warnings_logged.records[0].getMessage().startswith("Executing <Task ")
    assert "name='slow task'" in warnings_logged.records[0].getMessage()


@pytest.mark.parametrize("place", PLACES)
def test_a_slow_callback_of_any_kind_is_reported(debug, warnings_logged, place):
    def slow_one():
        pass

    with PLACES[place](debug, [slow_one]):
        debug.slow_callback_duration = 0
        for _ in range(3):
            turn(debug)
    assert "Executing <" in warnings_logged.text


def test_quick_callbacks_are_not_reported(debug, warnings_logged):
    debug.call_soon(int)
    turn(debug)
    assert not warnings_logged.records


def test_slow_callbacks_are_not_reported_outside_debug_mode(loop, warnings_logged):
    loop.slow_callback_duration = 0
    loop.call_soon(int)
    turn(loop)
    assert not warnings_logged.records


def in_thread(function):
    """The exception that `function` raises in another thread, or None."""
    outcome = [None]

    def guarded():
        try:
            function()
        except BaseException as exc:
            outcome[0] = exc

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    return outcome[0]


SCHEDULING = {
    "call_soon": lambda loop, callback: loop.call_soon(callback),
    "call_later": lambda loop, callback: loop.call_later(0, callback),
    "call_at": lambda loop, callback: loop.call_at(loop.time(), callback),
}
THREADSAFE = {"call_soon_threadsafe": lambda loop, callback: loop.call_soon_threadsafe(callback)}


@pytest.mark.parametrize("name", SCHEDULING)
def test_a_call_from_the_wrong_thread_is_a_runtime_error(debug, name):
    async def main():
        return in_thread(lambda: SCHEDULING[name](debug, int))

    exc = run(debug, main())
    assert isinstance(exc, RuntimeError)
    assert "Non-thread-safe operation" in str(exc)


def test_call_soon_threadsafe_is_allowed_from_any_thread(debug):
    async def main():
        return in_thread(lambda: debug.call_soon_threadsafe(int))

    assert run(debug, main()) is None


def test_threads_are_not_compared_while_the_loop_does_not_run(debug):
    assert in_thread(lambda: debug.call_soon(int)) is None
    turn(debug)


@pytest.mark.parametrize("kind", ["coroutine", "coroutine function", "no callable"])
@pytest.mark.parametrize("name", [*SCHEDULING, *THREADSAFE])
def test_a_wrong_callback_is_a_type_error_at_the_call(debug, name, kind):
    async def work():
        pass

    coroutine = work()
    wrong = {"coroutine": coroutine, "coroutine function": work, "no callable": 5}[kind]
    method = name if name != "call_later" else "call_at"
    text = rf"expected by {method}\(\), got 5" if wrong == 5 else rf"coroutines cannot be used with {method}\(\)"
    with pytest.raises(TypeError, match=text):
        (SCHEDULING | THREADSAFE)[name](debug, wrong)
    coroutine.close()


@pytest.mark.parametrize("name", [*SCHEDULING, *THREADSAFE])
def test_a_handle_tells_where_it_was_made(debug, errors, name):
    def failing():
        raise ValueError

    handle = (SCHEDULING | THREADSAFE)[name](debug, failing)
    assert f"created at {__file__}:" in repr(handle)
    turn(debug)
    [context] = errors
    frame = context["source_traceback"][-1]
    assert frame.filename == __file__
    assert frame.name == "<lambda>"
    assert context["source_traceback"][-2].name == "test_a_handle_tells_where_it_was_made"


def test_outside_debug_mode_handles_do_not_remember_their_origin(loop, errors):
    handle = loop.call_soon(lambda: 1 / 0)
    assert "created at" not in repr(handle)
    turn(loop)
    assert "source_traceback" not in errors[0]


def test_a_cancelled_handle_still_shows_its_callback(debug):
    def named_callback():
        pass

    for handle in (debug.call_soon(named_callback), debug.call_later(100, named_callback)):
        handle.cancel()
        assert "named_callback" in repr(handle)


def test_coroutines_remember_their_origin_during_the_run_only(debug):
    seen = []
    before = sys.get_coroutine_origin_tracking_depth()
    debug.call_soon(lambda: seen.append(sys.get_coroutine_origin_tracking_depth()))
    turn(debug)
    assert seen == [asyncio.constants.DEBUG_STACK_DEPTH]
    assert sys.get_coroutine_origin_tracking_depth() == before


def test_debug_mode_can_be_switched_while_the_loop_runs(loop):
    seen = []

    async def main():
        for on in (True, False):
            loop.set_debug(on)
            await asyncio.sleep(0)
            seen.append((loop.get_debug(), sys.get_coroutine_origin_tracking_depth() > 0))

    loop.slow_callback_duration = 60
    run(loop, main())
    assert seen == [(True, True), (False, False)]


def test_everything_still_works_in_debug_mode(debug):
    async def main():
        left, right = socket.socketpair()
        readable = debug.create_future()
        debug.add_reader(left, lambda: (debug.remove_reader(left), readable.set_result(left.recv(9))))
        debug.call_later(0.001, right.send, b"x")
        data = await readable
        left.close()
        right.close()
        return data, await debug.run_in_executor(None, int), await asyncio.wait_for(asyncio.sleep(0, "slept"), 1)

    assert run(debug, main()) == (b"x", 0, "slept")


def test_a_loop_that_is_never_closed_is_warned_about_and_closed():
    def forget(loops):
        turn(loops.pop())
        gc.collect()

    descriptors = open_descriptors()
    with pytest.warns(ResourceWarning, match="unclosed event loop"):
        forget([new_loop()])
    assert open_descriptors() == descriptors


def test_a_loop_that_was_closed_is_not_warned_about(recwarn):
    loop = new_loop()
    loop.close()
    del loop
    gc.collect()
    assert not recwarn.list
