"""A process that runs out of descriptors: no loop half made, and a loop that has what it needs goes on."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  the first use of an executor imports it, which takes a descriptor
import contextlib
import os
import resource
import signal
import socket

import pytest

from tests.conftest import leaked_descriptors, open_descriptors
from tests.loops import new_loop, run, turn


@contextlib.contextmanager
def descriptors_left(count):
    """Lower RLIMIT_NOFILE, and use numbers up, so that exactly `count` more descriptors can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_descriptors()) + 20 + count, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                used.append(os.open("/dev/null", os.O_RDONLY))
        for _ in range(count):
            os.close(used.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in used:
            os.close(fd)


@pytest.mark.epoque_only("stock asyncio's half-made loops warn when they are collected")
def test_a_loop_that_cannot_be_made_is_an_os_error_and_leaves_nothing():
    before, refused = open_descriptors(), 0
    for count in range(20):
        with descriptors_left(count):
            try:
                loop = new_loop()
            except OSError:
                refused += 1
            else:
                loop.close()
                break
        assert leaked_descriptors(before) == {}
    assert 0 < refused < 20
    assert leaked_descriptors(before) == {}


def test_a_loop_without_spare_descriptors_runs(loop):
    left, right = socket.socketpair()
    with left, right, descriptors_left(0):
        left.setblocking(False)
        readable = loop.create_future()

        async def main():
            loop.add_reader(left, lambda: (loop.remove_reader(left), readable.set_result(left.recv(10))))
            loop.call_later(0.001, right.send, b"data")
            assert await readable == b"data"
            assert await loop.run_in_executor(None, pow, 2, 3) == 8

        run(loop, main())
    run(loop, asyncio.sleep(0.001))  # what was missing is taken now


def test_a_loop_without_spare_descriptors_takes_signal_handlers_or_refuses_them_whole(loop):
    got = []
    turn(loop)
    with descriptors_left(0):
        try:
            loop.add_signal_handler(signal.SIGUSR1, got.append, 1)
        except OSError:
            assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
            assert loop.remove_signal_handler(signal.SIGUSR1) is False
        else:
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(3):
                turn(loop)
            assert got == [1]
    got.clear()
    loop.add_signal_handler(signal.SIGUSR1, got.append, 1)
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(3):
        turn(loop)
    assert got == [1]
