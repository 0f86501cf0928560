"""Which tests pass on asyncio and not on the loop under test, and which of those are known?"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import lists, runner
from .outcome import Outcome
from .progress import progress
from .suites.suite import Suite

MOST_REPEATED = 40  # more differences than this have a cause that repetition does not tell


@dataclass
class Options:
    cache: Path
    loop: str = "epoque"
    pure: bool = False
    pattern: str = ""
    timeout: float = 60.0  # seconds for one test
    repeat: int = 5  # how often tests that differ run again on both loops
    jobs: int = 1  # workers at a time


@dataclass
class Difference:
    test: str
    outcome: Outcome
    known: str  # the reason in the suite's list of known differences, or ""
    repeated: int = 0  # how often it was run again on both loops
    failures: dict[str, int] = field(default_factory=dict)  # of these, by loop

    @property
    def flaky(self) -> bool:
        """Asyncio fails it as well, only not the first time."""
        return self.failures.get("asyncio", 0) > 0

    @property
    def history(self) -> str:
        if not self.repeated:
            return ""
        times = ", ".join(f"{count} times on {loop}" for loop, count in self.failures.items())
        return f"of {self.repeated} more runs failed {times}"


@dataclass
class Comparison:
    suite: Suite
    options: Options
    left_out: dict[str, str]  # test: reason
    off_loop: list[str]  # tests that make no event loop of the kind under test: they say nothing about it
    results: dict[str, runner.Results]  # by loop, the oracle first
    differences: list[Difference]
    outdated: list[str]  # entries of the known list whose test passes now
    seconds: float  # that all of it took

    @property
    def unknown(self) -> list[Difference]:
        return [item for item in self.differences if not item.known and not item.flaky]

    @property
    def flaky(self) -> list[Difference]:
        return [item for item in self.differences if not item.known and item.flaky]

    @property
    def elsewhere(self) -> list[str]:
        """Tests that used a loop on asyncio, and passed on the loop under test without using that."""
        return [
            item.test for item in self.results[self.options.loop].outcomes.values() if item.passed and not item.loops
        ]

    @property
    def pointed(self) -> bool:
        """Did the loop under test run at all?"""
        outcomes = self.results[self.options.loop].outcomes.values()
        return any(outcome.loops for outcome in outcomes) or bool(self.options.pattern and not outcomes)

    @property
    def ok(self) -> bool:
        if self.options.loop == "asyncio":
            return not any(outcome.failed for outcome in self.results["asyncio"].outcomes.values())
        return self.pointed and not self.unknown

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite.name,
            "title": self.suite.title,
            "version": self.suite.version,
            "seconds": round(self.seconds),
            "loop": self.options.loop,
            "about": {loop: results.about for loop, results in self.results.items()},
            "outcomes": {
                loop: [asdict(outcome) for outcome in results.outcomes.values()]
                for loop, results in self.results.items()
            },
            "notes": {loop: results.notes for loop, results in self.results.items()},
            "differences": [
                {"test": item.test, "known": item.known, "repeated": item.repeated, "failures": item.failures}
                for item in self.differences
            ],
            "elsewhere": self.elsewhere,
            "outdated": self.outdated,
            "off_loop": self.off_loop,
            "left_out": self.left_out,
        }


def compare(suite: Suite, options: Options) -> Comparison:
    with suite.program(options.cache, options.loop) as program:
        return _Run(suite, options, program).compare()


class _Run:
    """One suite's tests, once its program is there to run them."""

    def __init__(self, suite: Suite, options: Options, program: runner.Program) -> None:
        self.suite = suite
        self.options = options
        self.program = program

    def compare(self) -> Comparison:
        suite, options = self.suite, self.options
        started = time.monotonic()
        names = runner.collect(self.program, runner.Settings("asyncio"))
        entries = lists.read("left_out", suite.name)
        left_out = {name: entry.reason for name in names if (entry := lists.find(entries, name))}
        pattern = options.pattern if "*" in options.pattern else f"*{options.pattern}*"
        tests = [name for name in names if name not in left_out and lists.like(name, pattern)]
        oracle = self.run("asyncio", tests)
        off_loop = []
        if suite.counts_loops:
            off_loop = [test for test in tests if not oracle.outcomes[test].loops and not oracle.outcomes[test].failed]
        for test in off_loop:
            del oracle.outcomes[test]
        results = {"asyncio": oracle}
        if options.loop != "asyncio":
            results[options.loop] = self.run(options.loop, [test for test in tests if test in oracle.outcomes])
        known = lists.read("known", suite.name) if options.loop == "epoque" else []
        differences = _differences(oracle, results[options.loop], known)
        self.repeat(differences)
        outdated = [] if options.pattern else _outdated(known, results[options.loop])
        seconds = time.monotonic() - started
        return Comparison(suite, options, left_out, off_loop, results, differences, outdated, seconds)

    def run(self, loop: str, tests: list[str], what: str = "") -> runner.Results:
        options = self.options
        with progress(f"{self.suite.name}: {loop}{what}", len(tests)) as show:
            jobs = 1 if self.suite.serial else options.jobs
            settings = runner.Settings(loop, options.pure, options.timeout, show, jobs)
            return runner.run(self.program, self.suite.groups(tests), settings)

    def repeat(self, differences: list[Difference]) -> None:
        """Run what differs for no known reason again, to see whether it fails on asyncio too if only run often."""
        items = [item for item in differences if not item.known]
        if len(items) > MOST_REPEATED:
            return
        for turn in range(1, self.options.repeat + 1 if items else 0):
            for loop in ("asyncio", self.options.loop):
                results = self.run(loop, [item.test for item in items], f" again, {turn}")
                for item in items:
                    item.repeated = turn
                    item.failures.setdefault(loop, 0)
                    item.failures[loop] += not results.outcomes[item.test].passed


def _differences(oracle: runner.Results, other: runner.Results, known: list[lists.Entry]) -> list[Difference]:
    found = []
    for test, expected in oracle.outcomes.items():
        outcome = other.outcomes[test]
        if expected.passed and not outcome.passed:
            entry = lists.find(known, test, outcome.text)
            found.append(Difference(test, outcome, entry.reason if entry else ""))
    return found


def _outdated(known: list[lists.Entry], other: runner.Results) -> list[str]:
    """Entries of which every test that ran passed; one whose tests this Python lacks is not outdated."""
    outdated = []
    for entry in known:
        outcomes = [outcome for outcome in other.outcomes.values() if entry.matches(outcome.test, entry.text)]
        if outcomes and all(outcome.passed for outcome in outcomes):
            outdated.append(f"{entry.test} {entry.reason}")
    return outdated
