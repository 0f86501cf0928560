"""Which scenarios are there, in the order of the report, and which rows have they?"""

from __future__ import annotations

import importlib
from fnmatch import fnmatchcase

from bench.rows.row import Row

# One sentence each; the module of that name has ROWS.
SCENARIOS = {
    "micro": "what a single operation of the loop costs, inside one process",
    "echo": "servers that send back what comes, over TCP and Unix sockets: server CPU a request",
    "tls": "the same over TLS, handshakes, and bulk",
    "udp": "datagrams: echo, and floods in both directions",
    "http": "aiohttp and uvicorn: server CPU a request; aiohttp's client",
    "connections": "opening and closing connections, and the memory of idle ones",
    "timers": "how far asyncio.sleep() misses its time",
    "files": "sending files: loop.sendfile and aiohttp's static files",
    "processes": "starting child processes, and pipes to them",
    "signals": "from kill() to the handler",
}


def rows(scenario: str) -> dict[str, Row]:
    """The rows of one scenario by name."""
    return {row.name: row for row in importlib.import_module(f"bench.scenarios.{scenario}").ROWS}


def select(patterns: list[str]) -> list[Row]:
    """Rows by scenario (`echo`), name (`micro/chain`) or shell pattern (`echo/*unix*`); all without a pattern.

    ValueError names a pattern that matches nothing.
    """
    everything = {name: row for scenario in SCENARIOS for name, row in rows(scenario).items()}
    if not patterns:
        return list(everything.values())
    chosen = set()
    for pattern in patterns:
        found = {name for name in everything if fnmatchcase(name, pattern) or name.partition("/")[0] == pattern}
        if not found:
            raise ValueError(pattern)
        chosen |= found
    return [row for name, row in everything.items() if name in chosen]
