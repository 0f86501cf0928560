"""The small suite, as a command: ``python -m bench.micro --help``."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench import machine, report
from bench.floors import FLOORS
from bench.loops import LOOPS, environment
from bench.process import Child, Failed
from bench.results import Results
from bench.row import Row, Setting
from bench.rows import ROWS


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    rows = "\n".join(f"  {row.name:<22}{row.what}" for row in ROWS.values())
    parser = argparse.ArgumentParser(
        prog="python -m bench.micro",
        description="Time per operation on each event loop.",
        epilog=f"rows:\n{rows}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows to measure (default: all)")
    parser.add_argument("--loops", default=",".join(LOOPS), help="names with commas between (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="processes for each row and loop (default: 5; --quick: 3)")
    parser.add_argument("--quick", action="store_true", help="short measurements: under a minute, for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument("--floors", action="store_true", help="exit with 1 if a floor of the measured rows is not kept")
    options = parser.parse_args(argv)
    options.rows = options.rows or list(ROWS)
    options.loops = options.loops.split(",")
    options.rounds = options.rounds or (3 if options.quick else 5)
    for kind, names, known in (("row", options.rows, ROWS), ("loop", options.loops, LOOPS)):
        for name in names:
            if name not in known:
                parser.error(f"unknown {kind} {name!r}; there are: {', '.join(known)}")
    return options


def probe(setting: Setting, names: list[str]) -> dict[str, dict[str, str]]:
    """`version` or `error` of each loop, found out in a process of its own."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        try:
            with Child([setting.python, "-m", "bench.loops", name], None, environment(name), 20) as child:
                found[name] = child.read()
        except Failed as failure:
            found[name] = {"error": str(failure)}
    return found


def attempt(results: Results, setting: Setting, row: Row, loop: str, round_: int) -> None:
    """One sample, or the reason why there is none; after a failure that pair is not tried again."""
    if (row.name, loop) in results.failures:
        return
    try:
        results.add(row.name, loop, round_, row.measure(setting, loop))
    except Failed as failure:
        results.fail(row.name, loop, str(failure))


def measure(setting: Setting, rows: list[Row], loops: list[str], rounds: int, results: Results) -> None:
    """All rounds: each goes through the rows, and through the loops of a row in a random order."""
    pairs = [(row, [*loops, *row.limits]) for row in rows]
    with Progress(console=Console(stderr=True), transient=True, refresh_per_second=2) as progress:
        bar = progress.add_task("", total=rounds * sum(len(names) for _, names in pairs))
        for round_ in range(rounds):
            for row, names in pairs:
                for name in random.sample(names, len(names)):
                    progress.update(bar, description=f"round {round_ + 1}/{rounds} {row.name} {name}")
                    attempt(results, setting, row, name, round_)
                    progress.advance(bar)


def write(path: Path, header: dict[str, str], versions: dict[str, Any], options: Any, results: Results) -> None:
    run = {"rounds": options.rounds, "quick": options.quick}
    units = {name: ROWS[name].unit for name in options.rows}
    document = {"machine": header, "loops": versions, "run": run, "units": units, "results": results.plain()}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    cores = machine.cores()
    header = machine.describe()
    setting = Setting(sys.executable, cores, options.quick)
    if cores.load is not None:  # this process draws the progress bar and opens connections: not on the measured core
        os.sched_setaffinity(0, {cores.load})
    versions = probe(setting, options.loops)
    results = Results()
    rows = [ROWS[name] for name in options.rows]
    for row in rows:
        for name in options.loops:
            if "error" in versions[name]:
                results.fail(row.name, name, versions[name]["error"])
    measure(setting, rows, options.loops, options.rounds, results)
    floors = [floor for floor in FLOORS if floor.row in options.rows]
    report.show(Console(width=None if sys.stdout.isatty() else 120), header, versions, rows, results, floors, options)
    if options.json:
        write(options.json, header, versions, options, results)
    if options.floors:
        return int(any(floor.verdict(results) != "kept" for floor in floors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
