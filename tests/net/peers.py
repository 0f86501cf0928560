"""What the network tests talk with: protocols that write down what happens, and plain sockets on the far side."""

from __future__ import annotations

import array
import asyncio
import contextlib
import functools
import select
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest

LIMIT = 10  # seconds a plain socket on the far side may block


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback address")


class Record:
    """The callbacks one connection got, in order; a coroutine can wait until they say something."""

    keep_open: bool | None = None  # what eof_received returns

    def __init__(self) -> None:
        self.log: list[str] = []
        self.data = bytearray()
        self.transport: Any = None
        self.lost_with: list[BaseException | None] = []
        self._waiting: list[asyncio.Future[None]] = []

    def note(self, event: str) -> None:
        self.log.append(event)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    @property
    def story(self) -> list[str]:
        """The log, with neighbouring deliveries of data taken as one."""
        return [event for event, _ in groupby(self.log)]

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    async def reaches(self, event: str, times: int = 1) -> None:
        await self.until(lambda: self.log.count(event) >= times)

    async def receives(self, size: int) -> bytes:
        await self.until(lambda: len(self.data) >= size)
        return bytes(self.data)

    async def lost(self) -> BaseException | None:
        await self.reaches("lost")
        return self.lost_with[0]

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.note("made")

    def eof_received(self) -> bool | None:
        self.note("eof")
        return self.keep_open

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost_with.append(exc)
        self.note("lost")

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")


class Recorder(Record, asyncio.Protocol):
    def data_received(self, data: bytes) -> None:
        self.data += data
        self.note("data")


class BufferedRecorder(Record, asyncio.BufferedProtocol):
    def __init__(self, size: int = 4096) -> None:
        super().__init__()
        self.buffer = bytearray(size)
        self.hints: list[int] = []

    def get_buffer(self, sizehint: int) -> bytearray:
        self.hints.append(sizehint)
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.buffer[:nbytes]
        self.note("data")


class Echo(Recorder):
    def data_received(self, data: bytes) -> None:
        self.transport.write(data)
        super().data_received(data)


class Factory:
    """A protocol factory that remembers what it made."""

    def __init__(self, kind: Callable[[], Any] = Recorder) -> None:
        self.kind = kind
        self.made: list[Any] = []
        self.clients: list[socket.socket] = []  # plain sockets that the fixture `serve` closes
        self._called = asyncio.Event()

    def __call__(self) -> Any:
        self.made.append(self.kind())
        self._called.set()
        return self.made[-1]

    async def nth(self, number: int = 1) -> Any:
        """The protocol of the connection of that number, once it is made."""
        while len(self.made) < number:
            self._called.clear()
            await self._called.wait()
        protocol = self.made[number - 1]
        await protocol.reaches("made")
        return protocol


def raiser(make: Callable[[], BaseException]) -> Callable[..., Any]:
    def throw(*_: object) -> Any:
        raise make()

    return throw


def overriding(base: type, **methods: Callable[..., Any]) -> type:
    """A protocol class whose named callbacks are noted and then run the given function with the protocol."""

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any) -> Any:
            result = getattr(base, name)(self, *args)
            answer = function(self)
            return result if answer is None else answer

        return method

    return type("Special" + base.__name__, (base,), {n: wrap(n, f) for n, f in methods.items()})


async def settle(rounds: int = 3) -> None:
    """Let the loop look at its descriptors a few times: what was ready before has been handled afterwards."""
    loop = asyncio.get_running_loop()
    for _ in range(rounds):
        near, far = socket.socketpair()
        with near, far:
            seen = loop.create_future()
            loop.add_reader(near, seen.set_result, None)
            far.send(b"!")
            await seen
            loop.remove_reader(near)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def listener(host: str = "127.0.0.1", backlog: int = 16) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, 0))
    sock.listen(backlog)
    sock.setblocking(False)
    return sock


def reserved(host: str = "127.0.0.1") -> socket.socket:
    """A bound socket that does not listen: connecting to its address is refused, and nobody else gets the port."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.bind((host, 0))
    return sock


@contextlib.contextmanager
def black_hole(host: str = "127.0.0.1") -> Iterator[tuple[Any, ...]]:
    """The address of a listener whose full queue leaves every further connect without an answer."""
    with contextlib.ExitStack() as stack:
        hole = stack.enter_context(listener(host, backlog=0))
        for _ in range(8):
            filler = stack.enter_context(socket.socket(hole.family))
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(hole.getsockname())
            if not select.select([], [filler], [], 0.05)[1]:
                break
        else:
            pytest.skip("this system accepts connections beyond a full backlog")
        yield hole.getsockname()


def tcp_pair(host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
    with listener(host) as lst:
        near = socket.create_connection(lst.getsockname()[:2], LIMIT)
        lst.settimeout(LIMIT)
        far, _ = lst.accept()
    far.settimeout(LIMIT)
    return near, far


def unix_pair() -> tuple[socket.socket, socket.socket]:
    near, far = socket.socketpair()
    far.settimeout(LIMIT)
    return near, far


def nonblocking_pair() -> tuple[socket.socket, socket.socket]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


def reset(sock: socket.socket) -> None:
    """Close a TCP socket so that its peer gets an RST instead of a FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def recv_all(sock: socket.socket) -> bytes:
    """Everything until end of file, read by blocking calls: run it in a thread."""
    sock.settimeout(LIMIT)
    received = bytearray()
    while chunk := sock.recv(1 << 18):
        received += chunk
    return bytes(received)


def recv_exactly(sock: socket.socket, size: int) -> bytes:
    sock.settimeout(LIMIT)
    received = bytearray()
    while len(received) < size and (chunk := sock.recv(min(size - len(received), 1 << 18))):
        received += chunk
    return bytes(received)


async def received(loop: Any, sock: socket.socket) -> bytes:
    """`recv_all` in a thread."""
    return await loop.run_in_executor(None, recv_all, sock)


async def exactly(loop: Any, sock: socket.socket, size: int) -> bytes:
    """`recv_exactly` in a thread."""
    return await loop.run_in_executor(None, recv_exactly, sock, size)


async def started(loop: Any, transport: Any, file: Any) -> asyncio.Task[int]:
    """A sendfile that has begun and does not get on, because the peer does not read."""
    task = loop.create_task(loop.sendfile(transport, file))
    await settle(5)
    assert not task.done()
    return task


@functools.cache
def pattern(size: int) -> bytes:
    """Bytes in which every word is its own index: loss, repetition and disorder all show."""
    return array.array("I", range((size + 3) // 4)).tobytes()[:size]


def answering(monkeypatch: pytest.MonkeyPatch, *infos: tuple[int, Any]) -> list[tuple[Any, ...]]:
    """Let every lookup give these (family, address) pairs; returns the list of arguments it was called with."""
    calls = []

    def getaddrinfo(
        host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        calls.append((host, port, family, type, proto, flags))
        return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address) for family, address in infos]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return calls


class DatagramRecorder(Record, asyncio.DatagramProtocol):
    """What one datagram endpoint got, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[tuple[bytes, Any]] = []
        self.failures: list[Exception] = []

    @property
    def payloads(self) -> list[bytes]:
        return [data for data, _ in self.got]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.got.append((data, addr))
        self.note("datagram")

    def error_received(self, exc: Exception) -> None:
        self.failures.append(exc)
        self.note("error")

    async def gets(self, count: int) -> list[bytes]:
        """The payloads of the first `count` datagrams, once they are there."""
        await self.until(lambda: len(self.got) >= count)
        return self.payloads[:count]


def udp_socket(host: str = "127.0.0.1") -> socket.socket:
    """A bound, blocking UDP socket."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(LIMIT)
    sock.bind((host, 0))
    return sock


def datagram_pair(size: int | None = None) -> tuple[socket.socket, socket.socket]:
    """Connected Unix datagram sockets without names; `size` asks for that send buffer, in bytes."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sock in pair:
        sock.settimeout(LIMIT)
        if size is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    return pair


def waiting(sock: socket.socket) -> list[bytes]:
    """What has arrived at a plain socket already."""
    found = []
    while select.select([sock], [], [], 0)[0]:
        found.append(sock.recv(1 << 18))
    return found


def tls_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server and a client that need no certificate: both ends stay anonymous, which TLS 1.2 allows."""
    contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in contexts:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return contexts
