"""A server of files: each message is answered by the whole file."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from bench.servers import listen
from bench.servers.echo import Counting


async def sendfile(options: dict[str, Any]) -> str:
    """With loop.sendfile, which may copy where the kernel cannot."""
    loop = asyncio.get_running_loop()

    class Files(Counting, asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.file = open(options["file"], "rb")  # noqa: SIM115 (closed with the connection)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.file.close()

        def data_received(self, data: bytes) -> None:
            self.task = loop.create_task(self.answer())

        async def answer(self) -> None:
            try:
                await loop.sendfile(self.transport, self.file)
            except Exception as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                self.transport.abort()  # or the client would wait in vain

    return await listen(options, Files)
