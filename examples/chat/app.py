"""Which routes does the application have, and which objects do they share?"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from . import events, notes, pulse, rooms, status

STATIC = Path(__file__).parent / "static"


def create_app() -> web.Application:
    """Return the whole application, ready for an `aiohttp.web.AppRunner`."""
    app = web.Application(middlewares=[json_errors], client_max_size=16 * 1024)
    app[notes.NOTES] = notes.Notes("Read examples/README.md", "Open this page in a second tab")
    app[rooms.ROOMS] = rooms.Rooms()
    app[events.FEED] = events.Feed()
    app[pulse.PULSE] = pulse.Pulse()
    app.cleanup_ctx.append(pulse.run_in_background)
    app.on_shutdown.append(hang_up)
    app.add_routes(
        [
            web.get("/", page),
            web.static("/static", STATIC),
            web.get("/api/status", status.show),
            web.get("/api/notes", notes.index),
            web.post("/api/notes", notes.create),
            web.get(r"/api/notes/{id:\d{1,9}}", notes.show, name="note"),
            web.patch(r"/api/notes/{id:\d{1,9}}", notes.update),
            web.delete(r"/api/notes/{id:\d{1,9}}", notes.delete),
            web.get("/api/events", events.stream),
            web.get(r"/rooms/{room:[a-z0-9-]{1,32}}", rooms.chat),
        ]
    )
    return app


async def page(request: web.Request) -> web.StreamResponse:
    return web.FileResponse(STATIC / "index.html")


async def hang_up(app: web.Application) -> None:
    """End what would stay open forever; the server then waits only for requests that end by themselves."""
    app[rooms.ROOMS].close()
    app[events.FEED].close()


@web.middleware
async def json_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Give every error the form that the API's clients read: {"error": "..."}."""
    try:
        return await handler(request)
    except web.HTTPError as error:
        error.text = json.dumps({"error": error.text})
        error.content_type = "application/json"
        raise
