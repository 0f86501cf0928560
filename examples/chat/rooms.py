"""How do people talk to each other? One WebSocket for each member of a room.

A client connects to /rooms/{room}?name=NAME and sends {"text": "..."}; it gets, as JSON objects with a `type`,
`welcome` (members and the last messages), then `joined`, `left`, `message` and, for what it sent wrongly, `error`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from .channel import Channel, Inbox

MAX_NAME = 32
MAX_TEXT = 1000
REMEMBERED = 50

Message = dict[str, Any]


class Room:
    """The members of one room and what they said last."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.channel: Channel[Message] = Channel()
        self.history: deque[Message] = deque(maxlen=REMEMBERED)

    def say(self, name: str, text: str) -> None:
        message = {"type": "message", "name": name, "text": text}
        self.history.append(message)
        self.channel.publish(message)


class NameTaken(Exception):
    pass


class Rooms:
    """The rooms that have members; the last one to leave takes the room along."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}

    def members(self) -> dict[str, list[str]]:
        return {name: sorted(room.members) for name, room in self._rooms.items()}

    @contextmanager
    def join(self, room_name: str, name: str) -> Iterator[tuple[Room, Inbox[Message]]]:
        room = self._rooms.setdefault(room_name, Room())
        if name in room.members:
            raise NameTaken
        room.channel.publish({"type": "joined", "name": name})
        with room.channel.subscribe() as inbox:
            room.members.add(name)
            inbox.put({"type": "welcome", "members": sorted(room.members), "history": list(room.history)})
            try:
                yield room, inbox
            finally:
                room.members.discard(name)
                room.channel.publish({"type": "left", "name": name})
                if not room.members:
                    del self._rooms[room_name]

    def close(self) -> None:
        """Send every member away."""
        for room in self._rooms.values():
            room.channel.close()


ROOMS = web.AppKey("rooms", Rooms)


async def chat(request: web.Request) -> web.WebSocketResponse:
    name = request.query.get("name", "").strip()
    if not (1 <= len(name) <= MAX_NAME and name.isprintable()):
        raise web.HTTPBadRequest(text=f"name must have 1 to {MAX_NAME} printable characters")
    socket = web.WebSocketResponse(heartbeat=30, timeout=3, max_msg_size=16 * 1024)
    if not socket.can_prepare(request):
        raise web.HTTPUpgradeRequired(text="this is a WebSocket", headers={"Upgrade": "websocket"})
    try:
        with request.app[ROOMS].join(request.match_info["room"], name) as (room, inbox):
            await socket.prepare(request)
            await converse(socket, room, name, inbox)
    except NameTaken:
        raise web.HTTPConflict(text=f"{name} is in the room already") from None
    return socket


async def converse(socket: web.WebSocketResponse, room: Room, name: str, inbox: Inbox[Message]) -> None:
    """Send and receive at the same time, until the client leaves, the room closes or the client lags too far."""
    async with asyncio.TaskGroup() as group:
        group.create_task(listen(socket, room, name, inbox))
        with suppress(ConnectionError):  # the client has gone; listen() sees it as well and ends
            async for message in inbox:
                await socket.send_json(message)
        await socket.close(code=WSCloseCode.TRY_AGAIN_LATER if inbox.overrun else WSCloseCode.GOING_AWAY)


async def listen(socket: web.WebSocketResponse, room: Room, name: str, inbox: Inbox[Message]) -> None:
    async for frame in socket:
        text = text_in(frame.data) if frame.type is WSMsgType.TEXT else None
        if text:
            room.say(name, text)
        else:
            inbox.put({"type": "error", "text": f'send {{"text": "1 to {MAX_TEXT} characters"}}'})
    inbox.end()


def text_in(data: str) -> str | None:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"text": str(text)} if text.strip() and len(text) <= MAX_TEXT:
            return text
    return None
