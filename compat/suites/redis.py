"""redis-py's asyncio tests, against a real Redis on the loopback.

Left out by marks is what needs other servers: Redis with modules, with TLS, a cluster, two databases.
"""

from __future__ import annotations

from .. import services
from .project import Project

ABSENT = ("redismod", "onlycluster", "ssl", "multidb_integration", "cp_integration")

SUITE = Project(
    name="redis",
    version="8.1.0",
    requirements=(
        "aiohttp",
        "coverage",
        "numpy",
        "opentelemetry-sdk",
        "pybreaker",
        "pytest-asyncio",
        "pytest-timeout",
        "redis-entraid",
        "ujson",
        "xxhash",
    ),
    paths=("tests/test_asyncio",),
    hidden=("redis",),
    arguments=("--ignore=tests/test_asyncio/test_scenario", "-m", " and ".join(f"not {mark}" for mark in ABSENT)),
    debian=("redis-server",),
    service=services.redis,
    serial=True,
)
