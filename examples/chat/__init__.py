"""A small team board made with aiohttp: notes, a chat room and a stream of events.

Nothing in this package knows which event loop runs it.
"""

from __future__ import annotations

from .app import create_app

__all__ = ["create_app"]
