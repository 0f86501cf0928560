"""What a profile-guided build runs to learn which way the code usually goes: `EPOQUE_PGO=1`, see setup.py.

Nothing is measured here and nothing printed. Each exercise does for a moment what programs do with a loop, for the most
part by asyncio's own functions; errors, which are rare, are not among them. It needs the standard library only.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import epoque

MOMENT = 0.15  # seconds for each exercise


async def repeat(exercise: Callable[..., Awaitable[None]], *args: Any) -> None:
    end = time.monotonic() + MOMENT
    while time.monotonic() < end:
        await exercise(*args)


async def wait(start: Callable[[Callable[[], None]], object]) -> None:
    """Until what `start` got has been called."""
    done = asyncio.get_running_loop().create_future()
    start(lambda: done.set_result(None))
    await done


# --- callbacks, timers, tasks


async def callbacks() -> None:
    loop = asyncio.get_running_loop()

    def chain(left: int, then: Callable[[], None]) -> None:
        if left:
            loop.call_soon(chain, left - 1, then)
        else:
            loop.call_soon(then)

    for _ in range(50):
        loop.call_soon(len, "few")
        loop.call_soon(max, 1, 2, 3)
        loop.call_soon(time.monotonic).cancel()
    await wait(lambda then: chain(50, then))
    for _ in range(500):
        loop.call_soon(time.monotonic)
    await asyncio.sleep(0)


async def timers() -> None:
    loop = asyncio.get_running_loop()
    pending = [loop.call_later(60 + number % 7, time.monotonic) for number in range(200)]
    for number in range(200):
        loop.call_later(60 - number % 5, time.monotonic).cancel()
        loop.call_later(number % 10 / 1e5, time.monotonic)
    for handle in pending:
        handle.cancel()
    await asyncio.gather(*(asyncio.sleep(number % 10 / 1e5) for number in range(400)))
    async with asyncio.timeout(60):
        await asyncio.sleep(0.0005)


async def tasks() -> None:
    loop = asyncio.get_running_loop()

    async def child() -> int:
        return 1

    async def consume(queue: asyncio.Queue[int], lock: asyncio.Lock) -> None:
        for _ in range(20):
            async with lock:
                await queue.get()
            await asyncio.sleep(0)

    queue: asyncio.Queue[int] = asyncio.Queue(3)
    async with asyncio.TaskGroup() as group:
        group.create_task(consume(queue, asyncio.Lock()), name="consumer")
        for number in range(20):
            await queue.put(number)
    await asyncio.gather(*(child() for _ in range(20)))
    await asyncio.wait_for(child(), 60)
    for _ in range(20):
        await loop.create_task(child())
        await wait(loop.call_soon)


# --- threads, processes, signals


async def threads() -> None:
    loop = asyncio.get_running_loop()

    def work(then: Callable[[], None]) -> None:
        for _ in range(100):
            loop.call_soon_threadsafe(time.monotonic)
        loop.call_soon_threadsafe(then)

    await wait(lambda then: threading.Thread(target=work, args=(then,)).start())
    for _ in range(10):
        await loop.run_in_executor(None, time.monotonic)


async def processes() -> None:
    command = (sys.executable, "-S", "-c", "import sys; sys.stdout.write(sys.stdin.read())")
    child = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1)
    await child.communicate(b"x" * 300_000)


# --- sockets


async def sockets() -> None:
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)

        async def answer() -> None:
            while data := await loop.sock_recv(far, 1000):
                await loop.sock_sendall(far, data)

        task = loop.create_task(answer())
        for _ in range(50):
            await loop.sock_sendall(near, b"x" * 100)
            await loop.sock_recv(near, 1000)
            loop.add_reader(near, time.monotonic)
            loop.remove_reader(near)
        near.shutdown(socket.SHUT_WR)
        await task


class Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class BufferedEcho(asyncio.BufferedProtocol):
    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(65536))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.buffer[:nbytes]))


async def echo_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.readline():
        writer.write(data[:10])
        writer.write(data[10:])
        await writer.drain()
    writer.close()


async def conversation(connect: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]) -> None:
    """One connection: many short messages, some long ones, and its end."""
    reader, writer = await connect()
    for size, count in ((100, 20), (1000, 20), (20_000, 3), (300_000, 1)):
        message = b"x" * (size - 1) + b"\n"
        for _ in range(count):
            writer.write(message)
            await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()


async def talk(server: asyncio.Server, connect: Callable[..., Any], *address: Any, **options: Any) -> None:
    async with server:
        connects = [lambda: connect(*address, limit=400_000, **options)] * 8
        await asyncio.gather(*(repeat(conversation, one) for one in connects))


def address_of(server: asyncio.Server) -> tuple[str, int]:
    return server.sockets[0].getsockname()[:2]


async def streams(factory: type[Any] | None, tls: bool) -> None:
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {"ssl": context(ssl.PROTOCOL_TLS_SERVER)} if tls else {}
    if factory:
        server = await loop.create_server(factory, "127.0.0.1", 0, **options)
    else:
        server = await asyncio.start_server(echo_lines, "127.0.0.1", 0, limit=400_000, **options)
    if tls:
        options = {"ssl": context(ssl.PROTOCOL_TLS_CLIENT)}
    await talk(server, asyncio.open_connection, *address_of(server), **options)


async def unix() -> None:
    with tempfile.TemporaryDirectory() as directory:
        server = await asyncio.get_running_loop().create_unix_server(Echo, f"{directory}/socket")
        await talk(server, asyncio.open_unix_connection, f"{directory}/socket")


def context(protocol: ssl._SSLMethod) -> ssl.SSLContext:
    """Encrypted without certificates, as nothing here is secret."""
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AECDH-AES128-SHA:@SECLEVEL=0")
    return made


class Datagrams(asyncio.DatagramProtocol):
    """Answers a number of datagrams, then calls `then`."""

    def __init__(self, count: int, then: Callable[[], None] = lambda: None) -> None:
        self.count = count
        self.then = then

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.count -= 1
        if self.count == 0:
            self.then()
        elif self.count > 0:
            self.transport.sendto(data, addr)


async def datagrams() -> None:
    loop = asyncio.get_running_loop()
    server, _ = await loop.create_datagram_endpoint(lambda: Datagrams(10**9), ("127.0.0.1", 0))
    done = loop.create_future()
    client, _ = await loop.create_datagram_endpoint(
        lambda: Datagrams(400, lambda: done.set_result(None)), remote_addr=server.get_extra_info("sockname")
    )
    with closing(server), closing(client):
        for _ in range(16):
            client.sendto(b"x" * 64)
        async with asyncio.timeout(5):  # datagrams may be lost
            await done
    await asyncio.sleep(0)


async def main() -> None:
    for exercise in (callbacks, timers, tasks, threads, processes, sockets, datagrams):
        await repeat(exercise)
    for factory in (Echo, BufferedEcho, None):
        await streams(factory, tls=False)
        await streams(factory, tls=True)
    await unix()


if __name__ == "__main__":
    epoque.run(main())
