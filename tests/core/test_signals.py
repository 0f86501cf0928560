"""add_signal_handler and remove_signal_handler, and how they get along with the signal module's own means."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from tests.core.idle import sent_when_idle
from tests.loops import run, turn

PATIENCE = 10  # seconds until a signal that was not handled counts as lost
USED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)
PID = os.getpid()


@pytest.fixture(autouse=True)
def dispositions():
    """The handlers of the process as they were before."""
    before = {number: signal.getsignal(number) for number in USED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def user_wakeup_fd():
    """A wake-up descriptor of the user; gives the socket from which the signal numbers can be read."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno())
        try:
            yield reader, writer
        finally:
            signal.set_wakeup_fd(before)


def kill(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)


def settle(loop):
    for _ in range(3):
        turn(loop)


def test_the_handler_gets_its_arguments_in_the_thread_of_the_loop(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, lambda *args: got.append((args, threading.get_ident())), 1, "two")
    kill(signal.SIGUSR1)
    settle(loop)
    assert got == [((1, "two"), threading.get_ident())]


def test_a_signal_for_an_idle_loop_is_handled_at_once(loop):
    loop.add_signal_handler(signal.SIGUSR1, loop.stop)
    for _ in range(20):
        with sent_when_idle(loop, signal.SIGUSR1):
            loop.run_forever()


def test_every_one_of_many_signals_sent_one_after_the_other_is_handled(loop):
    handled = threading.Semaphore(0)
    lost = []

    def work():
        for i in range(2_000):
            os.kill(PID, signal.SIGUSR1)
            if not handled.acquire(timeout=PATIENCE):
                lost.append(i)
                break
        loop.call_soon_threadsafe(loop.stop)

    loop.add_signal_handler(signal.SIGUSR1, handled.release)
    thread = threading.Thread(target=work)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert lost == []


def test_a_signal_that_hits_another_thread_wakes_the_idle_loop(loop):
    handled, finished = threading.Semaphore(0), threading.Event()
    lost = []
    target = threading.Thread(target=finished.wait, args=(PATIENCE,))

    def work():
        for i in range(200):
            signal.pthread_kill(target.ident, signal.SIGUSR1)
            if not handled.acquire(timeout=PATIENCE):
                lost.append(i)
                break
        loop.call_soon_threadsafe(loop.stop)

    loop.add_signal_handler(signal.SIGUSR1, handled.release)
    sender = threading.Thread(target=work)
    target.start()
    loop.call_soon(sender.start)
    loop.run_forever()
    finished.set()
    for thread in (target, sender):
        thread.join()
    assert lost == []


def test_a_signal_sent_in_a_callback_is_handled(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, got.append, 1)
    loop.call_soon(kill, signal.SIGUSR1)
    settle(loop)
    assert got == [1]


def test_a_signal_is_handled_while_callbacks_keep_the_loop_busy(loop):
    def busy():
        if time.monotonic() > end:
            loop.stop()
        elif not got:
            loop.call_soon(busy)

    got = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: (got.append(1), loop.stop()))
    end = time.monotonic() + PATIENCE
    busy()
    with sent_when_idle(loop, signal.SIGUSR1):
        loop.run_forever()
    assert got == [1]


def test_a_signal_that_comes_between_runs_is_handled_in_the_next(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, got.append, 1)
    settle(loop)
    kill(signal.SIGUSR1)
    assert got == []
    settle(loop)
    assert got == [1]


@pytest.mark.asyncio_wrong("the byte of the signal is dropped when its socket pair is full")
def test_a_signal_is_not_lost_among_a_flood_of_threadsafe_calls(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, got.append, 1)

    def flood():
        for _ in range(20_000):
            loop.call_soon_threadsafe(int)
        kill(signal.SIGUSR1)
        for _ in range(20_000):
            loop.call_soon_threadsafe(int)

    loop.call_soon(flood)
    settle(loop)
    assert got == [1]


def test_several_signals_each_reach_their_own_handler(loop):
    got = []
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        loop.add_signal_handler(number, got.append, number)
    kill(signal.SIGTERM, signal.SIGUSR2, signal.SIGUSR1)
    settle(loop)
    assert sorted(got) == sorted([signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM])
    got.clear()
    kill(signal.SIGUSR2)
    settle(loop)
    assert got == [signal.SIGUSR2]


def test_a_new_handler_replaces_the_old_one(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, got.append, "old")
    loop.add_signal_handler(signal.SIGUSR1, got.append, "new")
    kill(signal.SIGUSR1)
    settle(loop)
    assert got == ["new"]
    assert loop.remove_signal_handler(signal.SIGUSR1) is True
    assert loop.remove_signal_handler(signal.SIGUSR1) is False


def test_remove_says_whether_there_was_one(loop):
    assert loop.remove_signal_handler(signal.SIGUSR1) is False
    loop.add_signal_handler(signal.SIGUSR1, print)
    assert loop.remove_signal_handler(signal.SIGUSR1) is True
    assert loop.remove_signal_handler(signal.SIGUSR1) is False


def test_removing_one_leaves_the_others(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, got.append, 1)
    loop.add_signal_handler(signal.SIGUSR2, got.append, 2)
    loop.remove_signal_handler(signal.SIGUSR1)
    kill(signal.SIGUSR2)
    settle(loop)
    assert got == [2]


def test_a_handler_removes_itself(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: got.append(loop.remove_signal_handler(signal.SIGUSR1)))
    kill(signal.SIGUSR1)
    settle(loop)
    assert got == [True]
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


@pytest.mark.parametrize("end", ["remove", "close"])
def test_the_default_disposition_comes_back(loop, end):
    loop.add_signal_handler(signal.SIGUSR1, print)
    loop.add_signal_handler(signal.SIGINT, print)
    assert callable(signal.getsignal(signal.SIGUSR1))
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if end == "remove":
        loop.remove_signal_handler(signal.SIGUSR1)
        loop.remove_signal_handler(signal.SIGINT)
    else:
        loop.close()
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("wrong", [None, "SIGUSR1", 1.5, [], object()])
def test_a_signal_that_is_no_integer_is_a_type_error(loop, wrong):
    with pytest.raises(TypeError, match="sig must be an int"):
        loop.add_signal_handler(wrong, print)
    with pytest.raises(TypeError, match="sig must be an int"):
        loop.remove_signal_handler(wrong)


@pytest.mark.parametrize("wrong", [0, -1, signal.NSIG, 12345, 2**70])
def test_a_number_that_is_no_signal_is_a_value_error(loop, wrong):
    with pytest.raises(ValueError, match="invalid signal number"):
        loop.add_signal_handler(wrong, print)
    with pytest.raises(ValueError, match="invalid signal number"):
        loop.remove_signal_handler(wrong)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_signal_that_cannot_be_caught_is_a_runtime_error(loop, number):
    with pytest.raises(RuntimeError, match="cannot be caught"):
        loop.add_signal_handler(number, print)
    assert loop.remove_signal_handler(number) is False


def test_a_coroutine_or_coroutine_function_is_a_type_error(loop):
    async def work():
        pass

    coroutine = work()
    for wrong in (work, coroutine):
        with pytest.raises(TypeError, match="coroutines cannot be used"):
            loop.add_signal_handler(signal.SIGUSR1, wrong)
    coroutine.close()
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


@pytest.mark.parametrize("running", [False, True])
def test_off_the_main_thread_it_is_a_runtime_error(loop, running):
    caught = []

    def work():
        try:
            loop.add_signal_handler(signal.SIGUSR1, print)
        except RuntimeError as exc:
            caught.append(str(exc))
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=work)
    if running:
        loop.call_soon(thread.start)
    else:
        thread.start()
        thread.join()
    loop.run_forever()
    thread.join()
    assert len(caught) == 1
    assert "main thread" in caught[0]
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


def test_a_handler_that_raises_is_reported_and_stays(loop, errors):
    loop.add_signal_handler(signal.SIGUSR1, lambda: 1 / 0)
    for _ in range(2):
        kill(signal.SIGUSR1)
        settle(loop)
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError] * 2


def test_a_handler_added_by_a_handler_works(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, loop.add_signal_handler, signal.SIGUSR2, got.append, 2)
    kill(signal.SIGUSR1)
    settle(loop)
    kill(signal.SIGUSR2)
    settle(loop)
    assert got == [2]


def test_an_event_set_by_a_handler_wakes_a_task(loop):
    async def main():
        event = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, event.set)
        kill(signal.SIGUSR1)
        await event.wait()
        return "woken"

    assert run(loop, main()) == "woken"


# What users do with the signal module beside the loop


def test_a_handler_of_the_signal_module_runs_while_the_loop_is_idle(loop):
    got = []
    signal.signal(signal.SIGUSR1, lambda number, frame: (got.append(number), loop.call_soon_threadsafe(loop.stop)))
    with sent_when_idle(loop, signal.SIGUSR1):
        loop.run_forever()
    assert got == [signal.SIGUSR1]


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside add_signal_handler"])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, asyncio.CancelledError])
def test_an_exception_of_a_handler_of_the_signal_module_leaves_an_idle_run(loop, kind, others):
    def user_handler(number, frame):
        raise kind("on purpose")

    if others:
        loop.add_signal_handler(signal.SIGUSR2, print)
    signal.signal(signal.SIGUSR1, user_handler)
    with sent_when_idle(loop, signal.SIGUSR1), pytest.raises(kind, match="on purpose") as caught:
        loop.run_forever()
    assert caught.traceback[-1].name == "user_handler"
    assert not loop.is_running()
    assert run(loop, asyncio.sleep(0, "still works")) == "still works"


def test_a_handler_of_the_signal_module_set_afterwards_and_the_loops_both_get_every_hit(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, got.append, "loop")
    signal.signal(signal.SIGUSR1, lambda *_: got.append("user"))
    for _ in range(3):
        got.clear()
        kill(signal.SIGUSR1)
        settle(loop)
        assert sorted(got) == ["loop", "user"]


def test_a_handler_of_the_signal_module_set_afterwards_gets_the_hits_of_an_idle_loop_too(loop):
    got = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: (got.append("loop"), loop.stop()))
    signal.signal(signal.SIGUSR1, lambda *_: got.append("user"))
    for _ in range(10):
        got.clear()
        with sent_when_idle(loop, signal.SIGUSR1):
            loop.run_forever()
        assert sorted(got) == ["loop", "user"]


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_disposition_set_behind_the_back_of_the_loop_is_respected(loop, disposition):
    """SIGCHLD: the default is to do nothing."""
    got = []
    loop.add_signal_handler(signal.SIGCHLD, got.append, 1)
    signal.signal(signal.SIGCHLD, disposition)
    kill(signal.SIGCHLD)
    run(loop, asyncio.sleep(0.01))
    assert got == []


def test_a_users_handler_of_another_signal_works_beside_the_loops(loop):
    got = []
    signal.signal(signal.SIGUSR2, lambda *_: got.append("user"))
    loop.add_signal_handler(signal.SIGUSR1, got.append, "loop")
    kill(signal.SIGUSR1, signal.SIGUSR2)
    settle(loop)
    assert sorted(got) == ["loop", "user"]


def test_sigchld_reaches_the_handler_when_a_child_ends(loop):
    loop.add_signal_handler(signal.SIGCHLD, loop.stop)
    with subprocess.Popen(["true"]):
        loop.run_forever()


def test_a_blocking_read_in_another_thread_is_not_disturbed_by_handled_signals(loop):
    left, right = socket.socketpair()
    with left, right:
        loop.add_signal_handler(signal.SIGUSR1, int)

        async def main():
            reading = loop.run_in_executor(None, left.recv, 10)
            for _ in range(20):
                kill(signal.SIGUSR1)
                await asyncio.sleep(0)
            right.send(b"data")
            return await reading

        assert run(loop, main()) == b"data"


@pytest.mark.asyncio_wrong("it takes the wake-up descriptor and never gives it back")
def test_a_users_wakeup_fd_is_given_back_after_the_run(loop, user_wakeup_fd):
    _, writer = user_wakeup_fd
    loop.add_signal_handler(signal.SIGUSR1, int)
    for _ in range(2):
        settle(loop)
        assert signal.set_wakeup_fd(writer.fileno()) == writer.fileno()
    loop.remove_signal_handler(signal.SIGUSR1)
    settle(loop)
    loop.close()
    assert signal.set_wakeup_fd(writer.fileno()) == writer.fileno()


def test_a_users_wakeup_fd_is_left_alone_by_a_loop_without_handlers(loop, user_wakeup_fd):
    reader, writer = user_wakeup_fd
    signal.signal(signal.SIGUSR1, lambda *_: None)
    loop.call_soon(kill, signal.SIGUSR1)
    settle(loop)
    assert reader.recv(10) == bytes([signal.SIGUSR1])
    assert signal.set_wakeup_fd(writer.fileno()) == writer.fileno()


# What children inherit


def blocked_signals(status):
    [line] = [line for line in status.splitlines() if line.startswith("SigBlk:")]
    return int(line.split()[1], 16)


def own_blocked_signals():
    return sum(1 << number - 1 for number in signal.pthread_sigmask(signal.SIG_BLOCK, []))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the mask from Linux's /proc")
@pytest.mark.parametrize("where", ["callback", "executor"])
def test_a_child_process_inherits_no_blocked_signal(loop, where):
    before = own_blocked_signals()
    for number in USED:
        loop.add_signal_handler(number, int)

    def status_of_child():
        return subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout

    async def main():
        for _ in range(5):
            status = await loop.run_in_executor(None, status_of_child) if where == "executor" else status_of_child()
            assert blocked_signals(status) == before

    run(loop, main())
    assert own_blocked_signals() == before


def test_a_thread_started_by_a_callback_inherits_no_blocked_signal(loop):
    loop.add_signal_handler(signal.SIGUSR1, int)
    assert run(loop, loop.run_in_executor(None, own_blocked_signals)) == own_blocked_signals()


def test_callbacks_run_with_the_mask_of_the_caller(loop):
    for number in (signal.SIGUSR1, signal.SIGINT):
        loop.add_signal_handler(number, int)
    seen = []
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        before = own_blocked_signals()
        loop.call_soon(lambda: seen.append(own_blocked_signals()))
        loop.call_later(0.005, lambda: (seen.append(own_blocked_signals()), loop.stop()))
        loop.run_forever()
        assert own_blocked_signals() == before
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
    assert seen == [before, before]
