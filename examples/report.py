"""What does the terminal show of the tour and of the comparison?"""

from __future__ import annotations

import asyncio
import traceback
from contextlib import aclosing
from statistics import median

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
    table = Table(title=f"GET {load.PATH}, requests per second")
    rounds = [f"round {number + 1}" for number in range(len(series[0].rates))]
    table.add_column("server's loop")
    for heading in (*rounds, "median", "ratio", "server's CPU time\nper request"):
        table.add_column(heading, justify="right", style="" if heading in rounds else "bold")
    base = median(series[0].rates)
    for each in series:
        rates = (f"{rate:,.0f}" for rate in (*each.rates, median(each.rates)))
        table.add_row(each.loop, *rates, f"{median(each.rates) / base:.2f}", f"{median(each.cpu):.1f} µs")
    return table


def explanation(series: list[comparison.Series], seconds: float) -> str:
    cores = comparison.two_cores()
    where = f"the server on core {cores[0]}, the client on core {cores[1]}" if cores else "not pinned to cores"
    busy = max(share for each in series for share in each.client_busy)
    limit = "so the server was the limit" if busy < 0.9 else "[yellow]so the client may have been the limit[/yellow]"
    return (
        f"Each round: a new server process, then a new client process ({load.CONNECTIONS} keep-alive connections, "
        f"always on asyncio) for {seconds} s; the loops take turns; {where}. The client used at most {busy:.0%} of "
        f"its core, {limit}. CPU time is the median of the rounds; aiohttp's own work, the same on either loop, is "
        "part of each request."
    )
