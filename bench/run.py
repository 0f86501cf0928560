"""In which order is everything measured?"""

from __future__ import annotations

import random
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench import syscalls
from bench.loops import environment
from bench.process import Child, Failed
from bench.results import About, Results
from bench.rows.row import Row, Setting


def probe(setting: Setting, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """`version` or `error` of each loop, found out in a process of its own."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        try:
            with Child([setting.python, "-m", "bench.loops", name], None, environment(name), 20) as child:
                found[name] = child.read()
        except Failed as failure:
            found[name] = {"error": str(failure)}
    return found


def about(setting: Setting) -> tuple[str, dict[str, str]]:
    """The interpreter, and the versions of what it measures with."""
    with Child([setting.python, "-m", "bench.libraries"], None, environment(""), 20) as child:
        found = child.read()
    return f"{found['python']} ({setting.python})", found["libraries"]


def progress_bar() -> Progress:
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[now]}"),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=2,
    )


def run(setting: Setting, rows: Sequence[Row], loops: Sequence[str], rounds: int, count_calls: bool) -> Results:
    """All rounds: each goes through the rows, and through the loops of a row in a random order."""
    python, libraries = about(setting)
    described = {row.name: About.of(row) for row in rows}
    results = Results(python, libraries, probe(setting, loops), described)
    total = sum(len(results.measured(row.name)) for row in rows)
    with progress_bar() as progress:
        for round_ in range(rounds):
            bar = progress.add_task(f"round {round_ + 1} of {rounds}", total=total, now="")
            for row in rows:
                names = results.measured(row.name)
                for name in random.sample(names, len(names)):
                    progress.update(bar, now=f"{row.name}, {name}")
                    measure(results, setting, row, name, round_)
                    progress.advance(bar)
            progress.remove_task(bar)
        if count_calls and syscalls.available():
            bar = progress.add_task("system calls", total=total, now="")
            for row in rows:
                for name in results.measured(row.name):
                    progress.update(bar, now=f"{row.name}, {name}")
                    count(results, setting, row, name)
                    progress.advance(bar)
    return results


def measure(results: Results, setting: Setting, row: Row, loop: str, round_: int) -> None:
    """One sample, or the reason why there is none; after a failure that pair is not tried again."""
    if (row.name, loop) in results.failures:
        return
    try:
        results.add(row.name, loop, round_, row.measure(setting, loop))
    except Failed as failure:
        results.failures[row.name, loop] = str(failure)


def count(results: Results, setting: Setting, row: Row, loop: str) -> None:
    if (row.name, loop) in results.failures:
        return
    try:
        calls = row.syscalls(setting, loop)
    except Failed as failure:
        results.remarks.append(f"{row.name}, {loop}: system calls not counted: {failure}")
    else:
        if calls:
            results.calls[row.name, loop] = calls
