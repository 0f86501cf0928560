"""pytest-asyncio's suite: its own tests, and the examples of its documentation.

Most tests run pytest on a small test module in the same process, on asyncio's default loop. Those that start a process
for it are in that process on stock asyncio.
"""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="pytest-asyncio",
    version="1.5.0",
    requirements=("coverage", "hypothesis"),
    paths=("tests", "docs"),
    hidden=("pytest_asyncio",),
    arguments=("--tb=short",),
)
