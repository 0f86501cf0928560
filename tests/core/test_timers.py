"""call_later, call_at and time(): never early, in order, and sane for every kind of number."""

from __future__ import annotations

import asyncio
import contextvars
import fractions
import math
import os
import random
import signal
import sys
import time
import weakref

import pytest

from tests.loops import run, spawn, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def drain(loop, after=0.01):
    """Run the loop until a timer made now has fired: everything with an earlier deadline has had its turn."""
    loop.call_later(after, loop.stop)
    loop.run_forever()


def test_time_is_the_monotonic_clock(loop):
    for _ in range(1_000):
        before, now, after = time.monotonic(), loop.time(), time.monotonic()
        assert before <= now <= after


def test_time_moves_on_within_one_callback(loop):
    seen = []

    def callback():
        start = loop.time()
        while loop.time() == start:
            pass
        seen.append(loop.time() > start)

    loop.call_soon(callback)
    turn(loop)
    assert seen == [True]


def test_time_is_told_before_the_run_and_after_the_close(loop):
    assert time.monotonic() <= loop.time()
    loop.close()
    assert time.monotonic() <= loop.time()


def test_timers_are_never_early_by_either_clock(loop):
    early = []

    def fire(future, when, not_before):
        now, monotonic = loop.time(), time.monotonic()
        if now < when or monotonic < not_before:
            early.append((when - now, not_before - monotonic))
        future.set_result(None)

    async def one(delay):
        future = loop.create_future()
        not_before = time.monotonic() + delay
        handle = loop.call_later(delay, fire, future, 0, not_before)
        handle.cancel()
        when = loop.time() + delay
        loop.call_at(when, fire, future, when, not_before)
        await future

    async def chain(delays):
        for delay in delays:
            await one(delay)

    rng = random.Random(0)
    chains = [[rng.uniform(0.0001, 0.02) for _ in range(40)] for _ in range(40)]
    run(loop, asyncio.wait([loop.create_task(chain(delays)) for delays in chains]), timeout=30)
    assert early == []


def test_a_lonely_timer_is_never_early(loop):
    """With one timer at a time every wake-up of the loop is this timer's own."""
    early = []

    async def main():
        for i in range(200):
            delay = 0.0001 + i * 0.000013
            not_before = time.monotonic() + delay
            await asyncio.sleep(delay)
            if time.monotonic() < not_before:
                early.append(not_before - time.monotonic())

    run(loop, main())
    assert early == []


def test_timers_run_in_the_order_of_their_deadlines(loop):
    ran, start = [], loop.time()
    numbers = list(range(500))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        loop.call_at(start + number * 1e-6, ran.append, number)
    drain(loop)
    assert ran == sorted(numbers)


@pytest.mark.asyncio_wrong("its heap leaves the order of equal deadlines undefined")
def test_equal_deadlines_run_in_the_order_of_their_making(loop):
    ran, when = [], loop.time() + 0.001
    handles = [loop.call_at(when, ran.append, number) for number in range(300)]
    for handle in handles[::3]:
        handle.cancel()
    drain(loop)
    assert ran == [number for number in range(300) if number % 3]


@pytest.mark.asyncio_wrong("its heap leaves the order of equal deadlines undefined")
def test_equal_deadlines_keep_their_order_among_cancelled_and_other_timers(loop):
    ran, start, rng, handles = [], loop.time(), random.Random(2), []
    expected = []
    for number in range(1_000):
        slot = rng.randrange(20)
        handle = loop.call_at(start + slot * 1e-4, ran.append, (slot, number))
        if rng.random() < 0.4:
            handles.append(handle)
        else:
            expected.append((slot, number))
    rng.shuffle(handles)
    for handle in handles:
        handle.cancel()
    drain(loop)
    assert ran == sorted(expected)


def test_a_delay_of_zero_runs_soon_and_after_what_was_ready(loop):
    ran = []
    loop.call_later(0, ran.append, "timer")
    loop.call_soon(ran.append, "ready")
    turn(loop)
    assert ran == ["ready", "timer"]


def test_a_zero_delay_timer_made_by_a_timer_waits_for_the_next_turn(loop):
    turns = []

    def again():
        turns.append(len(turns))
        loop.call_later(0, again)

    loop.call_later(0, again)
    for count in range(1, 6):
        turn(loop)
        assert len(turns) == count


def test_negative_delays_are_due_at_once_in_the_order_of_their_deadlines(loop):
    ran = []
    loop.call_later(-1, ran.append, "recent")
    loop.call_later(-math.inf, ran.append, "always")
    loop.call_later(-1_000, ran.append, "old")
    loop.call_at(0, ran.append, "boot")
    loop.call_at(-1e6, ran.append, "before the boot")  # "old", too, may be, of a young machine
    turn(loop)
    assert ran[:2] == ["always", "before the boot"]
    assert sorted(ran[2:4]) == ["boot", "old"]
    assert ran[4:] == ["recent"]


@pytest.mark.parametrize("delay", [3600, 86_400 * 366 * 50, 1e10, 1e18, 1e300, sys.float_info.max, math.inf])
def test_a_delay_of_years_neither_fires_nor_fails_nor_holds_up_others(loop, delay):
    ran = []
    handle = loop.call_later(delay, ran.append, "never")
    drain(loop)
    assert ran == []
    assert handle.when() == pytest.approx(loop.time() + delay, abs=60)
    handle.cancel()
    drain(loop)


@pytest.mark.parametrize("delay", [1e10, math.inf])
def test_a_loop_that_waits_for_a_distant_timer_alone_can_be_woken(loop, delay):
    handle = loop.call_later(delay, print)
    run(loop, loop.run_in_executor(None, int))
    handle.cancel()


@pytest.mark.asyncio_wrong(
    "a NaN deadline leaves run_forever with a ValueError of the selector", when=sys.version_info >= (3, 13)
)
def test_not_a_number_is_refused_or_harms_nobody(loop):
    for schedule in (loop.call_later, loop.call_at):
        try:
            handle = schedule(math.nan, int)
        except ValueError:
            continue
        drain(loop)
        handle.cancel()
    drain(loop)


def test_an_integer_too_large_for_a_float_is_an_overflow_error(loop):
    with pytest.raises(OverflowError):
        loop.call_later(10**400, print)


@pytest.mark.parametrize("delay", [None, "1", b"1", [], object()])
def test_a_delay_that_is_no_number_is_a_type_error(loop, delay):
    with pytest.raises(TypeError):
        loop.call_later(delay, print)


def test_a_deadline_of_none_is_a_type_error(loop):
    with pytest.raises(TypeError):
        loop.call_at(None, print)


@pytest.mark.asyncio_wrong("it takes any object and fails when it compares it with the clock")
@pytest.mark.parametrize("when", ["1", b"1", 1j, [], object()])
def test_a_deadline_that_is_no_number_is_a_type_error(loop, when):
    with pytest.raises(TypeError):
        loop.call_at(when, print)
    drain(loop)


@pytest.mark.asyncio_wrong("it adds a complex delay to the clock and fails when it compares the sum")
def test_a_complex_delay_is_a_type_error(loop):
    with pytest.raises(TypeError):
        loop.call_later(1j, print)


@pytest.mark.parametrize("delay", [0, 0.001, True, fractions.Fraction(1, 1000)])
def test_every_kind_of_real_number_serves_as_delay(loop, delay):
    loop.call_later(delay, loop.stop)
    loop.run_forever()


def test_arguments_are_passed_on_and_a_missing_callback_is_a_type_error(loop):
    got = []
    loop.call_later(0, lambda *args: got.append(args), 1, "two")
    loop.call_at(loop.time(), lambda *args: got.append(args))
    drain(loop)
    assert sorted(got) == [(), (1, "two")]
    for schedule in (loop.call_later, loop.call_at):
        with pytest.raises(TypeError):
            schedule(1)


def test_a_cancelled_timer_does_not_run(loop):
    ran = []
    handle = loop.call_later(0.001, ran.append, 1)
    handle.cancel()
    handle.cancel()
    assert handle.cancelled()
    drain(loop)
    assert ran == []


def test_a_due_timer_cancels_another_due_timer(loop):
    ran = []
    now = loop.time()
    loop.call_at(now - 1, lambda: second.cancel())
    second = loop.call_at(now, ran.append, 1)
    turn(loop)
    drain(loop)
    assert ran == []


def test_a_timer_cancels_itself_in_its_own_callback(loop):
    ran = []

    def callback():
        handle.cancel()
        ran.append(1)

    handle = loop.call_later(0, callback)
    drain(loop)
    assert ran == [1]


def test_cancelling_a_timer_that_has_run_changes_nothing_for_others(loop):
    ran = []
    handle = loop.call_later(0, ran.append, 1)
    other = loop.call_later(0.002, ran.append, 2)
    turn(loop)
    handle.cancel()
    assert handle.cancelled()
    drain(loop)
    assert ran == [1, 2]
    other.cancel()


def test_cancelling_in_any_order_leaves_exactly_the_others(loop):
    rng, ran = random.Random(3), []
    start = loop.time()
    handles = {number: loop.call_at(start + rng.random() * 0.005, ran.append, number) for number in range(2_000)}
    victims = rng.sample(sorted(handles), 1_500)
    for number in victims:
        handles[number].cancel()
    drain(loop)
    assert sorted(ran) == sorted(set(handles) - set(victims))
    assert ran == sorted(ran, key=lambda number: handles[number].when())


def test_a_timer_made_while_the_loop_waits_for_a_later_one_comes_first(loop):
    ran = []

    async def main():
        late = loop.call_later(3600, ran.append, "late")
        await asyncio.sleep(0.005)
        loop.call_later(0.001, ran.append, "early")
        await asyncio.sleep(0.005)
        late.cancel()

    run(loop, main())
    assert ran == ["early"]


def test_a_timer_made_from_another_thread_through_call_soon_threadsafe_fires(loop):
    future = loop.create_future()

    async def main():
        loop.run_in_executor(None, loop.call_soon_threadsafe, loop.call_later, 0.001, future.set_result, 1)
        return await future

    assert run(loop, main()) == 1


@pytest.mark.parametrize("schedule", ["call_later", "call_at"])
def test_the_context_of_the_call_or_the_given_one_is_used(loop, schedule):
    seen, given = [], contextvars.copy_context()
    given.run(variable.set, "given")
    token = variable.set("of the caller")
    getattr(loop, schedule)(0, lambda: seen.append(variable.get()))
    getattr(loop, schedule)(0, lambda: seen.append(variable.get()), context=given)
    variable.reset(token)
    drain(loop)
    assert sorted(seen) == ["given", "of the caller"]


def test_an_exception_in_a_timer_is_reported_and_later_timers_run(loop, errors):
    ran = []
    handle = loop.call_later(0, lambda: 1 / 0)
    loop.call_later(0.001, ran.append, 1)
    drain(loop)
    assert ran == [1]
    [context] = errors
    assert isinstance(context["exception"], ZeroDivisionError)
    assert context["handle"] is handle


def test_timers_kept_over_several_runs_fire_in_the_run_that_sees_them_due(loop):
    ran = []
    loop.call_later(0.005, ran.append, 1)
    turn(loop)
    assert ran == []
    drain(loop)
    assert ran == [1]


@pytest.mark.asyncio_wrong("a cancelled timer stays in its heap until it is swept")
def test_a_cancelled_timer_is_gone_at_once(loop):
    handle = loop.call_later(3600, print)
    reference = weakref.ref(handle)
    handle.cancel()
    del handle
    assert reference() is None


@pytest.mark.asyncio_wrong("cancelled timers stay in its heap until they are swept")
def test_cancelled_timers_leave_no_handle_behind_in_any_order(loop):
    rng = random.Random(4)
    handles = [loop.call_later(rng.uniform(1000, 2000), print) for _ in range(1_000)]
    references = [weakref.ref(handle) for handle in handles]
    rng.shuffle(handles)
    while handles:
        handles.pop().cancel()
    assert [reference for reference in references if reference() is not None] == []


def test_timers_go_on_after_the_process_was_stopped_and_continued():
    code = """
        async def main():
            print("ready", flush=True)
            for _ in range(20):
                await asyncio.sleep(0.01)

        loop = new_loop()
        run(loop, main(), 20)
        loop.close()
        print("done")
    """
    with spawn(code) as child:
        assert child.stdout.readline() == "ready\n"
        for _ in range(3):
            child.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED)
            child.send_signal(signal.SIGCONT)
        assert child.stdout.read() == "done\n"
    assert child.returncode == 0
