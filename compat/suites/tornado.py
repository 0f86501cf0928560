"""tornado's suite: its IOLoop is asyncio's default loop."""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="tornado",
    version="6.6.1",
    paths=("tornado/test",),
    plugins=("tornado",),
    variables={"EMULATION": "1"},  # longer time limits in tests, for slow machines
    arguments=("-opython_files=*_test.py",),
)
