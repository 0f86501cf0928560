"""Objects go when they should: loops, callbacks and their arguments, without waiting for the garbage collector."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import socket
import warnings
import weakref

import pytest

from tests.conftest import open_descriptors
from tests.core.places import PLACES
from tests.loops import new_loop, run, turn


class Argument:
    def method(self, *_):
        pass


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def used(loop):
    """A loop after some work of each kind."""
    left, right = socket.socketpair()
    with left, right:
        loop.add_reader(left, print)
        loop.add_writer(right, loop.remove_writer, right)
        loop.call_soon(int)
        loop.call_later(0, int)
        loop.call_later(3600, print)
        loop.run_until_complete(asyncio.sleep(0))
        loop.remove_reader(left)
    return loop


def test_a_loop_goes_at_once_after_its_close(no_collector):
    loop = used(new_loop())
    reference = weakref.ref(loop)
    loop.close()
    del loop
    assert reference() is None


def test_a_closed_loop_holds_no_descriptor_even_while_it_is_referenced():
    before = open_descriptors()
    loop = used(new_loop())
    loop.close()
    assert open_descriptors() == before


def test_a_hundred_loops_leave_no_descriptor():
    before = open_descriptors()
    for _ in range(100):
        loop = new_loop()
        turn(loop)
        loop.close()
    assert open_descriptors() == before


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_callback_that_ran_is_let_go_at_once(loop, no_collector, place):
    argument = Argument()
    reference = weakref.ref(argument)
    with PLACES[place](loop, [argument.method]):
        del argument
        for _ in range(3):
            turn(loop)
    assert reference() is None


@pytest.mark.parametrize("role", ["reader", "writer"])
@pytest.mark.parametrize("end", ["remove", "replace", "close"])
def test_a_watcher_that_is_taken_away_is_let_go_at_once(no_collector, role, end):
    loop = new_loop()
    left, right = socket.socketpair()
    with left, right:
        argument = Argument()
        reference = weakref.ref(argument)
        getattr(loop, f"add_{role}")(left, argument.method)
        del argument
        turn(loop)
        assert reference() is not None
        if end == "remove":
            getattr(loop, f"remove_{role}")(left)
        elif end == "replace":
            getattr(loop, f"add_{role}")(left, print)
            getattr(loop, f"remove_{role}")(left)
        loop.close()
        if end == "close":
            del loop
            gc.collect()
        assert reference() is None


def test_a_finished_coroutine_and_its_result_are_let_go_at_once(loop, no_collector):
    async def main(argument):
        await asyncio.sleep(0)
        return argument

    argument = Argument()
    reference = weakref.ref(argument)
    run(loop, main(argument))
    del argument
    turn(loop)
    assert reference() is None


def test_an_exception_that_leaves_the_run_is_not_kept(loop, no_collector):
    def interrupt(_):
        raise KeyboardInterrupt

    argument = Argument()
    reference = weakref.ref(argument)
    loop.call_soon(interrupt, argument)
    del argument
    try:
        loop.run_forever()
    except KeyboardInterrupt as exc:
        exc.__traceback__ = None
    turn(loop)
    assert reference() is None


def test_cancelled_timers_leave_no_memory(loop):
    handles = [loop.call_later(3600 + i % 7, print) for i in range(100_000)]
    references = [weakref.ref(handle) for handle in handles[::1000]]
    for handle in handles:
        handle.cancel()
    del handles, handle
    turn(loop)
    assert [reference for reference in references if reference() is not None] == []


@pytest.mark.parametrize("place", ["call_soon", "call_soon_threadsafe", "call_later"])
def test_a_handle_has_nothing_of_those_that_went_before_it(loop, no_collector, place):
    def make():
        return loop.call_later(3600, ran.append, 1) if place == "call_later" else getattr(loop, place)(ran.append, 1)

    ran = []
    loop.set_debug(True)
    handles = [make() for _ in range(10_000)]
    for handle in handles:
        handle.cancel()
    loop.set_debug(False)
    turn(loop)
    references = [weakref.ref(handle) for handle in handles]
    del handle
    handles.clear()
    assert [reference for reference in references if reference() is not None] == []

    handles = [make() for _ in range(100)]
    for handle in handles:
        assert not handle.cancelled()
        assert "created at" not in repr(handle)
        handle._run()
    assert ran == [1] * 100


def test_a_handle_of_a_subclass_goes_at_once_too(loop, no_collector):
    class Subclass(type(loop.call_soon(int))):
        pass

    for _ in range(3):
        ran = []
        handles = [Subclass(ran.append, (number,), loop, contextvars.copy_context()) for number in range(100)]
        for handle in handles:
            handle._run()
        assert ran == list(range(100))
        references = [weakref.ref(handle) for handle in handles]
        del handle
        handles.clear()
        assert [reference for reference in references if reference() is not None] == []


FLOOD = 1_000  # callbacks in line at once, more than are shown to the garbage collector one by one


def flood(loop, make, then):
    """In one turn call `make`, which is to schedule a callback, many times, and `then`; the run ends with that turn."""

    def begin():
        for _ in range(FLOOD):
            make()
        then()

    loop.call_soon(begin)
    loop.call_soon(loop.stop)


def test_who_keeps_the_handle_of_a_callback_that_ran_can_be_collected(loop):
    class Keeper:
        def __init__(self):
            self.handle = loop.call_soon(self.method)

        def method(self):
            references.append(weakref.ref(self))

    references = []
    keepers = []
    flood(loop, lambda: keepers.append(Keeper()), int)
    loop.run_forever()
    turn(loop)
    assert len(references) == FLOOD
    keepers.clear()
    gc.collect()
    assert [reference for reference in references if reference() is not None] == []


def test_who_keeps_the_context_of_an_exception_can_be_collected(loop, errors):
    class Keeper:
        def __init__(self):
            references.append(weakref.ref(self))

        def fail(self):
            raise ValueError

    references = []
    loop.set_exception_handler(lambda loop, context: setattr(context["handle"]._callback.__self__, "context", context))

    def begin():
        for _ in range(FLOOD):
            loop.call_soon(Keeper().fail)
        loop.call_soon(loop.stop)

    loop.call_soon(begin)
    loop.run_forever()
    assert len(references) == FLOOD
    gc.collect()
    assert [reference for reference in references if reference() is not None] == []


def test_a_loop_that_nobody_has_closed_can_be_collected_with_what_is_in_line():
    def abandoned():
        loop = new_loop()
        flood(loop, lambda: loop.call_soon(loop.time), int)
        loop.run_forever()
        return weakref.ref(loop)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        reference = abandoned()
        gc.collect()
    assert reference() is None


def test_a_collection_in_the_middle_of_a_flood_loses_nothing(loop):
    ran = []
    flood(loop, lambda: loop.call_soon(ran.append, Argument()), gc.collect)
    loop.run_forever()
    loop.call_soon(gc.collect)
    turn(loop)
    assert len(ran) == FLOOD
    assert all(type(argument) is Argument for argument in ran)
