"""Test functions that are coroutines run on the fixture `loop`, as in tests/net. No test may leave a child behind."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.net.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(autouse=True)
def no_child_left() -> Iterator[None]:
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
