"""On which threads are names looked up? `Resolver`: some that only wait, for name servers.

They are daemons. The threads of a `ThreadPoolExecutor` are joined when the interpreter exits, and a name server that
does not answer would hold up the end of the program. In a sub-interpreter they are not: its end kills the process if
one is left.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Threads start only while all others are busy. A name server that does not answer holds one for 30 s with the defaults
# of resolv.conf(5) (timeout 5 s, 2 attempts, 3 servers), so there have to be many more than ever work.
WORKERS = 32


class Resolver:
    """A pool of threads, used from one thread only."""

    def __init__(self, daemons: bool) -> None:
        self._daemons = daemons
        self._calls: queue.SimpleQueue[tuple[Callable[..., object], tuple[object, ...]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads = 0

    def submit(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)``, which must not raise, in one of the threads. RuntimeError if none can start."""
        if not self._idle.acquire(blocking=False) and self._threads < WORKERS:
            name = f"epoque-resolver_{self._threads}"
            thread = threading.Thread(target=self._work, name=name, daemon=self._daemons)
            try:
                thread.start()
            except RuntimeError:
                if not self._threads:
                    raise
            else:
                self._threads += 1
        self._calls.put((function, args))

    def close(self) -> None:
        """Forget what has not begun, and let the threads end."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._calls.get_nowait()
        for _ in range(self._threads):
            self._calls.put(None)

    def _work(self) -> None:
        while call := self._calls.get():
            function, args = call
            function(*args)
            del call, function, args  # they would live until the next call
            self._idle.release()
