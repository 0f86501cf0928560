"""What does a single operation of the loop cost, inside one process?"""

from __future__ import annotations

from bench.rows.row import Row
from bench.scenarios.micro import callbacks, sockets, startup, tasks, threads, timers

ROWS: tuple[Row, ...] = (
    *callbacks.ROWS,
    *tasks.ROWS,
    *timers.ROWS,
    *threads.ROWS,
    *sockets.ROWS,
    *startup.ROWS,
)
