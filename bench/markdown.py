"""A run as a page: one table a scenario with a column for each loop, and the pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.loops import LOOPS
from bench.report import BASES, amount
from bench.results import Document, Results, scenarios
from bench.rows.served import LIMIT
from bench.scenarios import SCENARIOS


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def ratio(results: Results, row: str, loop: str, against: str | None) -> str:
    found = results.ratio(row, loop, against) if against else None
    if found is None:
        return ""
    return f"{found.value:.2f}" + (f" ({found.low:.2f}–{found.high:.2f})" if found.low < found.high else "")


def cell(results: Results, row: str, loop: str) -> str:
    value = results.median(row, loop)
    if value is None:
        return "failed" if (row, loop) in results.failures else ""
    return amount(value, results.rows[row].unit)


def table(results: Results, rows: Sequence[str]) -> Iterator[str]:
    loops = results.present()
    limit = [LIMIT] * any(results.rows[row].limits for row in rows)
    ours = [name for name in loops if LOOPS[name].own]
    bases = [name for name in BASES if name in loops]
    titles = [f"{name} / {base}" for name in ours for base in [*bases, "best peer"]]
    columns = ["", *loops, *limit, *titles]
    yield line(columns)
    yield line(["---"] * len(columns))
    for row in rows:
        ratios = [ratio(results, row, name, base) for name in ours for base in [*bases, results.best_peer(row)]]
        about = f"**{row.partition('/')[2]}** {results.rows[row].what}"
        yield line([about, *(cell(results, row, name) for name in [*loops, *limit]), *ratios])


def page(document: Document, pictures: Sequence[Path], beside: Path) -> Iterator[str]:
    run = document.run
    yield "# Results"
    yield f"\n{run['date']}: {run['rounds']} rounds of {run['seconds']:g} s a measurement, {run['took']} s in all."
    yield "Medians; ratios with their 95 % interval; less is better. [README.md](README.md) says how it is measured.\n"
    for key, value in document.machine.items():
        yield f"- {key}: {value}"
    for results in document.results:
        yield f"\n## {results.python.split(' (')[0]}\n"
        yield "- with " + ", ".join(f"{name} {version}" for name, version in results.libraries.items())
        for name, found in results.loops.items():
            yield f"- {name}: {found.get('version') or found['error']}"
        for scenario, rows in scenarios(results.rows).items():
            yield f"\n### {scenario}: {SCENARIOS[scenario]}\n"
            yield from table(results, rows)
        failures = [f"- {row}, {loop}: {why}" for (row, loop), why in sorted(results.failures.items())]
        yield from ["\nWhat could not be measured:\n", *failures] if failures else []
        remarks = [f"- {remark}" for remark in results.remarks]
        yield from ["\nRemarks:\n", *remarks] if remarks else []
    yield ""
    for picture in pictures:
        yield f"![{picture.stem}]({os.path.relpath(picture.with_suffix('.svg'), beside)})"


def write(document: Document, pictures: Sequence[Path], path: Path) -> None:
    path.write_text("\n".join(page(document, pictures, path.parent)) + "\n")
