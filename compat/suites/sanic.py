"""sanic's suite without benchmarks and type checks.

uvloop, which sanic installs and prefers, is taken out of its environment again.
"""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="sanic",
    version="25.12.1",
    requirements=(
        "aioquic",
        "beautifulsoup4",
        "chardet<4",
        "cryptography",
        "docutils",
        "pygments",
        "pytest-benchmark",
        "pytest-sanic",
        "sanic-testing>=23.6.0",
        "uvicorn<0.31",
    ),
    unwanted=("uvloop",),
    hidden=("sanic",),
    arguments=tuple(f"--ignore=tests/{folder}" for folder in ("benchmark", "performance", "typing")),
)
