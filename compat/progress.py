"""What is shown while a suite runs: one line per loop, with the test that runs now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .runner import Event, Show


@contextmanager
def progress(title: str, total: int) -> Iterator[Show]:
    """Gives a function to call with each event of the workers.  Shows nothing where standard error is no terminal."""
    columns = (
        TextColumn("{task.description:30}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[red]{task.fields[failed]} failed[/] {task.fields[test]}", markup=True),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
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
