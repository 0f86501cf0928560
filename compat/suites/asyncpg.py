"""asyncpg's suite, against real PostgreSQL servers.

The suite makes and starts a server per module by itself, with and without TLS, with standbys, and with every way of
authentication; services.py gives it the programs for that. Left out is what looks at the source (flake8, mypy).
"""

from __future__ import annotations

from .. import services
from .project import Project

SUITE = Project(
    name="asyncpg",
    version="0.32.0",
    requirements=("distro",),
    hidden=("asyncpg",),
    arguments=("--import-mode=importlib", "--assert=plain", "--ignore=tests/test__sourcecode.py"),
    debian=("postgresql",),
    service=services.postgresql,
)
