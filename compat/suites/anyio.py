"""anyio's suite, with its asyncio backend.

Its backend parameters `asyncio` and `asyncio+eager` run on asyncio's default loop, in debug mode; uvloop and trio are
not installed.
"""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="anyio",
    version="4.16.0",
    requirements=("blockbuster", "hypothesis", "psutil", "pytest-mock", "trustme", "truststore", "exceptiongroup"),
    plugins=("blockbuster", "localhost"),
    arguments=("-k", "not trio", "-m", "not network"),
)
