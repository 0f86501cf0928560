"""Which interpreter is this, and which libraries do the measured programs use? ``python -m bench.libraries``"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import ssl
import sys

NAMES = ("aiohttp", "uvicorn", "httptools", "websockets")


def versions() -> dict[str, str]:
    """By name; what is not installed is left out."""
    found = {"OpenSSL": ssl.OPENSSL_VERSION.split()[1]}
    for name in NAMES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    python = f"{platform.python_implementation()} {sys.version.splitlines()[0]}"
    print(json.dumps({"python": python, "libraries": versions()}))
