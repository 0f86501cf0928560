"""A whole loop over kqueue: which selector it takes, what its connections cost, and terminals kqueue cannot watch."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import sys
import tty

import pytest

import epoque
from epoque.selector.choice import new_selector
from tests import conftest
from tests.loops import new_loop
from tests.net.peers import Recorder, reset, settle, tcp_pair, turns
from tests.units import kqueues

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")
interpreted = pytest.mark.skipif(epoque.compiled, reason="compiled, the system call cannot be looked at")


@pytest.fixture(name="loop")
def kqueue_loop(request, monkeypatch):
    kqueues.provide(monkeypatch)
    monkeypatch.setenv("EPOQUE_SELECTOR", "kqueue")
    yield from conftest.loop.__wrapped__(request)


@pytest.fixture
def calls(monkeypatch):
    """For each call of kevent(2): how many changes it made."""
    made = []
    original = select.kqueue.control

    def control(self, changes, room, timeout=None):
        made.append(len(changes or ()))
        return original(self, changes, room, timeout)

    monkeypatch.setattr(select.kqueue, "control", control)
    return made


async def attach(kind=Recorder):
    near, far = tcp_pair()
    return *await asyncio.get_running_loop().create_connection(kind, sock=near), far


@interpreted
async def test_a_request_and_its_answer_cost_one_call_and_no_change(loop, calls):
    transport, protocol, far = await attach()
    far.send(b"warm up")
    await protocol.receives(7)
    await settle()
    calls.clear()
    for count in range(1, 4):
        far.send(b"request")
        await protocol.receives(7 + 7 * count)
        transport.write(b"answer")
    assert sum(calls) == 0
    transport.abort()
    far.close()
    await settle()


@interpreted
@pytest.mark.parametrize("ending", ["nothing", "eof", "close", "reset"])
async def test_a_paused_reader_does_not_spin(loop, calls, ending):
    transport, protocol, far = await attach()
    transport.pause_reading()
    far.send(b"last words")
    {"nothing": lambda: None, "eof": lambda: far.shutdown(1), "close": far.close, "reset": lambda: reset(far)}[ending]()
    await settle()
    calls.clear()
    await asyncio.sleep(0.05)
    assert len(calls) <= 4
    assert protocol.log == ["made"]
    transport.abort()
    far.close()
    await settle()


@interpreted
async def test_a_connection_kept_open_after_its_end_does_not_spin(loop, calls):
    class KeepsOpen(Recorder):
        keep_open = True

    transport, protocol, far = await attach(KeepsOpen)
    far.close()
    await protocol.reaches("eof")
    await settle()
    calls.clear()
    await asyncio.sleep(0.05)
    assert len(calls) <= 4
    transport.abort()
    await settle()


@interpreted
async def test_a_peer_that_reads_slowly_costs_no_call_of_its_own(loop, calls):
    transport, protocol, far = await attach()
    await settle()
    calls.clear()
    transport.write(bytes(8_000_000))
    before = len(calls)
    await turns(3)
    assert before == 0
    assert [count for count in calls if count] == [2]  # EV_ENABLE to read, EV_ADD to write: one call, with the wait
    transport.abort()
    far.close()
    await settle()


@interpreted
async def test_a_terminal_that_cannot_be_watched_is_read_and_written_all_the_same(loop, monkeypatch):
    monkeypatch.setattr(sys.modules[select.kqueue.__module__], "watches_terminals", False)
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    copy = os.dup(theirs)
    reading, reader = await loop.connect_read_pipe(Recorder, os.fdopen(theirs, "rb", 0))
    writing, writer = await loop.connect_write_pipe(Recorder, os.fdopen(copy, "wb", 0))
    for text in (b"one", b"two"):
        os.write(ours, text)
        await reader.until(lambda text=text: reader.data.endswith(text))
    writing.write(b"x" * 100_000)
    got = 0
    while got < 100_000:
        got += len(await asyncio.to_thread(os.read, ours, 65536))
    reading.close()
    writing.close()
    await reader.reaches("lost")
    await writer.reaches("lost")
    os.close(ours)


@pytest.mark.parametrize(("name", "kind"), [("epoll", "EpollSelector"), ("kqueue", "KqueueSelector")])
def test_a_selector_can_be_named(monkeypatch, name, kind):
    if name == "kqueue":
        kqueues.provide(monkeypatch)
    monkeypatch.setenv("EPOQUE_SELECTOR", name)
    selector = new_selector()
    selector.close()
    assert type(selector).__name__ == kind


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the default is kqueue")
def test_epoll_is_the_default_on_linux(monkeypatch):
    monkeypatch.delenv("EPOQUE_SELECTOR", raising=False)
    selector = new_selector()
    selector.close()
    assert type(selector).__name__ == "EpollSelector"


def test_a_selector_that_is_not_there_is_refused_when_the_first_loop_is_made(monkeypatch):
    monkeypatch.setenv("EPOQUE_SELECTOR", "kevin")
    with pytest.raises(RuntimeError, match="EPOQUE_SELECTOR is 'kevin'; this system has epoll"):
        new_loop()
