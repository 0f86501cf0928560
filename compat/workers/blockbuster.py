"""A plugin for suites that watch for blocking calls with the package blockbuster.

It knows by file name which calls asyncio's own loop makes knowingly (sendfile(2) on a socket that does not block, the
path of a Unix socket, the pipe that tells how exec went). This tells it the same of epoque's files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from blockbuster import blockbuster

_PATHS = ("epoque/endpoints/unix.py", {"remove_stale", "_remover", "_remove"})
ALLOWED: dict[str, tuple[str, set[str]]] = {
    "os.stat": _PATHS,
    "os.unlink": _PATHS,
    "os.remove": _PATHS,
    "os.path.abspath": _PATHS,
    "os.sendfile": ("epoque/endpoints/files.py", {"_send"}),
    "os.read": ("epoque/transports/process.py", {"spawn"}),
    "acquire": ("epoque/core/executors.py", {"shutdown_default_executor"}),
}

Exempt = list[tuple[str, Iterable[str]]]
_original = blockbuster.BlockBusterFunction.__init__


def _init(self: Any, module: Any, name: str, *, can_block_functions: Exempt | None = None, **keywords: Any) -> None:
    exempt = [*(can_block_functions or []), *([ALLOWED[name]] if name in ALLOWED else [])]
    _original(self, module, name, can_block_functions=exempt, **keywords)


blockbuster.BlockBusterFunction.__init__ = _init
