"""What is a suite to the runner?  A name, a worker that lists and runs its tests, and how they fall into groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    name: str  # on the command line, and of its lists in left_out/ and known/
    title: str
    worker: str  # module run as `python -m WORKER LOOP FD list|run`, see workers/
    group: Callable[[str], str]  # tests of one group share a worker process
    counts_loops: bool  # the worker tells how many loops each test made: those that make none are counted apart

    def groups(self, tests: list[str]) -> list[list[str]]:
        groups: dict[str, list[str]] = {}
        for test in tests:
            groups.setdefault(self.group(test), []).append(test)
        return list(groups.values())
