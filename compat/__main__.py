"""The command line: `python -m compat [SUITE ...]`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import sys
import threading
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from .comparison import Comparison, Options, compare
from .environment import Unavailable, default_cache
from .report import markdown, report, summary
from .runner import NoTests
from .suites import SUITES
from .workers.loops import NAMES


def main() -> int:
    arguments = _parser().parse_args()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for a job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an orderly exit, which ends the running workers too
    options = Options(**{each.name: getattr(arguments, each.name) for each in fields(Options)})
    console = Console() if sys.stdout.isatty() else Console(width=120)
    comparisons: list[Comparison] = []
    unavailable: list[str] = []
    names = arguments.suite or list(SUITES)
    threading.Thread(target=_prepare, args=(names, options.cache), daemon=True).start()
    for name in names:
        try:
            comparisons.append(compare(SUITES[name], options))
        except (Unavailable, NoTests) as error:
            unavailable.append(name)
            console.print(f"\n[bold red]{name}[/]: {escape(str(error))}", soft_wrap=True, highlight=False)
        else:
            report(comparisons[-1], console)
        if arguments.json:
            _write(arguments.json, comparisons, unavailable)
    console.print()
    console.print(markdown(comparisons) if arguments.markdown else summary(comparisons), soft_wrap=arguments.markdown)
    return 0 if not unavailable and all(comparison.ok for comparison in comparisons) else 1


def _prepare(names: list[str], cache: Path) -> None:
    """Fetch in the background what the later suites need; what goes wrong here is told when their turn comes."""
    for name in names:
        with contextlib.suppress(Exception):
            SUITES[name].prepare(cache)


def _write(path: Path, comparisons: list[Comparison], unavailable: list[str]) -> None:
    data = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "suites": [comparison.as_json() for comparison in comparisons],
        "unavailable": unavailable,
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _suite(name: str) -> str:
    """`choices` would do this, but refuses an empty list on Python 3.11."""
    if name not in SUITES:
        raise argparse.ArgumentTypeError(f"no such suite: {name}")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m compat",
        description="Run test suites that nobody here wrote on a loop and on stock asyncio, and compare.",
        epilog="Exit code 1 if a test passes on asyncio, not on the loop, and is not in its list in known/.",
    )
    parser.add_argument("suite", nargs="*", type=_suite, metavar="SUITE", help=f"of: {', '.join(SUITES)} (all)")
    parser.add_argument("--loop", choices=NAMES, default="epoque", help="the loop under test (epoque)")
    parser.add_argument("--pure", action="store_true", help="run epoque interpreted (EPOQUE_PURE=1)")
    parser.add_argument(
        "-k",
        dest="pattern",
        metavar="PATTERN",
        default="",
        help="only tests with this in their name; * stands for anything",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all outcomes to this file")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=60, help="for one test (60)")
    parser.add_argument("--repeat", metavar="N", type=int, default=5, help="run what differs N times more on both (5)")
    parser.add_argument("--jobs", metavar="N", type=int, default=len(os.sched_getaffinity(0)), help="workers at a time")
    parser.add_argument(
        "--cache", metavar="FOLDER", type=Path, default=default_cache(), help=f"for what is fetched ({default_cache()})"
    )
    parser.add_argument("--markdown", action="store_true", help="print the last table as a README has it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
