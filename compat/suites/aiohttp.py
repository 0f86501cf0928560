"""aiohttp's suite.

Its `loop` fixture takes `asyncio.new_event_loop` with `--aiohttp-loop=pyloop`, the default; uvloop is not installed.
"""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="aiohttp",
    version="3.14.5",
    extras="speedups",
    constraints="requirements/constraints.txt",
    requirements=(
        "blockbuster",
        "coverage",
        "freezegun",
        "gunicorn",
        "isal; python_version < '3.14'",
        "pkgconfig",
        "proxy.py",
        "pytest-mock",
        "python-on-whales",
        "trustme",
        "zlib-ng",
    ),
    hidden=("aiohttp",),
    plugins=("blockbuster",),
    arguments=("-m", "not dev_mode and not autobahn and not internal", "--ignore-glob=tests/test_benchmarks_*"),
)
