"""The suites by name.  A new one is a module here and its lists in left_out/ and known/."""

from __future__ import annotations

from importlib import import_module

from .suite import Suite

NAMES = (
    "cpython",
    "aiohttp",
    "uvloop",
    "anyio",
    "uvicorn",
    "httpcore",
    "httpx",
    "starlette",
    "pytest-asyncio",
    "tornado",
    "asyncssh",
    "aioquic",
    "hypercorn",
    "sanic",
    "asyncpg",
    "redis",
)
SUITES: dict[str, Suite] = {name: import_module(f"{__name__}.{name.replace('-', '_')}").SUITE for name in NAMES}
