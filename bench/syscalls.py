"""How many system calls does a request take? strace counts them; it slows a server too much to time it as well."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.process import Failed

# "% time  seconds  usecs/call  calls  [errors]  syscall"
LINE = re.compile(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(?P<calls>\d+)\s+(?:\d+\s+)?(?P<name>\w+)$")


def available() -> bool:
    return shutil.which("strace") is not None


@contextmanager
def counted(pid: int, core: int | None, scratch: Path) -> Iterator[dict[str, int]]:
    """Counts by name, filled in when the block ends. Raises Failed if strace may not attach."""
    calls: dict[str, int] = {}
    summary = scratch / "strace"
    command = ["strace", "-c", "-f", "-o", str(summary), "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        if core is not None:
            os.sched_setaffinity(tracer.pid, {core})
        try:
            assert tracer.stderr is not None
            first = tracer.stderr.readline()
            if "attached" not in first:
                raise Failed(first.strip() or "strace ended early")
            yield calls
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(10)
    for line in summary.read_text().splitlines():
        match = LINE.match(line)
        if match and match["name"] != "total":
            calls[match["name"]] = int(match["calls"])
