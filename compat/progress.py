"""What is shown while a suite runs: a bar and the test that runs now; without a terminal, lines now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .runner import Event, Show

EVERY = 30.0  # seconds between lines


@contextmanager
def progress(title: str, total: int) -> Iterator[Show]:
    """Gives a function to call with each event of the workers, from any thread."""
    console = Console(stderr=True)
    with _bar(title, total, console) if console.is_terminal else _lines(title, total) as show:
        yield show


@contextmanager
def _bar(title: str, total: int, console: Console) -> Iterator[Show]:
    columns = (
        TextColumn("{task.description:30}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[red]{task.fields[failed]} failed[/]"),
        TextColumn("{task.fields[test]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(title, total=total, failed=0, test="")
        failed = 0

        def show(event: Event) -> None:
            nonlocal failed
            if event["event"] == "start":
                bars.update(task, test=event["test"])
            elif event["event"] == "stop":
                failed += event["status"] not in ("passed", "skipped")
                bars.update(task, advance=1, failed=failed)

        yield show


@contextmanager
def _lines(title: str, total: int) -> Iterator[Show]:
    started = said = time.monotonic()
    done = failed = 0

    def say() -> None:
        seconds = time.monotonic() - started
        print(f"{title}: {done} of {total}, {failed} failed, after {seconds:.0f} s", file=sys.stderr, flush=True)

    def show(event: Event) -> None:
        nonlocal said, done, failed
        if event["event"] == "stop":
            done += 1
            failed += event["status"] not in ("passed", "skipped")
            if time.monotonic() - said > EVERY:
                said = time.monotonic()
                say()

    yield show
    say()
