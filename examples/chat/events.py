"""How does a browser hear of changes? A response that never ends: server-sent events, one chunk for each event."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, NamedTuple

from aiohttp import web

from .channel import Channel


class Event(NamedTuple):
    name: str
    data: dict[str, Any]

    def encode(self) -> bytes:
        """Return the event as an event stream holds it (HTML standard, section 9.2)."""
        return f"event: {self.name}\ndata: {json.dumps(self.data)}\n\n".encode()


class Feed(Channel[Event]):
    """Every event of the application."""


FEED = web.AppKey("feed", Feed)


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    with request.app[FEED].subscribe() as inbox:
        await response.prepare(request)
        with suppress(ConnectionError):  # the client has gone
            async for event in inbox:
                await response.write(event.encode())
    return response
