"""Which rows are there, in the order of the report?"""

from __future__ import annotations

from bench.row import Batch, Row
from bench.rows import callbacks, sockets, tasks, threads
from bench.rows.echo import Echo
from bench.rows.memory import IdleMemory

BATCHES: dict[str, Batch] = {row.name: row for row in (*callbacks.ROWS, *tasks.ROWS, *threads.ROWS, *sockets.ROWS)}

SERVED = (
    Echo("echo", "TCP echo of 1 KiB through a Protocol, 64 connections: server CPU a request", "protocol"),
    Echo("echo_streams", "the same through asyncio's streams", "streams"),
    IdleMemory("idle_memory", "growth of the server's resident memory an idle TCP connection", "rss"),
    IdleMemory("idle_memory_python", "the part that Python's allocators gave out (tracemalloc)", "traced"),
)

ROWS: dict[str, Row] = {**BATCHES, **{row.name: row for row in SERVED}}
