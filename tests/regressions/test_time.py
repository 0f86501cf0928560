"""Timers, where other loops were late, early or out of turn."""

from __future__ import annotations


def test_a_timer_that_comes_due_in_the_first_turn_waits_behind_what_was_queued(loop):
    ran = []

    def fill():
        for _ in range(1000):
            loop.call_soon(ran.append, 1)
        while loop.time() < stop.when():
            pass

    loop.call_soon(fill)
    stop = loop.call_later(0.002, loop.stop)
    loop.run_forever()
    assert len(ran) == 1000
