"""Is epoque usable in the ways that its README names, and does importing it cost and say nothing?"""

from __future__ import annotations

import asyncio
import http.client
import importlib.machinery
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loops import checked_script, is_epoque

pytestmark = pytest.mark.epoque_only("about epoque's public face")
if is_epoque:
    import epoque

NAMES = ["EventLoop", "EventLoopPolicy", "__version__", "compiled", "install", "new_event_loop", "run"]


async def running() -> type:
    return type(asyncio.get_running_loop())


def test_the_public_names() -> None:
    assert epoque.__all__ == NAMES
    assert set(NAMES) <= set(dir(epoque))
    for name in NAMES:
        assert getattr(epoque, name) is getattr(epoque, name)
    assert checked_script("from epoque import *\nprint(EventLoop.__name__, compiled)").split()[0] == "EventLoop"
    with pytest.raises(AttributeError, match="module 'epoque' has no attribute 'nothing'"):
        _ = epoque.nothing  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from epoque import nothing  # type: ignore[attr-defined]  # noqa: F401


def test_import_is_silent_and_loads_nothing_yet() -> None:
    code = "import sys, epoque; print(*sorted(m for m in sys.modules if m.startswith(('epoque', 'asyncio', 'socket'))))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "epoque\n", "")


@pytest.mark.parametrize("name", NAMES)
def test_each_name_loads_in_silence(name: str) -> None:
    code = f"import epoque; epoque.{name}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_compiled_tells_where_the_reactor_came_from() -> None:
    code = """
    import epoque
    from epoque.core import reactor
    print(epoque.compiled, reactor.__file__.endswith(".py"))
    """
    assert checked_script(code, env={"EPOQUE_PURE": "1"}) == "False True\n"
    compiled, from_source = checked_script(code, env={"EPOQUE_PURE": "0"}).split()
    assert compiled != from_source


@pytest.mark.parametrize(("value", "pure"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_epoque_pure_loads_sources_only(tmp_path: Path, value: str, pure: bool) -> None:
    """Extension files that cannot be loaded lie beside every source: whoever takes them fails."""
    sources = Path(epoque.__file__).parent
    package = tmp_path / "epoque"
    shutil.copytree(sources, package, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    for source in package.rglob("*.py"):
        if source.stem != "__init__":
            source.with_name(source.stem + suffix).write_bytes(b"no shared object")
    code = """
    import importlib, sys
    sys.path.insert(0, sys.argv[1])
    try:
        import epoque
        importlib.import_module("epoque.loop")
    except ImportError as error:
        print(type(error).__name__)
    else:
        files = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "epoque"]
        print(len(files) > 1 and all(file.startswith(sys.argv[1]) and file.endswith(".py") for file in files))
    """
    assert checked_script(code, str(tmp_path), env={"EPOQUE_PURE": value}) == ("True\n" if pure else "ImportError\n")


def test_the_package_is_typed_and_its_version_is_one() -> None:
    assert (Path(epoque.__file__).parent / "py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.?\w+)?", epoque.__version__)


def test_runner_with_loop_factory() -> None:
    with asyncio.Runner(loop_factory=epoque.new_event_loop) as runner:
        assert runner.run(running()) is epoque.EventLoop
    with asyncio.Runner(loop_factory=epoque.EventLoop) as runner:
        assert runner.run(running()) is epoque.EventLoop


@pytest.mark.since(3, 12)
def test_asyncio_run_with_loop_factory() -> None:
    assert asyncio.run(running(), loop_factory=epoque.new_event_loop) is epoque.EventLoop


APPLICATION = """
import asyncio
def loop():
    return f"{type(asyncio.get_running_loop()).__module__} {asyncio.get_running_loop().get_debug()}"
async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": loop().encode()})
def aiohttp_app(args):
    from aiohttp import web
    async def handler(request): return web.Response(text=loop())
    app = web.Application()
    app.router.add_get("/", handler)
    return app
"""


class Server:
    """A server process that listens on a Unix socket, from the line that says so to the end by a signal."""

    def __init__(self, folder: Path, *command: str, ready: str) -> None:
        (folder / "application.py").write_text(APPLICATION)
        self.path = str(folder / "socket")
        command = tuple(self.path if word == "SOCKET" else word for word in command)
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.output = ""
        for line in self.process.stdout:
            self.output += line
            if ready in line:
                return
        self.process.wait()
        raise AssertionError(f"{command} ended with {self.process.returncode}:\n{self.output}")

    def get(self) -> str:
        connection = http.client.HTTPConnection("localhost")
        with socket.socket(socket.AF_UNIX) as connection.sock:
            connection.sock.settimeout(10)
            connection.sock.connect(self.path)
            connection.request("GET", "/", headers={"Connection": "close"})
            return connection.getresponse().read().decode()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        try:
            self.output += self.process.communicate(timeout=15)[0]
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode


UVICORN = ["-m", "uvicorn", "application:asgi", "--uds", "SOCKET", "--lifespan", "off"]
AIOHTTP = ["-m", "aiohttp.web", "-U", "SOCKET", "application:aiohttp_app"]


@pytest.mark.parametrize(
    "command",
    [[*UVICORN, "--loop", "epoque:new_event_loop"], ["-m", "epoque", *UVICORN, "--loop", "none"]],
    ids=["loop_option", "launcher"],
)
def test_uvicorn(tmp_path: Path, command: list[str]) -> None:
    server = Server(tmp_path, *command, ready="Uvicorn running on")
    try:
        body = server.get()
    finally:
        code = server.end(signal.SIGTERM)
    assert re.fullmatch(r"epoque\.?\w* False", body)
    assert code in (0, -signal.SIGTERM)  # uvicorn raises the signal again once it is done, since 0.29
    assert "Finished server process" in server.output
    assert "Traceback" not in server.output


def test_aiohttp_by_the_launcher(tmp_path: Path) -> None:
    server = Server(tmp_path, "-m", "epoque", "--debug", *AIOHTTP, ready="Running on")
    try:
        body = server.get()
    finally:
        code = server.end(signal.SIGTERM)
    assert re.fullmatch(r"epoque\.?\w* True", body)
    assert code == 0
    assert "Traceback" not in server.output


TESTS = """
import asyncio, pytest, epoque
@pytest.mark.asyncio
async def test_loop():
    assert type(asyncio.get_running_loop()) is epoque.EventLoop
"""
HOOK = """
import epoque
def pytest_asyncio_loop_factories(config, item):
    return {"epoque": epoque.new_event_loop}
"""
POLICY = """
import epoque, pytest
@pytest.fixture(scope="session")
def event_loop_policy():
    return epoque.EventLoopPolicy()
"""


def run_pytest(folder: Path, *launcher: str, conftest: str = "") -> Any:
    (folder / "test_sample.py").write_text(TESTS)
    (folder / "conftest.py").write_text(conftest)
    command = [sys.executable, *launcher, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=40, cwd=folder)


@pytest.mark.parametrize("conftest", [HOOK, POLICY], ids=["loop_factories", "policy"])
def test_pytest_asyncio(tmp_path: Path, conftest: str) -> None:
    if conftest is HOOK:
        plugin = pytest.importorskip("pytest_asyncio.plugin")
        if not hasattr(plugin, "_collect_hook_loop_factories"):
            pytest.skip("this pytest-asyncio is older than its hook for loop factories")
    done = run_pytest(tmp_path, conftest=conftest)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_pytest_by_the_launcher(tmp_path: Path) -> None:
    assert run_pytest(tmp_path).returncode == 1
    done = run_pytest(tmp_path, "-m", "epoque")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
