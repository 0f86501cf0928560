"""Objects go when they should: loops, callbacks and their arguments, without waiting for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import socket
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
