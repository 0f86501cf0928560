"""A protocol that writes down what it hears of a child process, and Python code as a child."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

PIPES = {0: "stdin", 1: "stdout", 2: "stderr"}


class Recorder(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.log: list[str] = []
        self.data = {1: bytearray(), 2: bytearray()}
        self.transport: Any = None
        self.losses: dict[int, BaseException | None] = {}
        self._changed = asyncio.Event()

    def note(self, event: str) -> None:
        if event not in self.log[-1:]:
            self.log.append(event)
        self._changed.set()

    async def reaches(self, event: str) -> None:
        while event not in self.log:
            self._changed.clear()
            await self._changed.wait()

    async def ends(self) -> int | None:
        await self.reaches("lost")
        return self.transport.get_returncode()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.note("made")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.data[fd] += data
        self.note(f"data of {PIPES[fd]}")

    def pipe_connection_lost(self, fd: int, exc: BaseException | None) -> None:
        self.losses[fd] = exc
        self.note(f"{PIPES[fd]} lost")

    def process_exited(self) -> None:
        self.note("exited")

    def connection_lost(self, exc: BaseException | None) -> None:
        assert exc is None
        self.note("lost")

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")


def python(code: str) -> tuple[str, ...]:
    """Program and arguments; without site packages, which take most of the time to start."""
    return sys.executable, "-I", "-S", "-c", code


def wait_until_it_has_ended(pid: int) -> None:
    """Without letting the loop run, and without reaping."""
    with contextlib.suppress(ChildProcessError):  # asyncio's thread was quicker
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def gated(loop: asyncio.AbstractEventLoop, command: str) -> tuple[Any, Recorder, Callable[[], None]]:
    """Start a shell that runs the command, and so ends, when the function that is returned is called."""
    reader, writer = os.pipe()
    with open(reader, "rb") as stdin:
        options = {"stdin": stdin, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        transport, protocol = await loop.subprocess_shell(Recorder, f"read line; {command}", **options)
    return transport, protocol, functools.partial(os.close, writer)


SLEEPER = ("sleep", "60")
