"""How is one measuring process started, pinned, spoken to and surely ended?

Every child speaks one JSON object a line on standard output, and takes one word a line on standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A measurement did not come about; the text is short enough for a table cell."""


class Child:
    """A process of our own that is killed when the block ends, or *limit* seconds after its start."""

    def __init__(self, argv: list[str], core: int | None, env: dict[str, str], limit: float) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the child)
        self._limit = limit
        self._late = False
        self._process = subprocess.Popen(
            argv, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        if core is not None:
            os.sched_setaffinity(self._process.pid, {core})
        self.pid = self._process.pid
        self._watchdog = threading.Timer(limit, self._expire)
        self._watchdog.daemon = True
        self._watchdog.start()

    def _expire(self) -> None:
        self._late = True
        self._process.kill()

    def read(self) -> Any:
        """The next object the child prints. Raises Failed with the reason if it ended instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(self._reason())
        try:
            return json.loads(line)
        except ValueError:
            raise Failed(f"printed {line.strip()[:100]!r}") from None

    def ask(self, word: str) -> Any:
        """Send *word* and read the answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._reason()) from None
        return self.read()

    def complaint(self) -> str:
        """The last line on standard error so far."""
        written = os.pread(self._errors.fileno(), 1 << 20, 0)  # the child shares the position of the file
        lines = written.decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else ""

    def _reason(self) -> str:
        code = self._process.wait()
        if self._late:
            return f"timed out after {self._limit:.0f} s"
        if code < 0:
            return f"crashed: {signal.Signals(-code).name}"
        return self.complaint() or f"ended early with exit code {code}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
