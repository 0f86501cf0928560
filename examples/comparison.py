"""Is the application faster on one loop than on another? Interleaved rounds, each with processes of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from statistics import median
from urllib.parse import SplitResult, urlsplit

PATIENCE = 15  # seconds for a server to stop, and for a client beyond what it was asked to take


class Failed(Exception):
    """A server or client process did not do its part."""


@dataclass
class Series:
    """The rounds of one loop."""

    loop: str
    about: str = ""  # as the server describes itself
    rates: list[float] = field(default_factory=list)  # requests per second
    cpu: list[float] = field(default_factory=list)  # the server's, microseconds for each request

    @property
    def rate(self) -> float:
        return median(self.rates)

    @property
    def cost(self) -> float:
        return median(self.cpu)

    @property
    def least_busy(self) -> float:
        """The smallest share of a core that the server used in a round: what is missing went to something else."""
        return min(rate * cpu / 1e6 for rate, cpu in zip(self.rates, self.cpu, strict=True))


def two_cores() -> tuple[int, int] | None:
    """Return a core for the server and another for the client, or None where there are not two to choose from."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[-1], cores[0]) if len(cores) > 1 else None


def start(core: int | None, *arguments: str) -> subprocess.Popen[str]:
    # A process group of its own: ^C is for the one who measures, and that one ends the others.
    process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True, process_group=0)
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    return process


@contextmanager
def server(loop: str, core: int | None) -> Iterator[tuple[SplitResult, str]]:
    """Run a server process; gives its URL and what it said about itself."""
    with start(core, "examples.demo", "--serve", "--loop", loop, "--port", "0") as process:
        assert process.stdout
        try:
            line = process.stdout.readline()
            found = re.match(r"(http://\S+) is served by (.*)\. Stop", line)
            if not found:
                raise Failed(f"the server on {loop} did not start: {line!r}")
            yield urlsplit(found[1]), found[2]
            process.send_signal(signal.SIGTERM)
            if code := process.wait(PATIENCE):
                raise Failed(f"the server on {loop} stopped with exit code {code}")
        finally:
            process.kill()


def cpu_seconds(url: SplitResult) -> float:
    """Return the CPU time that the server has used so far."""
    with closing(HTTPConnection(str(url.hostname), url.port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/api/status")
        return float(json.load(connection.getresponse())["cpu_seconds"])


def put_load(url: SplitResult, seconds: float, core: int | None) -> dict[str, float]:
    """Run a client process; returns what it measured."""
    with start(core, "examples.load", str(url.hostname), str(url.port), str(seconds)) as client:
        try:
            output, _ = client.communicate(timeout=seconds + PATIENCE)
        finally:
            client.kill()
    if client.returncode:
        raise Failed(f"the client failed with exit code {client.returncode}")
    result: dict[str, float] = json.loads(output)
    return result


def one_round(series: Series, seconds: float, cores: tuple[int, int] | None) -> None:
    """Measure for `seconds` seconds and add the result to the series."""
    server_core, client_core = cores or (None, None)
    with server(series.loop, server_core) as (url, series.about):
        used = cpu_seconds(url)
        result = put_load(url, seconds, client_core)
        used = cpu_seconds(url) - used
    series.rates.append(result["rate"])
    series.cpu.append(used / result["answered"] * 1e6)


def compare(loops: list[str], rounds: int, seconds: float) -> Iterator[list[Series]]:
    """Yield the series, one for each loop, after each measurement."""
    cores = two_cores()
    table = [Series(loop) for loop in loops]
    for _ in range(rounds):
        for series in table:
            one_round(series, seconds, cores)
            yield table
