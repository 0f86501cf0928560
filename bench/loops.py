"""Which event loops can be compared, how is each made, and which version is installed here?

Run as ``python -m bench.loops NAME`` it makes that loop once and prints its version, so that a loop that is missing or
crashes on import is found out in a process of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Loop:
    """Where the factory of a loop stands, and the environment its processes need."""

    module: str
    factory: str
    environment: dict[str, str] = field(default_factory=dict)
    compiled: bool | None = None  # what `module.compiled` must be; None: the module does not have it


LOOPS = {
    "asyncio": Loop("asyncio", "SelectorEventLoop"),
    "uvloop": Loop("uvloop", "new_event_loop"),
    "epoque": Loop("epoque", "new_event_loop", compiled=True),
    "epoque-pure": Loop("epoque", "new_event_loop", {"EPOQUE_PURE": "1"}, compiled=False),
}

# A debug switch in the caller's environment would be measured instead of the loop.
REMOVED = ("PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONWARNINGS", "EPOQUE_PURE")


def environment(name: str) -> dict[str, str]:
    """The environment of a process that runs the loop *name*; other names give the cleaned one."""
    kept = {key: value for key, value in os.environ.items() if key not in REMOVED}
    return kept | (LOOPS[name].environment if name in LOOPS else {})


def make(name: str) -> asyncio.AbstractEventLoop:
    """A new loop, set as the current one. RuntimeError if it is not the mode that *name* promises."""
    entry = LOOPS[name]
    module: Any = importlib.import_module(entry.module)
    if entry.compiled is not None and module.compiled is not entry.compiled:
        raise RuntimeError("not compiled" if entry.compiled else "not interpreted")
    loop: asyncio.AbstractEventLoop = getattr(module, entry.factory)()
    asyncio.set_event_loop(loop)
    return loop


def main() -> None:
    name = sys.argv[1]
    module = LOOPS[name].module
    try:
        make(name).close()
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        print(json.dumps({"error": "not installed"}))
    else:
        own = getattr(sys.modules[module], "__version__", None)
        print(json.dumps({"version": own or "CPython " + sys.version.split()[0]}))


if __name__ == "__main__":
    main()
