"""Sockets and bells that close themselves; and how Hypothesis runs here: alike every time, on any machine."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest
from hypothesis import settings

from tests.units.real import close

settings.register_profile("units", derandomize=True, database=None, deadline=None)
settings.load_profile("units")


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def pair(stack):
    """A function that gives two connected, non-blocking sockets."""

    def pair():
        ends = socket.socketpair()
        for end in ends:
            end.setblocking(False)
            stack.enter_context(end)
        return ends

    return pair


@pytest.fixture
def bell(stack):
    """A function that gives an eventfd; ``os.eventfd_write(fd, 1)`` makes it readable."""

    def bell(value=0):
        fd = os.eventfd(value, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        stack.callback(close, fd)
        return fd

    return bell
