"""The command line: `python -m compat [SUITE ...]`."""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from pathlib import Path

from rich.console import Console

from .comparison import Options, compare
from .report import report
from .suites import SUITES
from .workers.loops import NAMES


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an orderly exit, which ends the running worker too
    console = Console()
    comparisons = []
    for name in options.suite or SUITES:
        chosen = Options(options.loop, options.pure, options.k, options.timeout)
        comparisons.append(compare(SUITES[name], chosen))
        report(comparisons[-1], console)
    if options.json:
        data = {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "suites": [comparison.as_json() for comparison in comparisons],
        }
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0 if all(comparison.ok for comparison in comparisons) else 1


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
        "-k", metavar="PATTERN", default="", help="only tests with this in their name; * stands for anything"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all outcomes to this file")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=60, help="for one test (60)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
