"""Which selector does this system have? epoll on Linux, kqueue on macOS and the BSDs.

EPOQUE_SELECTOR in the environment names one of them; that it must be there is checked when the first loop is made.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from epoque.kernel import epoll, kqueue

if TYPE_CHECKING:
    from epoque.selector.selector import Selector

__all__ = ["new_selector", "selectors"]


def selectors() -> list[str]:
    """The names of those that work here; the first one is the default."""
    return [name for name, module in (("epoll", epoll), ("kqueue", kqueue)) if module.available()]


def new_selector() -> Selector:
    """A selector of the system's own kind, or of the kind that EPOQUE_SELECTOR names; RuntimeError without that."""
    return _kind(os.environ.get("EPOQUE_SELECTOR"))()


@functools.cache
def _kind(name: str | None) -> type[Selector]:
    known = selectors()
    if not name:
        name = known[0]
    elif name not in known:
        raise RuntimeError(f"EPOQUE_SELECTOR is {name!r}; this system has {' and '.join(known)}")
    if name == "epoll":
        from epoque.selector.epoll import EpollSelector

        return EpollSelector
    from epoque.selector.kqueue import KqueueSelector

    return KqueueSelector
