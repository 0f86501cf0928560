"""What do the loop's socket coroutines cost?"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from time import perf_counter
from typing import Any

from bench.rows.inside import Batch

MESSAGE = b"x" * 64


def pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    return ends


def sock_pair(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        left, right = pair()
        send, receive = loop.sock_sendall, loop.sock_recv
        with left, right:
            start = perf_counter()
            for _ in range(size // 2):
                await send(left, MESSAGE)
                await receive(right, 4096)
                await send(right, MESSAGE)
                await receive(left, 4096)
            return perf_counter() - start

    return loop.run_until_complete(main())


def sock_pingpong(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        left, right = pair()

        async def answer() -> None:
            for _ in range(size):
                await loop.sock_sendall(right, await loop.sock_recv(right, 4096))

        with left, right:
            partner = loop.create_task(answer())
            start = perf_counter()
            for _ in range(size):
                await loop.sock_sendall(left, MESSAGE)
                await loop.sock_recv(left, 4096)
            taken = perf_counter() - start
            await partner
            return taken

    return loop.run_until_complete(main())


def nothing() -> None:
    pass


def reader(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        left, right = pair()
        add, remove = loop.add_reader, loop.remove_reader
        with left, right:
            fd = left.fileno()
            start = perf_counter()
            for _ in range(size):
                add(fd, nothing)
                remove(fd)
            return perf_counter() - start

    return loop.run_until_complete(main())


class Player(asyncio.DatagramProtocol):
    """Sends back what comes, *left* times; then the future is done."""

    def __init__(self, left: int, done: asyncio.Future[None]) -> None:
        self.left = left
        self.done = done

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.left -= 1
        if self.left >= 0:
            self.transport.sendto(data, addr)
        elif not self.done.done():
            self.done.set_result(None)


def udp_pingpong(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def main() -> float:
        done = loop.create_future()
        here, _ = await loop.create_datagram_endpoint(lambda: Player(size, done), ("127.0.0.1", 0))
        there, _ = await loop.create_datagram_endpoint(lambda: Player(size, done), ("127.0.0.1", 0))
        start = perf_counter()
        here.sendto(MESSAGE, there.get_extra_info("sockname"))
        await done
        taken = perf_counter() - start
        here.close()
        there.close()
        await asyncio.sleep(0)
        return taken

    return loop.run_until_complete(main())


def connect_close(loop: asyncio.AbstractEventLoop, size: int) -> float:
    async def client(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def main() -> float:
        server = await asyncio.start_server(client, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        start = perf_counter()
        for _ in range(size):
            reader, writer = await asyncio.open_connection(*address)
            await reader.read()  # the server closes first
            writer.close()
            await writer.wait_closed()
        taken = perf_counter() - start
        server.close()
        await server.wait_closed()
        return taken

    return loop.run_until_complete(main())


def row(name: str, what: str, batch: Callable[[asyncio.AbstractEventLoop, int], float], size: int) -> Batch:
    return Batch(name=f"micro/{name}", what=what, batch=batch, size=size)


ROWS = (
    row("sock_pair", "one task: sock_sendall, then sock_recv of 64 bytes already there", sock_pair, 1_000),
    row("sock_pingpong", "two tasks: a round trip of 64 bytes, each sock_recv has to wait", sock_pingpong, 500),
    row("reader", "add_reader and remove_reader", reader, 1_000),
    row("udp_pingpong", "two datagram endpoints: a round trip of 64 bytes", udp_pingpong, 500),
    row("connect_close", "open_connection, the server closes, both ends are gone", connect_close, 50),
)
