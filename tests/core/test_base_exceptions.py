"""Each kind of BaseException raised in each kind of callback: what leaves the run, and that nothing queued is lost."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.places import PLACES
from tests.loops import run, turn


class Custom(BaseException):
    pass


LEAVING = [KeyboardInterrupt, SystemExit]
CONTAINED = [asyncio.CancelledError, GeneratorExit, Custom, ValueError]

everywhere = pytest.mark.parametrize("place", PLACES)
leaving = pytest.mark.parametrize("kind", LEAVING)
contained = pytest.mark.parametrize("kind", CONTAINED)


def raiser(kind, before=lambda: None):
    def callback():
        before()
        raise kind("on purpose")

    return callback


def settle(loop):
    """Turns enough for everything that is due, whichever way it reaches the loop."""
    for _ in range(4):
        turn(loop)


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@everywhere
@leaving
def test_interrupt_and_exit_leave_the_run_and_what_was_queued_keeps_its_order(loop, place, kind, debug):
    loop.set_debug(debug)
    loop.slow_callback_duration = 60
    ran = []
    loop.call_soon(ran.append, 1)
    with PLACES[place](loop, [raiser(kind, lambda: loop.call_soon(ran.append, 3))]):
        loop.call_soon(ran.append, 2)
        with pytest.raises(kind, match="on purpose"):
            loop.run_forever()
        assert not loop.is_running()
        assert not loop.is_closed()
        assert asyncio._get_running_loop() is None
        settle(loop)
    assert ran == [1, 2, 3]


@everywhere
@leaving
def test_the_other_callback_of_the_same_kind_runs_in_the_next_run(loop, place, kind):
    ran = []
    both = [lambda: ran.append(1) or raiser(kind)(), lambda: ran.append(2) or raiser(kind)()]
    with PLACES[place](loop, both):
        for _ in range(2):
            with pytest.raises(kind):
                loop.run_forever()
        assert sorted(ran) == [1, 2]
        settle(loop)
    assert sorted(ran) == [1, 2]


@everywhere
@pytest.mark.parametrize("kind", [*CONTAINED, StopIteration, MemoryError])
def test_everything_else_is_reported_and_the_run_goes_on(loop, errors, place, kind):
    ran = []
    with PLACES[place](loop, [raiser(kind), lambda: ran.append(1)]):
        settle(loop)
    assert ran == [1]
    assert [type(context["exception"]) for context in errors] == [kind]


@everywhere
def test_a_reported_exception_comes_with_its_handle(loop, errors, place):
    with PLACES[place](loop, [raiser(ValueError)]):
        settle(loop)
    [context] = errors
    assert isinstance(context["handle"], asyncio.Handle)
    assert context["message"].startswith("Exception in callback")


@leaving
def test_a_turn_that_is_left_several_times_loses_nothing(loop, kind):
    ran = []
    for i in range(20):
        loop.call_soon(ran.append, i)
        if i % 5 == 0:
            loop.call_soon(raiser(kind))
    for _ in range(4):
        with pytest.raises(kind):
            loop.run_forever()
    turn(loop)
    assert ran == list(range(20))


@leaving
def test_what_a_thread_handed_over_meanwhile_comes_after_what_was_left(loop, kind):
    ran = []
    loop.call_soon(raiser(kind, lambda: loop.call_soon_threadsafe(ran.append, 2)))
    loop.call_soon(ran.append, 1)
    with pytest.raises(kind):
        loop.run_forever()
    loop.call_soon(ran.append, 3)
    settle(loop)
    assert ran == [1, 2, 3]


@leaving
def test_a_callback_left_over_can_still_be_cancelled(loop, kind):
    ran = []
    loop.call_soon(raiser(kind))
    handle = loop.call_soon(ran.append, 1)
    with pytest.raises(kind):
        loop.run_forever()
    handle.cancel()
    settle(loop)
    assert ran == []


@leaving
def test_a_loop_with_callbacks_left_over_closes(loop, kind):
    loop.call_soon(raiser(kind))
    loop.call_soon(print)
    with pytest.raises(kind):
        loop.run_forever()
    loop.close()


@leaving
def test_a_stop_in_the_turn_that_is_left_does_not_end_the_next_run(loop, kind):
    ran = []
    loop.call_soon(loop.stop)
    loop.call_soon(raiser(kind))
    with pytest.raises(kind):
        loop.run_forever()
    loop.call_later(0.001, lambda: (ran.append(1), loop.stop()))
    loop.run_forever()
    assert ran == [1]


@leaving
def test_a_task_waited_for_survives_an_interrupt_from_outside_and_finishes_in_the_next_run(loop, kind):
    async def work():
        for _ in range(3):
            await asyncio.sleep(0)
        return "done"

    task = loop.create_task(work())
    loop.call_soon(raiser(kind))
    with pytest.raises(kind):
        loop.run_until_complete(task)
    assert not task.done()
    assert run(loop, task) == "done"


@leaving
def test_raised_in_a_task_it_leaves_the_run_and_is_the_tasks_exception(loop, kind):
    async def work():
        await asyncio.sleep(0)
        raise kind("on purpose")

    ran = []
    task = loop.create_task(work())
    with pytest.raises(kind):
        loop.run_until_complete(task)
    loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == [1]
    assert isinstance(task.exception(), kind)


@leaving
def test_raised_in_a_coroutine_given_to_the_run_it_is_not_reported_again(loop, kind):
    async def work():
        raise kind("on purpose")

    with pytest.raises(kind):
        loop.run_until_complete(work())
    settle(loop)


def test_the_code_of_system_exit_is_kept(loop):
    loop.call_soon(lambda: exit_with(7))
    with pytest.raises(SystemExit) as caught:
        loop.run_forever()
    assert caught.value.code == 7


def exit_with(code):
    raise SystemExit(code)


@contained
def test_raised_in_a_task_it_is_the_tasks_own_affair(loop, kind):
    async def work():
        raise kind("on purpose")

    with pytest.raises(kind):
        run(loop, work())


def test_endless_recursion_in_a_callback_is_reported_and_the_run_goes_on(loop, errors):
    def endless():
        endless()

    ran = []
    loop.call_soon(endless)
    loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == [1]
    assert [type(context["exception"]) for context in errors] == [RecursionError]


def test_subclasses_of_interrupt_and_exit_leave_the_run_too(loop):
    for base in LEAVING:
        kind = type("Sub", (base,), {})
        loop.call_soon(raiser(kind))
        with pytest.raises(kind):
            loop.run_forever()
