"""Runs another project's tests under pytest on a chosen loop, inside a process made for that.

`python -m compat.workers.project LOOP FD list PATHS ARGUMENT...` sends the node id of every test below PATHS (separated
by blanks) on the pipe FD; with `run` it reads node ids (a JSON list) from standard input and runs those.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from . import loops
from .channel import Channel, clip, describe

CHECKOUT = str(Path(__file__).resolve().parents[2])

# A suite's configuration holds, except for the command line in it, and for plugins that are not installed.
OPTIONS = (
    "-q",
    "--rootdir=.",
    "-oaddopts=",
    "-pno:cacheprovider",
    "-Wignore::pytest.PytestConfigWarning",
    "-Wignore::pytest.PytestUnknownMarkWarning",
)


def main(loop: str, fd: str, command: str, paths: str, *arguments: str) -> None:
    channel = Channel(int(fd))
    _forget_checkout()
    loops.use(loop)
    loops.count_runs(loop)
    channel.send("hello", about=loops.about(loop))
    names = json.load(sys.stdin) if command == "run" else []
    reporter = Reporter(channel, names)
    where = list(dict.fromkeys(name.partition("::")[0] for name in names)) or paths.split()
    options = [*OPTIONS, *arguments]
    code = pytest.main([*options, *(["--collect-only"] if command == "list" else []), *where], plugins=[reporter])
    if code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        sys.exit(int(code))
    channel.send("bye")


def _forget_checkout() -> None:
    """Nothing of the checkout but this package and what the loop needs: it has a `tests` package too.

    Children that multiprocessing spawns import the main module again: it shall be what it is in `python -m pytest`.
    """
    sys.modules["__main__"].__spec__ = importlib.util.find_spec("pytest.__main__")
    sys.path[:] = [entry for entry in sys.path if entry != CHECKOUT]
    kept = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry not in ("", CHECKOUT)]
    os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    if not kept:
        del os.environ["PYTHONPATH"]


class Reporter:
    """A plugin of pytest that tells what happens: of a test's phases the first that went wrong is its outcome."""

    def __init__(self, channel: Channel, names: list[str]) -> None:
        self._channel = channel
        self._names = set(names)
        self._outcome: dict[str, Any] = {}
        self._started = 0.0
        self._used = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self._names:
            others = [item for item in items if item.nodeid not in self._names]
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if item.nodeid in self._names]
        else:
            for item in items:
                self._channel.send("test", test=item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        report = yield
        if report.failed:
            call = getattr(report, "call", None)
            fields = describe(call.excinfo.value, os.getcwd()) if call and call.excinfo else {}
            self._channel.send("fixture", test=collector.nodeid, **{"status": "error", **fields})
        return report

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._channel.send("start", test=nodeid)
        self._outcome = {}
        self._used = loops.made + loops.runs
        self._started = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if self._outcome.get("status") in (None, "skipped"):
            self._outcome = _outcome(report, call) or self._outcome
        return report

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        outcome = self._outcome or {"status": "passed"}
        seconds = round(time.monotonic() - self._started, 3)
        used = loops.made + loops.runs - self._used
        self._channel.send("stop", test=nodeid, seconds=seconds, loops=used, **outcome)


def _outcome(report: pytest.TestReport, call: pytest.CallInfo[None]) -> dict[str, Any]:
    """Nothing if the phase went well; a failure that the suite expects (xfail) is one that went well."""
    if report.passed or hasattr(report, "wasxfail"):
        return {}
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        return {"status": "skipped", "message": clip(str(reason))}
    if call.excinfo is None:
        return {"status": "failed", "message": clip(str(report.longrepr))}
    assertion = call.excinfo.errisinstance((AssertionError, pytest.fail.Exception))
    return {"status": "failed" if assertion else "error", **describe(call.excinfo.value, os.getcwd())}


if __name__ == "__main__":
    main(*sys.argv[1:])
