"""Are the servers that compat's suites need started, told of, and gone afterwards?"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from compat import services
from compat.environment import Unavailable

pytestmark = pytest.mark.epoque_only("tests the runner; once is enough")


@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
def test_redis_listens_as_long_as_it_is_needed(tmp_path: Path) -> None:
    with services.redis(tmp_path) as told:
        address = ("127.0.0.1", int(told["PYTEST_ADDOPTS"].rpartition(":")[2].partition("/")[0]))
        with socket.create_connection(address) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(7) == b"+PONG\r\n"
    with contextlib.closing(socket.socket()) as client, pytest.raises(ConnectionRefusedError):
        client.connect(address)


def test_a_server_that_ends_at_once_is_no_server() -> None:
    with subprocess.Popen(["true"]) as server, pytest.raises(Unavailable, match="does not listen"):
        services._wait(1, server)


@pytest.mark.skipif(not services.POSTGRESQL.exists(), reason="needs PostgreSQL")
def test_postgresql_programs_run_and_servers_left_behind_are_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as server:
        with services.postgresql(tmp_path) as told:
            program = Path(told["PGINSTALLATION"]) / "postgres"
            assert "PostgreSQL" in subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            folder = Path(told["TMPDIR"]) / "left"
            folder.mkdir()
            (folder / "postmaster.pid").write_text(f"{server.pid}\n")
        assert os.waitstatus_to_exitcode(os.waitpid(server.pid, 0)[1]) < 0
