"""A plugin for uvloop's own suite: its classes for uvloop get the loop under test, which is asyncio's default here."""

from __future__ import annotations

import asyncio

import uvloop
from uvloop import _testbase

uvloop.new_event_loop = lambda: asyncio.SelectorEventLoop()
_testbase.UVTestCase.new_loop = lambda self: asyncio.new_event_loop()
_testbase.UVTestCase.new_policy = lambda self: asyncio.DefaultEventLoopPolicy()
