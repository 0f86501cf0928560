"""How well is the loop? A background task that starts and ends with the application and measures it every second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from aiohttp import web

from .events import FEED, Event
from .notes import NOTES
from .rooms import ROOMS

INTERVAL = 1.0  # seconds


class Pulse:
    """How often the task has run, since when, and whether it still does."""

    def __init__(self) -> None:
        self.beats = 0
        self.started = time.monotonic()
        self.running = False

    async def beat(self, app: web.Application) -> None:
        """Publish what the application holds and how late the loop woke this task, in milliseconds, until cancelled."""
        self.running = True
        try:
            while True:
                due = time.monotonic() + INTERVAL
                await asyncio.sleep(INTERVAL)
                self.beats += 1
                late = (time.monotonic() - due) * 1000
                app[FEED].publish(
                    Event(
                        "pulse",
                        {
                            "beats": self.beats,
                            "late_ms": round(late, 3),
                            "notes": len(app[NOTES]),
                            "members": sum(map(len, app[ROOMS].members().values())),
                        },
                    )
                )
        finally:
            self.running = False


PULSE = web.AppKey("pulse", Pulse)


async def run_in_background(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context: what stands before `yield` runs at start-up, what follows it after the last request."""
    task = asyncio.create_task(app[PULSE].beat(app), name="pulse")
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
