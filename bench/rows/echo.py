"""What does a request cost a server? CPU time of the server process, under a load generator in C on another core."""

from __future__ import annotations

from dataclasses import dataclass

from bench.loops import environment
from bench.native import program
from bench.process import Child
from bench.row import Row, Setting

LIMIT = "C epoll"


@dataclass(frozen=True)
class Echo(Row):
    """A row of one echo server; the plain C server with epoll shows what the kernel itself takes."""

    unit = "µs"
    limits = (LIMIT,)
    kind: str
    connections: int = 64
    message: int = 1024

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        warm, seconds = (0.05, 0.15) if setting.quick else (0.3, 1.5)
        limit = 15 + seconds
        served = [program("echo_server")] if loop == LIMIT else [setting.python, "-m", "bench.server", self.kind, loop]
        with Child(served, setting.cores.measured, environment(loop), limit) as server:
            port = server.read()["port"]
            arguments = [str(value) for value in (port, self.connections, self.message, warm, seconds)]
            other = setting.cores.load if setting.cores.load is not None else setting.cores.measured
            with Child([program("echo_load"), *arguments], other, environment(loop), limit) as load:
                load.read()  # warmed up: all connections are open and nothing is under way
                before = server.ask("usage")
                done: dict[str, float] = load.ask("go")
                after = server.ask("usage")
        user, system = (1e6 * (after[key] - before[key]) / done["requests"] for key in ("user", "system"))
        return {
            "value": user + system,
            "user": user,
            "system": system,
            "rate": done["requests"] / done["seconds"],
            "p50": done["p50"],
            "p99": done["p99"],
            "load_busy": done["cpu"] / done["seconds"],
        }
