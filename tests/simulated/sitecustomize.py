"""A system with kqueue and without what only Linux has, for a whole interpreter: with this directory in PYTHONPATH.

The model of kqueue is installed; and while epoque's kernel modules are imported, which is when they look what there is,
Linux's own functions are hidden from them. Everybody else sees Linux as it is.
"""

from __future__ import annotations

import importlib.util
import os
import select
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

HIDDEN: list[tuple[Any, str]] = [
    (os, "eventfd"),
    (os, "timerfd_create"),
    (os, "pidfd_open"),
    (os, "pipe2"),
    (select, "epoll"),
]


_exec_module = SourceFileLoader.exec_module


def exec_module(self: SourceFileLoader, module: ModuleType) -> None:
    """Takes the place of `SourceFileLoader.exec_module`."""
    package, _, name = module.__name__.rpartition(".")
    if package != "epoque.kernel" or name == "epoll":
        _exec_module(self, module)
        return
    kept = [(owner, name, getattr(owner, name)) for owner, name in HIDDEN if hasattr(owner, name)]
    for owner, name, _ in kept:
        delattr(owner, name)
    platform, sys.platform = sys.platform, "freebsd14"
    try:
        _exec_module(self, module)
    finally:
        sys.platform = platform
        for owner, name, value in kept:
            setattr(owner, name, value)


def simulate() -> None:
    spec = importlib.util.spec_from_file_location("kqueue_model", Path(__file__).parent.parent / "kqueue_model.py")
    assert spec is not None
    assert spec.loader is not None
    model = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = model
    spec.loader.exec_module(model)
    model.install()
    SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]


if os.environ.get("EPOQUE_SELECTOR") == "kqueue":
    simulate()
