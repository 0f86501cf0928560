"""The private names by which other libraries inspect asyncio's loop and drive it: do they mean the same here?"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import signal
import socket
import sys
import threading
import time

import pytest

from tests.loops import run, turn


def test_what_is_in_line(loop):
    first, second = loop.call_soon(int), loop.call_soon(str)
    assert list(loop._ready) == [first, second]
    turn(loop)
    assert not loop._ready


def test_what_is_on_the_clock(loop):
    timer = loop.call_later(60, int)
    assert list(loop._scheduled) == [timer]
    assert loop._timer_cancelled_count == 0
    timer.cancel()
    loop.close()
    assert not loop._scheduled
    assert not loop._ready
    assert not loop._signal_handlers


def test_signal_handlers_by_number(loop):
    called = []
    loop.add_signal_handler(signal.SIGUSR1, called.append, 1)
    assert list(loop._signal_handlers) == [signal.SIGUSR1]
    assert loop._signal_handlers[signal.SIGUSR1]._args == (1,)
    loop._handle_signal(signal.SIGUSR1)
    turn(loop)
    assert called == [1]
    loop.remove_signal_handler(signal.SIGUSR1)
    assert not loop._signal_handlers
    with pytest.raises(ValueError, match="invalid signal number"):
        loop._check_signal(1000)


def test_transports_by_descriptor(loop):
    near, far = socket.socketpair()

    async def look():
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=near)
        assert dict(loop._transports) == {near.fileno(): transport}
        transport.abort()
        await asyncio.sleep(0)

    with far:
        run(loop, look())


def test_ways_into_the_line(loop):
    called = []
    loop._call_soon(called.append, (1,), None)
    handle = loop.call_later(60, called.append, 2)
    loop._add_callback(handle)
    loop._add_callback_signalsafe(loop.call_later(60, called.append, 3))
    cancelled = loop.call_later(60, called.append, 4)
    cancelled.cancel()
    loop._add_callback(cancelled)
    turn(loop)
    assert called == [1, 2, 3]


def test_a_callback_added_from_elsewhere_wakes_the_loop(loop):
    done = loop.create_future()
    handle = loop.call_later(60, done.set_result, "woken")
    threading.Timer(0.01, loop._add_callback_signalsafe, [handle]).start()
    assert run(loop, asyncio.wait_for(done, 5)) == "woken"
    handle.cancel()


def test_what_is_no_callback(loop):
    loop._check_callback(int, "call_soon")
    with pytest.raises(TypeError, match="coroutines cannot be used with call_soon"):
        loop._check_callback(asyncio.sleep, "call_soon")


def test_one_turn_outside_a_run(loop):
    called = []
    loop.call_soon(lambda: loop.call_soon(called.append, asyncio._get_running_loop()))
    loop._run_once()
    assert not called
    loop._run_once()
    assert called == [None]


def test_a_turn_inside_a_callback(loop):
    """What nested event loops do."""
    called = []

    def nested():
        loop.call_soon(called.append, 1)
        loop._run_once()
        called.append(2)

    loop.call_soon(nested)
    turn(loop)
    assert called == [1, 2]


def test_a_stop_can_be_taken_back(loop):
    loop.stop()
    assert loop._stopping
    loop._stopping = False
    assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"


@pytest.mark.since(3, 13)
def test_a_guest_of_another_loop(loop):
    """Set up, turn by turn, clean up: what run_forever does."""
    seen = []
    loop.call_soon(lambda: seen.append(asyncio.get_running_loop()))
    loop.call_soon(loop.stop)
    loop._run_forever_setup()
    try:
        assert loop.is_running()
        assert loop._old_agen_hooks == (None, None)
        while not loop._stopping:
            loop._run_once()
    finally:
        loop._run_forever_cleanup()
    assert seen == [loop]
    assert not loop.is_running()
    assert not loop._stopping
    assert loop._old_agen_hooks is None
    assert asyncio._get_running_loop() is None


@pytest.mark.since(3, 13)
def test_no_guest_while_it_runs_or_when_closed(loop):
    async def again():
        loop._run_forever_setup()

    with pytest.raises(RuntimeError, match="already running"):
        run(loop, again())
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop._run_forever_setup()


def test_debug_mode_tracks_origins(loop):
    before = sys.get_coroutine_origin_tracking_depth()
    loop._set_coroutine_origin_tracking(True)
    assert loop._coroutine_origin_tracking_enabled
    assert loop._coroutine_origin_tracking_saved_depth == before
    assert sys.get_coroutine_origin_tracking_depth() > before
    loop._set_coroutine_origin_tracking(False)
    assert not loop._coroutine_origin_tracking_enabled
    assert sys.get_coroutine_origin_tracking_depth() == before


def test_the_default_executor_and_its_end(loop):
    async def use():
        loop._check_default_executor()
        await loop.run_in_executor(None, os.getpid)
        assert isinstance(loop._default_executor, concurrent.futures.ThreadPoolExecutor)
        done = loop.create_future()
        threading.Thread(target=loop._do_shutdown, args=(done,)).start()
        await done
        await loop.shutdown_default_executor()

    run(loop, use())
    with pytest.raises(RuntimeError, match="Executor shutdown has been called"):
        loop._check_default_executor()


def test_the_default_executor_is_one_for_everybody(loop):
    def fail(error):
        raise error

    async def use():
        await loop.run_in_executor(None, int)
        executor = loop._default_executor
        assert list(executor.map(pow, range(100), [2] * 100)) == [number**2 for number in range(100)]
        assert executor.submit(dict, one=1).result(5) == {"one": 1}
        with pytest.raises(KeyError):
            executor.submit(fail, KeyError()).result(5)

        release = threading.Event()
        busy = [executor.submit(release.wait, 5) for _ in range(40)]
        waiting = executor.submit(print, "never")
        ours = loop.run_in_executor(None, print, "never")
        assert waiting.cancel()
        executor.shutdown(wait=False, cancel_futures=True)
        release.set()
        concurrent.futures.wait([future for future in busy if not future.cancelled()], 5)
        with pytest.raises(asyncio.CancelledError):
            await ours
        for schedule in (executor.submit, functools.partial(loop.run_in_executor, None)):
            with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
                schedule(int)

    run(loop, use())


def test_the_resolution_of_its_clock(loop):
    assert loop._clock_resolution == time.get_clock_info("monotonic").resolution
