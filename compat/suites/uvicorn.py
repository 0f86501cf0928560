"""uvicorn's suite.

Its servers run on the loop factory of `loop="auto"`, which is asyncio's where uvloop is not installed, and in the
tests on anyio's asyncio backend.
"""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="uvicorn",
    version="0.54.0",
    requirements=(
        "a2wsgi==1.10.10",
        "cryptography",
        "httptools",
        "httpx2",
        "anyio",
        "pytest-mock",
        "python-dotenv",
        "PyYAML",
        "trustme",
        "watchfiles",
        "websockets>=13",
        "wsproto",
        "zttp",
    ),
    arguments=("--ignore=tests/benchmarks",),
)
