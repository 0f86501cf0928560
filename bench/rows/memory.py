"""What does a connection cost that does nothing? The client side is the measuring process, so it does not count."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import time
from dataclasses import dataclass

from bench.loops import environment
from bench.process import Child, Failed
from bench.row import Row, Setting

STEP = 500  # connections opened before the server has to have accepted them: well below its backlog
FIRST = 100  # connections opened before the first look: what a loop sets up once is not charged to each
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset, so that no port is left in TIME_WAIT


@dataclass(frozen=True)
class IdleMemory(Row):
    """A row of one figure of the server's `memory` answer, a connection."""

    unit = "B"
    kind: str

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        count = 2_000 if setting.quick else 10_000
        allow_descriptors(count + FIRST + 100)
        argv = [setting.python, "-m", "bench.server", self.kind, loop]
        with Child(argv, setting.cores.measured, environment(loop), 30) as server, contextlib.ExitStack() as opened:
            port = server.read()["port"]
            before = connect(opened, server, port, 0, FIRST)
            after = before
            for have in range(FIRST, FIRST + count, STEP):
                after = connect(opened, server, port, have, STEP)
        return {"value": (after[self.kind] - before[self.kind]) / count, "connections": count}


def connect(opened: contextlib.ExitStack, server: Child, port: int, have: int, more: int) -> dict[str, float]:
    """Open *more* connections, wait until the server has them all, and give its memory then."""
    for _ in range(more):
        client = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    while True:
        found: dict[str, float] = server.ask("memory")
        if found["connections"] >= have + more:
            return found
        time.sleep(0.002)


def allow_descriptors(count: int) -> None:
    """Raise the soft limit of open files to *count*. Raises Failed if the hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Failed(f"needs {count} open files, the limit is {hard} (ulimit -Hn)")
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
