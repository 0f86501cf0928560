"""What does the terminal show of the tour and of the comparison?"""

from __future__ import annotations

import asyncio
import traceback
from contextlib import aclosing

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples import comparison, load
from examples.chat.status import describe_loop
from examples.serving import describe
from examples.tour import Mismatch, tour

TOUR_LIMIT = 60  # seconds

console = Console(highlight=False)


async def show_tour() -> bool:
    """Visit the application on the running loop and tell of it; returns whether all was as it should be."""
    about = describe(describe_loop(asyncio.get_running_loop()))
    console.print(f"[bold]An aiohttp application and its client, both on {about}[/bold]", soft_wrap=True)
    try:
        async with asyncio.timeout(TOUR_LIMIT), aclosing(tour()) as lines:
            async for line in lines:
                console.print("[green]✓[/green]", escape(line), soft_wrap=True)
    except TimeoutError:
        problem = f"no answer within {TOUR_LIMIT} seconds"
    except Mismatch as error:
        problem = str(error)
    except Exception:
        problem = traceback.format_exc()
    else:
        return True
    console.print("[bold red]✗ what follows is wrong:[/bold red]")
    console.print(problem, markup=False)
    return False


def show_comparison(rounds: int, seconds: float) -> bool:
    """Measure both loops and show the medians; returns whether it could be done."""
    console.print()
    try:
        with console.status("measuring requests per second ..."):
            for table in comparison.compare(["asyncio", "epoque"], rounds, seconds):
                last = table
    except comparison.Failed as error:
        console.print(f"[bold red]✗ {escape(str(error))}")
        return False
    console.print(rates(last))
    for series in last:
        console.print(f"{series.loop}: {series.about}", markup=False)
    console.print(explanation(last, seconds))
    return True


def rates(series: list[comparison.Series]) -> Table:
    base = series[0]
    table = Table(title=f"GET {load.PATH}: requests per second, and the server's CPU time for each")
    rounds = [f"round {number + 1}" for number in range(len(base.rates))]
    table.add_column("loop")
    for heading in (*rounds, "median", "speed", "CPU time", "speed"):
        table.add_column(heading, justify="right", style="" if heading in rounds else "bold")
    for each in series:
        by_rate = (f"{rate:,.0f}" for rate in (*each.rates, each.rate))
        table.add_row(
            each.loop, *by_rate, f"{each.rate / base.rate:.2f}", f"{each.cost:.1f} µs", f"{base.cost / each.cost:.2f}"
        )
    return table


def explanation(series: list[comparison.Series], seconds: float) -> str:
    cores = comparison.two_cores()
    where = f"the server on core {cores[0]}, the client on core {cores[1]}" if cores else "not pinned to cores"
    busy = min(each.least_busy for each in series)
    text = (
        f"Speed is relative to {series[0].loop}: by requests per second, and by CPU time. Each round: a new server "
        f"process, then a new client process ({load.CONNECTIONS} keep-alive connections, always on asyncio) for "
        f"{seconds} s; the loops take turns; {where}. aiohttp's own work, the same on either loop, is part of each "
        f"request. In every round the server used at least {busy:.0%} of a core"
    )
    if busy < 0.9:
        return f"{text}; [yellow]something else held it up, so trust the CPU time rather than the rate.[/yellow]"
    return f"{text}, so it was the limit."
