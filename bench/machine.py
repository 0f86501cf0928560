"""On what was it measured, and which core does what?"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cores:
    """The core of the loop under test and the core of everything else; None: not pinned, or no second core."""

    measured: int | None
    load: int | None

    @property
    def other(self) -> int | None:
        """Where the load goes: its own core if there is one."""
        return self.measured if self.load is None else self.load

    def describe(self) -> str:
        if self.measured is None:
            return "not pinned: this system has no sched_setaffinity"
        if self.load is None:
            return f"SINGLE CORE {self.measured}: load generators share it with the servers, so echo rows are not sound"
        return f"loop under test on core {self.measured}, load generator on core {self.load}"


def cores() -> Cores:
    """The last usable core for the loop under test: the first one serves most interrupts."""
    if not hasattr(os, "sched_getaffinity"):
        return Cores(None, None)
    usable = sorted(os.sched_getaffinity(0))
    return Cores(usable[-1], usable[0] if len(usable) > 1 else None)


def processor() -> str:
    """The model name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


SCHEDSTAT = Path("/proc/self/schedstat")


def waited() -> float:
    """Seconds the main thread was runnable while another process had its core (Linux; elsewhere 0)."""
    try:
        return int(SCHEDSTAT.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def describe() -> dict[str, str]:
    """What every report says about the machine."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "processor": processor(),
        "kernel": f"{platform.system()} {platform.release()}",
        "cores": cores().describe(),
        "load average": ", ".join(f"{value:.2f}" for value in os.getloadavg()),
    }
