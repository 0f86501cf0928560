"""How is a whole process pointed at another event loop, and how is it known that a test used it?

Everything in asyncio that makes a loop is replaced: the default policy, `SelectorEventLoop` and `EventLoop`.  Code that
reaches for asyncio's private loop classes still gets those.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import functools
import importlib
from typing import Any

NAMES = ("epoque", "asyncio", "uvloop")

made = 0  # event loops of the kind under test made so far in this process


def use(name: str) -> None:
    """Make `name`'s loop the one that asyncio's factories, classes and default policy give."""
    stock = asyncio.SelectorEventLoop
    loop = stock if name == "asyncio" else getattr(importlib.import_module(name), _CLASSES[name])
    _count(loop, takes_selector=loop is stock)
    if loop is stock:
        return
    policy = importlib.import_module(name).EventLoopPolicy
    for module in (asyncio, asyncio.unix_events):
        for attribute in ("SelectorEventLoop", "EventLoop"):
            if hasattr(module, attribute):
                setattr(module, attribute, loop)
        for attribute in ("DefaultEventLoopPolicy", "_DefaultEventLoopPolicy"):
            if hasattr(module, attribute):
                setattr(module, attribute, policy)


_CLASSES = {"epoque": "EventLoop", "uvloop": "Loop"}


def about(name: str) -> str:
    """One line for the report: which loop this is."""
    if name == "asyncio":
        return "asyncio"
    module: Any = importlib.import_module(name)
    mode = {True: " compiled", False: " interpreted", None: ""}[getattr(module, "compiled", None)]
    return f"{name} {module.__version__}{mode}"


def _count(loop: Any, *, takes_selector: bool) -> None:
    original = loop.__init__

    @functools.wraps(original)
    def counting(self: Any, selector: Any = None) -> None:
        """Stock tests hand over a selector; other loops have their own and never see it."""
        global made
        made += 1
        if takes_selector:
            original(self, selector)
        else:
            if selector is not None:
                selector.close()
            original(self)

    loop.__init__ = counting
