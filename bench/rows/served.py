"""Rows of a server under load: the CPU time of its process for a request, with the load generator on another core."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bench import syscalls
from bench.certificate import certificate
from bench.loops import environment
from bench.native import program
from bench.process import Child, Failed
from bench.rows.row import Row, Setting

LIMIT = "C epoll"
SETTLED = 0.02  # seconds without a change: nothing more comes


@dataclass(frozen=True, kw_only=True)
class Served(Row):
    """*server* is a function in bench/servers/, as module.function; *load* a C program with its options."""

    server: str
    load: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)  # of the server
    unix: bool = False
    tls: bool = False
    limit: tuple[str, ...] = ()  # the C program that does the same
    figure: str = "cpu"  # the detail that is the figure of the row
    per: str = "requests"  # what the load generator counted, or the server: `received`
    settle: bool = False  # the server still has work when the load generator is done
    unit: str = "µs"

    @property
    def limits(self) -> tuple[str, ...]:
        return (LIMIT,) if self.limit else ()

    @contextmanager
    def running(self, setting: Setting, loop: str) -> Iterator[tuple[Child, Child]]:
        """Server and load generator, both warmed up, nothing under way."""
        address = str(setting.scratch / "socket") if self.unix else "0"
        options = {"address": address} | (certificate() if self.tls else {}) | self.options
        limit, env = setting.limit, environment(loop)
        if loop == LIMIT:
            argv = [program(self.limit[0]), *self.limit[1:], *(f"{key}={value}" for key, value in options.items())]
        else:
            argv = [setting.python, "-m", "bench.server", self.server, loop, json.dumps(options)]
        (setting.scratch / "socket").unlink(missing_ok=True)
        with Child(argv, setting.cores.measured, env, limit) as server:
            name, *rest = self.load
            times = [f"warm={setting.seconds / 4}", f"seconds={setting.seconds}"]
            chosen = [f"address={server.read()['address']}", f"connections={self.connections or 1}", *rest, *times]
            if self.message:
                chosen.append(f"size={self.message}")
            with Child([program(name), *chosen], setting.cores.other, env, limit) as load:
                try:
                    load.read()
                    yield server, load
                except Failed as failure:
                    why = server.complaint()
                    raise Failed(f"{failure}; the server: {why}" if why else str(failure)) from None

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        with self.running(setting, loop) as (server, load):
            before = self.usage(server)
            done: dict[str, float] = load.ask("go")
            after = self.usage(server)
        count = done["requests"] if self.per == "requests" else after[self.per] - before[self.per]
        if not count:
            raise Failed("nothing was served")
        sample = {key: 1e6 * (after[key] - before[key]) / count for key in ("user", "system")}
        sample["cpu"] = sample["user"] + sample["system"]
        sample["rate"] = count / done["seconds"]
        sample["load_busy"] = done["cpu"] / done["seconds"]
        sample["lost"] = 1 - count / done["requests"] if self.per != "requests" else done.get("lost", 0) / count
        sample |= {key: value for key, value in done.items() if key.startswith("p") and self.per == "requests"}
        if "waited" in after:
            sample["delay"] = (after["waited"] - before["waited"]) / done["seconds"]
        return {"value": sample[self.figure], **sample}

    def usage(self, server: Child) -> dict[str, float]:
        used: dict[str, float] = server.ask("usage")
        while self.settle:
            time.sleep(SETTLED)
            last, used = used, server.ask("usage")
            if all(last.get(key) == used.get(key) for key in ("received", "connections", "accepted")):
                break
        return used

    def syscalls(self, setting: Setting, loop: str) -> dict[str, float] | None:
        if self.figure != "cpu" or self.per != "requests":
            return None
        short = replace(setting, seconds=min(0.1, setting.seconds))
        with self.running(short, loop) as (server, load):
            with syscalls.counted(server.pid, setting.cores.other, setting.scratch) as calls:
                done: dict[str, float] = load.ask("go")
        found = {name: count / done["requests"] for name, count in calls.items()}
        return {"total": sum(found.values()), **found}
