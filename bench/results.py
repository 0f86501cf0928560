"""What was measured: every sample of every row, loop and round, with all that a report needs; and its JSON form."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.loops import LOOPS
from bench.rows.row import Row
from bench.stats import Ratio, paired, ratio

FORMAT = 1


@dataclass(frozen=True)
class About:
    """What a report says of a row."""

    what: str
    unit: str
    limits: tuple[str, ...] = ()
    message: int | None = None
    connections: int | None = None

    @classmethod
    def of(cls, row: Row) -> About:
        return cls(row.what, row.unit, row.limits, row.message, row.connections)


@dataclass
class Results:
    """One run on one interpreter. Samples by row, loop and round; a failure takes the place of further samples."""

    python: str
    libraries: dict[str, str]  # versions
    loops: dict[str, dict[str, str]]  # `version` or `error` of each
    rows: dict[str, About]
    samples: dict[tuple[str, str], dict[int, dict[str, float]]] = field(default_factory=dict)
    calls: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)  # system calls an operation
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, row: str, loop: str, round_: int, sample: dict[str, float]) -> None:
        self.samples.setdefault((row, loop), {})[round_] = sample

    def present(self) -> list[str]:
        """The loops that could be made at all."""
        return [name for name, found in self.loops.items() if "error" not in found]

    def measured(self, row: str) -> list[str]:
        """Loops and limits to be shown for that row."""
        return [*self.present(), *self.rows[row].limits]

    def figures(self, row: str, loop: str, key: str = "value") -> dict[int, float]:
        """One figure of all rounds; empty if there is none."""
        found = self.samples.get((row, loop), {})
        return {round_: sample[key] for round_, sample in found.items() if key in sample}

    def median(self, row: str, loop: str, key: str = "value") -> float | None:
        found = self.figures(row, loop, key)
        return statistics.median(found.values()) if found else None

    def ratio(self, row: str, loop: str, against: str) -> Ratio | None:
        return ratio(self.figures(row, loop), self.figures(row, against))

    def best_peer(self, row: str) -> str | None:
        """The loop that is not ours and has the lowest figures, each compared to the others' in its round."""
        peers = {name: self.figures(row, name) for name in self.present() if not LOOPS[name].own}
        rounds = {i for figures in peers.values() for i in figures}
        usual = {i: statistics.median(figures[i] for figures in peers.values() if i in figures) for i in rounds}
        compared = {name: paired(figures, usual) for name, figures in peers.items()}
        medians = {name: statistics.median(ratios) for name, ratios in compared.items() if ratios}
        return min(medians, key=lambda name: medians[name]) if medians else None

    def delay(self) -> float | None:
        """Median share of the measured time in which the process waited for its core; None if nobody counted."""
        found = [s["delay"] for rounds in self.samples.values() for s in rounds.values() if "delay" in s]
        return statistics.median(found) if found else None

    def plain(self) -> dict[str, Any]:
        keys = sorted(self.samples.keys() | self.failures.keys())
        cells = [
            {
                "row": row,
                "loop": loop,
                "median": self.median(row, loop),
                "samples": self.samples.get((row, loop), {}),
                "calls": self.calls.get((row, loop)),
                "failure": self.failures.get((row, loop)),
            }
            for row, loop in keys
        ]
        rows = {name: asdict(about) for name, about in self.rows.items()}
        top = {"python": self.python, "libraries": self.libraries, "loops": self.loops, "remarks": self.remarks}
        return {**top, "rows": rows, "results": cells}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Results:
        rows = {name: About(**{**about, "limits": tuple(about["limits"])}) for name, about in plain["rows"].items()}
        results = cls(plain["python"], plain["libraries"], plain["loops"], rows, remarks=plain["remarks"])
        for cell in plain["results"]:
            key = cell["row"], cell["loop"]
            if cell["samples"]:
                results.samples[key] = {int(round_): sample for round_, sample in cell["samples"].items()}
            if cell["calls"]:
                results.calls[key] = cell["calls"]
            if cell["failure"]:
                results.failures[key] = cell["failure"]
        return results


@dataclass
class Document:
    """A whole run: on which machine, how, and the results on each interpreter."""

    machine: dict[str, str]
    run: dict[str, Any]
    results: list[Results]

    def write(self, path: Path) -> None:
        plain = {"format": FORMAT, "machine": self.machine, "run": self.run}
        plain["results"] = [results.plain() for results in self.results]
        path.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Document:
        """Raises ValueError if it is not such a file."""
        plain = json.loads(path.read_text())
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ValueError(f"{path} is not a run of this suite (format {FORMAT})")
        return cls(plain["machine"], plain["run"], [Results.from_plain(one) for one in plain["results"]])


def scenarios(rows: Iterable[str]) -> dict[str, list[str]]:
    """The row names by scenario."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.partition("/")[0], []).append(row)
    return found
