"""Finalizers that call back into the loop at the moment it lets go of something."""

from __future__ import annotations

import gc
import socket
import threading

import pytest

from tests.loops import new_loop, turn


class Finalized:
    """Calls `action` when it is let go."""

    def __init__(self, action):
        self.action = action

    def __del__(self):
        self.action()

    def method(self):
        pass


def test_a_finalizer_schedules_when_its_callback_has_run(loop):
    ran = []
    loop.call_soon(Finalized(lambda: loop.call_soon(ran.append, 1)).method)
    for _ in range(3):
        turn(loop)
    assert ran == [1]


def test_a_finalizer_schedules_when_its_callback_is_cancelled(loop):
    ran = []
    for schedule in (loop.call_soon, lambda callback: loop.call_later(3600, callback)):
        schedule(Finalized(lambda: loop.call_soon(ran.append, 1)).method).cancel()
    turn(loop)
    assert ran == [1, 1]


def test_a_finalizer_cancels_the_other_timers_when_its_own_is_cancelled(loop):
    handles = []

    def cancel_all():
        for handle in handles:
            handle.cancel()

    handles.extend(loop.call_later(3600 + i, Finalized(cancel_all).method) for i in range(20))
    survivor = loop.call_later(-1, loop.stop)
    handles[10].cancel()
    assert all(handle.cancelled() for handle in handles)
    loop.run_forever()
    survivor.cancel()


def test_a_finalizer_makes_timers_when_its_own_is_cancelled(loop):
    made = []

    def make():
        made.extend(loop.call_later(3600, int) for _ in range(10))

    for handle in [loop.call_later(1800 + i, Finalized(make).method) for i in range(20)]:
        handle.cancel()
    assert len(made) == 200
    for handle in made:
        handle.cancel()
    loop.call_later(0, loop.stop)
    loop.run_forever()


@pytest.mark.parametrize("action", ["schedule", "cancel", "close"])
def test_a_finalizer_that_runs_while_the_loop_closes_meets_a_closed_loop(action):
    loop, handles, errors = new_loop(), [], []

    def act():
        if action == "schedule":
            try:
                loop.call_soon(int)
            except RuntimeError as exc:
                errors.append(str(exc))
        elif action == "cancel":
            for handle in handles:
                handle.cancel()
        else:
            loop.close()

    left, right = socket.socketpair()
    with left, right:
        loop.add_reader(left, Finalized(act).method)
        for i in range(20):
            handles.append(loop.call_later(3600 + i, Finalized(act).method))
            handles.append(loop.call_soon(Finalized(act).method))
        if action == "schedule":
            handles.clear()
        loop.close()
    assert loop.is_closed()
    assert set(errors) <= {"Event loop is closed"}
    handles.clear()


@pytest.mark.parametrize("role", ["reader", "writer"])
@pytest.mark.parametrize("occasion", ["removed", "replaced"])
def test_a_finalizer_watches_the_descriptor_anew_when_its_watcher_is_taken_away(loop, role, occasion):
    add, remove = getattr(loop, f"add_{role}"), getattr(loop, f"remove_{role}")
    ran = []
    left, right = socket.socketpair()
    with left, right:
        right.send(b"x")
        add(left, Finalized(lambda: add(left, ran.append, "anew")).method)
        if occasion == "removed":
            remove(left)
        else:
            add(left, ran.append, "replaced")
        turn(loop)
        assert ran
        assert remove(left) is True
        assert remove(left) is False
        ran.clear()
        turn(loop)
        assert ran == []


@pytest.mark.parametrize("objects", range(8))
def test_a_finalizer_in_another_thread_lets_the_loop_run_on_while_it_puts_a_callback_in_line(loop, objects):
    """Python 3.11 collects garbage wherever an object is made: in the middle of whatever holds a full queue."""
    ran = []
    entered, halved, produced = threading.Event(), threading.Event(), threading.Event()
    full = 64

    def finalize():
        if threading.current_thread() is thread:
            entered.set()
            halved.wait(5)

    def halve():
        ran.append(full // 2)
        halved.set()
        assert produced.wait(5)

    def produce():
        lists = [[] for _ in range(300)]  # no list of the interpreter's own is left for the next one
        threshold = gc.get_threshold()
        gc.disable()
        try:
            for number in range(full):
                loop.call_soon_threadsafe(*((halve,) if number == full // 2 else (ran.append, number)))
            gc.collect()
            garbage = Finalized(finalize)
            garbage.itself = garbage
            del garbage
            gc.set_threshold(gc.get_count()[0] + objects, 0, 0)
            gc.enable()
            loop.call_soon_threadsafe(ran.append, full)
        finally:
            gc.set_threshold(*threshold)
            gc.enable()
        entered.set()
        for number in range(full + 1, 2 * full):
            loop.call_soon_threadsafe(ran.append, number)
        loop.call_soon_threadsafe(loop.stop)
        produced.set()
        assert lists

    def begin():
        thread.start()
        assert entered.wait(5)

    thread = threading.Thread(target=produce)
    loop.call_soon(begin)
    loop.run_forever()
    thread.join()
    assert ran == list(range(2 * full))
