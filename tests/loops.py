"""Which loop is under test, and how a test makes one, runs a coroutine on it, or runs code in a process of its own.

Nothing here imports epoque unless epoque is the loop under test, so that the oracle run needs no build of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
LOOP = os.environ.get("EPOQUE_TEST_LOOP", "epoque")
if LOOP not in ("epoque", "asyncio", "uvloop"):
    raise SystemExit(f"EPOQUE_TEST_LOOP={LOOP!r}: expected epoque, asyncio or uvloop")

is_epoque = LOOP == "epoque"
is_asyncio = LOOP == "asyncio"
on_kqueue = is_epoque and os.environ.get("EPOQUE_SELECTOR") == "kqueue"
on_library = on_kqueue and not hasattr(select, "kqueue")  # compiled over kqueue_lib.c: Python itself has no kqueue


def new_loop() -> asyncio.AbstractEventLoop:
    """A fresh loop of the kind under test; the caller closes it."""
    if LOOP == "asyncio":
        return asyncio.SelectorEventLoop()
    module: Any = __import__(LOOP)
    return module.new_event_loop()


def run(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T], timeout: float = 5) -> T:
    """Run a coroutine to its end, for `timeout` seconds at most."""
    return loop.run_until_complete(asyncio.wait_for(coro, timeout))


def turn(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop run for exactly one turn: stop() before run_forever() is documented to do that."""
    loop.stop()
    loop.run_forever()


@contextlib.contextmanager
def spawn(code: str, *args: str, env: dict[str, str] | None = None, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run code in a fresh interpreter that has `asyncio`, `new_loop` and `run` at hand; its output is piped, as text.

    `env` is added to this process's environment, `options` go to subprocess.Popen. The process is waited for at the
    end of the with block, and killed first if the block raises.
    """
    head = "import asyncio, os, signal, socket, sys, threading, time\nfrom tests.loops import new_loop, run\n"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = dict(os.environ, PYTHONPATH=path, EPOQUE_TEST_LOOP=LOOP, PYTHONFAULTHANDLER="1") | (env or {})
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    with subprocess.Popen([sys.executable, "-c", head + textwrap.dedent(code), *args], env=env, **options) as child:
        try:
            yield child
        except BaseException:
            child.kill()
            raise


def script(code: str, *args: str, timeout: float = 30, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code as `spawn` does, to its end, for `timeout` seconds at most."""
    with spawn(code, *args, **options) as child:
        output, errors = child.communicate(timeout=timeout)
    return subprocess.CompletedProcess(child.args, child.returncode, output, errors)


def checked_script(code: str, *args: str, **options: Any) -> str:
    """Like `script`, and the exit code must be 0; returns the standard output."""
    done = script(code, *args, **options)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def forked(child: Callable[[], object]) -> int:
    """Run `child` in a forked process that never returns to the test; gives its process id, to be reaped by the test.

    The exit code is 0 if `child` returned, 1 (with a traceback on stderr) if it raised.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        child()
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    """Reap a child process made by `forked`; its exit code, negative for the number of the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
