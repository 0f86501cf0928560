"""Test functions that are coroutines run on the fixture `loop`, with the fixtures of tests/net."""

from __future__ import annotations

from tests.net.conftest import attach, datagrams, pytest_pyfunc_call, serve, sockets

__all__ = ["attach", "datagrams", "pytest_pyfunc_call", "serve", "sockets"]
