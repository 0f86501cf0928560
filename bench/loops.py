"""Which event loops can be compared, how is each made, and which version is installed here?

Run as ``python -m bench.loops NAME`` it makes that loop once and prints its version, so that a loop that is missing or
crashes on import is found out in a process of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Loop:
    """Where the factory of a loop stands, and the environment its processes need."""

    module: str
    factory: str = "new_event_loop"
    environment: dict[str, str] = field(default_factory=dict)
    compiled: bool | None = None  # what `module.compiled` must be; None: the module does not have it
    over: str | None = None  # the factory changes a loop of this name
    own: bool = False  # ours: the others are its peers


LOOPS = {
    "asyncio": Loop("asyncio", "SelectorEventLoop"),
    "uvloop": Loop("uvloop"),
    "epoque": Loop("epoque", compiled=True, own=True),
    "epoque-pure": Loop("epoque", environment={"EPOQUE_PURE": "1"}, compiled=False, own=True),
    "aiofastnet": Loop("aiofastnet", "patch_loop", over="uvloop"),
    "blazio": Loop("blazio"),
    "loopmini": Loop("loopmini"),
    "rloop": Loop("rloop"),
    "rsloop": Loop("rsloop"),
    "veloxloop": Loop("veloxloop"),
    "zloop": Loop("zloop"),
    "zuvloop": Loop("zuvloop"),
}
PEERS = [name for name, loop in LOOPS.items() if not loop.own]

# A debug switch in the caller's environment would be measured instead of the loop.
REMOVED = ("PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONWARNINGS", "EPOQUE_PURE")

_made = ""


def environment(name: str) -> dict[str, str]:
    """The environment of a process that runs the loop *name*; other names give the cleaned one."""
    kept = {key: value for key, value in os.environ.items() if key not in REMOVED}
    return kept | (LOOPS[name].environment if name in LOOPS else {})


def new(name: str) -> asyncio.AbstractEventLoop:
    """A new loop. RuntimeError if it is not the mode that *name* promises."""
    entry = LOOPS[name]
    module: Any = importlib.import_module(entry.module)
    if entry.compiled is not None and module.compiled is not entry.compiled:
        raise RuntimeError("not compiled" if entry.compiled else "not interpreted")
    factory = getattr(module, entry.factory)
    loop: asyncio.AbstractEventLoop = factory(new(entry.over)) if entry.over else factory()
    return loop


def make(name: str) -> asyncio.AbstractEventLoop:
    """A new loop, set as the current one of this process, which is about this loop."""
    global _made
    _made = name
    loop = new(name)
    asyncio.set_event_loop(loop)
    return loop


def another() -> asyncio.AbstractEventLoop:
    """One more of the kind that this process is about."""
    return new(_made)


def version(module: str) -> str:
    if module in sys.stdlib_module_names:
        return "CPython " + sys.version.split()[0]
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:  # a source tree on the path
        return str(getattr(sys.modules[module], "__version__", "unknown version"))


def main() -> None:
    entry = LOOPS[sys.argv[1]]
    try:
        make(sys.argv[1]).close()
    except ModuleNotFoundError as error:
        if error.name not in (entry.module, entry.over):
            raise
        print(json.dumps({"error": "not installed"}))
    else:
        over = f" over {entry.over} {version(entry.over)}" if entry.over else ""
        print(json.dumps({"version": version(entry.module) + over}))


if __name__ == "__main__":
    main()
