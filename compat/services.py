"""Which servers do suites need, and who starts them?  We do, on the loopback, in a folder that goes away with them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from .environment import Unavailable

START_LIMIT = 30.0  # seconds
POSTGRESQL = Path("/usr/lib/postgresql")  # VERSION/bin, in Debian
PROGRAMS = ("pg_basebackup", "pg_ctl", "pg_resetwal", "postgres")

# PostgreSQL refuses to run as root. What root has made in a data folder belongs to the server's user before each start;
# the certificates of the suite are where that user may not look.
WRAPPER = """\
#!/bin/sh
data=
for argument; do
    if [ "$data" = next ]; then data=$argument; fi
    if [ "$argument" = -D ]; then data=next; fi
done
if [ -d "$data" ]; then chown -R postgres "$data"; fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups \
    --inh-caps=+dac_read_search --ambient-caps=+dac_read_search {program} "$@"
"""


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[dict[str, str]]:
    """One server for all tests. Tells pytest its address by an option that the suite defines."""
    port = _free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""]
    command += ["--enable-debug-command", "yes"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait(port, server)
        yield {"PYTEST_ADDOPTS": f"--redis-url=redis://127.0.0.1:{port}/0"}
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[dict[str, str]]:
    """The programs, and a folder in which the suite makes servers: a worker that was ended leaves them running."""
    programs = _programs(folder / "bin") if os.geteuid() == 0 else _newest()
    data = folder / "data"
    data.mkdir()
    for path in (folder, data):
        path.chmod(0o777)
    try:
        yield {"PGINSTALLATION": str(programs), "TMPDIR": str(data)}
    finally:
        for file in data.glob("*/postmaster.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read_text().splitlines()[0]), signal.SIGQUIT)


def _newest() -> Path:
    found = sorted(POSTGRESQL.glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        raise Unavailable(f"no PostgreSQL in {POSTGRESQL}")
    return found[-1]


def _programs(folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(_newest() / "pg_config", folder)
    for name in PROGRAMS:
        wrapper = folder / name
        wrapper.write_text(WRAPPER.format(program=_newest() / name))
        wrapper.chmod(0o755)
    return folder


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until `server` accepts connections."""
    limit = time.monotonic() + START_LIMIT
    while server.poll() is None and time.monotonic() < limit:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.05)
    raise Unavailable(f"{server.args!r} does not listen on port {port}")
