"""No kind of work starves another: callbacks, descriptors, timers and calls from threads all get their turn."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.loops import run

LIMIT = 2_000_000  # turns until something that never comes counts as starved


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        yield left, right


@pytest.fixture
def chain(loop):
    """Keeps the loop busy: a callback that schedules itself. `chain()` starts it, it ends when the loop stops."""

    def link(left=LIMIT):
        assert left, "starved"
        if running:
            loop.call_soon(link, left - 1)

    running = [True]
    yield link
    running.clear()


def test_a_chain_of_callbacks_does_not_starve_timers(loop, chain):
    chain()
    run(loop, asyncio.sleep(0.01))


def test_a_chain_of_callbacks_does_not_starve_descriptors(loop, chain, pair):
    left, right = pair
    loop.add_reader(left, loop.stop)
    right.send(b"x")
    chain()
    loop.run_forever()
    assert loop.remove_reader(left)


def test_a_chain_of_callbacks_does_not_starve_other_threads(loop, chain):
    chain()
    run(loop, loop.run_in_executor(None, int))


def test_a_descriptor_that_is_always_ready_does_not_starve_timers_and_callbacks(loop, pair):
    left, right = pair
    events = []
    loop.add_reader(left, events.append, 1)
    loop.add_writer(right, events.append, 1)
    right.send(b"never read")

    async def main():
        await asyncio.sleep(0.005)
        for _ in range(100):
            await asyncio.sleep(0)

    run(loop, main())
    assert len(events) > 100
    assert loop.remove_reader(left)
    assert loop.remove_writer(right)


def test_timers_that_are_always_due_do_not_starve_descriptors_and_callbacks(loop, pair):
    left, right = pair
    running = [True]

    def again(left=LIMIT):
        assert left, "starved"
        if running:
            loop.call_later(0, again, left - 1)

    again()
    readable = loop.create_future()
    loop.add_reader(left, lambda: (loop.remove_reader(left), readable.set_result(left.recv(10))))
    loop.call_soon(right.send, b"x")
    assert run(loop, asyncio.wait_for(readable, 5)) == b"x"
    running.clear()


def test_every_one_of_many_ready_descriptors_is_served(loop):
    pairs = [socket.socketpair() for _ in range(300)]
    served, done = set(), loop.create_future()

    def serve(number):
        served.add(number)
        if len(served) == len(pairs) and not done.done():
            done.set_result(None)

    for number, (left, right) in enumerate(pairs):
        loop.add_reader(left, serve, number)  # never read: stays ready
        right.send(b"x")
    run(loop, asyncio.wait_for(done, 5))
    for left, right in pairs:
        assert loop.remove_reader(left)
        left.close()
        right.close()
