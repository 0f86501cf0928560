"""The loop under test as a fixture that checks what it leaves behind, and the markers that pick tests per loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.loops import LOOP, is_asyncio, is_epoque, new_loop

MARKERS = (
    "epoque_only(reason): asks for more than asyncio promises; deselected on every other loop",
    "asyncio_wrong(reason, when=True): stock asyncio gets this wrong, `when` tells in which Pythons; deselected on the "
    "oracle",
    "since(major, minor): behaviour that asyncio promises from this Python version on",
)


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_report_header() -> str:
    if not is_epoque:
        return f"loop under test: {LOOP}"
    import epoque
    from epoque.selector.choice import new_selector

    selector: Any = new_selector()
    selector.close()
    form = "compiled" if epoque.compiled else "interpreted"
    return f"loop under test: epoque ({form}, {type(selector).__name__}) from {epoque.__file__}"


def _deselected(item: pytest.Item) -> bool:
    if item.get_closest_marker("epoque_only") and not is_epoque:
        return True
    wrong = item.get_closest_marker("asyncio_wrong")
    return is_asyncio and wrong is not None and wrong.kwargs.get("when", True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = [item for item in items if _deselected(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in set(dropped)]
    for item in items:
        since = item.get_closest_marker("since")
        if since and sys.version_info[:2] < since.args:
            item.add_marker(pytest.mark.skip(reason="promised from Python {}.{} on".format(*since.args)))


def pytest_collection_finish() -> None:
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:  # so a shell starts what shall run in the background
            signal.signal(number, handler)
    new_loop().close()  # what the first loop loads may keep a descriptor (libffi of its own file), which is no leak
    gc.freeze()  # keeps the gc.collect() after each test cheap: what collection loaded is not looked at again


def open_descriptors() -> dict[int, str]:
    """Number and target of every open descriptor of this process."""
    found = {}
    for name in os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"):
        with contextlib.suppress(OSError):
            os.fstat(int(name))  # the one that listed the directory is closed by now
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}") if sys.platform == "linux" else ""
    return found


def leaked_descriptors(before: dict[int, str]) -> dict[int, str]:
    """Descriptors that are open now and were not before, once threads and finalizers had a moment to close theirs."""
    for _ in range(20):
        gc.collect()
        left = {fd: target for fd, target in open_descriptors().items() if before.get(fd) != target}
        if not left:
            return {}
        time.sleep(0.02)
    return left


def shut_down(loop: asyncio.AbstractEventLoop) -> None:
    """What asyncio.run does at its end: cancel what is pending, finish generators and executor, close."""
    if loop.is_closed():
        return
    loop.set_task_factory(None)
    try:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.wait(pending, timeout=5))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def process_state() -> dict[str, Any]:
    """What a loop borrows from the process while it runs and must have given back."""
    wakeup = signal.set_wakeup_fd(-1)  # one left by a closed loop is not set again, to spare the next test
    if wakeup in open_descriptors():
        signal.set_wakeup_fd(wakeup)
    return {
        "blocked signals": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "SIGINT handler": signal.getsignal(signal.SIGINT),
        "wake-up descriptor": wakeup,
        "asyncgen hooks": sys.get_asyncgen_hooks(),
        "running loop": asyncio._get_running_loop(),
    }


@pytest.fixture
def errors() -> list[dict[str, Any]]:
    """Contexts with which the exception handler of `loop` was called; a test that uses it expects some."""
    return []


@pytest.fixture
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    """A fresh loop, set as current, that must leave no descriptor, no borrowed state and no unexpected error behind."""
    expected = "errors" in request.fixturenames
    contexts: list[dict[str, Any]] = request.getfixturevalue("errors") if expected else []
    state, descriptors = process_state(), open_descriptors()
    loop = new_loop()
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        shut_down(loop)
        asyncio.set_event_loop(None)
        del loop
    leaked = leaked_descriptors(descriptors)
    assert not leaked, f"descriptors left open: {leaked}"
    assert process_state() == state
    assert expected or not contexts, f"the exception handler was called: {contexts}"
