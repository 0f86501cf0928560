"""getaddrinfo and getnameinfo: what is asked of whom, on which threads, and what a cancelled lookup leaves."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import socket
import threading

import pytest

from tests.loops import new_loop, run
from tests.net.peers import Recorder, answering, needs_ipv6, raiser, settle

LIMIT = 10  # seconds a lookup of a test may block its thread


class SlowNames:
    """A getaddrinfo that blocks until released."""

    def __init__(self, monkeypatch, answer=()):
        self.asked, self.release, self.done = threading.Event(), threading.Event(), threading.Event()
        self.answer = answer
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, *_):
        self.asked.set()
        self.release.wait(LIMIT)
        self.done.set()
        return list(self.answer)

    async def is_asked(self):
        while not self.asked.is_set():
            await asyncio.sleep(0)


async def test_names_are_looked_up(loop):
    infos = await loop.getaddrinfo("localhost", 80, family=socket.AF_INET, type=socket.SOCK_STREAM)
    assert (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 80)) in infos
    assert infos == socket.getaddrinfo("localhost", 80, family=socket.AF_INET, type=socket.SOCK_STREAM)


@pytest.mark.parametrize(
    "question",
    [
        ("127.0.0.1", 80, {}),
        ("127.0.0.1", 80, {"type": socket.SOCK_STREAM}),
        ("127.0.0.1", 80, {"type": socket.SOCK_DGRAM}),
        ("127.0.0.1", 80, {"proto": socket.IPPROTO_TCP}),
        ("127.0.0.1", "80", {"type": socket.SOCK_STREAM}),
        ("127.0.0.1", None, {"type": socket.SOCK_STREAM}),
        ("127.0.0.1", "http", {"type": socket.SOCK_STREAM}),
        (b"127.0.0.1", b"80", {"type": socket.SOCK_STREAM}),
        ("127.0.0.1", 80, {"family": socket.AF_INET, "type": socket.SOCK_STREAM}),
        ("127.0.0.1", 80, {"type": socket.SOCK_STREAM, "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV}),
        ("127.0.0.1", 80, {"type": socket.SOCK_STREAM, "flags": socket.AI_CANONNAME}),
        ("127.1", 80, {"type": socket.SOCK_STREAM}),
        ("0x7f.1", 80, {"type": socket.SOCK_STREAM}),
        (None, 80, {"type": socket.SOCK_STREAM}),
        (None, 80, {"type": socket.SOCK_STREAM, "flags": socket.AI_PASSIVE}),
        (None, "80", {"type": socket.SOCK_STREAM, "family": socket.AF_INET}),
        pytest.param(("::1", 80, {"type": socket.SOCK_STREAM}), marks=needs_ipv6),
        pytest.param(("::1", 80, {}), marks=needs_ipv6),
        pytest.param(("::ffff:127.0.0.1", 80, {"type": socket.SOCK_STREAM}), marks=needs_ipv6),
        pytest.param(("fe80::1%lo", 80, {"type": socket.SOCK_STREAM}), marks=needs_ipv6),
        pytest.param(("fe80::1%1", 80, {"type": socket.SOCK_STREAM}), marks=needs_ipv6),
        ("127.0.0.1", 80, {"family": socket.AF_INET6}),
        ("::1", 80, {"family": socket.AF_INET}),
        ("127.0.0.1", 80, {"type": 77}),
        ("127.0.0.1", "no such service", {}),
        ("127.0.0.1", [], {}),
        (42, 80, {}),
        (None, None, {}),
        ("a" * 100 + ".invalid", 80, {}),
        ("name", 80, {"flags": socket.AI_NUMERICHOST}),
    ],
    ids=repr,
)
async def test_answers_and_refusals_are_those_of_the_socket_module(loop, question):
    host, port, options = question
    expected = told = None
    try:
        expected = socket.getaddrinfo(host, port, **options)
    except Exception as exc:
        expected = (type(exc), exc.args)
    try:
        told = await loop.getaddrinfo(host, port, **options)
    except Exception as exc:
        told = (type(exc), exc.args)
    assert told == expected


async def test_options_are_keywords_only(loop):
    with pytest.raises(TypeError):
        await loop.getaddrinfo("127.0.0.1", 80, socket.AF_INET)


async def test_a_replaced_getaddrinfo_is_the_one_called(loop, monkeypatch):
    calls = answering(monkeypatch, (socket.AF_INET, ("192.0.2.7", 77)))
    infos = await loop.getaddrinfo("a.name", 80, family=1, type=2, proto=3, flags=4)
    assert infos == [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("192.0.2.7", 77))]
    assert calls == [("a.name", 80, 1, 2, 3, 4)]


async def test_a_replaced_getnameinfo_is_the_one_called(loop, monkeypatch):
    calls = []

    def getnameinfo(*arguments):
        calls.append(arguments)
        return "a.name", "a-service"

    monkeypatch.setattr(socket, "getnameinfo", getnameinfo)
    assert await loop.getnameinfo(("192.0.2.7", 77), 8) == ("a.name", "a-service")
    assert calls == [(("192.0.2.7", 77), 8)]


async def test_numeric_names_of_addresses(loop):
    flags = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    assert await loop.getnameinfo(("127.0.0.1", 80), flags) == ("127.0.0.1", "80")
    assert await loop.getnameinfo(("127.0.0.1", 80), flags=flags) == ("127.0.0.1", "80")


@pytest.mark.parametrize("kind", [socket.gaierror, OSError, ZeroDivisionError])
async def test_errors_of_a_lookup_come_through(loop, monkeypatch, kind):
    monkeypatch.setattr(socket, "getaddrinfo", raiser(kind))
    monkeypatch.setattr(socket, "getnameinfo", raiser(kind))
    with pytest.raises(kind):
        await loop.getaddrinfo("a.name", 80)
    with pytest.raises(kind):
        await loop.getnameinfo(("192.0.2.7", 77))


@pytest.mark.epoque_only("asyncio asks a thread for every address")
@pytest.mark.parametrize("host", ["127.0.0.1", b"127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
async def test_literal_addresses_need_no_thread(loop, host):
    before = set(threading.enumerate())
    await loop.getaddrinfo(host, 80, type=socket.SOCK_STREAM)
    assert set(threading.enumerate()) <= before


async def test_connecting_to_literal_addresses_needs_no_thread(loop, serve):
    before = set(threading.enumerate())
    served = await serve()
    transport, protocol = await loop.create_connection(Recorder, *served.address)
    transport.close()
    await protocol.lost()
    assert set(threading.enumerate()) <= before


async def test_the_loop_goes_on_while_a_name_is_looked_up(loop, monkeypatch):
    slow = SlowNames(monkeypatch)
    task = asyncio.create_task(loop.getaddrinfo("a.name", 80))
    await slow.is_asked()
    await settle()
    assert not task.done()
    slow.release.set()
    assert await task == []


@pytest.mark.epoque_only("asyncio's lookups share the default executor")
async def test_lookups_do_not_wait_for_a_full_default_executor(loop, monkeypatch):
    go_on = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        loop.set_default_executor(executor)
        busy = [loop.run_in_executor(None, go_on.wait, LIMIT) for _ in range(3)]
        assert await loop.getaddrinfo("localhost", 80, family=socket.AF_INET)
        assert await loop.getnameinfo(("127.0.0.1", 80), 0)
        assert not any(future.done() for future in busy)
        go_on.set()
        await asyncio.gather(*busy)


@pytest.mark.epoque_only("asyncio runs as many lookups as its default executor has threads")
async def test_a_dozen_slow_lookups_run_side_by_side(loop, monkeypatch):
    barrier = threading.Barrier(12)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [barrier.wait(LIMIT)])
    answers = await asyncio.gather(*(loop.getaddrinfo(f"{number}.name", 80) for number in range(12)))
    assert sorted(answers) == [[number] for number in range(12)]


async def test_many_more_lookups_than_threads_are_all_answered(loop, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_: [host])
    answers = await asyncio.gather(*(loop.getaddrinfo(f"{number}.name", 80) for number in range(200)))
    assert answers == [[f"{number}.name"] for number in range(200)]


@pytest.mark.parametrize("failing", [False, True])
async def test_cancelled_lookup_leaves_the_loop_clean(loop, monkeypatch, failing):
    slow = SlowNames(monkeypatch)
    if failing:
        slow.answer = 42  # list(42) raises, when nobody waits any more
    task = asyncio.create_task(loop.create_connection(Recorder, "a.name", 80))
    await slow.is_asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    slow.release.set()
    assert await asyncio.to_thread(slow.done.wait, LIMIT)
    await settle()


async def test_lookup_that_times_out_does_not_hold_up_the_next_one(loop, monkeypatch):
    slow = SlowNames(monkeypatch)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loop.getaddrinfo("a.name", 80), 0.01)
    monkeypatch.undo()
    assert await loop.getaddrinfo("localhost", 80, family=socket.AF_INET)
    slow.release.set()


def test_a_lookup_that_ends_after_the_loop_was_closed_is_quiet(monkeypatch, caplog):
    slow = SlowNames(monkeypatch)
    loop = new_loop()

    async def main():
        task = asyncio.create_task(loop.getaddrinfo("a.name", 80))
        await slow.is_asked()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(loop, main())
    threads = set(threading.enumerate()) - {threading.main_thread()}
    loop.close()
    with caplog.at_level(logging.WARNING):
        slow.release.set()
        assert slow.done.wait(LIMIT)
        for thread in threads:
            thread.join(0.05)
    assert not caplog.records


def test_threads_of_a_closed_loop_go_away(monkeypatch):
    before = set(threading.enumerate())
    loop = new_loop()
    run(loop, loop.getaddrinfo("localhost", 80))
    run(loop, loop.shutdown_default_executor())
    loop.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(LIMIT)
        assert not thread.is_alive()
