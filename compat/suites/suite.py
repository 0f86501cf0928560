"""What is a suite to the runner?  A name, a program that lists and runs its tests, and how they fall into groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..runner import Program

SRC = str(Path(__file__).resolve().parents[2] / "src")


@dataclass(frozen=True)
class Suite:
    name: str  # on the command line, and of its lists in left_out/ and known/
    title: str
    worker: str  # module run as `python -m WORKER LOOP FD list|run`, see workers/
    group: Callable[[str], str]  # tests of one group share a worker process
    counts_loops: bool = True  # the worker tells how many loops each test used: those that use none are counted apart
    version: str = ""
    serial: bool = False  # its tests disturb each other in processes side by side: fixed ports, a shared database

    def prepare(self, cache: Path) -> None:
        """Fetch and install what `program` needs; it does so itself if that has not happened."""

    @contextmanager
    def program(self, cache: Path, loop: str) -> Iterator[Program]:
        """Gives the program that is the suite's worker, ready to run on `loop`, for as long as the context lasts."""
        yield Program(self.worker, path=self.path(loop))

    def path(self, loop: str) -> tuple[str, ...]:
        """Where the loop is imported from: epoque from this tree."""
        return (SRC,) if loop == "epoque" else ()

    def groups(self, tests: list[str]) -> list[list[str]]:
        groups: dict[str, list[str]] = {}
        for test in tests:
            groups.setdefault(self.group(test), []).append(test)
        return list(groups.values())
