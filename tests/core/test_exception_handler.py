"""The exception handler: set, get, default, call; and what happens when the handler itself fails."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import gc
import logging
import sys
import weakref

import pytest

from tests.loops import run, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture
def log(caplog):
    """Its `records` are those of the logger 'asyncio', from ERROR on."""
    caplog.set_level(logging.ERROR, "asyncio")
    return caplog


def failing():
    raise ValueError("on purpose")


def test_there_is_none_at_first_and_the_one_set_is_given_back(loop):
    def handler(loop, context):
        pass

    loop.set_exception_handler(None)
    assert loop.get_exception_handler() is None
    loop.set_exception_handler(handler)
    assert loop.get_exception_handler() is handler


@pytest.mark.parametrize("wrong", [1, "text", object()])
def test_a_handler_that_cannot_be_called_is_a_type_error(loop, wrong):
    before = loop.get_exception_handler()
    with pytest.raises(TypeError, match="A callable object or None is expected"):
        loop.set_exception_handler(wrong)
    assert loop.get_exception_handler() is before


def test_call_exception_handler_passes_loop_and_context_itself(loop):
    calls = []
    loop.set_exception_handler(lambda *args: calls.append(args))
    context = {"message": "something", "extra": 1}
    loop.call_exception_handler(context)
    assert calls == [(loop, context)]
    assert calls[0][1] is context


def test_the_default_handler_logs_the_exception_of_a_callback(loop, log):
    loop.set_exception_handler(None)
    loop.call_soon(failing)
    turn(loop)
    [record] = log.records
    assert record.name == "asyncio"
    assert record.levelno == logging.ERROR
    assert "Exception in callback failing()" in record.getMessage()
    assert "handle: <Handle failing()" in record.getMessage()
    assert record.exc_info[0] is ValueError
    assert record.exc_info[2] is record.exc_info[1].__traceback__


def test_the_default_handler_logs_every_key_of_the_context(loop, log):
    loop.default_exception_handler({"message": "what happened", "zeta": 1, "alpha": [2]})
    [record] = log.records
    assert record.getMessage().splitlines() == ["what happened", "alpha: [2]", "zeta: 1"]
    assert not record.exc_info


def test_a_context_without_a_message_is_logged_too(loop, log):
    loop.default_exception_handler({})
    assert log.records[0].getMessage() == "Unhandled exception in event loop"


def test_a_source_traceback_is_logged_as_lines(loop, log):
    loop.set_exception_handler(None)
    loop.set_debug(True)
    loop.call_soon(failing)
    turn(loop)
    assert "Object created at (most recent call last):" in log.records[0].getMessage()
    assert "loop.call_soon(failing)" in log.records[0].getMessage()


def test_a_handler_may_fall_back_on_the_default(loop, log):
    loop.set_exception_handler(lambda loop, context: loop.default_exception_handler(context))
    loop.call_soon(failing)
    turn(loop)
    assert len(log.records) == 1


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError, GeneratorExit, BaseException])
def test_a_handler_that_raises_is_contained_and_both_errors_are_logged(loop, log, kind):
    def handler(loop, context):
        raise kind("in the handler")

    ran = []
    loop.set_exception_handler(handler)
    loop.call_soon(failing)
    loop.call_soon(ran.append, 1)
    turn(loop)
    assert ran == [1]
    [record] = log.records
    assert "Unhandled error in exception handler" in record.getMessage()
    assert "on purpose" in record.getMessage()
    assert record.exc_info[0] is kind


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupt_and_exit_raised_by_the_handler_leave_the_run(loop, kind):
    def handler(loop, context):
        raise kind

    ran = []
    loop.set_exception_handler(handler)
    loop.call_soon(failing)
    loop.call_soon(ran.append, 1)
    with pytest.raises(kind):
        loop.run_forever()
    turn(loop)
    assert ran == [1]


def test_a_failing_default_handler_is_contained(loop, log):
    """As a subclass does that overrides default_exception_handler."""
    kind = type("Loop", (type(loop),), {"default_exception_handler": lambda self, context: 1 / 0})
    with contextlib.closing(kind()) as own:
        own.call_soon(failing)
        turn(own)
    assert "Exception in default exception handler" in log.records[0].getMessage()
    assert log.records[0].exc_info[0] is ZeroDivisionError


def test_a_subclass_that_overrides_call_exception_handler_gets_the_reports(loop):
    reports = []
    kind = type("Loop", (type(loop),), {"call_exception_handler": lambda self, context: reports.append(context)})
    with contextlib.closing(kind()) as own:
        own.call_soon(failing)
        own.call_later(0, failing)
        turn(own)
    assert [str(context["exception"]) for context in reports] == ["on purpose"] * 2


def test_the_handler_of_the_moment_counts_not_that_of_the_scheduling(loop):
    seen = []
    loop.call_soon(failing)
    loop.set_exception_handler(lambda loop, context: seen.append(str(context["exception"])))
    turn(loop)
    assert seen == ["on purpose"]


@pytest.mark.since(3, 12)
@pytest.mark.parametrize("key", ["handle", "task", "future"])
def test_the_handler_runs_in_the_context_of_what_failed(loop, key):
    seen = []
    loop.set_exception_handler(lambda loop, context: seen.append(variable.get()))
    token = variable.set("of the culprit")
    if key == "handle":
        loop.call_soon(failing)
    else:
        task = loop.create_task(asyncio.sleep(0))
        report = functools.partial(loop.call_exception_handler, {"message": "m", key: task})
        loop.call_soon(report, context=contextvars.Context())
    variable.reset(token)
    turn(loop)
    turn(loop)
    assert seen == ["of the culprit"]


def test_a_handler_may_schedule_and_stop(loop):
    ran = []
    loop.set_exception_handler(lambda loop, context: (loop.call_soon(ran.append, 1), loop.call_soon(loop.stop)))
    loop.call_soon(failing)
    loop.run_forever()
    assert ran == [1]


@pytest.mark.parametrize("place", ["call_soon", "call_soon_threadsafe", "call_later"])
def test_a_handler_is_called_while_the_exception_is_being_handled(loop, place):
    handled = []
    loop.set_exception_handler(lambda loop, context: handled.append((sys.exc_info()[1], context["exception"])))
    if place == "call_later":
        loop.call_later(0, failing)
    else:
        getattr(loop, place)(failing)
    turn(loop)
    [(current, exception)] = handled
    assert current is exception
    assert sys.exc_info() == (None, None, None)


@pytest.mark.asyncio_wrong("the context given to the handler is in a cycle with the traceback")
def test_one_failing_callback_does_not_keep_a_reference_cycle(loop):

    class Argument:
        pass

    argument = Argument()
    reference = weakref.ref(argument)
    loop.set_exception_handler(lambda loop, context: None)
    gc.collect()
    gc.disable()
    try:
        loop.call_soon(lambda argument: 1 / 0, argument)
        del argument
        turn(loop)
        assert reference() is None
    finally:
        gc.enable()


def test_the_exception_of_a_task_reaches_the_handler_only_when_nobody_asks(loop, errors):
    async def fail():
        raise ValueError("on purpose")

    async def main():
        with pytest.raises(ValueError):
            await loop.create_task(fail())
        loop.create_task(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    run(loop, main())

    gc.collect()
    assert [context["message"] for context in errors] == ["Task exception was never retrieved"]
