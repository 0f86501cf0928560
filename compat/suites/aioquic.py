"""The part of aioquic's suite that uses a loop: QUIC over datagram endpoints. The rest of it does no I/O."""

from __future__ import annotations

from .project import Project

SUITE = Project(name="aioquic", version="1.7.2", paths=("tests/test_asyncio.py",))
