"""call_soon: order, arguments, turns, and the handle it returns."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
import weakref

import pytest

from tests.loops import run, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def test_callbacks_run_in_the_order_of_their_calls(loop):
    ran = []
    for i in range(500):
        loop.call_soon(ran.append, i)
    turn(loop)
    assert ran == list(range(500))


def test_arguments_are_passed_on(loop):
    got = []
    loop.call_soon(lambda *args: got.append(args))
    loop.call_soon(lambda *args: got.append(args), 1)
    loop.call_soon(lambda *args: got.append(args), 1, None, "three")
    turn(loop)
    assert got == [(), (1,), (1, None, "three")]


def test_keyword_arguments_for_the_callback_are_refused(loop):
    with pytest.raises(TypeError):
        loop.call_soon(print, sep="")


def test_without_a_callback_it_is_a_type_error(loop):
    with pytest.raises(TypeError):
        loop.call_soon()


def test_any_callable_serves_as_callback(loop):
    ran = []

    class Callable:
        def __init__(self, value):
            ran.append(value)

        def __call__(self, value):
            ran.append(value)

    loop.call_soon(lambda value: ran.append(value), "function")
    loop.call_soon(ran.append, "bound method of a builtin")
    loop.call_soon(functools.partial(ran.append, "partial"))
    loop.call_soon(Callable, "class")
    loop.call_soon(Callable("made"), "object")
    turn(loop)
    assert ran == ["made", "function", "bound method of a builtin", "partial", "class", "object"]


def test_a_callback_scheduled_by_a_callback_waits_for_the_next_turn(loop):
    ran = []
    loop.call_soon(lambda: (ran.append("first"), loop.call_soon(ran.append, "third")))
    loop.call_soon(ran.append, "second")
    turn(loop)
    assert ran == ["first", "second"]
    turn(loop)
    assert ran == ["first", "second", "third"]


def test_a_callback_that_reschedules_itself_runs_once_a_turn(loop):
    ran = []

    def again():
        ran.append(len(ran))
        loop.call_soon(again)

    loop.call_soon(again)
    for turns in range(1, 6):
        turn(loop)
        assert len(ran) == turns


def test_a_cancelled_handle_does_not_run(loop):
    ran = []
    handle = loop.call_soon(ran.append, 1)
    loop.call_soon(ran.append, 2)
    assert not handle.cancelled()
    handle.cancel()
    handle.cancel()
    assert handle.cancelled()
    turn(loop)
    assert ran == [2]


def test_a_callback_cancels_another_of_the_same_turn(loop):
    ran = []
    loop.call_soon(lambda: handle.cancel())
    handle = loop.call_soon(ran.append, 1)
    turn(loop)
    turn(loop)
    assert ran == []


def test_a_callback_cancels_its_own_handle(loop):
    ran = []

    def callback():
        handle.cancel()
        ran.append(handle.cancelled())

    handle = loop.call_soon(callback)
    turn(loop)
    turn(loop)
    assert ran == [True]


def test_cancelling_after_the_run_has_no_effect_but_the_mark(loop):
    ran = []
    handle = loop.call_soon(ran.append, 1)
    turn(loop)
    assert not handle.cancelled()
    handle.cancel()
    assert handle.cancelled()
    turn(loop)
    assert ran == [1]


def test_a_callback_runs_in_a_copy_of_the_context_of_the_call(loop):
    seen = []

    def callback():
        seen.append(variable.get())
        variable.set("changed by the callback")

    token = variable.set("of the caller")
    loop.call_soon(callback)
    variable.reset(token)
    turn(loop)
    assert seen == ["of the caller"]
    assert variable.get() == "unset"


def test_a_given_context_is_used_itself_and_not_copied(loop):
    context = contextvars.copy_context()
    loop.call_soon(variable.set, "inside", context=context)
    turn(loop)
    assert context[variable] == "inside"
    assert variable.get() == "unset"


def test_context_none_means_the_current_one(loop):
    seen = []
    token = variable.set("current")
    loop.call_soon(lambda: seen.append(variable.get()), context=None)
    variable.reset(token)
    turn(loop)
    assert seen == ["current"]


def test_one_context_serves_several_callbacks_one_after_the_other(loop):
    context, seen = contextvars.copy_context(), []
    loop.call_soon(variable.set, "kept", context=context)
    loop.call_soon(lambda: seen.append(variable.get()), context=context)
    turn(loop)
    assert seen == ["kept"]


@pytest.mark.asyncio_wrong("Handle.get_context() came with 3.12", when=sys.version_info < (3, 12))
def test_get_context_gives_the_context_of_the_callback(loop):
    context = contextvars.copy_context()
    assert loop.call_soon(print, context=context).get_context() is context
    token = variable.set("captured")
    handle = loop.call_soon(lambda: None)
    variable.reset(token)
    assert handle.get_context()[variable] == "captured"
    handle.cancel()
    turn(loop)


def test_the_running_loop_and_task_are_known_inside_a_callback(loop):
    seen = []
    loop.call_soon(lambda: seen.append((asyncio.get_running_loop(), asyncio.current_task(), asyncio.get_event_loop())))
    turn(loop)
    assert seen == [(loop, None, loop)]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_a_handle_is_an_asyncio_handle(loop):
    handle = loop.call_soon(lambda: None)
    assert isinstance(handle, asyncio.Handle)
    assert not isinstance(handle, asyncio.TimerHandle)
    turn(loop)


def test_a_handle_is_weakly_referencable_and_gone_after_its_run(loop):
    reference = weakref.ref(loop.call_soon(lambda: None))
    assert isinstance(reference(), asyncio.Handle)
    turn(loop)
    assert reference() is None


def test_handles_are_equal_to_themselves_only(loop):
    one, two = loop.call_soon(print), loop.call_soon(print)
    assert one == one
    assert one != two
    assert len({one, two}) == 2
    one.cancel()
    two.cancel()
    turn(loop)


def test_a_handle_shows_its_callback_and_its_state(loop):
    def named_callback():
        pass

    handle = loop.call_soon(named_callback)
    assert repr(handle).startswith("<Handle ")
    assert "named_callback" in repr(handle)
    assert __file__ in repr(handle)
    handle.cancel()
    assert repr(handle).startswith("<Handle cancelled")
    turn(loop)


def test_cancel_lets_go_of_callback_and_arguments_at_once(loop):
    class Thing:
        def method(self, other):
            raise AssertionError("cancelled")

    thing, argument = Thing(), Thing()
    references = [weakref.ref(thing), weakref.ref(argument)]
    handle = loop.call_soon(thing.method, argument)
    del thing, argument
    assert None not in [reference() for reference in references]
    handle.cancel()
    assert [reference() for reference in references] == [None, None]
    turn(loop)


def test_callback_and_arguments_are_let_go_after_the_run_unless_the_handle_is_held(loop):
    class Thing:
        pass

    argument = Thing()
    reference = weakref.ref(argument)
    loop.call_soon(id, argument)
    del argument
    turn(loop)
    assert reference() is None


def test_a_non_callable_is_reported_when_its_turn_comes_outside_debug_mode(loop, errors):
    loop.set_debug(False)
    ran = []
    loop.call_soon(None)
    loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == [1]
    assert [type(context["exception"]) for context in errors] == [TypeError]


def test_an_exception_is_reported_with_its_handle_and_the_next_callback_runs(loop, errors):
    def failing_callback():
        raise ValueError("on purpose")

    ran = []
    handle = loop.call_soon(failing_callback)
    loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == [1]
    [context] = errors
    assert isinstance(context["exception"], ValueError)
    assert context["handle"] is handle
    assert context["message"].startswith("Exception in callback ")
    assert "failing_callback" in context["message"]


def test_the_traceback_of_a_callback_ends_in_the_callback(loop, errors):
    def failing_callback():
        raise ValueError("on purpose")

    loop.call_soon(failing_callback)
    turn(loop)
    traceback = errors[0]["exception"].__traceback__
    while traceback.tb_next:
        traceback = traceback.tb_next
    assert traceback.tb_frame.f_code is failing_callback.__code__


def test_many_callbacks_queued_before_the_run_all_run_in_one_turn(loop):
    count = [0]

    def increment():
        count[0] += 1

    for _ in range(50_000):
        loop.call_soon(increment)
    turn(loop)
    assert count == [50_000]


def test_await_sleep_zero_lets_the_others_run_in_turn(loop):
    log = []

    async def worker(name):
        for i in range(3):
            log.append((name, i))
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(worker("a"), worker("b"))

    run(loop, main())
    assert log == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
