"""Where do the C programs (load generators, limit servers) come from? Compiled when a row first needs them."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from bench.process import Failed

SOURCES = Path(__file__).resolve().parent / "load"
PARTS = ["stream.c", "common.c"]
TLS = ["-DTLS", "-lssl", "-lcrypto"]


@cache
def scratch() -> Path:
    """A directory for files of this run: programs, sockets, certificates. Removed at exit."""
    directory = tempfile.mkdtemp(prefix="bench-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


@cache
def _compile(name: str) -> tuple[str, str]:
    """Path of the program and an error text, one of them empty; kept, so a failure is not tried again each round."""
    source, tls = name.removesuffix("-tls"), name.endswith("-tls")
    target = str(scratch() / name)
    sources = [str(SOURCES / part) for part in (f"{source}.c", *PARTS)]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-O2", "-Wall", "-pthread", "-o", target, *sources, *(TLS if tls else [])]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "", f"no C compiler ({command[0]}): install one or set CC"
    if done.returncode:
        error = next((line for line in done.stderr.splitlines() if "error" in line), f"exit code {done.returncode}")
        return "", f"{name} does not compile{' (needs libssl-dev)' if tls else ''}: {error}"
    return target, ""


def program(name: str) -> str:
    """Path of the compiled *name*.c; *name*-tls is the same with OpenSSL. Raises Failed without a C compiler."""
    path, error = _compile(name)
    if error:
        raise Failed(error)
    return path
