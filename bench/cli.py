"""The command: ``python -m bench --help``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench import baseline, floors, machine, markdown, native, report, scenarios
from bench.loops import LOOPS
from bench.results import Document, Results
from bench.rows.row import Setting
from bench.run import run

DEFAULT = "asyncio,uvloop,epoque"
SECONDS, QUICK_SECONDS = 0.2, 0.03


def parser() -> argparse.ArgumentParser:
    known = "\n".join(f"  {name:<12}{what}" for name, what in scenarios.SCENARIOS.items())
    made = argparse.ArgumentParser(
        prog="python -m bench",
        description="What an operation costs on each event loop.",
        epilog=f"scenarios:\n{known}\n\nloops: {', '.join(LOOPS)}; all stands for all of them",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add(
        "rows",
        nargs="*",
        metavar="SCENARIO",
        help="or a row, such as micro/chain or 'echo/*unix*' (default: everything)",
    )
    add("--list", action="store_true", help="say which rows there are, and measure nothing")
    add("--loops", default=DEFAULT, help="names with commas between (default: %(default)s)")
    add("--python", action="append", metavar="PATH", help="interpreter to measure on; again for more (default: this)")
    add("--rounds", type=int, help="processes for each row and loop (default: 5; --quick: 1)")
    add("--seconds", type=float, help=f"length of one measurement (default: {SECONDS})")
    add("--quick", action="store_true", help="does every row work? Figures are not sound")
    add("--no-syscalls", action="store_true", help="leave out the pass that counts system calls with strace")
    add("--json", type=Path, metavar="FILE", help="write every sample there")
    add("--plot", type=Path, metavar="DIR", help="draw PNG and SVG pictures there")
    add("--markdown", type=Path, metavar="FILE", help="write a page with tables, and the pictures of --plot, there")
    add("--from", type=Path, metavar="FILE", dest="source", help="report an earlier --json instead of measuring")
    add("--baseline", type=Path, metavar="FILE", help="exit with 1 if ours got slower than in that earlier --json")
    add("--floors", action="store_true", help="exit with 1 if a promised ratio of the measured rows is not kept")
    return made


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    made = parser()
    options = made.parse_args(argv)
    options.loops = list(LOOPS) if options.loops == "all" else options.loops.split(",")
    for name in options.loops:
        if name not in LOOPS:
            made.error(f"unknown loop {name!r}; there are: {', '.join(LOOPS)}")
    try:
        options.rows = scenarios.select(options.rows)
        options.baseline = options.baseline and Document.read(options.baseline)
        options.source = options.source and Document.read(options.source)
    except OSError as error:
        made.error(str(error))
    except ValueError as error:
        made.error(f"{error}: no such scenario, row or run")
    options.python = [
        shutil.which(path) or made.error(f"{path}: no such program") for path in options.python or [sys.executable]
    ]
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    return options


def measure(options: argparse.Namespace) -> Document:
    cores = machine.cores()
    header = machine.describe()
    start = time.monotonic()
    if cores.load is not None:  # this process draws the progress bar and opens connections: not on the measured core
        os.sched_setaffinity(0, {cores.load})
    found = []
    for python in options.python:
        setting = Setting(python, cores, options.seconds, options.quick, native.scratch())
        counting = not (options.no_syscalls or options.quick)
        found.append(run(setting, options.rows, options.loops, options.rounds, counting))
    how = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "quick": options.quick,
        "took": round(time.monotonic() - start),
    }
    return Document(header, how, found)


def broken(results: Results) -> list[str]:
    """What should have been measured and was not: a fault of ours, or of the way it is measured."""
    expected = {name for name in results.loops if LOOPS[name].own or name == "asyncio"}
    lines = [f"{name}: {results.loops[name]['error']}" for name in sorted(expected - set(results.present()))]
    lines += [f"{row}, {loop}: {why}" for (row, loop), why in results.failures.items() if loop in expected]
    return lines


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    console = Console(width=None if sys.stdout.isatty() else 160)
    if options.list:
        report.show_rows(console, options.rows)
        return 0
    document = options.source or measure(options)
    if options.json:
        document.write(options.json)
    report.show(console, document)
    pictures = []
    if options.plot:
        from bench import plots  # needs matplotlib, and takes a second to import

        pictures = plots.draw(document, options.plot)
    if options.markdown:
        markdown.write(document, pictures, options.markdown)
    faults = [line for results in document.results for line in broken(results)]
    if options.floors:
        faults += floors.missed(document)
    if options.baseline:
        changes = baseline.compare(options.baseline, document)
        report.show_changes(console, changes)
        faults += [change.describe() for change in changes if change.regression]
    for line in faults:
        console.print(f"[bold red]fault:[/] {line}", highlight=False)
    return int(bool(faults))
