"""Several loops in one thread, by turns: what one borrows from the process, signals above all, reaches the other."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

import pytest

from tests.core.idle import SPIN, cpu_share, sent_when_idle
from tests.loops import new_loop, run, turn

USR1, USR2 = signal.SIGUSR1, signal.SIGUSR2


@pytest.fixture
def other():
    loop = new_loop()
    yield loop
    loop.close()


def kill(number):
    os.kill(os.getpid(), number)


def settle(*loops):
    for _ in range(3):
        for loop in loops:
            turn(loop)


def test_a_loop_with_handlers_still_gets_its_signals_after_another_ran(loop, other):
    got = []
    loop.add_signal_handler(USR1, got.append, 1)
    for count in range(1, 4):
        settle(other)
        kill(USR1)
        settle(loop)
        assert got == [1] * count
        settle(loop, loop)
        assert got == [1] * count


def test_a_loop_with_handlers_is_woken_by_its_signals_after_another_ran(loop, other):
    loop.add_signal_handler(USR1, loop.stop)
    for _ in range(3):
        settle(other)
        with sent_when_idle(loop, USR1):
            loop.run_forever()


def test_a_signal_does_not_keep_a_loop_busy_after_another_ran(loop, other):
    loop.add_signal_handler(USR1, int)
    for _ in range(2):
        settle(other, loop)
    kill(USR1)
    assert run(loop, cpu_share()) < SPIN


def test_a_signal_that_comes_while_another_loop_runs_waits_for_the_loop_of_its_handler(loop, other):
    got = []
    loop.add_signal_handler(USR1, got.append, 1)
    other.call_soon(kill, USR1)
    settle(other)
    assert got == []
    settle(loop)
    assert got == [1]


@pytest.mark.asyncio_wrong("the loop that added a handler last has the only wake-up descriptor")
def test_two_loops_each_have_handlers(loop, other):
    got = []
    loop.add_signal_handler(USR1, got.append, "loop")
    other.add_signal_handler(USR2, got.append, "other")
    for _ in range(2):
        got.clear()
        kill(USR1)
        kill(USR2)
        settle(loop)
        assert got == ["loop"]
        settle(other)
        assert got == ["loop", "other"]
    assert other.remove_signal_handler(USR2)
    kill(USR1)
    settle(loop)
    assert got == ["loop", "other", "loop"]


@pytest.mark.asyncio_wrong("removing its last handler, the second loop takes the wake-up descriptor from the first")
def test_closing_one_loop_does_not_deafen_the_other(loop, other):
    loop.add_signal_handler(USR1, loop.stop)
    with contextlib.closing(new_loop()) as third:
        third.add_signal_handler(USR2, print)
        settle(third)
    with sent_when_idle(loop, USR1):
        loop.run_forever()


def test_no_signal_is_written_to_a_stranger_when_a_loop_is_closed_while_another_runs(loop, other):
    """The number of the closed loop's wake-up descriptor is soon somebody else's."""
    strangers = []

    def replace_other():
        other.close()
        for _ in range(8):
            strangers.extend(socket.socketpair())
        for sock in strangers:
            sock.setblocking(False)
        kill(USR2)

    signal.signal(USR2, lambda *_: None)
    try:
        other.add_signal_handler(USR1, print)
        loop.call_soon(replace_other)
        settle(loop)
        kill(USR2)
        for sock in strangers:
            with pytest.raises(BlockingIOError):
                sock.recv(10)
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(USR2, signal.SIG_DFL)
        for sock in strangers:
            sock.close()


def test_a_wakeup_fd_that_the_user_takes_back_during_the_run_is_not_set_again(loop):
    left, right = socket.socketpair()
    with left, right:
        right.setblocking(False)
        signal.set_wakeup_fd(right.fileno())
        loop.call_soon(signal.set_wakeup_fd, -1)
        try:
            settle(loop)
        finally:
            left_behind = signal.set_wakeup_fd(-1)
        assert left_behind == -1


def test_a_wakeup_fd_that_the_user_sets_during_the_run_stays(loop):
    left, right = socket.socketpair()
    with left, right:
        right.setblocking(False)
        loop.call_soon(signal.set_wakeup_fd, right.fileno())
        try:
            settle(loop)
        finally:
            left_behind = signal.set_wakeup_fd(-1)
        assert left_behind == right.fileno()
