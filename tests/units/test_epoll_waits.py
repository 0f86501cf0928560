"""EpollSelector on the real kernel: when does a wait end? Deadlines and signals."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import epoque
from epoque.kernel.masks import NEVER, READ
from epoque.selector.epoll import EpollSelector
from tests.units.real import FAR, MS, kernel, turn, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")


@pytest.fixture
def selector():
    selector = EpollSelector()
    yield selector
    selector.close()


def test_a_wait_ends_no_earlier_than_its_deadline(selector):
    rng = random.Random(0)
    for _ in range(100):
        deadline = time.monotonic_ns() + rng.randrange(MS)
        turn(selector, deadline)
        assert time.monotonic_ns() >= deadline


def test_a_deadline_that_has_passed_ends_the_wait_at_once(selector):
    for deadline in (1, time.monotonic_ns() - 1, 1, 1):
        turn(selector, deadline)


def test_the_same_deadline_can_be_waited_for_again(selector):
    deadline = time.monotonic_ns() + MS
    for _ in range(3):
        turn(selector, deadline)
        assert time.monotonic_ns() >= deadline


def test_an_event_ends_the_wait_before_its_deadline(selector, bell):
    fd = bell(1)
    source = watched(selector, fd)
    turn(selector, time.monotonic_ns() + FAR)
    assert source.calls == [READ]


def test_a_deadline_that_moves_forward_is_kept(selector, bell):
    fd = bell(1)
    source = watched(selector, fd)
    turn(selector, time.monotonic_ns() + FAR)  # armed, and ended by the bell
    os.eventfd_read(fd)
    deadline = time.monotonic_ns() + MS
    turn(selector, deadline)
    assert time.monotonic_ns() >= deadline
    assert source.calls == [READ]


def test_a_deadline_that_moves_back_costs_at_most_one_empty_wait(selector, bell):
    fd = bell(1)
    source = watched(selector, fd)
    turn(selector, time.monotonic_ns() + MS)  # armed for that, and ended by the bell
    os.eventfd_read(fd)
    deadline, waits = time.monotonic_ns() + 3 * MS, 0
    while time.monotonic_ns() < deadline:
        turn(selector, deadline)
        waits += 1
    assert waits <= 2
    assert source.calls == [READ]


def test_the_alarm_is_set_only_for_a_deadline_before_the_one_that_it_is_set_to(selector, bell):
    assert kernel(selector) == {}
    start = time.monotonic_ns()
    turn(selector, start + MS)
    (alarm,) = kernel(selector)
    watched(selector, bell(1))

    def hours():
        """When the alarm will ring, in hours from the start; proc_pid_fdinfo(5)."""
        text = Path(f"/proc/self/fdinfo/{alarm}").read_text()
        seconds = int(re.search(r"it_value: \((\d+),", text)[1])
        return round((time.monotonic_ns() - start) / FAR + seconds / 3600)

    for after, expected in ((5, 5), (6, 5), (3, 3), (4, 3), (3, 3), (2, 2), (9, 2)):
        turn(selector, start + after * FAR)
        assert hours() == expected
    turn(selector, NEVER)
    assert hours() == 2


def test_a_withdrawn_deadline_ends_one_endless_wait_at_most(selector, bell):
    fd = bell(1)
    source = watched(selector, fd)
    turn(selector, time.monotonic_ns() + MS)
    os.eventfd_read(fd)
    deadline = time.monotonic_ns() + 2 * MS
    turn(selector, NEVER)  # ends by the alarm that is still set
    assert source.calls == [READ]
    turn(selector, deadline)
    assert time.monotonic_ns() >= deadline


def test_an_alarm_that_comes_with_other_events_and_an_exception_is_not_forgotten(selector, bell):
    fd = bell()
    watched(selector, fd, action=lambda mask: 1 / 0)
    deadline = time.monotonic_ns() + MS
    selector.wait(deadline)
    os.eventfd_write(fd, 1)
    selector.dispatch()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            turn(selector, time.monotonic_ns() + FAR)
    os.eventfd_read(fd)
    deadline = time.monotonic_ns() + MS
    turn(selector, deadline)
    assert time.monotonic_ns() >= deadline


@pytest.mark.skipif(epoque.compiled, reason="compiled, the system call cannot be taken away")
def test_without_a_timerfd_deadlines_are_kept_too(monkeypatch, bell):
    monkeypatch.setattr("epoque.selector.epoll.epoll.timerfd_open", lambda: -1)
    selector = EpollSelector()
    try:
        for after in (MS // 10, MS, 3 * MS, -MS):
            deadline = time.monotonic_ns() + after
            turn(selector, deadline)
            assert time.monotonic_ns() >= deadline
        source = watched(selector, bell(1))
        turn(selector, time.monotonic_ns() + FAR)
        turn(selector, NEVER)
        assert source.calls == [READ, READ]
        selector._forked()
        watched(selector, bell())  # a new instance, without an alarm as well
        turn(selector, time.monotonic_ns() + FAR)
        assert len(source.calls) == 3
    finally:
        selector.close()


@pytest.fixture
def interrupt(stack):
    """A function that sends SIGUSR1 to this thread, from another one, as soon as this one sleeps."""
    ident, stat = threading.get_ident(), Path(f"/proc/self/task/{threading.get_native_id()}/stat")

    def send():
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            pass
        signal.pthread_kill(ident, signal.SIGUSR1)

    def interrupt(handler):
        stack.callback(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        thread = threading.Thread(target=send)
        stack.callback(thread.join)
        thread.start()

    return interrupt


def test_a_signal_handler_that_raises_ends_the_wait(selector, interrupt, bell):
    def handler(number, frame):
        raise ArithmeticError

    source = watched(selector, bell(1))
    source.want(0)
    turn(selector)
    with pytest.raises(ArithmeticError):
        interrupt(handler)
        while True:
            turn(selector, NEVER)
    source.want(READ)
    selector.update(source)
    turn(selector)
    assert source.calls == [READ]


def test_a_signal_handler_runs_during_the_wait(selector, interrupt, bell):
    fd = bell()
    source = watched(selector, fd)
    interrupt(lambda number, frame: os.eventfd_write(fd, 1))
    while not source.calls:  # a wait that a signal came to may end with an empty batch
        turn(selector, NEVER)
    assert source.calls == [READ]
