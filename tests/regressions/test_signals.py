"""Signals among floods, and handlers of the user's that touch the loop."""

from __future__ import annotations

import os
import signal

import pytest

from tests.core.idle import sent_when_idle
from tests.net.peers import Recorder, recv_exactly, tcp_pair


@pytest.mark.asyncio_wrong("the signals are lost: their bytes find the socket pair full")
def test_handlers_run_although_threadsafe_calls_would_fill_every_pipe(loop):
    hits = []
    loop.add_signal_handler(signal.SIGUSR1, hits.append, 1)

    def flood():
        for _ in range(400_000):
            loop.call_soon_threadsafe(id, 1)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGUSR1)
        loop.call_later(0, loop.call_soon, loop.call_soon, loop.stop)

    loop.call_soon(flood)
    loop.run_forever()
    assert len(hits) == 3


@pytest.fixture
def restored():
    previous = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, previous)


@pytest.mark.asyncio_wrong("what the handler schedules waits until something else ends the wait")
def test_what_a_handler_of_the_signal_module_schedules_runs_although_the_loop_is_idle(loop, restored):
    signal.signal(signal.SIGUSR1, lambda number, frame: loop.call_soon(loop.stop))
    guard = loop.call_later(10, loop.call_soon, lambda: (_ for _ in ()).throw(AssertionError("too late")))
    with sent_when_idle(loop, signal.SIGUSR1):
        loop.run_forever()
    guard.cancel()


def test_what_a_handler_of_the_signal_module_writes_leaves_although_the_loop_is_idle(loop, restored):
    near, far = tcp_pair()
    transport, _ = loop.run_until_complete(loop.create_connection(Recorder, sock=near))
    signal.signal(signal.SIGUSR1, lambda number, frame: transport.write(b"signalled"))
    with far, sent_when_idle(loop, signal.SIGUSR1):
        received = loop.run_in_executor(None, recv_exactly, far, 9)
        assert loop.run_until_complete(received) == b"signalled"
    transport.abort()
