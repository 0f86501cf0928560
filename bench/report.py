"""How does a person read the results? One header, one table, and the details of the echo rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.floors import Floor
from bench.results import Results
from bench.row import Row

BASES = ("uvloop", "asyncio")
STYLES = {"kept": "green", "MISSED": "bold red", "not measured": "yellow"}
# Share of its time a measured process may wait for its core before the report warns.
BUSY = 0.01


def amount(value: float, unit: str) -> str:
    return f"{value:,.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def compared(results: Results, row: str, loop: str, base: str) -> str:
    if loop == base:
        return "1"
    found = results.ratio(row, loop, base)
    if found is None:
        return "–"
    interval = f" [dim]({found.low:.2f}–{found.high:.2f})[/]" if found.low < found.high else ""
    return f"{found.value:.2f}{interval}"


def promised(results: Results, floors: Sequence[Floor], row: str, loop: str) -> str:
    cells = []
    for floor in floors:
        if (floor.row, floor.loop) == (row, loop):
            verdict = floor.verdict(results)
            cells.append(f"{floor.promise()} [{STYLES[verdict]}]{verdict}[/]")
    return "\n".join(cells)


def figures(rows: Sequence[Row], loops: Sequence[str], results: Results, floors: Sequence[Floor]) -> Table:
    table = Table(title="time (or memory) per operation: median over the rounds, ratio with 95 % interval")
    table.add_column("row", no_wrap=True)
    table.add_column("loop", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    for base in BASES:
        table.add_column(f"× {base}", justify="right")
    table.add_column("floor")
    for row in rows:
        for index, loop in enumerate([*loops, *row.limits]):
            value = results.median(row.name, loop)
            failure = results.failures.get((row.name, loop))
            cell = amount(value, row.unit) if value is not None else ""
            if failure:
                cell = "\n".join(filter(None, [cell, f"[yellow]{escape(shorten(failure))}[/]"]))
            ratios = [compared(results, row.name, loop, base) if value is not None else "" for base in BASES]
            name = row.name if index == 0 else ""
            table.add_row(name, loop, cell, *ratios, promised(results, floors, row.name, loop))
        table.add_section()
    return table


def shorten(text: str, width: int = 40) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


DETAILS = {
    "user": "user µs",
    "system": "system µs",
    "rate": "requests/s",
    "p50": "p50 µs",
    "p99": "p99 µs",
    "load_busy": "load busy",
}


def details(row: Row, loops: Sequence[str], results: Results) -> Table | None:
    """The other figures of an echo row, and the ratio of its CPU time to the server in C."""
    shown = [loop for loop in (*loops, *row.limits) if results.median(row.name, loop, "rate") is not None]
    if not shown:
        return None
    table = Table(title=f"{row.name}: {row.what}")
    table.add_column("loop", no_wrap=True)
    for title in DETAILS.values():
        table.add_column(title, justify="right", no_wrap=True)
    for limit in row.limits:
        table.add_column(f"CPU × {limit}", justify="right")
    for loop in shown:
        values = {key: results.median(row.name, loop, key) or 0.0 for key in DETAILS}
        cells = [f"{values[key]:.2f}" for key in ("user", "system")]
        cells += [f"{values[key]:,.0f}" for key in ("rate", "p50", "p99")]
        cells += [f"{values['load_busy']:.0%}", *(compared(results, row.name, loop, limit) for limit in row.limits)]
        table.add_row(loop, *cells)
    return table


def notes(results: Results, options: Any) -> list[str]:
    lines = [f"{options.rounds} rounds" + (", quick: too short to publish" if options.quick else "")]
    delay = results.delay()
    if delay is not None and delay > BUSY:
        lines.append(f"NOISY: the measured processes waited {delay:.0%} of their time for a core others were using")
    for (row, loop), reason in sorted(results.failures.items()):
        if len(reason) > 40:
            lines.append(f"{row}, {loop}: {reason}")
    return lines


def show(
    console: Console,
    header: dict[str, str],
    versions: dict[str, dict[str, str]],
    rows: Sequence[Row],
    results: Results,
    floors: Sequence[Floor],
    options: Any,
) -> None:
    """Print the whole report."""
    top = Table.grid(padding=(0, 2))
    loops = {name: found.get("version") or found["error"] for name, found in versions.items()}
    for key, value in {**header, "loops": ", ".join(f"{name} {text}" for name, text in loops.items())}.items():
        top.add_row(f"[bold]{key}[/]", escape(value))
    console.print(top)
    console.print(figures(rows, list(versions), results, floors))
    for row in rows:
        table = details(row, list(versions), results)
        if table:
            console.print(table)
    for line in notes(results, options):
        console.print(escape(line))
    if options.floors:
        for floor in floors:
            console.print(escape(f"floor {floor.row}, {floor.loop} {floor.promise()}: {floor.verdict(results)}"))
