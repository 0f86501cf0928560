"""`python -m examples.demo`: the application on an event loop of your choice, visited and measured, or just served."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from examples.serving import loop_factory, serve


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--loop", choices=["epoque", "asyncio"], default="epoque", help="(default: %(default)s)")
    parser.add_argument("--serve", action="store_true", help="serve for a browser until Ctrl+C or SIGTERM")
    parser.add_argument("--host", default="127.0.0.1", help="where --serve listens (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="0 takes any free port (default: %(default)s)")
    parser.add_argument("--no-bench", action="store_true", help="leave out the measurement")
    parser.add_argument("--quick", action="store_true", help="measure one short round only")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.serve:
        return serve(options.loop, options.host, options.port)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that child processes are ended
    try:
        return 0 if show(options) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def show(options: argparse.Namespace) -> bool:
    """Visit and measure; returns whether all was as it should be."""
    from examples import report  # needs rich, which serving does without

    with asyncio.Runner(loop_factory=loop_factory(options.loop)) as runner:
        good = runner.run(report.show_tour())
    if options.no_bench or not good:
        return good
    return report.show_comparison(rounds=1 if options.quick else 3, seconds=0.5 if options.quick else 2.0)


if __name__ == "__main__":
    sys.exit(main())
