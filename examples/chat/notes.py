"""What can a client do with notes? A JSON resource kept in memory: list, create, show, update, delete."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from typing import Any

from aiohttp import web

from .events import FEED, Event

MAX_NOTES = 1000
MAX_TEXT = 200


@dataclass(slots=True)
class Note:
    id: int
    text: str
    done: bool = False


class Notes:
    """The notes by id, in the order in which they were made."""

    def __init__(self, *texts: str) -> None:
        self._ids = itertools.count(1)
        self._notes: dict[int, Note] = {}
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._notes)

    def all(self) -> list[Note]:
        return list(self._notes.values())

    def add(self, text: str, done: bool = False) -> Note:
        note = Note(next(self._ids), text, done)
        self._notes[note.id] = note
        return note

    def get(self, id: int) -> Note | None:
        return self._notes.get(id)

    def remove(self, note: Note) -> None:
        del self._notes[note.id]


NOTES = web.AppKey("notes", Notes)


async def index(request: web.Request) -> web.Response:
    return web.json_response([asdict(note) for note in request.app[NOTES].all()])


async def show(request: web.Request) -> web.Response:
    return web.json_response(asdict(find(request)))


async def create(request: web.Request) -> web.Response:
    fields = await read_fields(request)
    if "text" not in fields:
        raise web.HTTPUnprocessableEntity(text="text is missing")
    notes = request.app[NOTES]
    if len(notes) >= MAX_NOTES:
        raise web.HTTPConflict(text=f"there are {MAX_NOTES} notes already")
    note = notes.add(**fields)
    announce(request, "created", note)
    location = request.app.router["note"].url_for(id=str(note.id))
    return web.json_response(asdict(note), status=201, headers={"Location": str(location)})


async def update(request: web.Request) -> web.Response:
    fields = await read_fields(request)
    note = find(request)
    for name, value in fields.items():
        setattr(note, name, value)
    announce(request, "updated", note)
    return web.json_response(asdict(note))


async def delete(request: web.Request) -> web.Response:
    note = find(request)
    request.app[NOTES].remove(note)
    announce(request, "deleted", note)
    return web.Response(status=204)


def find(request: web.Request) -> Note:
    id = int(request.match_info["id"])
    note = request.app[NOTES].get(id)
    if note is None:
        raise web.HTTPNotFound(text=f"there is no note {id}")
    return note


async def read_fields(request: web.Request) -> dict[str, Any]:
    """Return the fields of a note that the request's body sets, checked."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json")
    try:
        fields = json.loads(await request.read())
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest(text="the body is not JSON") from None
    if not isinstance(fields, dict):
        raise web.HTTPUnprocessableEntity(text="send an object")
    if problem := next(filter(None, itertools.starmap(problem_with, fields.items())), None):
        raise web.HTTPUnprocessableEntity(text=problem)
    return fields


def problem_with(name: str, value: object) -> str | None:
    match name, value:
        case "text", str() if value.strip() and len(value) <= MAX_TEXT:
            return None
        case "text", _:
            return f"text must be a string of 1 to {MAX_TEXT} characters"
        case "done", bool():
            return None
        case "done", _:
            return "done must be true or false"
    return f"a note has no field {name!r} that can be set"


def announce(request: web.Request, action: str, note: Note) -> None:
    request.app[FEED].publish(Event("note", {"action": action, "note": asdict(note)}))
