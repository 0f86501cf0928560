"""uvloop's suite.

Its tests come twice: in classes for uvloop, and again for asyncio, to see that asyncio agrees. workers/uvloop.py gives
the loop under test to both, so what uvloop expects of itself is asked of asyncio and epoque as well.
"""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="uvloop",
    version="0.23.0",
    requirements=("aiohttp", "psutil", "pyOpenSSL", "Cython", "setuptools"),
    hidden=("uvloop",),
    plugins=("uvloop",),
    arguments=(
        "--capture=no",  # a test redirects standard output itself
        "--ignore=tests/test_sourcecode.py",  # flake8 and mypy over the source
    ),
)
