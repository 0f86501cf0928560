"""How does one message reach many listeners, without the slowest of them holding up the others?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Message = TypeVar("Message")


class Inbox(Generic[Message]):
    """The messages that one listener has still to read: `async for message in inbox`."""

    def __init__(self, backlog: int) -> None:
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self._backlog = backlog
        self.overrun = False

    def put(self, message: Message) -> None:
        """Add a message; a listener that is `backlog` messages behind gets no more of them."""
        if self._queue.qsize() < self._backlog and not self.overrun:
            self._queue.put_nowait(message)
        elif not self.overrun:
            self.overrun = True
            self.end()

    def end(self) -> None:
        """Let the iteration end after the messages that wait already."""
        self._queue.put_nowait(None)

    def __aiter__(self) -> Inbox[Message]:
        return self

    async def __anext__(self) -> Message:
        message = await self._queue.get()
        if message is None:
            raise StopAsyncIteration
        return message


class Channel(Generic[Message]):
    """Everyone who has subscribed gets every message published from then on."""

    def __init__(self, backlog: int = 256) -> None:
        self._inboxes: set[Inbox[Message]] = set()
        self._backlog = backlog
        self.closed = False

    def __len__(self) -> int:
        return len(self._inboxes)

    @contextmanager
    def subscribe(self) -> Iterator[Inbox[Message]]:
        inbox: Inbox[Message] = Inbox(self._backlog)
        self._inboxes.add(inbox)
        if self.closed:
            inbox.end()
        try:
            yield inbox
        finally:
            self._inboxes.discard(inbox)

    def publish(self, message: Message) -> None:
        """Never waits: a listener's own handler does the sending."""
        for inbox in self._inboxes:
            inbox.put(message)

    def close(self) -> None:
        """End every subscription, and each that is still to come."""
        self.closed = True
        for inbox in self._inboxes:
            inbox.end()
