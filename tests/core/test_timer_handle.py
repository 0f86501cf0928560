"""TimerHandle: what call_later and call_at return."""

from __future__ import annotations

import asyncio
import contextvars
import operator
import sys
import weakref

import pytest

from tests.loops import turn


@pytest.fixture
def timer(loop):
    handle = loop.call_later(3600, print, "argument")
    yield handle
    handle.cancel()


def test_it_is_an_asyncio_timer_handle(timer):
    assert isinstance(timer, asyncio.TimerHandle)
    assert isinstance(timer, asyncio.Handle)


def test_when_of_call_at_is_the_deadline_given(loop):
    for when in (loop.time() + 1.1, loop.time() + 1 / 3, 12345.678901234567, 7):
        handle = loop.call_at(when, print)
        assert handle.when() == when
        handle.cancel()
        assert handle.when() == when


def test_when_of_call_later_is_the_clock_plus_the_delay(loop):
    before = loop.time() + 3600
    handle = loop.call_later(3600, print)
    assert before <= handle.when() <= loop.time() + 3600
    assert isinstance(handle.when(), float)
    handle.cancel()


def test_when_is_told_after_the_run_too(loop):
    when = loop.time()
    handle = loop.call_at(when, int)
    turn(loop)
    assert handle.when() == when
    assert not handle.cancelled()


def test_it_is_compared_by_its_deadline(loop):
    now = loop.time()
    early, late = loop.call_at(now + 100, print), loop.call_at(now + 200, print)
    assert early < late
    assert early <= late
    assert late > early
    assert late >= early
    assert not late < early
    assert not late <= early
    assert not early > late
    assert not early >= late
    assert early != late
    assert sorted([late, early]) == [early, late]
    early.cancel()
    late.cancel()


def test_equality_takes_deadline_callback_arguments_and_state(loop):
    when = loop.time() + 100
    one, same = loop.call_at(when, print, 1), loop.call_at(when, print, 1)
    others = [loop.call_at(when, print, 2), loop.call_at(when, repr, 1), loop.call_at(when + 1, print, 1)]
    assert one == one
    assert one == same
    assert hash(one) == hash(same)
    assert one <= same
    assert one >= same
    assert all(one != other for other in others)
    same.cancel()
    assert one != same
    for handle in (one, *others):
        handle.cancel()


def test_comparison_with_something_else_is_refused(timer):
    assert timer != 3
    assert timer != timer.when()
    with pytest.raises(TypeError):
        operator.lt(timer, 3)
    with pytest.raises(TypeError):
        operator.ge(timer, None)


def test_it_is_hashable_and_stays_in_a_set_when_cancelled(loop):
    handle = loop.call_later(100, print)
    handles = {handle}
    handle.cancel()
    assert handle in handles


def test_it_shows_deadline_callback_and_state(loop):
    def named_callback():
        pass

    handle = loop.call_at(loop.time() + 100, named_callback)
    assert repr(handle).startswith(f"<TimerHandle when={handle.when()} ")
    assert "named_callback" in repr(handle)
    handle.cancel()
    assert repr(handle).startswith(f"<TimerHandle cancelled when={handle.when()}")


def test_it_is_weakly_referencable(timer):
    assert weakref.ref(timer)() is timer


def test_it_is_gone_after_its_run(loop):
    reference = weakref.ref(loop.call_later(0, int))
    assert reference() is not None
    turn(loop)
    assert reference() is None


@pytest.mark.asyncio_wrong("Handle.get_context() came with 3.12", when=sys.version_info < (3, 12))
def test_it_tells_its_context(loop):
    context = contextvars.copy_context()
    handle = loop.call_later(100, print, context=context)
    assert handle.get_context() is context
    handle.cancel()


def test_cancel_lets_go_of_callback_and_arguments_at_once(loop):
    class Thing:
        def method(self, other):
            raise AssertionError("cancelled")

    thing, argument = Thing(), Thing()
    references = [weakref.ref(thing), weakref.ref(argument)]
    handle = loop.call_later(3600, thing.method, argument)
    del thing, argument
    assert None not in [reference() for reference in references]
    handle.cancel()
    assert [reference() for reference in references] == [None, None]


def test_cancel_after_the_loop_was_closed_is_harmless(loop):
    timer, soon = loop.call_later(3600, print), loop.call_soon(print)
    loop.close()
    timer.cancel()
    soon.cancel()
    assert timer.cancelled()
    assert soon.cancelled()
    assert "cancelled" in repr(timer)
