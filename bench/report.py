"""How does a person read the results? Header, a summary, and a table for each scenario."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import floors
from bench.baseline import Change
from bench.loops import LOOPS, PEERS
from bench.results import Document, Results, scenarios
from bench.rows.row import Row
from bench.rows.served import LIMIT
from bench.scenarios import SCENARIOS
from bench.stats import geometric_mean, spread

BASES = ("asyncio", "uvloop")
STYLES = {"kept": "green", "MISSED": "bold red"}
BUSY = 0.01  # share of its time a measured process may wait for its core before the report warns
# Key of a sample, its title (microseconds where it says no more), and how it is written.
DETAILS = {
    "user": ("user", ",.1f"),
    "system": ("system", ",.1f"),
    "rate": ("/s", ",.0f"),
    "p50": ("p50", ",.0f"),
    "p99": ("p99", ",.0f"),
    "early": ("early", ",.0f"),
    "lost": ("lost", ".0%"),
    "arrived": ("arrived", ".0%"),
    "load_busy": ("load", ".0%"),
}


def amount(value: float, unit: str) -> str:
    if unit == "µs" and value >= 10_000:
        return amount(value / 1000, "ms")
    return f"{value:,.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def compared(results: Results, row: str, loop: str, base: str) -> str:
    if loop == base:
        return "1"
    found = results.ratio(row, loop, base)
    if found is None:
        return "–"
    interval = f" [dim]({found.low:.2f}–{found.high:.2f})[/]" if found.low < found.high else ""
    return f"{found.value:.2f}{interval}"


def against_best(results: Results, row: str, loop: str) -> str:
    best = results.best_peer(row)
    if best is None or loop not in LOOPS or not LOOPS[loop].own:
        return ""
    return f"{compared(results, row, loop, best)} {best}"


def promised(results: Results, row: str, loop: str) -> str:
    cells = []
    for floor in floors.of(row, loop):
        verdict = floor.verdict(results)
        if verdict == "not measured":
            continue
        cells.append(f"{floor.promise()} [{STYLES[verdict]}]{verdict}[/]")
    return "\n".join(cells)


def figure(results: Results, row: str, loop: str) -> str:
    value = results.median(row, loop)
    if value is None:
        return "[yellow]failed[/]"
    found = results.figures(row, loop)
    around = f" [dim]±{spread(found.values()) / 2:.0%}[/]" if len(found) > 1 else ""
    return amount(value, results.rows[row].unit) + around


class Columns:
    """Which columns the table of a scenario needs: those for which there is something to say."""

    def __init__(self, results: Results, rows: Sequence[str]) -> None:
        cells = [(row, loop) for row in rows for loop in results.measured(row)]
        has = {
            key
            for cell in cells
            for sample in results.samples.get(cell, {}).values()
            for key, value in sample.items()
            if value >= 0.005  # `lost` and `early` mostly are 0
        }
        self.results = results
        self.bases = [base for base in BASES if base in results.present()]
        self.best = any(name not in BASES for name in results.present() if name in PEERS)
        self.limit = any(results.rows[row].limits for row in rows)
        self.details = [key for key in DETAILS if key in has]
        self.calls = any(cell in results.calls for cell in cells)
        self.floors = any(floors.of(*cell) for cell in cells)

    def titles(self) -> list[str]:
        titles = [f"× {base}" for base in self.bases]
        titles += ["× best"] * self.best + ["× C"] * self.limit
        titles += [DETAILS[key][0] for key in self.details]
        return titles + ["calls"] * self.calls + ["floor"] * self.floors

    def cells(self, row: str, loop: str) -> list[str]:
        results = self.results
        if results.median(row, loop) is None:
            return []
        cells = [compared(results, row, loop, base) for base in self.bases]
        if self.best:
            cells.append(against_best(results, row, loop))
        if self.limit:
            cells.append(compared(results, row, loop, LIMIT))
        for key in self.details:
            value = results.median(row, loop, key)
            cells.append("" if value is None else format(value, DETAILS[key][1]))
        if self.calls:
            total = results.calls.get((row, loop), {}).get("total")
            cells.append("" if total is None else f"{total:.2f}")
        if self.floors:
            cells.append(promised(results, row, loop))
        return cells


def figures(results: Results, scenario: str, rows: Sequence[str]) -> Table:
    columns = Columns(results, rows)
    table = Table(title=f"{scenario}: {SCENARIOS[scenario]}", title_style="bold")
    table.add_column("row", no_wrap=True)
    table.add_column("loop", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    for title in columns.titles():
        table.add_column(title, justify="right", no_wrap=title != "floor")
    for row in rows:
        for index, loop in enumerate(results.measured(row)):
            name = row.partition("/")[2] if index == 0 else ""
            table.add_row(name, loop, figure(results, row, loop), *columns.cells(row, loop))
        table.add_section()
    return table


def summary(results: Results, base: str) -> Table:
    """The geometric mean of the ratios of each scenario: a first look, not a figure to quote."""
    loops = [name for name in results.present() if name != base]
    table = Table(title=f"ratios to {base}, geometric means", title_style="bold")
    table.add_column("scenario", no_wrap=True)
    for name in loops:
        table.add_column(name, justify="right")
    for scenario, rows in scenarios(results.rows).items():
        cells = []
        for name in loops:
            ratios = [found.value for row in rows if (found := results.ratio(row, name, base))]
            mean = geometric_mean(ratios)
            cells.append("" if mean is None else f"{mean:.2f}")
        table.add_row(scenario, *cells)
    return table


def header(document: Document, results: Results) -> Table:
    top = Table.grid(padding=(0, 2))
    loops = {name: found.get("version") or found["error"] for name, found in results.loops.items()}
    run = document.run
    how = f"{run['date']}: {run['rounds']} rounds of {run['seconds']:g} s, {run['took']} s in all"
    libraries = ", ".join(f"{name} {version}" for name, version in results.libraries.items())
    lines = {
        **document.machine,
        "python": results.python,
        "libraries": libraries,
        "run": how + (", QUICK: not sound" * run["quick"]),
    }
    for key, value in {**lines, "loops": "\n".join(f"{name} {text}" for name, text in loops.items())}.items():
        top.add_row(f"[bold]{key}[/]", escape(value))
    return top


def notes(results: Results) -> list[str]:
    lines = []
    delay = results.delay()
    if delay is not None and delay > BUSY:
        lines.append(f"NOISY: the measured processes waited {delay:.0%} of their time for a core others were using")
    lines += [f"{row}, {loop}: {reason}" for (row, loop), reason in sorted(results.failures.items())]
    return lines + results.remarks


def show(console: Console, document: Document) -> None:
    """Print the whole report."""
    for results in document.results:
        console.print(header(document, results))
        for scenario, rows in scenarios(results.rows).items():
            console.print(figures(results, scenario, rows))
        base = next((name for name in reversed(BASES) if name in results.present()), None)
        if base:
            console.print(summary(results, base))
        for line in notes(results):
            console.print(escape(line), highlight=False)


def show_rows(console: Console, rows: Sequence[Row]) -> None:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(f"[bold]{row.name}[/]", escape(row.what))
    console.print(table)


def show_changes(console: Console, changes: Sequence[Change]) -> None:
    """What moved since the baseline; nothing is said of the rest but its number."""
    moved = [change for change in changes if change.regression or change.improvement]
    for change in moved:
        style = "bold red" if change.regression else "green"
        console.print(f"[{style}]{change.describe()}[/]", highlight=False)
    console.print(f"compared with the baseline: {len(changes)} rows, {len(moved)} moved beyond the noise")
