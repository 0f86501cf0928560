"""^C: KeyboardInterrupt out of every kind of run, at every stage of it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading

import pytest

from tests.core.idle import sent_when_idle
from tests.loops import new_loop, run, spawn, turn


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("handlers", [False, True], ids=["", "with signal handlers"])
def test_an_idle_run_is_left(loop, handlers):
    if handlers:
        loop.add_signal_handler(signal.SIGUSR1, print)
    for _ in range(10):
        with sent_when_idle(loop, signal.SIGINT), pytest.raises(KeyboardInterrupt):
            loop.run_forever()
        assert not loop.is_running()
    assert run(loop, asyncio.sleep(0, "works")) == "works"


def test_an_idle_run_with_a_distant_timer_is_left(loop):
    timer = loop.call_later(3600, print)
    with sent_when_idle(loop, signal.SIGINT), pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    timer.cancel()


@pytest.mark.parametrize("handlers", [False, True], ids=["", "with signal handlers"])
def test_a_callback_is_interrupted_and_what_follows_is_kept(loop, handlers):
    if handlers:
        loop.add_signal_handler(signal.SIGUSR1, print)
    ran = []

    def callback():
        interrupt()
        for _ in range(1_000_000):  # Python looks at signals between two steps
            pass
        ran.append("went on")

    loop.call_soon(callback)
    loop.call_soon(ran.append, 1)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    turn(loop)
    assert ran == [1]


def test_a_chain_of_callbacks_is_interrupted(loop):
    def again():
        loop.call_soon(again)

    again()
    with sent_when_idle(loop, signal.SIGINT), pytest.raises(KeyboardInterrupt):
        loop.run_forever()


def test_a_storm_of_interrupts_costs_at_most_the_callbacks_it_hits(loop):
    def handler(number, frame):
        if running:
            running.clear()  # one for each run: a second one could hit what ends the run, or the test itself
            raise KeyboardInterrupt

    def storm():
        while not finished.wait(0.0001):
            interrupt()

    def callback(number):
        ran.append(number)

    ran, running, finished, count, rounds = [], [], threading.Event(), 0, 100
    thread = threading.Thread(target=storm)
    before = signal.signal(signal.SIGINT, handler)
    thread.start()
    try:
        for _ in range(rounds):
            for number in range(count, count + 2_000):
                loop.call_soon(callback, number)
            count += 2_000
            with pytest.raises(KeyboardInterrupt):
                running.append(True)
                loop.run_forever()
    finally:
        finished.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    turn(loop)
    assert all(this < following for this, following in itertools.pairwise(ran))
    assert count - len(ran) <= rounds


def test_run_until_complete_is_left_and_its_task_stays_pending(loop):
    async def work():
        await event.wait()
        return "done"

    event = asyncio.Event()
    task = loop.create_task(work())
    with sent_when_idle(loop, signal.SIGINT), pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(task)
    assert not task.done()
    event.set()
    assert run(loop, task) == "done"


def test_a_handler_of_the_loop_for_sigint_replaces_the_interrupt(loop):
    loop.add_signal_handler(signal.SIGINT, loop.stop)
    with sent_when_idle(loop, signal.SIGINT):
        loop.run_forever()
    assert loop.remove_signal_handler(signal.SIGINT)
    loop.call_soon(interrupt)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()


def test_a_runner_cancels_the_main_task_and_raises_keyboard_interrupt():
    log = []

    async def main():
        sender.start()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    sender = threading.Timer(0.005, interrupt)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        with pytest.raises(KeyboardInterrupt):
            runner.run(main())
        sender.join()
        assert runner.run(asyncio.sleep(0, "works")) == "works"
    assert log == ["cancelled"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_a_main_task_that_does_not_give_way():
    async def main():
        interrupt()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            interrupt()
            await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("stage", ["idle", "busy"])
def test_a_program_ends_by_sigint_and_cleans_up(stage):
    code = """
        async def main():
            try:
                print("ready", flush=True)
                while True:
                    await asyncio.sleep(0 if sys.argv[1] == "busy" else 60)
            finally:
                print("cleaned up", flush=True)

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(main())
    """
    with spawn(code, stage) as child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=20)
    assert output == "cleaned up\n"
    assert "KeyboardInterrupt" in errors
    assert child.returncode == -signal.SIGINT
