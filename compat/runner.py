"""How do tests get run so that each gives exactly one outcome, whatever it does?  Drives a suite's workers.

A worker runs many tests and tells when each starts and stops.  One that says nothing for too long is ended, one that
dies has ended itself; either way the test it was in gets that as its outcome and a new worker goes on with the rest.  A
new one goes on after a failed test too: the garbage, threads and signal handlers it leaves behind have failed others.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .outcome import Outcome

ROOT = Path(__file__).resolve().parent.parent
OUTPUT_KEPT = 8000  # bytes of a worker's standard output and error, the last ones
START_LIMIT = 60.0  # seconds until the first event: imports, on a busy machine
Event = dict[str, Any]
Show = Callable[[Event], None]


@dataclass(frozen=True)
class Program:
    """How workers of a suite are started: `python -m MODULE LOOP FD COMMAND ARGUMENT...`."""

    module: str
    python: str = sys.executable
    arguments: tuple[str, ...] = ()
    folder: Path | None = None  # they run there; without one in an empty folder each
    path: tuple[str, ...] = ()  # goes before what PYTHONPATH has
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Settings:
    loop: str
    pure: bool = False
    timeout: float = 60.0  # seconds without any event
    show: Show = lambda event: None
    jobs: int = 1  # workers at a time


@dataclass
class Results:
    about: str = ""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what went wrong outside of any test


class NoTests(Exception):
    """A suite's tests could not be listed; says why."""


def collect(program: Program, settings: Settings) -> list[str]:
    """The names of all tests that the program knows, in its order."""
    worker = Worker(program, "list", settings, [])
    events = list(worker.events())
    broken = [event for event in events if event["event"] == "fixture" and event["status"] != "skipped"]
    if broken or not worker.finished:
        raise NoTests(f"could not list the tests: {worker.ending[1]}\n{worker.output}")
    return [event["test"] for event in events if event["event"] == "test"]


def run(program: Program, groups: list[list[str]], settings: Settings) -> Results:
    """Run groups of tests, each group in a worker of its own as long as nothing happens to it."""
    results = Results()
    stopping = threading.Event()
    with ThreadPoolExecutor(settings.jobs) as pool:
        try:
            for running in [pool.submit(_run_group, program, group, settings, results, stopping) for group in groups]:
                running.result()
        except BaseException:
            stopping.set()
            pool.shutdown(cancel_futures=True)
            raise
    return results


def _run_group(
    program: Program, group: list[str], settings: Settings, results: Results, stopping: threading.Event
) -> None:
    waiting = list(group)
    while waiting and not stopping.is_set():
        _run_worker(Worker(program, "run", settings, waiting, stopping), results, settings.show)
        waiting = [test for test in waiting if test not in results.outcomes]


def _run_worker(worker: Worker, results: Results, show: Show) -> None:
    current = ""
    fixtures: dict[str, Event] = {}
    with contextlib.closing(worker.events()) as events:
        for event in events:
            kind = event.pop("event")
            show({"event": kind, **event})
            if kind == "start":
                current = event["test"]
            elif kind == "stop":
                current = ""
                results.outcomes[event["test"]] = outcome = Outcome(**event)
                if outcome.failed:
                    return
            elif kind == "fixture":
                fixtures[event["test"]] = event
                results.notes.append(f"{event['test']}: {Outcome(**event).text}")
            elif kind == "hello":
                results.about = event["about"]
    for outcome in _lost(worker, current, fixtures, results):
        results.outcomes[outcome.test] = outcome
        show({"event": "stop", "test": outcome.test, "status": outcome.status})


def _lost(worker: Worker, current: str, fixtures: dict[str, Event], results: Results) -> Iterator[Outcome]:
    """Outcomes for tests that the worker should have told about and did not."""
    status, how = worker.ending
    if current:
        yield Outcome(current, status, message=how, trace=worker.output)
        return
    left = [test for test in worker.tests if test not in results.outcomes]
    if not worker.finished:
        results.notes.append(f"{status} outside of any test: {how}; its last words: {worker.output.strip()[-300:]}")
        if left == worker.tests:
            yield from (Outcome(test, status, message=how, trace=worker.output) for test in left)
        return
    for test in left:  # never started: a class or module fixture failed or was skipped
        fixture = next((event for scope, event in fixtures.items() if test.startswith((scope + ".", scope + "::"))), {})
        yield Outcome(**{"status": "missing", **fixture, "test": test})


class Worker:
    """One process, its events and the end of its output."""

    def __init__(
        self,
        program: Program,
        command: str,
        settings: Settings,
        tests: list[str],
        stopping: threading.Event | None = None,
    ) -> None:
        self.tests = list(tests)
        self.ending = ("crashed", "")  # a status and a few words on how the process ended
        self.finished = False
        self._program = program
        self._command = command
        self._stopping = stopping or threading.Event()
        self._settings = settings
        self._output = b""

    @property
    def output(self) -> str:
        return self._output.decode("utf-8", "replace")

    def events(self) -> Generator[Event, None, None]:
        """Start the process and give its events until it has ended; it leaves no process of its own behind."""
        receive, send = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, receive)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="compat-", ignore_cleanup_errors=True))
            try:
                process = self._start(send, folder)
            finally:
                os.close(send)
            assert process.stdout is not None
            stack.callback(process.stdout.close)
            stack.callback(self._end, process)
            yield from self._listen(process, receive)

    def _start(self, send: int, folder: str) -> subprocess.Popen[bytes]:
        program = self._program
        with tempfile.TemporaryFile() as names:
            names.write(json.dumps(self.tests).encode())
            names.seek(0)
            return subprocess.Popen(
                [program.python, "-m", program.module, self._settings.loop, str(send), self._command]
                + list(program.arguments),
                stdin=names,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=program.folder or folder,
                env=self._environment(),
                pass_fds=[send],
                start_new_session=True,  # a process group, so that all of it can be ended
            )

    def _environment(self) -> dict[str, str]:
        """The environment of this process, without what would turn a suite's own requests to another host."""
        given = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        inherited = [str(Path(part).resolve()) for part in given.get("PYTHONPATH", "").split(os.pathsep) if part]
        path = os.pathsep.join([str(ROOT), *self._program.path, *inherited])
        mode = {"EPOQUE_PURE": "1"} if self._settings.pure else {}
        return {**given, "PYTHONUNBUFFERED": "1", **self._program.variables, **mode, "PYTHONPATH": path}

    def _listen(self, process: subprocess.Popen[bytes], receive: int) -> Iterator[Event]:
        assert process.stdout is not None
        os.set_blocking(receive, False)
        os.set_blocking(process.stdout.fileno(), False)
        rest = b""
        deadline = time.monotonic() + max(START_LIMIT, self._settings.timeout)
        with selectors.DefaultSelector() as selector:
            selector.register(receive, selectors.EVENT_READ)
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                ended = process.poll() is not None  # asked first: what it wrote before its end is read below
                for key, _ in selector.select(0 if ended else 0.2):
                    if key.fd != receive:
                        self._keep(key.fd, selector)
                *lines, rest = (rest + _read_all(receive)).split(b"\n")
                for line in lines:
                    deadline = time.monotonic() + self._settings.timeout
                    event = json.loads(line)
                    self.finished = self.finished or event["event"] == "bye"
                    yield event
                if self._stopping.is_set():
                    return
                if ended:
                    if self.ending[0] != "timeout":
                        self.ending = ("crashed", f"the process ended with {_how(process.returncode)}")
                    return
                if time.monotonic() > deadline and self.ending[0] != "timeout":
                    self.ending = ("timeout", f"nothing for {self._settings.timeout:g} s")
                    self._interrupt(process, selector)

    def _interrupt(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> None:
        """Have faulthandler write every thread's stack (SIGABRT), then make sure of the end."""
        process.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        assert process.stdout is not None
        if process.stdout in selector.get_map():
            self._keep(process.stdout.fileno(), selector)
        self._end(process)

    def _keep(self, fd: int, selector: selectors.BaseSelector) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, 65536)
            if not data:
                selector.unregister(fd)
            self._output = (self._output + data)[-OUTPUT_KEPT:]

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_all(fd: int) -> bytes:
    parts = []
    with contextlib.suppress(BlockingIOError):
        while data := os.read(fd, 65536):
            parts.append(data)
    return b"".join(parts)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
