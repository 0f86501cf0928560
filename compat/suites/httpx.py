"""httpx's suite: its asynchronous tests run on anyio's asyncio backend, and their server on uvicorn in a thread."""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="httpx",
    version="0.28.1",
    extras="brotli,cli,http2,socks,zstd",
    requirements=("pytest<9", "chardet<6", "click<8.2", "trio", "trustme", "uvicorn", "cryptography"),
    arguments=("-k", "not trio", "-m", "not network"),
    serial=True,  # its server listens on port 8000, and its tests wait for ever if it cannot
)
