"""The ready queue's ring, seen through a loop: first in, first out, however it grows, wraps and empties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.loops import new_loop, turn

pytestmark = pytest.mark.epoque_only("looks at how epoque's own queue grows")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=300), st.integers(1, 200))
def test_what_is_put_in_while_others_are_taken_out_comes_in_its_turn(shape, first):
    """Callback n adds as many as `shape` says; each turn runs what was there at its start."""
    loop = new_loop()
    try:
        ran: list[int] = []
        put = 0

        def add(count):
            nonlocal put
            for _ in range(count):
                loop.call_soon(callback, put)
                put += 1

        def callback(number):
            ran.append(number)
            if put < 2_000:
                add(shape[number % len(shape)])

        add(first)
        while len(ran) < put:
            there = put
            turn(loop)
            assert len(ran) == there
        assert ran == list(range(put))
    finally:
        loop.close()
