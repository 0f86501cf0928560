"""Every way to get a callback run by a loop, under one name each, for tests that hold for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

Place = Callable[[asyncio.AbstractEventLoop, list[Callable[[], object]]], contextlib.AbstractContextManager[None]]
PLACES: dict[str, Place] = {}


def place(function: Callable[..., Iterator[None]]) -> Callable[..., Iterator[None]]:
    """Register a generator function that makes each of the callbacks due on `loop`, and tidies up after its yield."""
    PLACES[function.__name__] = contextlib.contextmanager(function)
    return function


@place
def call_soon(loop, callbacks):
    for callback in callbacks:
        loop.call_soon(callback)
    yield


@place
def call_soon_threadsafe(loop, callbacks):
    thread = threading.Thread(target=lambda: [loop.call_soon_threadsafe(callback) for callback in callbacks])
    thread.start()
    thread.join()
    yield


@place
def timer(loop, callbacks):
    for callback in callbacks:
        loop.call_later(-1, callback)
    yield


def once(remove, sock, callback):
    remove(sock)
    callback()


@place
def reader(loop, callbacks):
    with contextlib.ExitStack() as stack:
        for callback in callbacks:
            left, right = (stack.enter_context(sock) for sock in socket.socketpair())
            right.send(b"x")
            loop.add_reader(left, once, loop.remove_reader, left, callback)
            stack.callback(loop.remove_reader, left)
        yield


@place
def writer(loop, callbacks):
    with contextlib.ExitStack() as stack:
        for callback in callbacks:
            left, _ = (stack.enter_context(sock) for sock in socket.socketpair())
            loop.add_writer(left, once, loop.remove_writer, left, callback)
            stack.callback(loop.remove_writer, left)
        yield


@place
def done_callback(loop, callbacks):
    future = loop.create_future()
    for callback in callbacks:
        future.add_done_callback(lambda _, callback=callback: callback())
    future.set_result(None)
    yield


@place
def signal_handler(loop, callbacks):
    signals = [signal.SIGUSR1, signal.SIGUSR2][: len(callbacks)]
    for number, callback in zip(signals, callbacks, strict=True):
        loop.add_signal_handler(number, callback)
    for number in signals:
        os.kill(os.getpid(), number)
    yield
    for number in signals:
        loop.remove_signal_handler(number)
