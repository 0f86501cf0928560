"""Runs tests of the interpreter's own `test.test_asyncio` on a chosen loop, inside a process made for that.

`python -m compat.workers.cpython LOOP FD list` sends the name of every test on the pipe FD; with `run` it reads names
(a JSON list) from standard input and runs them in that order.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import pkgutil
import sys
import time
import unittest
from collections.abc import Iterator
from typing import Any

from . import loops
from .channel import Channel, clip, describe

PACKAGE = "test.test_asyncio"


def main(loop: str, fd: str, command: str) -> None:
    faulthandler.enable()  # SIGABRT, sent when a test takes too long, shows where it stands
    channel = Channel(int(fd))
    loops.use(loop)
    package: Any = importlib.import_module(PACKAGE)
    channel.send("hello", about=loops.about(loop))
    loader = unittest.TestLoader()
    if command == "list":
        for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
            if name.startswith("test_"):
                with contextlib.suppress(unittest.SkipTest):  # whole modules for another platform
                    for case in _cases(loader.loadTestsFromName(f"{PACKAGE}.{name}")):
                        channel.send("test", test=_short(case))
    else:
        suite = loader.loadTestsFromNames([f"{PACKAGE}.{name}" for name in json.load(sys.stdin)])
        _close_loop_by_public_means()
        loops.use_as_base(loop)
        suite.run(Result(channel, package.__path__[0]))
    channel.send("bye")


def _short(case: Any) -> str:
    return str(case.id()).removeprefix(PACKAGE + ".")


def _scope(holder: Any) -> str:
    """The class or module whose fixture failed; unittest names it in text only: `setUpClass (module.Class)`."""
    return str(holder).partition("(")[2].rstrip(")").removeprefix(PACKAGE + ".")


def _cases(suite: Any) -> Iterator[Any]:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _cases(item)
        else:
            yield item


class Result(unittest.TestResult):
    """Sends each test's start and its outcome: the first thing that went wrong in it, fixtures included."""

    def __init__(self, channel: Channel, folder: str) -> None:
        super().__init__()
        self._channel = channel
        self._folder = folder
        self._outcome: dict[str, Any] = {}
        self._started = 0.0
        self._made = 0

    def startTest(self, test: Any) -> None:
        self._channel.send("start", test=_short(test))
        self._outcome = {}
        self._made = loops.made
        self._started = time.monotonic()

    def stopTest(self, test: Any) -> None:
        outcome = self._outcome or {"status": "passed"}
        seconds = round(time.monotonic() - self._started, 3)
        self._channel.send("stop", test=_short(test), seconds=seconds, loops=loops.made - self._made, **outcome)

    def addSuccess(self, test: Any) -> None:
        pass

    def addError(self, test: Any, err: Any) -> None:
        self._not_passed(test, "error", err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._not_passed(test, "failed", err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._not_passed(test, "failed" if issubclass(err[0], test.failureException) else "error", err)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        pass

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._outcome = {"status": "failed", "message": "succeeded, though marked as an expected failure"}

    def addSkip(self, test: Any, reason: str) -> None:
        if isinstance(test, unittest.TestCase):
            self._outcome = {"status": "skipped", "message": clip(reason)}
        else:
            self._channel.send("fixture", test=_scope(test), status="skipped", message=clip(reason))

    def _not_passed(self, test: Any, status: str, err: Any) -> None:
        fields = {"status": status, **describe(err[1], self._folder)}
        if not isinstance(test, unittest.TestCase):  # setUpClass, tearDownModule ...
            self._channel.send("fixture", test=_scope(test), **fields)
        elif self._outcome.get("status") in (None, "skipped"):
            self._outcome = fields


def _close_loop_by_public_means() -> None:
    """Nearly every test cleans up with a helper that looks at the standard loop's `_default_executor`."""
    utils: Any = importlib.import_module(f"{PACKAGE}.utils")
    original = utils.TestCase.close_loop

    def close_loop(loop: Any) -> None:
        if hasattr(loop, "_default_executor"):
            original(loop)
        else:
            if not loop.is_closed():
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    utils.TestCase.close_loop = staticmethod(close_loop)


if __name__ == "__main__":
    main(*sys.argv[1:])
