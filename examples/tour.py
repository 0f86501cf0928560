"""Does every route answer as it should? A visit to all of them, on the running loop, that tells what it saw."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from aiohttp import (
    ClientResponse,
    ClientSession,
    ClientWebSocketResponse,
    WSCloseCode,
    WSMsgType,
    WSServerHandshakeError,
    web,
)

from examples.chat import create_app
from examples.chat.app import STATIC
from examples.chat.pulse import PULSE
from examples.chat.status import describe_loop
from examples.serving import serving

CROWD = 100  # requests at the same time


class Mismatch(Exception):
    """The application answered something else than it should."""


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise Mismatch(f"{what}: expected {wanted!r}, got {got!r}")


async def page(session: ClientSession) -> AsyncGenerator[str, None]:
    async with session.get("/") as response:
        expect("GET /", response.status, 200)
        expect("type of the page", response.content_type, "text/html")
        expect("the page", await response.read(), (STATIC / "index.html").read_bytes())
        yield f"GET / gives the page, {response.content_length:,} bytes"


async def static_files(session: ClientSession) -> AsyncGenerator[str, None]:
    for name, kind in ("app.js", "javascript"), ("style.css", "css"):
        content = (STATIC / name).read_bytes()
        async with session.get(f"/static/{name}") as response:
            expect(f"GET /static/{name}", response.status, 200)
            expect(f"type of {name}", response.content_type.rpartition("/")[2], kind)
            expect(name, await response.read(), content)
            tag = response.headers["ETag"]
        async with session.get(f"/static/{name}", headers={"If-None-Match": tag}) as response:
            expect(f"{name}, unchanged", response.status, 304)
        async with session.get(f"/static/{name}", headers={"Range": "bytes=10-19"}) as response:
            expect(f"a range of {name}", (response.status, await response.read()), (206, content[10:20]))
        yield f"GET /static/{name} gives {len(content):,} bytes, 304 when unchanged, 206 for a range"
    async with session.get("/static/none.js") as response:
        expect("a file that is not there", response.status, 404)


async def status(session: ClientSession) -> AsyncGenerator[str, None]:
    about = await answer(await session.get("/api/status"), 200)
    for key, value in describe_loop(asyncio.get_running_loop()).items():
        expect(f"status: {key}", about[key], value)
    yield f"GET /api/status names the loop that serves: {about['loop']}"


async def notes(session: ClientSession) -> AsyncGenerator[str, None]:
    before = await answer(await session.get("/api/notes"), 200)
    created = await session.post("/api/notes", json={"text": "buy milk"})
    note = await answer(created, 201)
    expect("a new note", note, {"id": note["id"], "text": "buy milk", "done": False})
    where = created.headers["Location"]
    expect("Location", where, f"/api/notes/{note['id']}")
    yield f"POST /api/notes made note {note['id']}: 201 with its Location"
    expect("the note", await answer(await session.get(where), 200), note)
    expect("all notes", await answer(await session.get("/api/notes"), 200), [*before, note])
    done = await answer(await session.patch(where, json={"done": True}), 200)
    expect("the note when done", done, note | {"done": True})
    yield f"GET and PATCH {where} show and change it"
    async with session.delete(where) as response:
        expect("DELETE", (response.status, await response.read()), (204, b""))
    for method in "GET", "PATCH", "DELETE":
        await answer(await session.request(method, where, json={}), 404)
    expect("notes at the end", await answer(await session.get("/api/notes"), 200), before)
    yield f"DELETE {where} gives 204, and 404 from then on"


async def refusals(session: ClientSession) -> AsyncGenerator[str, None]:
    for status, options in (
        (400, {"data": b'{"text": ', "headers": {"Content-Type": "application/json"}}),
        (415, {"data": b"buy milk"}),
        (422, {"json": ["buy milk"]}),
        (422, {"json": {}}),
        (422, {"json": {"text": " "}}),
        (422, {"json": {"text": "x" * 201}}),
        (422, {"json": {"text": "buy milk", "done": "yes"}}),
        (422, {"json": {"text": "buy milk", "id": 7}}),
        (413, {"json": {"text": "x" * 20_000}}),
    ):
        refused: Any = await answer(await session.post("/api/notes", **options), status)
        expect("keys of a refusal", list(refused), ["error"])
    yield "POST /api/notes refuses bad input with 400, 413, 415 and 422 and says why"
    await answer(await session.get("/api/notes/999999999"), 404)
    await answer(await session.get("/api/notes/one"), 404)
    response = await session.put("/api/notes/1")
    await answer(response, 405)
    expect("Allow", response.headers["Allow"], "DELETE,GET,HEAD,PATCH")
    yield "unknown notes give 404, other methods 405"


async def chat(session: ClientSession) -> AsyncGenerator[str, None]:
    async with session.ws_connect("/rooms/lobby?name=Ada") as ada:
        expect("Ada's welcome", await said(ada), {"type": "welcome", "members": ["Ada"], "history": []})
        await ada.send_json({"text": "first!"})
        first = {"type": "message", "name": "Ada", "text": "first!"}
        expect("Ada's message", await said(ada), first)
        async with session.ws_connect("/rooms/lobby?name=Grace") as grace:
            expect(
                "Grace's welcome",
                await said(grace),
                {"type": "welcome", "members": ["Ada", "Grace"], "history": [first]},
            )
            expect("Grace joins", await said(ada), {"type": "joined", "name": "Grace"})
            await grace.send_json({"text": "héllo ✓"})
            for who in ada, grace:
                expect("Grace's message", await said(who), {"type": "message", "name": "Grace", "text": "héllo ✓"})
            yield "WebSocket /rooms/lobby: Ada and Grace hear each other, the newcomer what was said before"
            await grace.send_str("no JSON")
            await grace.send_bytes(b"\0")
            for _ in range(2):
                expect("answer to nonsense", (await said(grace))["type"], "error")
            await refused_socket(session, "/rooms/lobby?name=Ada", 409)
            await refused_socket(session, "/rooms/lobby?name=", 400)
            rooms = (await answer(await session.get("/api/status"), 200))["rooms"]
            expect("rooms", rooms, {"lobby": ["Ada", "Grace"]})
        expect("Grace leaves", await said(ada), {"type": "left", "name": "Grace"})
    await answer(await session.get("/rooms/lobby?name=Ada"), 426)
    yield "a taken name gives 409, none 400, a plain GET 426, nonsense an error message"


async def event_stream(session: ClientSession) -> AsyncGenerator[str, None]:
    async with session.get("/api/events") as stream:
        expect("GET /api/events", (stream.status, stream.content_type), (200, "text/event-stream"))
        note = await answer(await session.post("/api/notes", json={"text": "streamed"}), 201)
        await session.delete(f"/api/notes/{note['id']}")
        changes = [await event(stream, "note") for _ in range(2)]
        expect("changes", changes, [{"action": action, "note": note} for action in ("created", "deleted")])
        yield "GET /api/events streams what happens to notes"
        beats = [await event(stream, "pulse") for _ in range(2)]
        expect("the second beat", beats[1]["beats"], beats[0]["beats"] + 1)
        yield f"... and every second the background task's pulse, {beats[1]['late_ms']} ms late"


async def crowd(session: ClientSession) -> AsyncGenerator[str, None]:
    async def one(number: int) -> dict[str, Any]:
        note: dict[str, Any] = await answer(await session.post("/api/notes", json={"text": f"note {number}"}), 201)
        return note

    made = await asyncio.gather(*map(one, range(CROWD)))
    expect("different notes", len({note["id"] for note in made}), CROWD)
    statuses = await asyncio.gather(*(delete(session, note) for note in made))
    expect("deletions", set(statuses), {204})
    yield f"{CROWD} clients at once make {CROWD} notes and delete them"


async def delete(session: ClientSession, note: dict[str, Any]) -> int:
    async with session.delete(f"/api/notes/{note['id']}") as response:
        return response.status


STEPS: list[Callable[[ClientSession], AsyncGenerator[str, None]]] = [
    page,
    static_files,
    status,
    notes,
    refusals,
    chat,
    event_stream,
    crowd,
]


class Complaints(logging.Handler):
    """What aiohttp and the loop report as an error although every answer may look right."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))

    @contextmanager
    def collect(self) -> Iterator[None]:
        loggers = [logging.getLogger(name) for name in ("aiohttp", "asyncio")]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)


async def tour() -> AsyncGenerator[str, None]:
    """Serve the application, visit every route, stop; yields a line for each thing seen, raises Mismatch."""
    complaints = Complaints()
    with complaints.collect():
        async with aclosing(visit_everything()) as lines:
            async for line in lines:
                yield line
    expect("errors logged", "\n".join(complaints.texts), "")


async def visit_everything() -> AsyncGenerator[str, None]:
    app = create_app()
    visited: set[web.AbstractRoute] = set()

    async def note_visit(request: web.Request, _: web.StreamResponse) -> None:
        visited.add(request.match_info.route)

    app.on_response_prepare.append(note_visit)
    async with ClientSession() as farewell_session:
        async with serving(app) as url:
            yield f"serving on {url}"
            async with ClientSession(url) as session:
                for step in STEPS:
                    async with aclosing(step(session)) as lines:
                        async for line in lines:
                            yield line
            unseen = [str(route) for route in app.router.routes() if route not in visited and route.method != "HEAD"]
            expect("routes not visited", unseen, [])
            yield f"{len(visited)} routes visited, none left out"
            socket = await farewell_session.ws_connect(f"{url}rooms/lobby?name=Ada")
            stream = await farewell_session.get(f"{url}api/events")
            expect("the welcome", (await said(socket))["type"], "welcome")
            expect("background task runs", app[PULSE].running, True)
        frame = await socket.receive()
        expect("the last frame", (frame.type, frame.data), (WSMsgType.CLOSE, WSCloseCode.GOING_AWAY))
        while not stream.content.at_eof():
            await stream.content.readline()
        expect("background task runs after the end", app[PULSE].running, False)
        yield "stopped: the WebSocket got 'going away', the event stream its end, the background task is done"


async def answer(response: ClientResponse, status: int) -> Any:
    async with response:
        expect(f"{response.method} {response.url.path}", response.status, status)
        return await response.json()


async def said(socket: ClientWebSocketResponse) -> Any:
    return await socket.receive_json(timeout=10)


async def refused_socket(session: ClientSession, path: str, status: int) -> None:
    try:
        await session.ws_connect(path)
    except WSServerHandshakeError as error:
        expect(path, error.status, status)
    else:
        raise Mismatch(f"{path} was accepted")


async def event(stream: ClientResponse, name: str) -> Any:
    """Return the data of the next event of that name."""
    found = ""
    while line := (await stream.content.readline()).decode().rstrip("\n") or not stream.content.at_eof():
        field, _, value = str(line).partition(": ")
        if field == "event":
            found = value
        elif field == "data" and found == name:
            return json.loads(value)
    raise Mismatch(f"the stream ended without {name!r}")
