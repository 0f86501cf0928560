"""Fixtures of the network tests. Test functions that are coroutines run on the fixture `loop`."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from tests.loops import run
from tests.net.peers import DatagramRecorder, Factory, Recorder, pattern, tcp_pair, turns, unix_pair

LIMIT = 20  # seconds a coroutine test may take; they need a fraction of one


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    run(pyfuncitem.funcargs["loop"], pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}), LIMIT)
    return True


class Attached(NamedTuple):
    transport: Any
    protocol: Any
    peer: socket.socket


class Served(NamedTuple):
    server: Any
    address: Any
    made: Factory

    def connect(self) -> socket.socket:
        """A plain client. The kernel completes the connection by itself, so this may block the loop's thread."""
        client = socket.create_connection(self.address[:2], 10)
        self.made.clients.append(client)
        return client


@pytest.fixture
def sockets(loop: asyncio.AbstractEventLoop) -> Iterator[contextlib.ExitStack]:
    """Sockets (and other context managers) entered here are closed before the loop is checked for leaks."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def make_file(tmp_path: Path, sockets: contextlib.ExitStack) -> Callable[[int], IO[bytes]]:
    """Makes a file of so many bytes, open for reading."""

    def make(size: int) -> IO[bytes]:
        path = tmp_path / f"file of {size} bytes"
        path.write_bytes(pattern(size))
        return sockets.enter_context(path.open("rb"))

    return make


def _finish(loop: asyncio.AbstractEventLoop, transports: list[Any]) -> None:
    if loop.is_closed():
        return
    loop.run_until_complete(turns(3))
    for transport in transports:
        if transport is not None and (not transport.is_closing() or transport.get_write_buffer_size()):
            transport.abort()
    loop.run_until_complete(turns(3))


@pytest.fixture
def attach(loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., Coroutine[Any, Any, Attached]]]:
    """Put one end of a connected pair of sockets on the loop; the other one stays a plain socket."""
    attached: list[Attached] = []

    async def attach(factory: Callable[[], Any] = Recorder, *, kind: str = "tcp") -> Attached:
        near, far = tcp_pair() if kind == "tcp" else unix_pair()
        transport, protocol = await loop.create_connection(factory, sock=near)
        attached.append(Attached(transport, protocol, far))
        return attached[-1]

    yield attach
    for one in attached:
        one.peer.close()
    _finish(loop, [one.transport for one in attached])


@pytest.fixture
def serve(loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., Coroutine[Any, Any, Served]]]:
    """Start a TCP server on the loop; gives the server, its address and the factory with the protocols it made."""
    started: list[Served] = []

    async def serve(kind: Callable[[], Any] = Recorder, host: Any = "127.0.0.1", **options: Any) -> Served:
        made = Factory(kind)
        if "sock" in options:
            server = await loop.create_server(made, **options)
        else:
            server = await loop.create_server(made, host, options.pop("port", 0), **options)
        started.append(Served(server, server.sockets[0].getsockname(), made))
        return started[-1]

    yield serve
    for one in started:
        one.server.close()
        for client in one.made.clients:
            client.close()
        _finish(loop, [getattr(protocol, "transport", None) for protocol in one.made.made])


@pytest.fixture
def datagrams(loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., Coroutine[Any, Any, tuple[Any, Any]]]]:
    """Open a datagram endpoint; without other options it is bound to an ephemeral port of 127.0.0.1."""
    opened: list[Any] = []

    async def datagrams(factory: Callable[[], Any] = DatagramRecorder, **options: Any) -> tuple[Any, Any]:
        transport, protocol = await loop.create_datagram_endpoint(
            factory, **(options or {"local_addr": ("127.0.0.1", 0)})
        )
        opened.append(transport)
        return transport, protocol

    yield datagrams
    _finish(loop, [transport for transport in opened if transport.get_protocol() is not None])
