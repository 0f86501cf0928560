"""Do install(), the policy and run() put epoque's loop where asyncio's own would be, on every Python?"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import warnings
from asyncio import events
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.loops import checked_script, is_epoque

pytestmark = pytest.mark.epoque_only("about epoque's policy")
if is_epoque:
    import epoque


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the deprecations that asyncio attaches to policies from 3.12 on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.fixture(autouse=True)
def _own_policy() -> Iterator[None]:
    """Whatever policy a test sets, the next one starts with asyncio's default."""
    with quiet():
        asyncio.set_event_loop_policy(None)
    yield
    with quiet():
        asyncio.set_event_loop_policy(None)


def set_policy(policy: Any) -> None:
    with quiet():
        asyncio.set_event_loop_policy(policy)


async def running() -> type:
    return type(asyncio.get_running_loop())


class Other(asyncio.SelectorEventLoop):
    """Stands for a loop that the program chose."""


def test_a_new_loop_is_epoque_s_and_not_yet_current() -> None:
    loop = epoque.new_event_loop()
    try:
        assert type(loop) is epoque.EventLoop
        set_policy(epoque.EventLoopPolicy())
        asyncio.set_event_loop(None)
        with pytest.raises(RuntimeError):
            asyncio.get_event_loop()
    finally:
        loop.close()


@pytest.mark.parametrize("how", ["install", "set_event_loop_policy"])
def test_asyncio_creates_epoque_s_loops(how: str) -> None:
    if how == "install":
        epoque.install()
    else:
        set_policy(epoque.EventLoopPolicy())
    assert asyncio.run(running()) is epoque.EventLoop
    with asyncio.Runner() as runner:
        assert runner.run(running()) is epoque.EventLoop
    loop = asyncio.new_event_loop()
    assert type(loop) is epoque.EventLoop
    loop.close()


def test_a_loop_factory_wins_over_install() -> None:
    epoque.install()
    with asyncio.Runner(loop_factory=Other) as runner:
        assert runner.run(running()) is Other


def test_a_later_policy_wins_over_install() -> None:
    epoque.install()
    set_policy(None)
    assert asyncio.run(running()) is not epoque.EventLoop


def test_the_policy_extends_asyncio_s_default_one() -> None:
    with quiet():
        assert issubclass(epoque.EventLoopPolicy, asyncio.DefaultEventLoopPolicy)
    assert epoque.EventLoopPolicy is epoque.policy.EventLoopPolicy
    assert repr(epoque.EventLoopPolicy) == "<class 'epoque.EventLoopPolicy'>"


def test_each_thread_has_its_own_current_loop() -> None:
    set_policy(epoque.EventLoopPolicy())
    loop = epoque.new_event_loop()
    asyncio.set_event_loop(loop)
    seen: list[Any] = []

    def other_thread() -> None:
        try:
            seen.append(asyncio.get_event_loop())
        except RuntimeError as error:
            seen.append(str(error))

    thread = threading.Thread(target=other_thread, name="another")
    thread.start()
    thread.join()
    assert asyncio.get_event_loop() is loop
    assert seen == ["There is no current event loop in thread 'another'."]
    asyncio.set_event_loop(None)
    loop.close()


def outcome(policy: Any, call: Callable[[], Any]) -> tuple[str, list[tuple[type, str, str]]]:
    """What a call gives (or raises) and warns about under a policy."""
    set_policy(policy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            loop = call()
        except RuntimeError as error:
            result = f"{type(error).__name__}: {error}"
        else:
            result = "a loop"
            loop.close()
    return result, [(w.category, str(w.message), w.filename) for w in caught]


@pytest.mark.parametrize("first", [True, False], ids=["never_set", "unset"])
def test_get_event_loop_without_a_loop_does_what_this_python_does(first: bool) -> None:
    def call() -> asyncio.AbstractEventLoop:
        if not first:
            asyncio.set_event_loop(None)
        return asyncio.get_event_loop()

    assert outcome(epoque.EventLoopPolicy(), call) == outcome(None, call)


def test_child_watchers_are_asyncio_s() -> None:
    if not hasattr(asyncio, "get_child_watcher"):
        pytest.skip("child watchers ended with Python 3.13")
    with quiet():
        default = asyncio.get_child_watcher()
        asyncio.set_event_loop_policy(epoque.EventLoopPolicy())
        assert type(asyncio.get_child_watcher()) is type(default)


# What later Pythons do is acted out in a process of its own, so that this much is known before they arrive.
PYTHON_3_14 = """
import warnings
def deprecated(name, value=None):
    def call(*args):
        warnings.warn(f"{name} is deprecated", DeprecationWarning, stacklevel=2)
        return value(*args)
    return call
asyncio.set_event_loop_policy = deprecated("set_event_loop_policy", asyncio.set_event_loop_policy)
hidden = {name: vars(asyncio).pop(name) for name in ("AbstractEventLoopPolicy", "DefaultEventLoopPolicy")}
asyncio.__getattr__ = lambda name: deprecated(name, hidden.__getitem__)(name)
"""
PYTHON_3_16 = """
for name in ("set_event_loop_policy", "get_event_loop_policy"):
    delattr(asyncio, name)
    delattr(asyncio.events, name)
for name in ("AbstractEventLoopPolicy", "DefaultEventLoopPolicy"):
    vars(asyncio).pop(name, None)
if "__getattr__" in vars(asyncio):
    del asyncio.__getattr__
asyncio.new_event_loop = asyncio.events.new_event_loop = asyncio.SelectorEventLoop
asyncio.set_event_loop = asyncio.events.set_event_loop = lambda loop: None
"""
USES = """
import epoque
async def running(): return type(asyncio.get_running_loop()) is epoque.EventLoop
with asyncio.Runner(loop_factory=epoque.new_event_loop) as runner:
    print(runner.run(running()))
epoque.install()
print(asyncio.run(running()), epoque.run(running()))
with asyncio.Runner() as runner:
    print(runner.run(running()))
loop = asyncio.new_event_loop()
print(type(loop) is epoque.EventLoop)
loop.close()
"""


PYTHONS = {"this": "", "deprecated": PYTHON_3_14, "removed": PYTHON_3_16}
if sys.version_info >= (3, 14):
    del PYTHONS["deprecated"]  # which this one is


@pytest.mark.parametrize("python", PYTHONS)
def test_install_works_in_silence_while_policies_fade_out(python: str) -> None:
    code = f"import warnings\nwarnings.simplefilter('error')\n{PYTHONS[python]}{USES}"
    assert checked_script(code).split() == ["True"] * 5


def test_without_policies_there_is_no_class_of_them() -> None:
    code = f"{PYTHON_3_16}import epoque\nprint(hasattr(epoque, 'EventLoopPolicy'))"
    assert checked_script(code) == "False\n"


def test_without_epoll_and_kqueue_asyncio_s_loop_runs_with_one_warning() -> None:
    code = """
    import contextlib, select, warnings
    for name in ("epoll", "kqueue"):
        if hasattr(select, name):
            delattr(select, name)
    import epoque
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        default = type(loop)
    async def running(): return type(asyncio.get_running_loop()) is default
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert epoque.EventLoop is default and not caught
        loop = epoque.new_event_loop()
        assert type(loop) is default
        loop.close()
        assert epoque.run(running())
        epoque.install()
        assert asyncio.run(running())
    print(*(f"{w.category.__name__} {w.filename} {w.message}" for w in caught))
    """
    env = {"PYTHONWARNINGS": "ignore", "EPOQUE_PURE": "1"}  # compiled, it has been found to be there
    said = checked_script(code, env=env)
    assert said.startswith("RuntimeWarning <string> epoque needs epoll")
    assert said.count("\n") == 1


def test_run_gives_the_result_on_epoque_s_loop() -> None:
    assert epoque.run(running()) is epoque.EventLoop


@pytest.mark.parametrize("debug", [True, False])
def test_run_sets_debug_mode(debug: bool) -> None:
    async def main() -> bool:
        return asyncio.get_running_loop().get_debug()

    assert epoque.run(main(), debug=debug) is debug


def test_run_leaves_debug_mode_to_the_environment() -> None:
    code = "import epoque\nasync def main(): print(asyncio.get_running_loop().get_debug())\nepoque.run(main())"
    assert checked_script(code, env={"PYTHONASYNCIODEBUG": "1"}) == "True\n"
    assert checked_script(code, env={"PYTHONASYNCIODEBUG": ""}) == "False\n"


def test_run_passes_errors_on_and_cleans_up() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("task cancelled")

    async def main() -> None:
        ended.append("started")
        asyncio.get_running_loop().create_task(background())
        await asyncio.sleep(0)
        raise KeyError("from main")

    with pytest.raises(KeyError, match="from main"):
        epoque.run(main())
    assert ended == ["started", "task cancelled"]
    assert events._get_running_loop() is None


def test_run_inside_a_running_loop_is_an_error() -> None:
    async def nested() -> None:
        main = running()
        with pytest.raises(RuntimeError, match="cannot be called from a running event loop"):
            epoque.run(main)
        main.close()

    asyncio.run(nested())
    epoque.run(nested())


@pytest.mark.parametrize("main", [None, 1, running], ids=["None", "number", "function"])
def test_run_wants_a_coroutine_as_asyncio_does(main: Any) -> None:
    def error(run: Callable[..., Any]) -> tuple[type, str]:
        with pytest.raises((TypeError, ValueError)) as caught:
            run(main)
        return caught.type, str(caught.value)

    assert error(epoque.run) == error(asyncio.run)


def test_the_policy_survives_a_fork() -> None:
    epoque.install()
    pid = os.fork()
    if not pid:
        os._exit(asyncio.run(running()) is epoque.EventLoop)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
