"""start_tls: a connection that lives becomes a TLS connection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import types
import weakref

import pytest

from tests.net.peers import BufferedRecorder, Recorder, overriding, pattern, settle, turns
from tests.tls.far import Far, client_context, server_context

Kinds = pytest.mark.parametrize("server", [False, True], ids=["client", "server"])


def far_end(peer, server: bool) -> Far:
    return Far(peer, client_context() if server else server_context(), server_side=not server)


async def upgrade(loop, transport, protocol, far: Far, **options):
    server = not far.ssl.server_side
    context = server_context() if server else client_context()
    name = None if server else "localhost"
    secured, _ = await asyncio.gather(
        loop.start_tls(transport, protocol, context, server_side=server, server_hostname=name, **options),
        far.handshake(),
    )
    return secured


@Kinds
@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_both_ends(loop, attach, server, kind):
    transport, protocol, peer = await attach(kind=kind)
    peer.send(b"in clear")
    await protocol.receives(8)
    far = far_end(peer, server)
    secured = await upgrade(loop, transport, protocol, far)
    assert protocol.log == ["made", "data"]
    assert secured.get_protocol() is protocol
    assert secured.get_extra_info("peername") == transport.get_extra_info("peername")
    secured.write(b"out")
    assert await far.receive(3) == b"out"
    await far.send(b"and in")
    assert await protocol.receives(14) == b"in clearand in"
    await far.goodbye()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert transport.is_closing()


@Kinds
async def test_a_buffered_protocol(loop, attach, server):
    transport, protocol, peer = await attach(BufferedRecorder)
    far = far_end(peer, server)
    secured = await upgrade(loop, transport, protocol, far)
    await far.send(pattern(50_000))
    assert await protocol.receives(50_000) == pattern(50_000)
    secured.close()
    assert (await far.read_all(), far.end) == (b"", "close_notify")
    await far.goodbye()
    assert await protocol.lost() is None


@pytest.mark.asyncio_wrong("what came behind the line stays in the reader, and the handshake hangs")
@pytest.mark.parametrize("part", [1, 50, 1 << 16], ids=["a byte", "a part", "all"])
async def test_the_handshake_behind_the_line_in_one_segment(loop, part):
    """The client does not wait for the answer: its hello is in the reader when start_tls begins."""
    done = loop.create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"STARTTLS\n"
        await writer.start_tls(server_context())
        writer.write(await reader.readexactly(5))
        await writer.drain()
        writer.close()
        done.set_result(None)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    sock = writer.get_extra_info("socket")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context().wrap_bio(incoming, outgoing, False, "localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    writer.write(b"STARTTLS\n" + hello[:part])
    await settle()
    writer.write(hello[part:])
    assert sock is not None
    while True:
        incoming.write(await reader.read(1 << 16))
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            continue
        break
    tls.write(b"hello")
    writer.write(outgoing.read())
    got = b""
    while len(got) < 5:
        try:
            got += tls.read(5 - len(got))
        except ssl.SSLWantReadError:
            incoming.write(await reader.read(1 << 16))
    assert got == b"hello"
    await done
    writer.close()
    server.close()
    await server.wait_closed()


@pytest.mark.asyncio_wrong("what a reader holds stays there, as if it had come by way of TLS")
async def test_nothing_sent_in_clear_passes_for_encrypted(loop):
    """CVE-2011-0411: a command injected behind STARTTLS must break the handshake, not be obeyed after it."""
    outcome = loop.create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        try:
            await writer.start_tls(server_context())
        except ssl.SSLError as exc:
            outcome.set_result(exc)
        else:
            outcome.set_result(await reader.readline())

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"STARTTLS\nDELETE EVERYTHING\n")
    assert isinstance(await outcome, ssl.SSLError)
    writer.close()
    server.close()
    await server.wait_closed()


@Kinds
@pytest.mark.asyncio_wrong("resuming fails an assertion, and the handshake hangs")
async def test_on_a_transport_whose_writing_is_paused(loop, attach, server):
    transport, protocol, peer = await attach()
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # else it may take all
    size = 4_000_000
    transport.write(pattern(size))
    assert protocol.log == ["made", "pause"]
    far = far_end(peer, server)

    async def read_and_shake() -> None:
        await settle()
        left = size
        while left:
            left -= len(await loop.sock_recv(peer, min(left, 1 << 16)))
        await far.handshake()

    context = server_context() if server else client_context()
    name = None if server else "localhost"
    secured, _ = await asyncio.gather(
        loop.start_tls(transport, protocol, context, server_side=server, server_hostname=name), read_and_shake()
    )
    await protocol.reaches("resume")
    secured.write(b"done")
    assert await far.receive(4) == b"done"
    assert protocol.log == ["made", "pause", "resume"]
    secured.abort()
    await protocol.lost()


async def test_from_within_data_received(loop, attach):
    def begin(protocol):
        if not protocol.upgrading:
            protocol.upgrading = loop.create_task(
                loop.start_tls(protocol.transport, protocol, server_context(), server_side=True)
            )

    transport, protocol, peer = await attach(overriding(Recorder, data_received=begin).__call__)
    protocol.upgrading = None
    peer.send(b"STARTTLS")
    await protocol.receives(8)
    far = far_end(peer, True)
    await far.handshake()
    secured = await protocol.upgrading
    await far.send(b"x")
    assert await protocol.receives(9) == b"STARTTLSx"
    secured.abort()
    await protocol.lost()


@Kinds
@pytest.mark.parametrize("how", ["FIN", "garbage", "silence", "cancelled", "closed", "aborted"])
@pytest.mark.asyncio_wrong("connection_lost is not called")
async def test_it_fails(loop, attach, server, how):
    transport, protocol, peer = await attach()
    upgrading = asyncio.ensure_future(
        loop.start_tls(
            transport,
            protocol,
            server_context() if server else client_context(),
            server_side=server,
            server_hostname=None if server else "localhost",
            ssl_handshake_timeout=0.05 if how == "silence" else None,
        )
    )
    await settle()
    if how == "FIN":
        peer.close()
    elif how == "garbage":
        peer.send(b"nonsense")
    elif how == "cancelled":
        upgrading.cancel()
    elif how == "closed":
        transport.close()
    elif how == "aborted":
        transport.abort()
    with pytest.raises(asyncio.CancelledError if how == "cancelled" else OSError):
        await upgrading
    await protocol.lost()
    assert protocol.log == ["made", "lost"]
    assert transport.is_closing()


@pytest.mark.parametrize("rounds", range(8))
@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
async def test_cancelled_after_any_number_of_turns(loop, attach, rounds, server):
    transport, protocol, peer = await attach()
    far = far_end(peer, server)
    shaking = asyncio.ensure_future(far.handshake())
    upgrading = asyncio.ensure_future(
        loop.start_tls(
            transport,
            protocol,
            server_context() if server else client_context(),
            server_side=server,
            server_hostname=None if server else "localhost",
        )
    )
    for _ in range(rounds):
        await asyncio.sleep(0)
    cancelled = upgrading.cancel()
    if not cancelled:
        upgrading.result().abort()
    await asyncio.wait([upgrading])
    if rounds == 0:
        transport.abort()  # start_tls has not begun
    shaking.cancel()
    await asyncio.wait([shaking])
    peer.close()
    await settle()
    assert transport.is_closing()
    assert protocol.log.count("lost") <= 1


@pytest.mark.parametrize("state", ["closing", "lost"])
@pytest.mark.asyncio_wrong("the handshake of a connection that has ended lasts until its timeout")
async def test_on_a_transport_that_was_closed(loop, attach, state):
    transport, protocol, _ = await attach()
    transport.close()
    if state == "lost":
        await protocol.lost()
    assert await loop.start_tls(transport, protocol, client_context(), server_hostname="localhost") is None
    await protocol.lost()
    assert protocol.log == ["made", "lost"]


class Cautious(BufferedRecorder):
    """Takes 100 bytes at a time, and pauses after each delivery."""

    def __init__(self) -> None:
        super().__init__(100)
        self._stream_reader = types.SimpleNamespace(_buffer=bytearray())  # as a StreamReaderProtocol has one

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        self.transport.pause_reading()


@pytest.mark.parametrize("part", [100, 1 << 16])
@pytest.mark.asyncio_wrong("what the reader holds stays there, and the handshake hangs")
async def test_what_comes_behind_the_handshake_is_kept_while_paused(loop, attach, part):
    """The loop's one buffer serves other connections meanwhile."""
    _, bystander, other = await attach()
    transport, protocol, peer = await attach(Cautious)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context().wrap_bio(incoming, outgoing, False, "localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    protocol._stream_reader._buffer += hello[:part]
    upgrading = asyncio.ensure_future(loop.start_tls(transport, protocol, server_context(), server_side=True))
    await turns(2)  # it has begun
    protocol.transport = transport.get_protocol()  # what start_tls will return
    peer.sendall(hello[part:])
    peer.setblocking(False)
    incoming.write(await loop.sock_recv(peer, 1 << 16))
    tls.do_handshake()
    for start in range(0, 5000, 500):  # records, of which OpenSSL sees one at a time
        tls.write(pattern(5000)[start : start + 500])
    await loop.sock_sendall(peer, outgoing.read())
    secured = await upgrading
    while len(protocol.data) < 5000 and "lost" not in protocol.log:
        other.sendall(bytes(50_000))
        await bystander.receives(50_000)
        bystander.data.clear()
        before = len(protocol.data)
        secured.resume_reading()
        await protocol.until(lambda before=before: len(protocol.data) > before or "lost" in protocol.log)
    assert protocol.data == pattern(5000)
    secured.abort()
    await protocol.lost()


@pytest.mark.asyncio_wrong("data_received() comes first, and what it answers would leave in clear")
async def test_who_waits_knows_the_new_transport_before_data_come(loop, attach):
    transport, protocol, peer = await attach()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context().wrap_bio(incoming, outgoing, False, "localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()

    async def upgrade():
        secured = await loop.start_tls(transport, protocol, server_context(), server_side=True)
        assert protocol.data == b""
        return secured

    upgrading = asyncio.ensure_future(upgrade())
    await turns(2)  # it has begun
    peer.sendall(outgoing.read())
    peer.setblocking(False)
    incoming.write(await loop.sock_recv(peer, 1 << 16))
    tls.do_handshake()
    tls.write(b"early")
    peer.sendall(outgoing.read())  # with the end of the handshake
    secured = await upgrading
    assert await protocol.receives(5) == b"early"
    secured.abort()
    await protocol.lost()


@pytest.mark.asyncio_wrong("the handshake of a stream that has ended lasts until its timeout")
async def test_behind_the_end_of_the_stream(loop, attach):
    def stay_open(protocol):
        return True

    transport, protocol, peer = await attach(overriding(Recorder, eof_received=stay_open))
    peer.shutdown(1)
    await protocol.reaches("eof")
    with pytest.raises(ConnectionError):
        await loop.start_tls(transport, protocol, client_context(), server_hostname="localhost")


@pytest.mark.asyncio_wrong("the handshake lasts until its timeout, and the exception handler hears why")
async def test_behind_our_own_end_of_the_stream(loop, attach):
    transport, protocol, _ = await attach()
    transport.write_eof()
    with pytest.raises((RuntimeError, OSError)):
        await loop.start_tls(transport, protocol, client_context(), server_hostname="localhost")


async def test_arguments(loop, attach):
    transport, protocol, _ = await attach()
    for wrong in (None, True, object()):
        with pytest.raises(TypeError):
            await loop.start_tls(transport, protocol, wrong)
    with pytest.raises(TypeError):
        await loop.start_tls(object(), protocol, client_context())
    with pytest.raises(ValueError, match="timeout"):
        await loop.start_tls(transport, protocol, client_context(), ssl_handshake_timeout=0)
    assert transport.get_protocol() is protocol


@pytest.mark.asyncio_wrong("the exception, its traceback and a frame hold each other")
async def test_a_failed_upgrade_leaves_no_cycles(loop, attach):
    transport, protocol, peer = await attach()
    marker = Recorder()
    known = weakref.ref(marker)
    transport.set_protocol(marker)
    gc.collect()
    gc.disable()
    try:
        peer.send(b"nonsense")
        with contextlib.suppress(ssl.SSLError):
            await loop.start_tls(transport, marker, server_context(), server_side=True)
        await marker.reaches("lost")
        marker.lost_with.clear()
        del marker
        await settle()
        assert known() is None
    finally:
        gc.enable()
