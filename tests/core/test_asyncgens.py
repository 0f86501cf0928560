"""Asynchronous generators: the hooks of the run, finalization on the loop, shutdown_asyncgens."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

import pytest

from tests.loops import run, turn


async def numbers(closed, reason="closed"):
    try:
        for number in range(1000):
            yield number
    finally:
        await asyncio.sleep(0)
        closed.append(reason)


async def begin(*generators):
    """Take the first item, on the loop: its hook for generators sees the very first call."""
    for generator in generators:
        await anext(generator)


def test_the_hooks_are_set_for_the_run_only_and_those_before_are_given_back(loop):
    seen = []

    def firstiter(_):
        pass

    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=firstiter)
    try:
        loop.call_soon(lambda: seen.append(sys.get_asyncgen_hooks()))
        turn(loop)
        after = sys.get_asyncgen_hooks()
    finally:
        sys.set_asyncgen_hooks(*before)
    assert callable(seen[0].firstiter)
    assert seen[0].firstiter is not firstiter
    assert callable(seen[0].finalizer)
    assert after == (firstiter, None)


def test_a_generator_dropped_half_way_is_closed_by_the_loop(loop):
    closed = []

    async def main():
        async for number in numbers(closed):
            if number == 2:
                break
        gc.collect()
        while not closed:
            await asyncio.sleep(0)

    run(loop, main())
    assert closed == ["closed"]


def test_a_generator_dropped_in_another_thread_is_closed_by_the_loop(loop):
    closed = []

    async def main():
        holder = [numbers(closed)]
        await anext(holder[0])
        thread = threading.Thread(target=holder.clear)
        thread.start()
        thread.join()
        while not closed:
            await asyncio.sleep(0.001)

    run(loop, main())
    assert closed == ["closed"]


def test_shutdown_asyncgens_closes_every_generator_that_was_begun(loop):
    closed = []
    generators = [numbers(closed, reason) for reason in "abc"]

    run(loop, begin(*generators))
    assert closed == []
    run(loop, loop.shutdown_asyncgens())
    assert sorted(closed) == ["a", "b", "c"]


def test_shutdown_asyncgens_without_generators_returns(loop):
    run(loop, loop.shutdown_asyncgens())
    run(loop, loop.shutdown_asyncgens())


def test_a_generator_that_fails_to_close_is_reported(loop, errors):
    async def stubborn():
        try:
            yield 1
        finally:
            raise ZeroDivisionError

    generator = stubborn()
    run(loop, begin(generator))
    run(loop, loop.shutdown_asyncgens())
    [context] = errors
    assert isinstance(context["exception"], ZeroDivisionError)
    assert context["asyncgen"] is generator
    assert "an error occurred during closing of asynchronous generator" in context["message"]


def test_a_generator_begun_after_the_shutdown_is_warned_about(loop):
    closed = []
    generator = numbers(closed)

    async def main():
        await loop.shutdown_asyncgens()
        with pytest.warns(ResourceWarning, match=r"was scheduled after loop.shutdown_asyncgens\(\) call"):
            await anext(generator)
        await generator.aclose()

    run(loop, main())


def test_a_generator_that_outlives_its_loop_does_no_harm(loop):
    async def count():
        yield 1
        raise AssertionError("went on after the loop was closed")

    generator = count()
    run(loop, begin(generator))
    loop.close()
    del generator
    gc.collect()


def test_a_generator_finished_by_itself_is_not_closed_again(loop):
    closed = []

    async def main():
        return [number async for number in numbers(closed)]

    assert len(run(loop, main())) == 1000
    run(loop, loop.shutdown_asyncgens())
    assert closed == ["closed"]


def test_a_shutdown_that_is_never_awaited_is_told_under_asyncios_name(loop):
    with pytest.warns(RuntimeWarning, match=r"'BaseEventLoop\.shutdown_asyncgens' was never awaited"):
        loop.shutdown_asyncgens()
