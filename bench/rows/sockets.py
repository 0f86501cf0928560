"""What do the loop's socket coroutines cost?"""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter

from bench.row import Batch

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


ROWS = (
    Batch("sock_pair", "one task: sock_sendall, then sock_recv of 64 bytes already there", sock_pair, 1_000),
    Batch("sock_pingpong", "two tasks: a round trip of 64 bytes, each sock_recv has to wait", sock_pingpong, 500),
)
