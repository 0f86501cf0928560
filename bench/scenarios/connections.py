"""What do connections cost that come and go, many that come at once, and those that only stay?"""

from __future__ import annotations

from bench.rows.memory import IdleMemory
from bench.rows.served import Served

ROWS = (
    Served(
        name="connections/accept",
        what="a client connects and closes without a word: server CPU, 8 clients",
        server="echo.protocol",
        load=("connect", "size=0"),
        limit=("server",),
        connections=8,
        settle=True,
    ),
    Served(
        name="connections/churn",
        what="connect, 64 bytes echoed, close: server CPU, 8 clients",
        server="echo.protocol",
        load=("connect",),
        limit=("server",),
        connections=8,
        message=64,
        settle=True,
    ),
    Served(
        name="connections/churn_read",
        what="the same through asyncio's streams",
        server="echo.read",
        load=("connect",),
        limit=("server",),
        connections=8,
        message=64,
        settle=True,
    ),
    Served(
        name="connections/burst",
        what="3,000 connections at once: the longest that one already there waits for its answer",
        server="echo.protocol",
        load=("connect", "kind=burst"),
        limit=("server",),
        figure="p100",
        connections=3000,
        message=64,
        settle=True,
    ),
    IdleMemory(
        name="connections/idle_memory",
        what="growth of the server's resident memory for each of 10,000 idle TCP connections",
        kind="rss",
        count=10_000,
    ),
    IdleMemory(
        name="connections/idle_memory_python",
        what="the part that Python's allocators gave out (tracemalloc), of 2,000",
        kind="traced",
        count=2_000,
    ),
    IdleMemory(
        name="connections/idle_memory_tls",
        what="growth of the server's resident memory for each of 1,000 idle TLS connections",
        kind="rss",
        count=1_000,
        tls=True,
    ),
)
