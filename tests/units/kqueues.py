"""Where do tests of the kqueue selector get a kqueue from? The system, or the model for the interpreted form."""

from __future__ import annotations

import select

import pytest

import epoque
from tests import kqueue_model
from tests.loops import on_kqueue


def provide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `select` have kqueue for the rest of the test; skips it where the compiled form would need one to link to."""
    if epoque.compiled and not on_kqueue:
        pytest.skip("compiled without kqueue; make test-kqueue")
    if not epoque.compiled and not hasattr(select, "kqueue"):
        for name, value in kqueue_model.NAMES.items():
            monkeypatch.setattr(select, name, value, raising=False)
