"""What does a connection cost that does nothing? The client side is the measuring process, so it does not count."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import ssl
import struct
import time
from dataclasses import dataclass

from bench.certificate import certificate
from bench.loops import environment
from bench.process import Child, Failed
from bench.rows.row import Row, Setting

STEP = 100  # connections opened before the server has to have accepted them: well below its backlog
FIRST = 100  # connections opened before the first look: what a loop sets up once is not charged to each
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset, so that no port is left in TIME_WAIT


@dataclass(frozen=True, kw_only=True)
class IdleMemory(Row):
    """A row of one figure of the server's `memory` answer, a connection."""

    unit: str = "B"
    kind: str  # "rss" or "traced"
    count: int
    tls: bool = False

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        count = self.count // 10 if setting.quick else self.count
        allow_descriptors(count + FIRST + 100)
        options = {"address": "0", "traced": self.kind == "traced"} | (certificate() if self.tls else {})
        argv = [setting.python, "-m", "bench.server", "echo.protocol", loop, json.dumps(options)]
        with (
            Child(argv, setting.cores.measured, environment(loop), setting.limit) as server,
            contextlib.ExitStack() as opened,
        ):
            port = int(server.read()["address"])
            context = client_context() if self.tls else None
            before = connect(opened, context, server, port, 0, FIRST)
            after = before
            for have in range(FIRST, FIRST + count, STEP):
                after = connect(opened, context, server, port, have, STEP)
        return {"value": (after[self.kind] - before[self.kind]) / count, "connections": count}


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def connect(
    opened: contextlib.ExitStack, context: ssl.SSLContext | None, server: Child, port: int, have: int, more: int
) -> dict[str, float]:
    """Open *more* connections, wait until the server has them all, and give its memory then. Raises Failed."""
    try:
        for _ in range(more):
            client = socket.create_connection(("127.0.0.1", port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            opened.enter_context(context.wrap_socket(client) if context else client)
    except OSError as error:
        raise Failed(f"client: {error}") from None
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
