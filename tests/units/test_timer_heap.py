"""Timers: a heap from which each can be taken out, held to a sorted list; and what a handle shows of it."""

from __future__ import annotations

import contextvars
import gc
import math
import sys
import weakref
from bisect import insort
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epoque
from epoque.core.timers import TimerHandle, Timers
from epoque.kernel import fifo
from epoque.kernel.masks import NEVER

pytestmark = pytest.mark.epoque_only("looks at epoque's own timers")

SECOND = 1_000_000_000  # nanoseconds


class Loop:
    """What a handle asks of its loop."""

    def __init__(self):
        self.contexts = []

    def get_debug(self):
        return False

    def call_exception_handler(self, context):
        self.contexts.append(context)


def timer(when, callback=print, args=()):
    return TimerHandle(when, callback, args, Loop(), contextvars.Context())


def expired(timers, now):
    """What `expire` moves to the ready queue, in order."""
    queue = fifo.Fifo()
    timers.expire(now, queue)
    if not epoque.compiled:
        return list(queue)
    # Compiled, a queue shows Python nothing; but it has one list, which is filled from its beginning.
    (slots,) = gc.get_referents(queue)
    return [handle for handle in slots if handle is not None]


def add(timers, when, callback=print, args=()):
    return timers.add(when, when, callback, args, Loop(), contextvars.Context())


def added(timers, *whens):
    return [add(timers, when) for when in whens]


# --- the model


class Model:
    """A list of [when, number, handle], kept sorted."""

    def __init__(self):
        self.waiting = []
        self.numbers = 0

    def add(self, when, handle):
        self.numbers += 1
        insort(self.waiting, (when, self.numbers, handle), key=lambda entry: entry[:2])

    def remove(self, handle):
        self.waiting = [entry for entry in self.waiting if entry[2] is not handle]

    def expire(self, now):
        due = [entry[2] for entry in self.waiting if entry[0] <= now]
        self.waiting = self.waiting[len(due) :]
        return due


WHENS = st.integers(0, 12)
STEPS = st.one_of(
    st.tuples(st.just("add"), WHENS),
    st.tuples(st.just("add"), WHENS),
    st.tuples(st.just("add"), WHENS),
    st.tuples(st.just("cancel"), st.integers(0, 200)),
    st.tuples(st.just("cancel"), st.integers(0, 200)),
    st.tuples(st.just("expire"), WHENS),
)


@settings(max_examples=100)
@given(st.lists(STEPS, min_size=30, max_size=150))
def test_any_adding_cancelling_and_expiring_agrees_with_a_sorted_list(steps):
    timers, model, handles = Timers(), Model(), []
    for step, number in steps:
        if step == "add":
            handles += added(timers, number)
            model.add(number, handles[-1])
        elif step == "expire":
            assert expired(timers, number * SECOND) == model.expire(number)
        elif handles:
            handle = handles[number % len(handles)]
            handle.cancel()
            model.remove(handle)
        assert len(timers) == len(model.waiting)
        assert timers.earliest() == (model.waiting[0][0] * SECOND if model.waiting else NEVER)
        waiting = {id(entry[2]) for entry in model.waiting}
        assert all(handle._scheduled == (id(handle) in waiting) for handle in handles)
    assert expired(timers, NEVER) == model.expire(math.inf)
    assert len(timers) == 0


@settings(max_examples=40)
@given(st.lists(WHENS, min_size=100, max_size=400), st.randoms(use_true_random=False))
def test_a_large_heap_gives_what_was_not_cancelled_in_order(whens, rng):
    timers = Timers()
    handles = added(timers, *whens)
    cancelled = rng.sample(handles, len(handles) // 2)
    for handle in cancelled:
        handle.cancel()
    gone = {id(handle) for handle in cancelled}
    order = sorted(range(len(whens)), key=lambda number: (whens[number], number))
    assert list(map(id, expired(timers, NEVER))) == [id(handles[n]) for n in order if id(handles[n]) not in gone]


@pytest.mark.parametrize("whens", [range(200), range(200, 0, -1), [7] * 200], ids=["rising", "falling", "equal"])
def test_sorted_input_comes_out_in_order(whens):
    timers = Timers()
    handles = added(timers, *whens)
    assert expired(timers, NEVER) == sorted(handles, key=lambda handle: handle.when())


FLOOD = st.tuples(
    st.integers(0, 600), st.sampled_from([3, 3000, 9 * 10**6]), st.floats(0, 1), st.floats(-1, 1), st.booleans()
)


@settings(max_examples=60)
@given(st.lists(FLOOD, min_size=1, max_size=6), st.randoms(use_true_random=True))  # the others remember each draw
def test_floods_come_out_in_order_whatever_is_cancelled_before_and_after_the_first_look(floods, rng):
    timers, model = Timers(), Model()
    for count, spread, cancelled, now, infinite in floods:
        whens = [rng.randint(-spread, spread) for _ in range(count)]
        if infinite:
            whens += [math.inf, -math.inf]
        for when, handle in zip(whens, added(timers, *whens), strict=True):
            model.add(when, handle)
        for _ in range(2):
            gone = rng.sample(model.waiting, int(len(model.waiting) * cancelled / 2))
            for entry in gone:
                entry[2].cancel()
            model.waiting = sorted(set(model.waiting) - set(gone), key=lambda entry: entry[:2])
            assert len(timers) == len(model.waiting)
            assert timers.earliest() == (deadline(model.waiting[0][0]) if model.waiting else NEVER)
        now = round(now * spread)
        assert list(map(id, expired(timers, now * SECOND))) == list(map(id, model.expire(now)))
    assert list(map(id, expired(timers, NEVER))) == list(map(id, model.expire(math.inf)))
    assert (len(timers), timers.earliest()) == (0, NEVER)


def deadline(when):
    if math.isinf(when):
        return NEVER if when > 0 else -NEVER
    return when * SECOND


# --- what there is


def test_an_empty_heap_never_has_anything_due():
    timers = Timers()
    assert (len(timers), timers.earliest(), expired(timers, NEVER)) == (0, NEVER, [])
    timers.clear()
    assert len(timers) == 0


def test_a_timer_is_due_at_its_deadline_and_not_a_nanosecond_before():
    timers = Timers()
    (handle,) = added(timers, 5)
    assert expired(timers, 5 * SECOND - 1) == []
    assert (len(timers), handle._scheduled) == (1, True)
    assert expired(timers, 5 * SECOND) == [handle]
    assert (len(timers), handle._scheduled) == (0, False)


def test_expiring_leaves_what_is_not_due():
    timers = Timers()
    handles = added(timers, 3, 1, 2, 4)
    assert expired(timers, 2 * SECOND) == [handles[1], handles[2]]
    assert (len(timers), timers.earliest()) == (2, 3 * SECOND)


def test_clear_drops_all_and_the_handles_live_on():
    timers = Timers()
    handles = added(timers, *range(20))
    timers.clear()
    assert (len(timers), timers.earliest()) == (0, NEVER)
    assert not any(handle._scheduled or handle.cancelled() for handle in handles)
    for handle in handles:
        handle.cancel()
    assert all(handle.cancelled() for handle in handles)
    (handle,) = added(timers, 1)
    assert expired(timers, SECOND) == [handle]


# --- deadlines of every kind


@pytest.mark.parametrize(
    ("when", "deadline"),
    [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (1e-9, 1),
        (5e-10, 1),
        (5e-324, 1),
        (-1, -SECOND),
        (-5e-10, 0),
        (True, SECOND),
        (Fraction(3, 2), 1_500_000_000),
        (Decimal("0.25"), 250_000_000),
        (10**9, 10**18),
        (9.2e9, 9_200_000_000_000_000_000),
        (1e10, NEVER),
        (1e300, NEVER),
        (sys.float_info.max, NEVER),
        (10**300, NEVER),
        (math.inf, NEVER),
        (-1e10, -NEVER),
        (-math.inf, -NEVER),
    ],
)
def test_a_deadline_is_the_first_nanosecond_not_before_the_time(when, deadline):
    timers = Timers()
    (handle,) = added(timers, when)
    assert timers.earliest() == deadline
    assert handle.when() is when
    assert expired(timers, deadline - 1) == []
    assert expired(timers, deadline) == [handle]


def test_extreme_deadlines_stand_in_order_among_the_others():
    timers = Timers()
    whens = [5, math.inf, -math.inf, 0, 1e300, -1, -1e300, 2.5, -0.0]
    added(timers, *whens)
    in_order = [-math.inf, -1e300, -1, 0, -0.0, 2.5, 5, math.inf, 1e300]
    assert [handle.when() for handle in expired(timers, NEVER)] == in_order


@pytest.mark.parametrize(
    ("when", "kind"),
    [("1", TypeError), (None, TypeError), (1j, TypeError), ([], TypeError), (10**400, OverflowError)],
)
def test_what_is_no_time_is_refused(when, kind):
    with pytest.raises(kind):
        timer(when)
    timers = Timers()
    with pytest.raises(kind):
        add(timers, when)
    assert len(timers) == 0


# --- the handle


def test_a_cancelled_handle_leaves_at_once_and_lets_go_of_its_callback():
    class Argument:
        pass

    timers, argument = Timers(), Argument()
    known = weakref.ref(argument)
    handle = add(timers, 1, print, (argument,))
    del argument
    handle.cancel()
    assert (len(timers), handle._scheduled, handle.cancelled()) == (0, False, True)
    assert known() is None
    assert expired(timers, NEVER) == []


def test_a_cancelled_handle_is_free_when_its_owner_lets_go():
    timers = Timers()
    handle, other = added(timers, 1, 2)
    known = weakref.ref(handle)
    handle.cancel()
    del handle
    assert known() is None
    assert expired(timers, NEVER) == [other]


def test_cancelling_twice_or_after_the_time_is_harmless():
    timers = Timers()
    first, second, third = added(timers, 1, 2, 3)
    first.cancel()
    first.cancel()
    assert expired(timers, 2 * SECOND) == [second]
    second.cancel()
    assert (second.cancelled(), len(timers)) == (True, 1)
    third.cancel()
    assert len(timers) == 0


def test_a_handle_outside_a_heap_can_be_cancelled():
    handle = timer(1)
    handle.cancel()
    assert (handle.cancelled(), handle._scheduled, handle.when()) == (True, False, 1)


def test_what_a_cancelled_callback_lets_go_of_may_cancel_others():
    class Canceller:
        def __init__(self, *others):
            self.others = others

        def __del__(self):
            for other in self.others:
                other.cancel()

    timers = Timers()
    handles = added(timers, *range(30))
    first = add(timers, 0, print, (Canceller(*handles[::2]),))
    first.cancel()
    assert expired(timers, NEVER) == handles[1::2]


@pytest.mark.parametrize("how", ["cancel", "clear"])
def test_what_dies_with_a_timer_may_add_another_or_clear_them_all(how):
    timers = Timers()

    class Adder:
        def __del__(self):
            if how == "cancel":
                timers.clear()
            added(timers, 7)

    added(timers, 1, 2)
    handle = add(timers, 3, print, (Adder(),))
    if how == "cancel":
        handle.cancel()
    else:
        del handle
        timers.clear()
    assert (len(timers), timers.earliest()) == (1, 7 * SECOND)


def test_two_heaps_do_not_mix():
    one, two = Timers(), Timers()
    first, second = added(one, 1, 2)
    (third,) = added(two, 1)
    first.cancel()
    third.cancel()
    assert (len(one), len(two)) == (1, 0)
    assert expired(one, NEVER) == [second]
