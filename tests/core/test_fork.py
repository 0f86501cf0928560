"""A forked child and the loop it inherits: whatever the child does, the parent's loop serves on."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading

import pytest

from tests.loops import exit_code, forked, new_loop, run

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


async def value(result):
    await asyncio.sleep(0.001)
    return result


@pytest.fixture
def watched(loop):
    """A socket pair whose first end the loop reads, and the future that gets what it reads."""
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        received = loop.create_future()
        loop.add_reader(left, lambda: (loop.remove_reader(left), received.set_result(left.recv(10))))
        yield left, right, received


def still_serves(loop, watched):
    """Descriptors, timers, calls from threads and signals: everything a loop needs the kernel for."""
    _, right, received = watched

    async def main():
        right.send(b"data")
        assert await received == b"data"
        await asyncio.sleep(0.002)
        assert await loop.run_in_executor(None, pow, 2, 3) == 8
        event = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, event.set)
        thread = threading.Timer(0.002, os.kill, [os.getpid(), signal.SIGUSR1])
        thread.start()
        await event.wait()
        thread.join()
        assert loop.remove_signal_handler(signal.SIGUSR1)

    run(loop, main())


@pytest.mark.asyncio_wrong("the child takes the wake-up out of the epoll set it shares with the parent")
def test_a_child_that_closes_the_inherited_loop_does_not_deafen_the_parent(loop, watched):
    assert exit_code(forked(loop.close)) == 0
    still_serves(loop, watched)


def test_a_child_forked_by_a_callback_that_closes_the_loop_does_not_deafen_the_parent(loop, watched):
    def close():
        with contextlib.suppress(RuntimeError):  # asyncio says that the loop, copied while it ran, is running
            loop.close()

    async def main():
        return exit_code(forked(close))

    assert run(loop, main()) == 0
    still_serves(loop, watched)


@pytest.mark.asyncio_wrong("the child edits the epoll set it shares with the parent")
@pytest.mark.parametrize("running", [False, True], ids=["before the run", "in a callback"])
def test_a_child_that_edits_the_inherited_loop_leaves_the_parents_alone(loop, watched, running):
    left, right, _ = watched
    other, _ = pair = socket.socketpair()

    def edit():
        loop.remove_reader(left)
        loop.add_writer(left, print)
        loop.add_reader(other, print)
        loop.call_later(0, print).cancel()
        loop.call_soon_threadsafe(print)
        loop.remove_reader(other)

    async def main():
        return exit_code(forked(edit))

    with pair[0], pair[1]:
        assert (run(loop, main()) if running else exit_code(forked(edit))) == 0
        pair[1].send(b"x")
        still_serves(loop, watched)
    assert loop.remove_writer(left) is False


@pytest.mark.asyncio_wrong("the child edits the epoll set it shares with the parent")
def test_a_child_that_runs_the_inherited_loop_leaves_the_parents_alone(loop, watched):
    left, right, _ = watched

    def child():
        loop.remove_reader(left)
        assert run(loop, value(1)) == 1
        assert run(loop, loop.run_in_executor(None, pow, 2, 3)) == 8
        loop.close()

    pending = loop.call_later(0.001, int)
    assert exit_code(forked(child)) == 0
    still_serves(loop, watched)
    pending.cancel()


def test_a_child_runs_the_inherited_loop(loop):
    received = []
    left, right = socket.socketpair()
    with left, right:
        loop.add_reader(left, lambda: (received.append(left.recv(10)), loop.stop()))

        def child():
            right.send(b"data")
            loop.run_forever()
            assert received == [b"data"]
            assert run(loop, value(1)) == 1

        assert exit_code(forked(child)) == 0
        loop.remove_reader(left)


def test_a_child_forked_by_a_callback_goes_on_with_the_run(loop, watched):
    """As a program does that turns itself into a daemon."""
    _, right, received = watched
    children = []

    def fork():
        children.append(os.fork())
        if children[0] == 0:
            right.send(b"data")
            received.add_done_callback(children.append)
            received.add_done_callback(lambda _: loop.call_later(0.002, loop.stop))
            loop.call_later(10, loop.stop)
        else:
            loop.stop()

    loop.call_soon(fork)
    try:
        loop.run_forever()
    finally:
        if children == [0, received]:
            os._exit(0)
        elif children[0] == 0:
            os._exit(1)
    assert exit_code(children[0]) == 0


@pytest.mark.parametrize("running", [False, True], ids=["before the run", "in a callback"])
def test_a_child_makes_a_loop_of_its_own(loop, watched, running):
    def child():
        with contextlib.closing(new_loop()) as own:
            assert run(own, value(1)) == 1
            assert run(own, own.run_in_executor(None, pow, 2, 3)) == 8

    async def main():
        return exit_code(forked(child))

    assert (run(loop, main()) if running else exit_code(forked(child))) == 0
    still_serves(loop, watched)


def test_a_child_forked_by_a_callback_does_not_think_a_loop_is_running(loop):
    def child():
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()

    async def main():
        return exit_code(forked(child))

    assert run(loop, main()) == 0


@pytest.mark.asyncio_wrong(
    "the child writes the signal into the socket pair it shares with the parent", when=sys.version_info < (3, 12)
)
@pytest.mark.parametrize("running", [False, True], ids=["before the run", "in a callback"])
def test_a_signal_sent_to_the_child_is_not_handled_in_the_parent(loop, running):
    handled = []
    loop.add_signal_handler(signal.SIGUSR1, handled.append, "parent")

    def child():
        os.kill(os.getpid(), signal.SIGUSR1)

    async def main():
        code = exit_code(forked(child))
        await asyncio.sleep(0.01)
        return code

    if not running:
        assert exit_code(forked(child)) == 0
        run(loop, asyncio.sleep(0.01))
    else:
        assert run(loop, main()) == 0
    assert handled == []
    os.kill(os.getpid(), signal.SIGUSR1)
    run(loop, asyncio.sleep(0.01))
    assert handled == ["parent"]


def test_a_signal_for_the_parent_is_not_taken_by_a_child_with_a_loop_of_its_own(loop):
    """A signalfd read by the child would answer for the child, but must never eat what is the parent's."""
    parent = os.getpid()
    loop.add_signal_handler(signal.SIGUSR1, loop.stop)

    def child():
        with contextlib.closing(new_loop()) as own:
            own.add_signal_handler(signal.SIGUSR1, print)
            own.call_later(0.005, os.kill, parent, signal.SIGUSR1)
            run(own, asyncio.sleep(0.02))

    pid = forked(child)
    loop.run_forever()
    assert exit_code(pid) == 0


def test_a_child_forked_by_a_callback_has_no_blocked_signals(loop):
    loop.add_signal_handler(signal.SIGUSR1, int)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def child():
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before

    async def main():
        return exit_code(forked(child))

    assert run(loop, main()) == 0


def main_of_process(pipe):
    """Runs in a process of multiprocessing: a program with a loop of its own."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        pipe.send(runner.run(value("from the child")))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_starts_processes_from_a_running_loop(loop, method):
    processes = multiprocessing.get_context(method)

    async def main():
        mine, theirs = processes.Pipe()
        process = processes.Process(target=main_of_process, args=(theirs,))
        process.start()
        loop.add_reader(mine, lambda: (loop.remove_reader(mine), answer.set_result(mine.recv())))
        result = await answer
        await loop.run_in_executor(None, process.join)
        mine.close()
        theirs.close()
        code = process.exitcode
        process.close()
        return result, code

    answer = loop.create_future()
    try:
        assert run(loop, main(), timeout=30) == ("from the child", 0)
    finally:
        if method != "fork":
            multiprocessing.resource_tracker._resource_tracker._stop()
        if method == "forkserver":
            multiprocessing.forkserver._forkserver._stop()
