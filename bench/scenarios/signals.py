"""How long does a signal take?"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from time import perf_counter, sleep

from bench.rows.inside import Inside, Work
from bench.stats import percentiles


def latency(loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    """A thread sends signals to its own process, each while the loop sleeps."""
    taken: list[float] = []
    start = 0.0
    arrived = threading.Event()

    def handler() -> None:
        taken.append(1e6 * (perf_counter() - start))
        arrived.set()

    def send() -> None:
        nonlocal start
        end = perf_counter() + work.seconds
        while perf_counter() < end or not taken:
            sleep(0.0005)
            arrived.clear()
            start = perf_counter()
            os.kill(os.getpid(), signal.SIGUSR1)
            if not arrived.wait(5):
                break
        loop.call_soon_threadsafe(loop.stop)

    loop.add_signal_handler(signal.SIGUSR1, handler)
    thread = threading.Thread(target=send)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    loop.remove_signal_handler(signal.SIGUSR1)
    if not taken:
        raise RuntimeError("the handler was not called within five seconds")
    return percentiles(taken)


ROWS = (Inside(name="signals/latency", what="from kill() to the handler in a loop that sleeps: median", body=latency),)
