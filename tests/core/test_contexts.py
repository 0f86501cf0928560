"""contextvars: every callback runs in the context it was made in, and none leaks into another."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from tests.core.places import PLACES
from tests.loops import run, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
everywhere = pytest.mark.parametrize("place", sorted(PLACES))


def settle(loop):
    for _ in range(3):
        turn(loop)


@everywhere
def test_a_callback_sees_the_context_in_which_it_was_arranged(loop, place):
    if place == "call_soon_threadsafe":
        expected = "unset"  # the thread that calls has a context of its own
    else:
        expected = "arranged"
    seen = []
    token = variable.set("arranged")
    with PLACES[place](loop, [lambda: seen.append(variable.get())]):
        variable.reset(token)
        settle(loop)
    assert seen == [expected]


@everywhere
def test_what_a_callback_sets_is_seen_neither_by_the_caller_nor_by_the_next(loop, place):
    seen = []

    def callback():
        seen.append(variable.get())
        variable.set("leaked")

    with PLACES[place](loop, [callback, callback]):
        loop.call_soon(callback)
        settle(loop)
    assert seen == ["unset"] * 3
    assert variable.get() == "unset"


def test_tasks_do_not_see_each_others_changes(loop):
    async def request(name):
        variable.set(name)
        for _ in range(5):
            await asyncio.sleep(0)
            assert variable.get() == name
        return variable.get()

    async def main():
        names = await asyncio.gather(*map(request, "abcdef"))
        return names, variable.get()

    assert run(loop, main()) == (list("abcdef"), "unset")


def test_a_callback_arranged_by_a_callback_inherits_its_context(loop):
    seen = []

    def first():
        variable.set("of the first")
        loop.call_soon(second)
        loop.call_later(0, second)

    def second():
        seen.append(variable.get())
        variable.set("of the second")

    loop.call_soon(first)
    settle(loop)
    assert seen == ["of the first"] * 2


def test_a_done_callback_runs_in_the_context_given(loop):
    context = contextvars.copy_context()
    future = loop.create_future()
    future.add_done_callback(lambda _: variable.set("inside"), context=context)
    future.set_result(None)
    settle(loop)
    assert context[variable] == "inside"
    assert variable.get() == "unset"


def test_a_context_in_use_is_an_error_that_is_reported(loop, errors):
    """Context.run refuses to be entered twice; the loop survives it."""
    context, ran = contextvars.copy_context(), []

    def nested():
        loop.call_soon(ran.append, 1, context=context)
        context.run(pytest.fail, "entered twice")

    loop.call_soon(nested, context=context)
    settle(loop)
    assert ran == [1]
    assert [type(report["exception"]) for report in errors] == [RuntimeError]


@pytest.mark.parametrize("wrong", [1, "text", object()])
def test_a_context_that_is_none_harms_only_its_own_callback(loop, errors, wrong):
    """asyncio fails when the callback is due; refusing the call with a TypeError is as good."""
    ran = []
    for schedule in (loop.call_soon, loop.call_soon_threadsafe, lambda *args, **kw: loop.call_later(0, *args, **kw)):
        try:
            schedule(print, context=wrong)
        except TypeError:
            continue
    loop.call_soon(ran.append, 1)
    settle(loop)
    assert ran == [1]
