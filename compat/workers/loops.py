"""How is a whole process pointed at another event loop, and how is it known that a test made one?

Every way of asyncio to make a loop is replaced: the default policy, and the loop classes that tests name.  Child
watchers, which only the standard loop uses, can still be installed but do nothing.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import asyncio.selector_events
import asyncio.unix_events
import functools
import importlib
import warnings
from types import ModuleType
from typing import Any

NAMES = ("epoque", "asyncio", "uvloop")

made = 0  # event loops of the kind under test made so far in this process
runs = 0  # how often one of them was run, after count_runs()

_CLASSES = {"epoque": "EventLoop", "uvloop": "Loop"}
_STOCK = (asyncio.BaseEventLoop, asyncio.selector_events.BaseSelectorEventLoop, asyncio.SelectorEventLoop)


def use(name: str) -> None:
    """Make `name`'s loop the one that asyncio's default policy and `asyncio.SelectorEventLoop` give.

    To be called before the modules with the tests are imported.
    """
    if name == "asyncio":
        _count_stock()
        return
    module = importlib.import_module(name)
    _count(_loop_class(module))
    _replace("SelectorEventLoop", _loop_class(module))
    _replace("EventLoop", _loop_class(module))
    _replace("DefaultEventLoopPolicy", module.EventLoopPolicy)
    _replace("_DefaultEventLoopPolicy", module.EventLoopPolicy)
    _idle_child_watchers(module.EventLoopPolicy)


def use_as_base(name: str) -> None:
    """Let `asyncio.BaseEventLoop()` give `name`'s loop too.

    To be called after the modules with the tests are imported: a helper in them that derives from that class keeps it.
    """
    if name != "asyncio":
        module = importlib.import_module(name)
        _replace("BaseEventLoop", _loop_class(module))
        _replace("BaseSelectorEventLoop", _loop_class(module))


def count_runs(name: str) -> None:
    """Count runs too: where tests share a loop, only the first of them makes it."""
    loop: Any = asyncio.BaseEventLoop if name == "asyncio" else _loop_class(importlib.import_module(name))
    for attribute in ("run_forever", "run_until_complete"):
        setattr(loop, attribute, _counting_runs(getattr(loop, attribute), _STOCK if name == "asyncio" else (loop,)))


def about(name: str) -> str:
    """One line for the report: which loop this is."""
    if name == "asyncio":
        return "asyncio"
    module = importlib.import_module(name)
    mode = {True: " compiled", False: " interpreted", None: ""}[getattr(module, "compiled", None)]
    return f"{name} {module.__version__}{mode}"


def _loop_class(module: ModuleType) -> Any:
    return getattr(module, _CLASSES[module.__name__])


def _replace(attribute: str, value: Any) -> None:
    for module in (asyncio, asyncio.base_events, asyncio.selector_events, asyncio.unix_events):
        if hasattr(module, attribute):
            setattr(module, attribute, value)


def _count(loop: Any) -> None:
    original = loop.__init__

    @functools.wraps(original)
    def counting(self: Any, selector: Any = None) -> None:
        """Tests hand a selector to the standard loop; others have their own and never see it."""
        global made
        made += 1
        if selector is not None:
            selector.close()
        original(self)

    loop.__init__ = counting


def _count_stock() -> None:
    """Tests derive loops of their own from BaseEventLoop, with internals replaced: those do not count."""
    original = asyncio.BaseEventLoop.__init__

    @functools.wraps(original)
    def counting(self: Any) -> None:
        global made
        made += type(self) in _STOCK
        original(self)

    asyncio.BaseEventLoop.__init__ = counting  # type: ignore[method-assign]


def _counting_runs(original: Any, kinds: tuple[type, ...]) -> Any:
    @functools.wraps(original)
    def counting(self: Any, *arguments: Any) -> Any:
        global runs
        runs += type(self) in kinds
        return original(self, *arguments)

    return counting


def _idle_child_watchers(policy: Any) -> None:
    """Set-ups of many tests install a child watcher (Python < 3.14), though they are not about it."""

    def set_child_watcher(self: Any, watcher: Any) -> None:
        warnings.warn("child watchers are deprecated", DeprecationWarning, stacklevel=2)
        self._child_watcher = watcher

    def get_child_watcher(self: Any) -> Any:
        warnings.warn("child watchers are deprecated", DeprecationWarning, stacklevel=2)
        return getattr(self, "_child_watcher", None)

    if hasattr(asyncio.unix_events, "BaseChildWatcher"):
        asyncio.unix_events.BaseChildWatcher.attach_loop = lambda self, loop: None  # type: ignore[method-assign]
        policy.set_child_watcher = set_child_watcher
        policy.get_child_watcher = get_child_watcher
