"""starlette's suite, on anyio's asyncio backend: in each test by a client that runs the loop in a thread."""

from __future__ import annotations

from .project import Project

SUITE = Project(
    name="starlette",
    version="1.10.0",
    extras="full",
    requirements=("blockbuster", "importlib-metadata", "opentelemetry-sdk", "trio", "httpx2[zstd]"),
    plugins=("blockbuster",),
    arguments=(
        "-k",
        "not trio",
    ),
)
