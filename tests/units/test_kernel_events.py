"""kernel.events, kernel.clock and kernel.interp in both forms, and what the interpreted forms ask ctypes for."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import errno
import fcntl
import gc
import math
import os
import re
import select
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epoque.kernel.masks import EDGE, NEVER, READ
from tests.conftest import open_descriptors
from tests.loops import exit_code, forked
from tests.units.twins import FORMS, twin

pytestmark = pytest.mark.epoque_only("looks at epoque's own kernel modules")

MS = 1_000_000  # nanoseconds
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture(params=[*FORMS, "portable"])
def events(request):
    """`portable` is what the interpreted form does on a system with neither eventfd() nor pipe2()."""
    if request.param != "portable":
        return twin("events", request.param)
    module = twin("events", "interpreted")
    module._has_eventfd = module._has_pipe2 = False
    return module


@pytest.fixture(params=[*FORMS, "ctypes"])
def timers(request):
    """`ctypes` is what the interpreted form does before Python 3.13."""
    if request.param != "ctypes":
        return twin("epoll", request.param)
    module = twin("epoll", "interpreted")
    module._has_timerfd = False
    module._libc = ctypes.CDLL(None, use_errno=True)
    return module


@pytest.fixture(params=FORMS)
def interp(request):
    return twin("interp", request.param)


def readable(fd, timeout=0.0):
    return bool(select.select([fd], [], [], timeout)[0])


@contextlib.contextmanager
def opened(fd):
    try:
        yield fd
    finally:
        os.close(fd)


def closed_descriptor():
    fd = os.dup(0)
    os.close(fd)
    return fd


def private(fd):
    """Whether it is non-blocking, and closed on exec."""
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK) and not os.get_inheritable(fd)


# --- events


@contextlib.contextmanager
def bell(events):
    fd, ring = events.wakeup_open()
    try:
        yield fd, ring
    finally:
        for end in {fd, ring}:
            os.close(end)


def test_a_bell_is_readable_once_it_was_rung(events):
    with bell(events) as (fd, ring):
        assert private(fd)
        assert private(ring)
        assert not readable(fd)
        events.wakeup_answer(fd)
        events.wakeup_ring(ring)
        events.wakeup_ring(ring)
        assert readable(fd)


def test_each_ring_is_an_edge_if_the_one_before_was_answered(events):
    with bell(events) as (fd, ring), contextlib.closing(select.epoll()) as epoll:
        epoll.register(fd, select.EPOLLIN | select.EPOLLET)
        for _ in range(3):
            events.wakeup_ring(ring)
            assert epoll.poll(0) == [(fd, select.EPOLLIN)]
            events.wakeup_answer(fd)
            assert epoll.poll(0) == []


def test_ringing_a_bell_that_is_full_neither_blocks_nor_fails(events):
    with bell(events) as (fd, ring):
        if fd == ring:
            os.eventfd_write(fd, 2**64 - 2)
        else:
            with pytest.raises(BlockingIOError):
                while True:
                    os.write(ring, bytes(65536))
        events.wakeup_ring(ring)
        assert readable(fd)


def test_an_answer_makes_room_for_the_next_ring(events):
    with bell(events) as (fd, ring):
        if fd != ring:
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(ring, bytes(65536))
        events.wakeup_answer(fd)
        assert select.select([], [ring], [], 0)[1]


def test_ringing_a_closed_bell_is_an_error(events):
    with pytest.raises(OSError) as caught:
        events.wakeup_ring(closed_descriptor())
    assert caught.value.errno == errno.EBADF


def test_a_timerfd_expires_at_its_deadline_and_not_before(timers):
    with opened(timers.timerfd_open()) as fd:
        assert private(fd)
        assert not readable(fd)
        for after in (1, MS // 3, 2 * MS):
            deadline = time.monotonic_ns() + after
            timers.timerfd_arm(fd, deadline)
            assert readable(fd, 10)
            assert time.monotonic_ns() >= deadline
            assert int.from_bytes(os.read(fd, 8), "little") == 1


def test_a_timerfd_expires_once(timers):
    with opened(timers.timerfd_open()) as fd:
        timers.timerfd_arm(fd, 1)
        assert readable(fd, 10)
        os.read(fd, 8)
        assert not readable(fd)


@pytest.mark.parametrize("distant", [NEVER, NEVER - 1, 10**18])
def test_arming_a_timerfd_anew_replaces_its_deadline(timers, distant):
    with opened(timers.timerfd_open()) as fd:
        timers.timerfd_arm(fd, 1)
        timers.timerfd_arm(fd, distant)
        assert not readable(fd)
        deadline = time.monotonic_ns() + MS
        timers.timerfd_arm(fd, deadline)
        assert readable(fd, 10)
        assert time.monotonic_ns() >= deadline


def test_a_timerfd_is_set_to_the_very_nanosecond(timers):
    """The kernel tells how long is left; proc_pid_fdinfo(5)."""
    with opened(timers.timerfd_open()) as fd:
        for years in (1, 30, 200):
            deadline = years * 365 * 86_400 * 10**9 + 987_654_321
            timers.timerfd_arm(fd, deadline)
            before = time.monotonic_ns()
            text = Path(f"/proc/self/fdinfo/{fd}").read_text()
            after = time.monotonic_ns()
            seconds, nanoseconds = map(int, re.search(r"it_value: \((\d+), (\d+)\)", text).groups())
            assert deadline - after <= seconds * 10**9 + nanoseconds <= deadline - before


def test_arming_a_closed_timerfd_is_an_error(timers):
    with pytest.raises(OSError) as caught:
        timers.timerfd_arm(closed_descriptor(), 1)
    assert caught.value.errno == errno.EBADF


def test_a_system_without_timerfd_says_so():
    module = twin("epoll", "interpreted")
    module._has_timerfd = False
    module._libc = None
    assert module.timerfd_open() == -1


def test_an_event_that_an_exception_takes_away_while_it_is_fetched_is_told_again(monkeypatch):
    """Interpreted: a signal's handler may run, and raise, between the system call and the end of the method."""
    module = twin("epoll", "interpreted")
    reader, writer = os.pipe()
    with opened(reader), opened(writer), contextlib.closing(module.Poller(16)) as poller:
        poller.add(reader, 1, READ, EDGE)
        os.write(writer, b"!")
        with monkeypatch.context() as patch:
            patch.setattr(module, "_masks", {})
            with pytest.raises(KeyError):
                poller.wait(0)
        assert poller.wait(0) == 1
        assert poller.event(0) == (reader, 1, READ)
        assert poller.wait(0) == 0


def test_a_pipe_is_private(events):
    reader, writer = events.pipe_open()
    with opened(reader), opened(writer):
        assert private(reader)
        assert private(writer)
        os.write(writer, b"abc")
        assert os.read(reader, 10) == b"abc"


def test_close_never_fails(events):
    before = open_descriptors()
    fd, ring = events.wakeup_open()
    events.close(ring)
    events.close(fd)
    events.close(fd)
    events.close(-1)
    assert open_descriptors() == before


# --- clock


@pytest.mark.parametrize("form", FORMS)
def test_the_clock_is_the_monotonic_one(form):
    clock = twin("clock", form)
    before, now, after = time.monotonic_ns(), clock.monotonic_ns(), time.monotonic_ns()
    assert before <= now <= after
    assert time.monotonic() <= clock.now() <= time.monotonic()
    first = clock.ticks()
    assert first <= clock.ticks()


@pytest.mark.parametrize("form", FORMS)
@given(when=st.floats(-9e9, 9e9) | st.floats(0, 1e7) | st.floats(-1e-6, 1e-6))
def test_no_conversion_makes_a_time_early(form, when):
    clock = twin("clock", form)
    ns = clock.from_seconds(when)
    assert ns / 1e9 >= when
    # Not late either, by more than a nanosecond and what a float can tell apart.
    assert (ns - 1) / 1e9 <= math.nextafter(when, math.inf)


@pytest.mark.parametrize("form", FORMS)
@given(ns=st.integers(0, 2**53))
def test_a_time_that_is_told_and_waited_for_is_the_same(form, ns):
    clock = twin("clock", form)
    assert clock.from_seconds(ns / 1e9) / 1e9 == ns / 1e9


@given(when=st.floats(allow_nan=False))
def test_both_forms_of_the_clock_agree(when):
    answers = {twin("clock", form).from_seconds(when) for form in FORMS}
    assert len(answers) == 1
    assert -NEVER <= answers.pop() <= NEVER


# --- interpreter


def test_call_runs_in_the_context_and_gives_the_result(interp):
    context = contextvars.Context()

    def callback(*args):
        variable.set("inside")
        return args

    assert interp.call(context, callback, (1, 2)) == (1, 2)
    assert interp.call(context, variable.get, ()) == "inside"
    assert interp.call_method(context, variable, "get", None) == "inside"
    assert variable.get() == "unset"


def test_call_method_looks_the_method_up_and_passes_one_argument(interp):
    items = []
    interp.call_method(contextvars.Context(), items, "append", 7)
    assert items == [7]
    with pytest.raises(AttributeError):
        interp.call_method(contextvars.Context(), items, "missing", 7)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_leaves_the_context_behind_it(interp, kind):
    context = contextvars.Context()

    def callback():
        variable.set("inside")
        raise kind

    for _ in range(2):
        with pytest.raises(kind):
            interp.call(context, callback, ())
        assert variable.get() == "unset"


def test_a_context_that_is_entered_already_is_refused(interp):
    context = contextvars.Context()
    with pytest.raises(RuntimeError, match="already entered"):
        interp.call(context, interp.call, (context, print, ()))
    assert interp.call(context, int, ()) == 0


def test_contexts_are_copied(interp):
    context = contextvars.Context()
    context.run(variable.set, "first")
    copies = interp.copy(context), context.run(interp.copy_context)
    context.run(variable.set, "second")
    assert [copy.run(variable.get) for copy in copies] == ["first", "first"]


def test_the_thread_is_named_as_threading_does(interp):
    assert interp.thread_ident() == threading.get_ident()
    found = []
    thread = threading.Thread(target=lambda: found.append(interp.thread_ident()))
    thread.start()
    thread.join()
    assert found == [thread.ident]


def test_a_signal_that_waits_is_handled_by_check_signals_or_before(interp):
    caught = []
    previous = signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
    try:
        signal.raise_signal(signal.SIGUSR1)
        interp.check_signals()
        assert caught == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_forks_are_told_in_the_child_to_those_that_live(interp):
    told = []

    class Owner:
        def __init__(self, name):
            self.name = name

        def _about_to_fork(self):
            told.append(f"{self.name} before")

        def _forked(self):
            told.append(self.name)

    living, dead = Owner("living"), Owner("dead")
    interp.tell_of_forks(living)
    interp.tell_of_forks(living)
    interp.tell_of_forks(dead)
    del dead
    gc.collect()

    def child():
        assert told == ["living before", "living"]

    assert exit_code(forked(child)) == 0
    assert told == ["living before"]
