"""hypercorn's suite without that of its trio worker. Its servers run in the test's own loop, by pytest-asyncio."""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="hypercorn",
    version="0.18.0",
    extras="h3",
    requirements=("h2<4.4", "httpx", "hypothesis", "mock", "pytest-asyncio", "pytest-trio", "trio"),
    arguments=("--ignore=tests/trio", "-k", "not trio"),
)
