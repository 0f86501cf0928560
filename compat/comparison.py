"""Which tests pass on asyncio and not on the loop under test, and which of those are known?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from . import lists, runner
from .outcome import Outcome
from .progress import progress
from .suites.suite import Suite


@dataclass
class Options:
    loop: str
    pure: bool
    pattern: str
    timeout: float


@dataclass
class Difference:
    test: str
    outcome: Outcome
    known: str  # the reason in the suite's list of known differences, or ""


@dataclass
class Comparison:
    suite: Suite
    options: Options
    left_out: dict[str, str]  # test: reason
    off_loop: list[str]  # tests that make no event loop of the kind under test: they say nothing about it
    results: dict[str, runner.Results]  # by loop, the oracle first
    differences: list[Difference]
    outdated: list[str]  # entries of the known list whose test passes now

    @property
    def unknown(self) -> list[Difference]:
        return [difference for difference in self.differences if not difference.known]

    @property
    def ok(self) -> bool:
        if self.options.loop == "asyncio":
            return not any(outcome.failed for outcome in self.results["asyncio"].outcomes.values())
        return not self.unknown

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite.name,
            "title": self.suite.title,
            "loop": self.options.loop,
            "about": {loop: results.about for loop, results in self.results.items()},
            "outcomes": {
                loop: [asdict(outcome) for outcome in results.outcomes.values()]
                for loop, results in self.results.items()
            },
            "notes": {loop: results.notes for loop, results in self.results.items()},
            "differences": [{"test": item.test, "known": item.known} for item in self.differences],
            "outdated": self.outdated,
            "off_loop": self.off_loop,
            "left_out": self.left_out,
        }


def compare(suite: Suite, options: Options) -> Comparison:
    names = runner.collect(suite.worker, runner.Settings("asyncio"))
    entries = lists.read("left_out", suite.name)
    left_out = {name: entry.reason for name in names if (entry := lists.find(entries, name))}
    pattern = options.pattern if "*" in options.pattern else f"*{options.pattern}*"
    tests = [name for name in names if name not in left_out and fnmatchcase(name, pattern)]
    oracle = _run(suite, "asyncio", options, tests)
    off_loop = []
    if suite.counts_loops:
        off_loop = [test for test in tests if not oracle.outcomes[test].loops and not oracle.outcomes[test].failed]
    for test in off_loop:
        del oracle.outcomes[test]
    results = {"asyncio": oracle}
    if options.loop != "asyncio":
        results[options.loop] = _run(suite, options.loop, options, list(oracle.outcomes))
    known = lists.read("known", suite.name) if options.loop == "epoque" else []
    differences = _differences(oracle, results[options.loop], known)
    outdated = [] if options.pattern else _outdated(known, differences, list(oracle.outcomes))
    return Comparison(suite, options, left_out, off_loop, results, differences, outdated)


def _run(suite: Suite, loop: str, options: Options, tests: list[str]) -> runner.Results:
    with progress(loop, len(tests)) as show:
        settings = runner.Settings(loop, options.pure, options.timeout, show)
        return runner.run(suite.worker, suite.groups(tests), settings)


def _differences(oracle: runner.Results, other: runner.Results, known: list[lists.Entry]) -> list[Difference]:
    found = []
    for test, expected in oracle.outcomes.items():
        outcome = other.outcomes[test]
        if expected.passed and not outcome.passed:
            entry = lists.find(known, test, outcome.text)
            found.append(Difference(test, outcome, entry.reason if entry else ""))
    return found


def _outdated(known: list[lists.Entry], differences: list[Difference], tests: list[str]) -> list[str]:
    """Entries that match a test which ran, but none that differs; one whose tests this Python lacks is not outdated."""
    return [
        f"{entry.test} {entry.reason}"
        for entry in known
        if any(entry.matches(test, entry.text) for test in tests)
        and not any(entry.matches(item.test, item.outcome.text) for item in differences)
    ]
