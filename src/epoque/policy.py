"""How does a program come to run on epoque?

By a loop factory (`new_event_loop`), by asyncio's event loop policy (`EventLoopPolicy`, `install`), or by `run`, which
stands in for `asyncio.run`. A factory needs no global state; a policy reaches programs that take no factory. asyncio
deprecates policies from 3.14 on and drops them in 3.16 (gh-127949); `install` works there too.

Where the system has neither epoll nor kqueue (Windows) `EventLoop` is the class of asyncio's own default loop, and the
first `new_event_loop()` says so in a RuntimeWarning.
"""

from __future__ import annotations

import asyncio
import warnings
from asyncio import events
from typing import TYPE_CHECKING, Any, TypeVar

from epoque.selector.choice import selectors

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["EventLoop", "EventLoopPolicy", "install", "new_event_loop", "run"]

T = TypeVar("T")

_supported = bool(selectors())
_warned = False

if TYPE_CHECKING or _supported:
    from epoque.loop import EventLoop
elif hasattr(asyncio, "EventLoop"):  # 3.13
    EventLoop = asyncio.EventLoop
else:
    EventLoop = asyncio.DefaultEventLoopPolicy._loop_factory

if TYPE_CHECKING:

    class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
        """asyncio's default policy, except that new loops are epoque's."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop, not yet set as the current one: the loop factory for `asyncio.Runner` and its like."""
    global _warned
    if not (_supported or _warned):
        _warned = True
        warnings.warn(
            "epoque needs epoll or kqueue, and this system has neither: asyncio's own event loop runs instead",
            RuntimeWarning,
            stacklevel=2,
        )
    return EventLoop()


def install() -> None:
    """Make epoque the loop that asyncio.run() and asyncio.new_event_loop() create from now on, in this process.

    A loop factory given to asyncio.run() or asyncio.Runner(), and a policy set later, still take precedence.
    """
    if hasattr(asyncio, "set_event_loop_policy"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            asyncio.set_event_loop_policy(__getattr__("EventLoopPolicy")())
    else:  # Without policies the function itself is the one place that decides; Runner looks it up in events.
        asyncio.new_event_loop = events.new_event_loop = new_event_loop


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """Run the coroutine on a new epoque loop and return its result, as asyncio.run() does (same clean-up, same ^C)."""
    if events._get_running_loop() is not None:
        raise RuntimeError("epoque.run() cannot be called from a running event loop")
    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        return runner.run(main)


def __getattr__(name: str) -> Any:
    """Make the policy class on first access: from 3.14 on, merely naming its base class warns."""
    if name != "EventLoopPolicy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        base = getattr(asyncio, "DefaultEventLoopPolicy", None)
    if base is None:
        raise AttributeError("asyncio has no event loop policies from Python 3.16 on: use epoque.new_event_loop")
    namespace = {
        "__module__": "epoque",
        "__doc__": "asyncio's default policy, except that new loops are epoque's.",
        "_loop_factory": staticmethod(new_event_loop),
    }
    return globals().setdefault(name, type(name, (base,), namespace))
