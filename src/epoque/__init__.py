"""What does `import epoque` give?

The public names, each loaded when it is first used, so that `import epoque` costs next to nothing and is silent even
where asyncio has deprecated event loop policies (3.14+). With EPOQUE_PURE set in the environment (to anything but 0)
before the first import, every module of the package comes from its .py file, also where a compiled one lies beside it;
in a sub-interpreter always, for what Cython compiles serves one interpreter of a process.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from epoque.policy import EventLoop, EventLoopPolicy, install, new_event_loop, run

    compiled: bool

__all__ = ["EventLoop", "EventLoopPolicy", "__version__", "compiled", "install", "new_event_loop", "run"]
if sys.version_info >= (3, 16):  # asyncio has no policies
    __all__.remove("EventLoopPolicy")
__version__ = "0.1.0"


class _SourceFinder:
    """Meta path finder that knows only the .py files of this package."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(f"{__name__}."):
            return None
        finders = (FileFinder(entry, (SourceFileLoader, SOURCE_SUFFIXES)) for entry in path or ())
        return next(filter(None, (finder.find_spec(name) for finder in finders)), None)


def _in_sub_interpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on, and before; nothing public says it
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() != interpreters.get_main())
    return False


_sub_interpreter = _in_sub_interpreter()
if os.environ.get("EPOQUE_PURE", "0") not in ("", "0") or _sub_interpreter:
    sys.meta_path.insert(0, _SourceFinder)


def __getattr__(name: str) -> object:
    value: object
    if name == "compiled":
        from importlib.util import find_spec  # asyncio does without it

        spec = find_spec("epoque.core.reactor")
        value = spec is not None and isinstance(spec.loader, ExtensionFileLoader)
    elif name in __all__:
        value = getattr(importlib.import_module("epoque.policy"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
