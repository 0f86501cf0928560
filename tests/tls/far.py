"""What the TLS tests talk with: certificates made for this run, and a far side whose every byte a test decides."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Callable
from typing import Any

import trustme

ALERT, HANDSHAKE, DATA = 21, 22, 23  # record types (RFC 8446, 5.1); TLS 1.3 calls all that is encrypted DATA


@functools.cache
def authority(name: str = "ours") -> trustme.CA:
    return trustme.CA(organization_name=name)


@functools.cache
def certificate(name: str = "localhost", by: str = "ours") -> trustme.LeafCert:
    return authority(by).issue_cert(name)


def server_context(name: str = "localhost", *, clients: str | None = None) -> ssl.SSLContext:
    """A server's context with a certificate for that name; `clients` names the authority that clients must have."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate(name).configure_cert(context)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        authority(clients).configure_trust(context)
    return context


def client_context(trusts: str = "ours") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority(trusts).configure_trust(context)
    return context


def version_2(context: ssl.SSLContext) -> ssl.SSLContext:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


class Far:
    """TLS by the `ssl` module's objects over a plain socket that the loop's `sock_*` coroutines serve."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool, session: Any = None) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # nothing waits for an ACK
        self.sock = sock
        self.loop: Any = asyncio.get_running_loop()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hostname = None if server_side else "localhost"
        self.ssl = context.wrap_bio(self.incoming, self.outgoing, server_side, hostname, session)
        self.wire = bytearray()  # what has come, as it came
        self.end = ""  # how the other side has ended: "close_notify", "FIN", or the name of an exception

    async def do(self, operation: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the SSL object until it needs nothing more from the wire."""
        while True:
            try:
                result = operation(*args)
            except ssl.SSLWantReadError:
                await self.flush()
                if not await self.fill():
                    raise EOFError from None
            else:
                await self.flush()
                return result

    async def flush(self) -> None:
        if output := self.outgoing.read():
            await self.loop.sock_sendall(self.sock, output)

    async def fill(self) -> bool:
        data = await self.loop.sock_recv(self.sock, 1 << 16)
        self.wire += data
        self.incoming.write(data)
        return bool(data)

    async def handshake(self) -> Far:
        try:
            await self.do(self.ssl.do_handshake)
        except ssl.SSLError:
            await self.flush()  # the alert
            raise
        return self

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[await self.do(self.ssl.write, view) :]

    async def receive(self, size: int) -> bytes:
        """So many bytes of plaintext, or what comes before the end."""
        data = bytearray()
        while len(data) < size and (piece := await self.read(min(size - len(data), 1 << 16))):
            data += piece
        return bytes(data)

    async def read(self, size: int) -> bytes:
        try:
            piece = await self.do(self.ssl.read, size)
        except ssl.SSLZeroReturnError:
            piece = b""
        except EOFError:
            self.end = "FIN"
            return b""
        except OSError as exc:
            self.end = type(exc).__name__
            return b""
        if not piece:
            self.end = "close_notify"
        return bytes(piece)

    async def read_all(self) -> bytes:
        """All plaintext there is; `end` says what ended it."""
        return await self.receive(1 << 62)

    async def goodbye(self) -> None:
        """Send close_notify, without waiting for the answer."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.ssl.unwrap()
        await self.flush()

    def records(self) -> list[tuple[int, int]]:
        """Type and length of each record that has come, as its header tells."""
        found, position = [], 0
        while position + 5 <= len(self.wire):
            length = int.from_bytes(self.wire[position + 3 : position + 5])
            found.append((self.wire[position], length))
            position += 5 + length
        return found
