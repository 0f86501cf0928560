"""Loops in several threads beside each other, each on its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading

import pytest

from tests.loops import new_loop, run

PATIENCE = 10  # seconds


@pytest.fixture
def beside():
    """A loop that runs in a thread of its own."""
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    loop.close()


def on(loop, coroutine):
    """Wait in this thread for a coroutine that runs on the loop of another."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(PATIENCE)


async def work(loop):
    """Descriptors, timers and executor of the running loop."""
    assert asyncio.get_running_loop() is loop
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        readable = loop.create_future()
        loop.add_reader(left, lambda: (loop.remove_reader(left), readable.set_result(left.recv(10))))
        loop.call_later(0.001, right.send, b"data")
        assert await readable == b"data"
    await asyncio.sleep(0.001)
    return await loop.run_in_executor(None, threading.get_ident)


def test_a_loop_in_a_thread_and_one_in_the_main_thread_work_beside_each_other(loop, beside):
    other = asyncio.run_coroutine_threadsafe(work(beside), beside)
    run(loop, work(loop))
    assert other.result(PATIENCE) != threading.get_ident()
    on(beside, beside.shutdown_default_executor())


def test_each_thread_has_its_own_running_loop(loop, beside):
    async def current():
        return asyncio.get_running_loop()

    assert on(beside, current()) is beside
    assert run(loop, current()) is loop
    assert asyncio._get_running_loop() is None


def test_loops_call_each_other(loop, beside):
    async def ping(count):
        if not count:
            return "done"
        there = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, count - 1), beside)
        return await ping(await asyncio.wrap_future(there))

    assert run(loop, ping(100)) == "done"


def test_many_loops_in_many_threads(loop):
    def whole_life(_):
        with contextlib.closing(new_loop()) as own:
            run(own, work(own))
            own.run_until_complete(own.shutdown_default_executor())
        return True

    async def main():
        return await asyncio.gather(*(loop.run_in_executor(None, whole_life, i) for i in range(20)))

    assert all(run(loop, main(), timeout=20))


def test_signals_reach_the_loop_of_the_main_thread_while_another_runs(loop, beside):
    loop.add_signal_handler(signal.SIGUSR1, loop.stop)
    for _ in range(20):
        beside.call_soon_threadsafe(os.kill, os.getpid(), signal.SIGUSR1)
        loop.run_forever()
    assert loop.remove_signal_handler(signal.SIGUSR1)


def test_no_wake_up_by_a_signal_is_lost_to_a_loop_that_runs_beside(loop, beside):
    handled, lost = threading.Semaphore(0), []

    def work():
        for i in range(1_000):
            os.kill(os.getpid(), signal.SIGUSR1)
            if not handled.acquire(timeout=PATIENCE / 2):
                lost.append(i)
                break
        loop.call_soon_threadsafe(loop.stop)

    loop.add_signal_handler(signal.SIGUSR1, handled.release)
    thread = threading.Thread(target=work)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert lost == []


def test_an_interrupt_leaves_the_run_of_the_main_thread_only(loop, beside):
    loop.call_soon(beside.call_soon_threadsafe, os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    assert beside.is_running()
    assert on(beside, asyncio.sleep(0, "works")) == "works"


def test_a_loop_is_run_in_one_thread_and_then_in_another(loop):
    async def ident():
        return threading.get_ident()

    here = run(loop, ident())
    seen = []
    thread = threading.Thread(target=lambda: seen.append(run(loop, ident())))
    thread.start()
    thread.join()
    assert seen == [thread.ident]
    assert run(loop, ident()) == here


def test_a_loop_is_closed_in_another_thread_than_it_ran_in(beside):
    with contextlib.closing(new_loop()) as own:
        thread = threading.Thread(target=run, args=(own, asyncio.sleep(0)))
        thread.start()
        thread.join()


def test_an_event_loop_made_in_a_thread_needs_no_main_thread():
    caught = []

    def whole_life():
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(asyncio.sleep(0.001))
        except BaseException as exc:
            caught.append(exc)

    thread = threading.Thread(target=whole_life)
    thread.start()
    thread.join(PATIENCE)
    assert caught == []
