"""The example application behaves on the loop under test, and its server process starts and stops as it promises."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

import pytest
from aiohttp import ClientSession, WSCloseCode, WSMsgType, web

from examples import load, tour
from examples.chat import create_app, pulse
from examples.chat.app import STATIC
from examples.chat.channel import Channel
from examples.chat.notes import MAX_NOTES, NOTES, Notes
from examples.chat.pulse import PULSE
from examples.serving import serving
from tests.loops import LOOP, ROOT, run

SERVE = [sys.executable, "-m", "examples.demo", "--serve", "--port", "0", "--loop", LOOP]

needs_serve = pytest.mark.skipif(LOOP not in ("epoque", "asyncio"), reason="the demo serves on epoque and asyncio only")


@pytest.fixture(autouse=True)
def quick_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "INTERVAL", 0.05)


@pytest.mark.parametrize("step", tour.STEPS, ids=lambda step: step.__name__)
def test_step_of_the_tour(
    loop: asyncio.AbstractEventLoop, step: Callable[[ClientSession], AsyncGenerator[str, None]]
) -> None:
    async def visit() -> list[str]:
        async with serving(create_app()) as url, ClientSession(url) as session:
            return [line async for line in step(session)]

    complaints = tour.Complaints()
    with complaints.collect():
        lines = run(loop, visit(), 20)
    assert lines
    assert complaints.texts == []


def test_the_whole_tour_visits_every_route_and_sees_the_end(loop: asyncio.AbstractEventLoop) -> None:
    async def visit() -> list[str]:
        return [line async for line in tour.tour()]

    lines = run(loop, visit(), 30)
    assert any("none left out" in line for line in lines)
    assert "going away" in lines[-1]


def test_the_tour_fails_when_a_route_is_left_out(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def visit() -> None:
        async for _ in tour.tour():
            pass

    monkeypatch.setattr(tour, "STEPS", [tour.page])
    with pytest.raises(tour.Mismatch, match="routes not visited"):
        run(loop, visit())


def test_the_tour_fails_when_an_answer_is_wrong(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def visit() -> None:
        async for _ in tour.tour():
            pass

    monkeypatch.setattr(Notes, "remove", lambda self, note: None)
    with pytest.raises(tour.Mismatch, match="GET /api/notes/3: expected 404, got 200"):
        run(loop, visit())


def test_notes_are_limited_in_number(loop: asyncio.AbstractEventLoop) -> None:
    async def one_too_many() -> None:
        app = create_app()
        while len(app[NOTES]) < MAX_NOTES:
            app[NOTES].add("filler")
        async with serving(app) as url, ClientSession(url) as session:
            refused = await tour.answer(await session.post("/api/notes", json={"text": "one more"}), 409)
            assert str(MAX_NOTES) in refused["error"]

    run(loop, one_too_many())


def test_background_task_runs_exactly_while_the_application_does(loop: asyncio.AbstractEventLoop) -> None:
    async def lifetime() -> None:
        app = create_app()
        assert not app[PULSE].running
        async with serving(app) as url, ClientSession(url) as session, session.get("/api/events") as stream:
            assert (await tour.event(stream, "pulse"))["beats"] >= 1
            assert app[PULSE].running
        assert not app[PULSE].running
        assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "pulse"] == []

    run(loop, lifetime(), 10)


def test_clients_that_vanish_leave_the_room(loop: asyncio.AbstractEventLoop) -> None:
    async def vanish() -> None:
        async with (
            serving(create_app()) as url,
            ClientSession(url) as session,
            session.ws_connect("/rooms/lobby?name=Ada") as ada,
        ):
            await tour.said(ada)
            async with session.ws_connect("/rooms/lobby?name=Grace") as grace:
                assert (await tour.said(ada))["type"] == "joined"
                grace._writer.transport.abort()
                assert await tour.said(ada) == {"type": "left", "name": "Grace"}

    run(loop, vanish())


def test_a_listener_that_lags_is_dropped_and_the_others_go_on(loop: asyncio.AbstractEventLoop) -> None:
    async def lag() -> None:
        channel: Channel[int] = Channel(backlog=2)
        with channel.subscribe() as slow, channel.subscribe() as quick:
            heard = []
            for number in range(4):
                channel.publish(number)
                heard.append(await anext(quick))
            assert heard == [0, 1, 2, 3]
            assert [number async for number in slow] == [0, 1]
            assert (slow.overrun, quick.overrun) == (True, False)
        assert len(channel) == 0

    run(loop, lag())


def test_a_closed_channel_ends_old_and_new_subscriptions(loop: asyncio.AbstractEventLoop) -> None:
    async def close() -> None:
        channel: Channel[str] = Channel()
        with channel.subscribe() as early:
            channel.publish("last words")
            channel.close()
            assert [message async for message in early] == ["last words"]
        with channel.subscribe() as late:
            assert [message async for message in late] == []

    run(loop, close())


def test_the_page_needs_nothing_from_elsewhere() -> None:
    for path in STATIC.iterdir():
        links = re.findall(r"https?://[^\s\"')]+", path.read_text())
        assert [link for link in links if link != "http://www.w3.org/2000/svg"] == []


def test_load_client_counts_answers(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure() -> dict[str, float]:
        async with serving(create_app()) as url:
            return await load.put_load("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]), 0.2)

    monkeypatch.setattr(load, "WARM_UP", 0.05)
    result = run(loop, measure(), 20)
    assert result["rate"] > 0
    assert result["answered"] > load.CONNECTIONS


def test_load_client_refuses_other_answers(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure() -> None:
        async with serving(web.Application()) as url:
            await load.put_load("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]), 5)

    with pytest.raises(RuntimeError, match=r"unexpected response.*404"):
        run(loop, measure(), 20)


@contextmanager
def server_process() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and the line with which it says that it is ready."""
    with subprocess.Popen(SERVE, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stderr
        try:
            line = server.stdout.readline()
            assert line.startswith("http://"), line + server.stderr.read()
            yield server, line
        finally:
            server.kill()


def stop(server: subprocess.Popen[str], number: signal.Signals) -> str:
    """Send the signal; the server must end well and say nothing on stderr. Returns what it said at last."""
    server.send_signal(number)
    out, err = server.communicate(timeout=15)
    assert (server.returncode, err) == (0, "")
    return out


@needs_serve
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_server_stops_cleanly_on(number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
    with server_process() as (server, line):
        url = line.split()[0]

        async def connected() -> str:
            async with ClientSession(url) as session:
                about = await tour.answer(await session.get("/api/status"), 200)
                assert f"served by {about['loop']} " in line
                socket = await session.ws_connect("/rooms/lobby?name=Ada")
                assert (await tour.said(socket))["members"] == ["Ada"]
                async with session.get("/api/events") as stream:
                    told = asyncio.ensure_future(asyncio.to_thread(stop, server, number))
                    frame = await socket.receive()
                    assert (frame.type, frame.data) == (WSMsgType.CLOSE, WSCloseCode.GOING_AWAY)
                    while not stream.content.at_eof():
                        await stream.content.readline()
                return await told

        told = run(loop, connected(), 20)
    assert f"Stopped on {number.name}: 1 WebSockets and 1 event streams closed, 0 left" in told
    assert re.search(r"the background task ended after \d+ beats", told)


@needs_serve
def test_server_says_why_it_cannot_listen() -> None:
    with server_process() as (_, line):
        port = line.split()[0].rstrip("/").rpartition(":")[2]
        second = subprocess.run([*SERVE, "--port", port], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr.startswith(f"cannot listen on 127.0.0.1, port {port}: ")
    assert "Traceback" not in second.stderr
