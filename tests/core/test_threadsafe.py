"""call_soon_threadsafe: no wake-up is lost, the order is kept, and a closed loop says so."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import time

import pytest

from tests.loops import new_loop, run, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
PATIENCE = 10  # seconds until a wake-up that did not come counts as lost


def in_threads(loop, count, work):
    """Run `work(number)` in threads while the loop, with nothing else to do, runs; raise what one of them raised."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]

    def supervise():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        loop.call_soon_threadsafe(loop.stop)

    supervisor = threading.Thread(target=supervise)
    loop.call_soon(supervisor.start)
    loop.run_forever()
    supervisor.join()
    if failures:
        raise failures[0]


def ping(loop, rounds):
    """Wake the idle loop `rounds` times from this thread, each time waiting for the callback to have run."""
    answered = threading.Semaphore(0)
    for i in range(rounds):
        loop.call_soon_threadsafe(answered.release)
        assert answered.acquire(timeout=PATIENCE), f"wake-up {i} was lost"


def test_an_idle_loop_is_woken_every_time_by_one_thread(loop):
    in_threads(loop, 1, lambda _: ping(loop, 10_000))


def test_an_idle_loop_is_woken_every_time_by_many_threads(loop):
    in_threads(loop, 4, lambda _: ping(loop, 2_500))


def test_an_idle_loop_with_a_distant_timer_is_woken_every_time(loop):
    timer = loop.call_later(3600, print)
    in_threads(loop, 1, lambda _: ping(loop, 2_000))
    timer.cancel()


def test_no_wake_up_is_lost_while_signals_arrive(loop):
    hits = []
    loop.add_signal_handler(signal.SIGUSR1, hits.append, 1)
    done = threading.Event()

    def work(number):
        if number:
            while not done.is_set():
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0)
        else:
            try:
                ping(loop, 3_000)
            finally:
                done.set()

    in_threads(loop, 2, work)
    assert hits
    assert loop.remove_signal_handler(signal.SIGUSR1)


def test_nothing_is_lost_and_each_thread_keeps_its_order_when_many_flood_the_loop(loop):
    got = {number: [] for number in range(8)}

    def work(number):
        for i in range(2_000):
            loop.call_soon_threadsafe(got[number].append, i)

    in_threads(loop, 8, work)
    assert got == {number: list(range(2_000)) for number in range(8)}


def test_calls_made_before_the_loop_runs_are_kept(loop):
    ran = []
    thread = threading.Thread(target=lambda: [loop.call_soon_threadsafe(ran.append, i) for i in range(1_000)])
    thread.start()
    thread.join()
    turn(loop)
    assert ran == list(range(1_000))


def test_a_call_on_the_loops_own_thread_takes_its_place_in_the_line(loop):
    ran = []
    loop.call_soon(ran.append, 1)
    loop.call_soon_threadsafe(ran.append, 2)
    loop.call_soon(ran.append, 3)
    turn(loop)
    assert ran == [1, 2, 3]


def test_a_callback_that_calls_it_waits_for_the_next_turn(loop):
    ran = []
    loop.call_soon(lambda: loop.call_soon_threadsafe(ran.append, 1))
    turn(loop)
    assert ran == []
    turn(loop)
    assert ran == [1]


def test_a_hundred_thousand_calls_from_one_callback_do_not_block(loop):
    count = [0]

    def increment():
        count[0] += 1
        if count[0] == 100_000:
            loop.stop()

    def flood():
        for _ in range(100_000):
            loop.call_soon_threadsafe(increment)

    loop.call_soon(flood)
    loop.run_forever()
    assert count == [100_000]


def test_it_returns_a_handle_that_can_be_cancelled(loop):
    ran = []
    handle = loop.call_soon_threadsafe(ran.append, 1)
    assert isinstance(handle, asyncio.Handle)
    handle.cancel()
    assert handle.cancelled()
    turn(loop)
    assert ran == []


def test_context_is_the_threads_own_unless_given(loop):
    seen = []
    context = contextvars.copy_context()
    context.run(variable.set, "given")

    def work(_):
        variable.set("of the thread")
        loop.call_soon_threadsafe(lambda: seen.append(variable.get()))
        loop.call_soon_threadsafe(lambda: seen.append(variable.get()), context=context)

    in_threads(loop, 1, work)
    assert seen == ["of the thread", "given"]


def test_a_closed_loop_refuses_it(loop):
    loop.close()
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.call_soon_threadsafe(print)


def test_a_closed_loop_refuses_it_in_another_thread(loop):
    loop.close()
    caught = []

    def call():
        try:
            loop.call_soon_threadsafe(print)
        except BaseException as exc:
            caught.append(exc)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert [type(exc) for exc in caught] == [RuntimeError]


def call_until_refused(loop, outcome):
    try:
        while True:
            loop.call_soon_threadsafe(int)
    except BaseException as exc:
        outcome.append(str(exc))


def test_a_loop_closed_under_the_hands_of_a_thread_refuses_and_nothing_worse():
    for _ in range(100):
        loop, outcome = new_loop(), []
        thread = threading.Thread(target=call_until_refused, args=(loop, outcome))
        thread.start()
        turn(loop)
        loop.close()
        thread.join(PATIENCE)
        assert outcome == ["Event loop is closed"]


def test_stop_from_another_thread_ends_the_run(loop):
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(loop.stop,))
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert not loop.is_running()


def test_run_coroutine_threadsafe_brings_result_and_exception_back(loop):
    async def divide(a, b):
        await asyncio.sleep(0)
        return a / b

    outcomes = []

    def work(_):
        outcomes.append(asyncio.run_coroutine_threadsafe(divide(6, 3), loop).result(PATIENCE))
        with pytest.raises(ZeroDivisionError):
            asyncio.run_coroutine_threadsafe(divide(1, 0), loop).result(PATIENCE)

    in_threads(loop, 1, work)
    assert outcomes == [2]


def test_a_future_is_completed_from_a_thread(loop):
    future = loop.create_future()
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(future.set_result, "done"))

    async def main():
        thread.start()
        return await future

    assert run(loop, main()) == "done"
    thread.join()


@pytest.mark.since(3, 14)
@pytest.mark.parametrize("ask", ["cancel", "cancelled"])
def test_another_thread_that_asks_the_handle_waits_while_the_callback_runs(loop, ask):
    events, made, asking = [], [], threading.Event()

    def callback():
        asking.wait(PATIENCE)
        time.sleep(0.05)  # the other thread asks meanwhile
        events.append("callback")

    def work(_):
        made.append(loop.call_soon_threadsafe(callback))
        asking.set()
        time.sleep(0.02)  # the loop has begun
        getattr(made[0], ask)()
        events.append("answer")

    in_threads(loop, 1, work)
    assert events == ["callback", "answer"]


def test_a_handle_cancelled_by_another_thread_does_not_run(loop):
    ran = []

    def work(_):
        handle = loop.call_soon_threadsafe(ran.append, 1)
        handle.cancel()
        assert handle.cancelled()
        done.set()

    done = threading.Event()
    loop.call_soon_threadsafe(done.wait, PATIENCE)  # the handle is not reached before it is cancelled
    thread = threading.Thread(target=work, args=(0,))
    thread.start()
    loop.call_later(0, loop.stop)
    loop.run_forever()
    thread.join()
    turn(loop)
    assert ran == []


def test_a_callback_that_cancels_its_own_handle_runs_to_its_end(loop):
    handles, ran = [], []

    def callback():
        handles[0].cancel()
        ran.append(handles[0].cancelled())

    handles.append(loop.call_soon_threadsafe(callback))
    turn(loop)
    assert ran == [True]
