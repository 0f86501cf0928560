"""httpcore's suite: its asynchronous tests run on anyio's asyncio backend, which takes asyncio's default loop."""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="httpcore",
    version="1.0.9",
    extras="asyncio,http2,socks",
    requirements=("pytest<9", "pytest-httpbin==2.0.0", "pytest-trio==0.8.0", "trio", "werkzeug<2.1"),
    arguments=("-k", "not trio"),
)
