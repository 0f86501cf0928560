"""CPython's own asyncio suite, `test.test_asyncio`, from the running interpreter's standard library.

It ships with the interpreter (on Debian in the package libpython3.X-testsuite), so nothing is fetched and the suite
always belongs to the asyncio it is compared with.
"""

from __future__ import annotations

import platform

from .suite import Suite

SUITE = Suite(
    name="cpython",
    title=f"test.test_asyncio of {platform.python_implementation()}",
    version=platform.python_version(),
    worker="compat.workers.cpython",
    group=lambda test: test.partition(".")[0],
)
