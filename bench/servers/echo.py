"""Echo servers, one for each style of asyncio's interface; and one that answers with many bytes."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from bench.servers import BACKLOG, KEPT, SERVED, bound, context, listen

PIECE = 64


class Counting(asyncio.BaseProtocol):
    """Knows its transport, and counts."""

    __slots__ = ("transport",)

    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        SERVED.accepted += 1
        SERVED.connections += 1
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        SERVED.connections -= 1


class Echo(Counting, asyncio.Protocol):
    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Pieces(Counting, asyncio.Protocol):
    """Writes many small pieces in one turn."""

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        write = self.transport.write
        for start in range(0, len(data), PIECE):
            write(data[start : start + PIECE])


class Buffered(Counting, asyncio.BufferedProtocol):
    __slots__ = ("view",)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.view = memoryview(bytearray(64 * 1024))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.view

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.view[:nbytes]))  # a copy: a transport may keep what it cannot send yet


async def protocol(options: dict[str, Any]) -> str:
    return await listen(options, Echo)


async def pieces(options: dict[str, Any]) -> str:
    return await listen(options, Pieces)


async def buffered(options: dict[str, Any]) -> str:
    return await listen(options, Buffered)


async def bulk(options: dict[str, Any]) -> str:
    """Each message, whatever it says, is answered by `answer` bytes in one write."""
    block = b"x" * options["answer"]

    class Bulk(Counting, asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            self.transport.write(block)

    return await listen(options, Bulk)


async def _streams(options: dict[str, Any], client: Any) -> str:
    if options["address"].startswith("/"):
        KEPT.append(await asyncio.start_unix_server(client, options["address"], backlog=BACKLOG))
        return str(options["address"])
    server = await asyncio.start_server(client, "127.0.0.1", 0, backlog=BACKLOG, ssl=context(options))
    KEPT.append(server)
    return str(server.sockets[0].getsockname()[1])


async def read(options: dict[str, Any]) -> str:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    return await _streams(options, client)


async def readline(options: dict[str, Any]) -> str:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    return await _streams(options, client)


async def sockets(options: dict[str, Any]) -> str:
    """The loop's own sock_accept, sock_recv and sock_sendall."""
    loop = asyncio.get_running_loop()
    listener, address = bound(options)

    async def client(connection: socket.socket) -> None:
        with connection:
            while data := await loop.sock_recv(connection, 65536):
                await loop.sock_sendall(connection, data)

    async def accept() -> None:
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            KEPT.append(asyncio.ensure_future(client(connection)))

    KEPT.append(asyncio.ensure_future(accept()))
    return address
