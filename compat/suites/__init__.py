"""The suites by name.  A new one is a module here, a worker in workers/ and its lists in left_out/ and known/."""

from __future__ import annotations

from . import cpython
from .suite import Suite

SUITES: dict[str, Suite] = {suite.name: suite for suite in (cpython.SUITE,)}
