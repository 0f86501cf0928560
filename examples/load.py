"""How many requests per second does the application answer? A client that costs little, in a process of its own.

`python -m examples.load HOST PORT SECONDS` prints the requests answered per second, and all that were answered, those
of the warm-up too.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import cast

PATH = "/api/notes/1"
CONNECTIONS = 32
WARM_UP = 0.5  # seconds


class Load:
    """What all the connections share."""

    def __init__(self, host: str) -> None:
        self.request = f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        self.answered = 0
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, why: str) -> None:
        if not self.failure.done():
            self.failure.set_exception(RuntimeError(why))


class Connection(asyncio.Protocol):
    """One keep-alive connection that has one request under way at a time.

    The same note is asked for again and again, so every response has the length of the first: no parser is needed.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._received = b""
        self._length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        received = self._received = self._received + data if self._received else data
        length = self._length = self._length or response_length(received)
        if not length or len(received) < length:
            return
        if len(received) != length or not received.startswith(b"HTTP/1.1 200 "):
            self._load.fail(f"unexpected response: {received[:200]!r}")
            self._transport.abort()
            return
        self._received = b""
        self._load.answered += 1
        self._transport.write(self._load.request)

    def connection_lost(self, error: Exception | None) -> None:
        self._load.fail(f"the server closed a connection: {error}")


def response_length(received: bytes) -> int:
    """Return the length in bytes of the response that begins so, or 0 if its header is not complete."""
    header, end, _ = received.lower().partition(b"\r\n\r\n")
    if not end:
        return 0
    return len(header) + len(end) + int(header.partition(b"content-length:")[2].split()[0])


async def put_load(host: str, port: int, seconds: float) -> dict[str, float]:
    """Ask for `seconds` seconds after a warm-up; returns what this module prints."""
    load = Load(host)
    loop = asyncio.get_running_loop()
    connections = [await loop.create_connection(lambda: Connection(load), host, port) for _ in range(CONNECTIONS)]
    try:
        await asyncio.wait([load.failure], timeout=WARM_UP)
        answered, began = load.answered, time.perf_counter()
        await asyncio.wait([load.failure], timeout=seconds)
        rate = (load.answered - answered) / (time.perf_counter() - began)
        if load.failure.done():
            await load.failure
    finally:
        load.failure.cancel()
        for transport, _ in connections:
            transport.abort()
    return {"rate": rate, "answered": load.answered}


if __name__ == "__main__":
    host, port, seconds = sys.argv[1:]
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        print(json.dumps(runner.run(put_load(host, int(port), float(seconds)))))
