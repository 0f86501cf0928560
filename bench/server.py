"""The server side of the echo and memory rows, in this process: ``python -m bench.server KIND LOOP``.

Prints its port, then answers on standard input: `usage` (CPU seconds of the process so far) and `memory` (bytes and
connections). A thread answers, asleep in read(2) while the loop is measured, so that nothing is asked of the loop
besides serving. End of input ends the process at once, whatever state the loop is in.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

from bench.loops import make

BACKLOG = 4096
connections = 0


class Echo(asyncio.Protocol):
    """Sends back what comes."""

    __slots__ = ("transport",)

    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        global connections
        connections += 1
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        global connections
        connections -= 1

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def resident() -> int:
    """Bytes of this process in memory; where there is no /proc, the most it ever had (macOS counts bytes there)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def answer(word: str) -> dict[str, float]:
    if word == "usage":
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {"user": used.ru_utime, "system": used.ru_stime}
    gc.collect()
    return {"rss": resident(), "traced": tracemalloc.get_traced_memory()[0], "connections": connections}


def settle_malloc() -> None:
    """Free one large block: glibc then stops asking the kernel for every allocation of up to that size.

    Most programs come to this point by themselves. One that does not pays three system calls for each 256 KiB buffer
    that asyncio reads into, which would double the cost of its echo and say nothing about the loop (mallopt(3),
    M_MMAP_THRESHOLD).
    """
    bytearray(1 << 20)


def control(port: int) -> None:
    print(json.dumps({"port": port}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.strip())), flush=True)
    os._exit(0)


async def serve(kind: str) -> None:
    server: asyncio.Server
    if kind == "streams":
        server = await asyncio.start_server(echo, "127.0.0.1", 0, backlog=BACKLOG)
    else:
        server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=BACKLOG)
    port = server.sockets[0].getsockname()[1]
    threading.Thread(target=control, args=(port,), daemon=True).start()
    await server.serve_forever()


def main() -> None:
    kind, loop_name = sys.argv[1:]
    if kind == "traced":
        tracemalloc.start()
    settle_malloc()
    make(loop_name).run_until_complete(serve(kind))


if __name__ == "__main__":
    main()
