"""How is a comparison told to people?  A table, the causes of the differences by size, and the tests by name."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .comparison import Comparison, Difference
from .runner import Results

NAMES_SHOWN = 8  # of the known tests under one reason; the JSON file has all


def report(comparison: Comparison, console: Console) -> None:
    title = f"{comparison.suite.title} {comparison.suite.version}".strip()
    console.print(f"\n[bold]{comparison.suite.name}[/]: {escape(title)}", highlight=False)
    console.print(_table(comparison))
    apart = Counter(comparison.left_out.values()).total()
    console.print(
        f"left out by name: {apart}; use no event loop, so say nothing about one: {len(comparison.off_loop)}; "
        f"took {comparison.seconds:.0f} s"
    )
    if not comparison.pointed:
        console.print(f"[bold red]no test ran on {comparison.options.loop}: the suite is not pointed at it[/]")
    elif elsewhere := comparison.elsewhere:
        console.print(f"passed without using {comparison.options.loop}: {len(elsewhere)}")
        for test in elsewhere[:NAMES_SHOWN]:
            console.print(f"        {escape(test)}", soft_wrap=True, highlight=False)
    for loop, results in comparison.results.items():
        for note in results.notes:
            console.print(f"{loop}: {escape(note)}", style="yellow")
    _oracle_failures(comparison, console)
    unknown = comparison.unknown
    if unknown:
        console.print(f"\n[bold red]{len(unknown)} pass on asyncio and not on {comparison.options.loop}[/]")
        _causes(unknown, console)
    if comparison.flaky:
        console.print(f"\n[bold]{len(comparison.flaky)} flaky: they fail on asyncio too, if only run often[/]")
        _causes(comparison.flaky, console)
    known = [item for item in comparison.differences if item.known]
    if known:
        console.print(f"\n[bold]{len(known)} known differences[/]")
        _known(known, console)
    for entry in comparison.outdated:
        console.print(f"no longer a difference, delete it from the list: {escape(entry)}", style="yellow")


def summary(comparisons: list[Comparison]) -> Table:
    """The last table: one row per suite."""
    head, *rows = _summary(comparisons)
    table = Table(title="passed / failed / skipped", title_justify="left")
    for index, name in enumerate(head):
        table.add_column(name, justify="left" if index < 2 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def markdown(comparisons: list[Comparison]) -> str:
    """The same table for a README."""
    head, *rows = _summary(comparisons)
    lines = [head, ["---" if index < 2 else "---:" for index in range(len(head))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _summary(comparisons: list[Comparison]) -> list[list[str]]:
    about: dict[str, str] = {}
    for comparison in comparisons:
        about.update({loop: results.about for loop, results in comparison.results.items() if results.about})
    lines = [["suite", "version", *about.values(), "known", "flaky", "differences"]]
    for comparison in comparisons:
        unknown, flaky = len(comparison.unknown), len(comparison.flaky)
        known = len(comparison.differences) - unknown - flaky
        counts = [_counts(results) for results in comparison.results.values()]
        lines.append([comparison.suite.name, comparison.suite.version, *counts, *map(str, (known, flaky, unknown))])
    return lines


def _counts(results: Results) -> str:
    outcomes = results.outcomes.values()
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    return f"{passed} / {failed} / {len(outcomes) - passed - failed}"


def _table(comparison: Comparison) -> Table:
    table = Table()
    table.add_column("")
    columns = []
    for results in comparison.results.values():
        table.add_column(results.about, justify="right")
        columns.append(Counter(outcome.status for outcome in results.outcomes.values()))
    rows = {
        "passed": ["passed"],
        "failed": ["failed", "error", "missing"],
        "timed out": ["timeout"],
        "crashed": ["crashed"],
        "skipped": ["skipped"],
    }
    for name, statuses in rows.items():
        table.add_row(name, *(str(sum(counts[status] for status in statuses)) for counts in columns))
    table.add_row("all", *(str(counts.total()) for counts in columns), style="bold")
    return table


def _oracle_failures(comparison: Comparison, console: Console) -> None:
    failed = [outcome for outcome in comparison.results["asyncio"].outcomes.values() if outcome.failed]
    if failed:
        console.print(f"\n[bold]{len(failed)} do not pass on asyncio here, so say nothing about another loop[/]")
    for outcome in failed:
        console.print(f"  {escape(outcome.test)}  {escape(outcome.group)}", soft_wrap=True)


def _causes(differences: list[Difference], console: Console) -> None:
    groups: dict[str, list[Difference]] = {}
    for item in differences:
        groups.setdefault(item.outcome.group, []).append(item)
    for cause, items in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        console.print(f"[red]{len(items):4}[/]  {escape(cause)}", soft_wrap=True, highlight=False)
        for item in items:
            console.print(
                f"        {escape(item.test)}  [dim]{item.outcome.where}  {item.history}[/]",
                soft_wrap=True,
                highlight=False,
            )


def _known(differences: list[Difference], console: Console) -> None:
    groups: dict[str, list[str]] = {}
    for item in differences:
        groups.setdefault(item.known, []).append(item.test)
    for reason, tests in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        console.print(f"{len(tests):4}  {escape(reason)}", soft_wrap=True, highlight=False)
        for test in tests[:NAMES_SHOWN]:
            console.print(f"        {escape(test)}", soft_wrap=True, highlight=False)
        if len(tests) > NAMES_SHOWN:
            console.print(f"        and {len(tests) - NAMES_SHOWN} more", highlight=False)
