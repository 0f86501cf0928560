"""Where do the C programs (load generator, limit server) come from? Compiled when a row first needs them."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from bench.process import Failed

HERE = Path(__file__).resolve().parent


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bench-")


@cache
def _compile(name: str) -> tuple[str, str]:
    """Path of the program and an error text, one of them empty; kept, so a failure is not tried again each round."""
    target = str(Path(_directory().name) / name)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-O2", "-Wall", "-o", target, str(HERE / f"{name}.c")]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "", f"no C compiler ({command[0]}): install one or set CC"
    if done.returncode:
        error = next((line for line in done.stderr.splitlines() if "error" in line), f"exit code {done.returncode}")
        return "", f"{name}.c does not compile: {error}"
    return target, ""


def program(name: str) -> str:
    """Path of the compiled *name*.c. Raises Failed without a C compiler."""
    path, error = _compile(name)
    if error:
        raise Failed(error)
    return path
