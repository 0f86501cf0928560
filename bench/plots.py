"""Pictures of a run, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter  # noqa: E402

from bench.loops import LOOPS  # noqa: E402
from bench.results import Document, Results, scenarios  # noqa: E402
from bench.rows.served import LIMIT  # noqa: E402
from bench.scenarios import SCENARIOS  # noqa: E402
from bench.scenarios.echo import SIZES  # noqa: E402

# The same colour for a loop in every picture; ours stand out.
COLOURS = dict(
    zip([*LOOPS, LIMIT], [*plt.get_cmap("tab20").colors[1::2], *plt.get_cmap("tab20b").colors], strict=False)
)
COLOURS |= {"asyncio": "#9aa0a6", "uvloop": "#4c78a8", "epoque": "#d62728", "epoque-pure": "#f2a093", LIMIT: "#222222"}
QUANTILES = {"p50": "50", "p75": "75", "p90": "90", "p95": "95", "p99": "99", "p999": "99.9", "p100": "max"}
LATENCIES = ("echo/protocol_1KiB", "echo/read_1KiB", "tls/echo_1KiB", "http/aiohttp_text", "http/uvicorn_text")
UNITS = {"message": "bytes of the message", "connections": "connections"}
SCALING = {  # title, rows, and the quantity along which they lie
    "size-protocol": ("Protocol echo by size", [f"echo/protocol_{size}" for size in SIZES], "message"),
    "size-streams": ("streams echo by size", [f"echo/read_{size}" for size in SIZES], "message"),
    "size-tls": ("TLS echo by size", [f"tls/echo_{size}" for size in SIZES], "message"),
    "connections": (
        "Protocol echo of 1 KiB by connections",
        ["echo/protocol_1_connections", "echo/protocol_1KiB", "echo/protocol_1000_connections"],
        "connections",
    ),
}


def base(results: Results) -> str | None:
    return next((name for name in ("uvloop", "asyncio") if name in results.present()), None)


def ratios(results: Results, scenario: str, rows: Sequence[str]) -> Figure | None:
    """Bars of each loop's ratio, with its interval."""
    against = base(results)
    loops = [name for name in results.present() if name != against]
    if against is None or not loops:
        return None
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.2 * len(rows) * (len(loops) + 1)), layout="constrained")
    for index, loop in enumerate(loops):
        for place, row in enumerate(rows):
            found = results.ratio(row, loop, against)
            if found is None:
                continue
            y = place * (len(loops) + 1) + index
            error = [[max(0.0, found.value - found.low)], [max(0.0, found.high - found.value)]]
            axes.barh(y, found.value - 1, left=1, color=COLOURS[loop], xerr=error, error_kw={"lw": 0.8})
            end = max(found.high, found.value, 1)
            axes.annotate(f" {found.value:.2f}", (end, y), va="center", fontsize=7)
    axes.axvline(1, color=COLOURS[against], lw=1.5)
    axes.set_yticks([place * (len(loops) + 1) + (len(loops) - 1) / 2 for place in range(len(rows))])
    axes.set_yticklabels([row.partition("/")[2] for row in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.1, y=0.01)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"ratio to {against} (line), logarithmic; left of it is better")
    axes.set_title(f"{scenario}: {SCENARIOS[scenario]}", fontsize=10)
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in loops]
    figure.legend(handles, loops, fontsize=8, frameon=False, loc="outside lower center", ncols=6)
    return figure


def lines(results: Results, row: str) -> list[str]:
    return [name for name in results.measured(row) if results.figures(row, name)]


def latency(results: Results, row: str) -> Figure | None:
    """The distribution of the time until the answer, up to the slowest."""
    if row not in results.rows:
        return None
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for loop in lines(results, row):
        values = [results.median(row, loop, key) or 0.0 for key in QUANTILES]
        axes.plot(list(QUANTILES.values()), values, marker="o", ms=3, color=COLOURS[loop], label=loop)
    axes.set(yscale="log", xlabel="share of the requests answered by then, %", ylabel="µs")
    axes.set_title(f"{row}: {results.rows[row].what}", fontsize=9)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, frameon=False)
    return figure


def scaling(results: Results, title: str, rows: Sequence[str], quantity: str) -> Figure | None:
    """Cost against one quantity, both axes logarithmic."""
    chosen = sorted((getattr(results.rows[row], quantity), row) for row in rows)
    if len(chosen) < 2:
        return None
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for loop in lines(results, chosen[0][1]):
        points = [(value, y) for value, row in chosen if (y := results.median(row, loop)) is not None]
        axes.plot(*zip(*points, strict=True), marker="o", ms=3, color=COLOURS[loop], label=loop)
    axes.set(xscale="log", yscale="log", xlabel=UNITS[quantity], ylabel="server CPU a request, µs")
    axes.set_xticks([value for value, _ in chosen], [f"{value:,}" for value, _ in chosen])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, frameon=False)
    return figure


def pictures(results: Results) -> Iterator[tuple[str, Figure | None]]:
    """Name and figure of each; None where the run does not have what it shows."""
    for scenario, rows in scenarios(results.rows).items():
        yield f"ratio-{scenario}", ratios(results, scenario, rows)
    for row in LATENCIES:
        yield f"latency-{row.replace('/', '-')}", latency(results, row)
    for name, (title, rows, quantity) in SCALING.items():
        yield f"scaling-{name}", scaling(results, title, [row for row in rows if row in results.rows], quantity)


def draw(document: Document, directory: Path) -> list[Path]:
    """All pictures of a run; with more interpreters than one, each in a directory of its own. The paths of the PNGs."""
    drawn = []
    for results in document.results:
        place = directory
        if len(document.results) > 1:
            place = directory / results.python.split(" (")[0].replace(" ", "-")
        place.mkdir(parents=True, exist_ok=True)
        for name, figure in pictures(results):
            if figure is None:
                continue
            for kind in ("png", "svg"):
                figure.savefig(place / f"{name}.{kind}", dpi=110, metadata={"Date": None} if kind == "svg" else None)
            plt.close(figure)
            drawn.append(place / f"{name}.png")
    return drawn
