"""Fixtures of the TLS tests, beside those of the network tests."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple

import pytest

from tests.net import conftest as net
from tests.net.peers import Recorder, reset, tcp_pair, unix_pair
from tests.tls.far import Far, client_context, server_context

pytest_pyfunc_call = net.pytest_pyfunc_call
attach = net.attach
make_file = net.make_file
serve = net.serve
sockets = net.sockets


class Secured(NamedTuple):
    transport: Any
    protocol: Any
    far: Far


@pytest.fixture
def secure(loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., Coroutine[Any, Any, Secured]]]:
    """Put one end of a connected pair of sockets on the loop, under TLS, the client's end unless told otherwise.

    Whatever the test does with it, its protocol must have been told of beginning and end exactly once when it is over.
    """
    made: list[Secured] = []

    async def secure(
        factory: Callable[[], Any] = Recorder,
        *,
        server: bool = False,
        kind: str = "tcp",
        near: ssl.SSLContext | None = None,
        far: ssl.SSLContext | None = None,
        **options: Any,
    ) -> Secured:
        sock, other = tcp_pair() if kind == "tcp" else unix_pair()
        peer = Far(other, far or (client_context() if server else server_context()), server_side=not server)
        if server:
            connecting = loop.connect_accepted_socket(factory, sock, ssl=near or server_context(), **options)
        else:
            options.setdefault("server_hostname", "localhost")
            connecting = loop.create_connection(factory, sock=sock, ssl=near or client_context(), **options)
        try:
            (transport, protocol), _ = await asyncio.gather(connecting, peer.handshake())
        except BaseException:
            other.close()
            raise
        made.append(Secured(transport, protocol, peer))
        return made[-1]

    yield secure
    for one in made:
        if one.far.sock.fileno() >= 0:
            with contextlib.suppress(OSError):
                reset(one.far.sock)
    if loop.is_closed():
        return
    net._finish(loop, [one.transport for one in made if "lost" not in getattr(one.protocol, "log", ())])
    for one in made:
        if "lost" in getattr(one.protocol, "log", ()):
            log = one.protocol.log
            assert (log.count("made"), log.count("lost"), log[-1]) == (1, 1, "lost"), log
