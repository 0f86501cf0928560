"""The end of a TLS connection: who says goodbye, who does not, and what still arrives."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

import pytest

from tests.net.peers import BufferedRecorder, Recorder, overriding, pattern, reset, settle
from tests.tls.far import Far, client_context, server_context, version_2

KINDS = pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])


@KINDS
@pytest.mark.parametrize("version", [2, 3])
async def test_close(secure, kind, version):
    near = client_context()
    transport, protocol, far = await secure(kind, near=version_2(near) if version == 2 else near)
    transport.write(b"last words")
    transport.close()
    transport.close()
    assert transport.is_closing()
    assert (await far.read_all(), far.end) == (b"last words", "close_notify")
    await far.goodbye()
    assert await protocol.lost() is None
    assert "data" not in protocol.log


@KINDS
@pytest.mark.parametrize("goodbye", ["close_notify", "FIN", "both"])
@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
async def test_the_peer_ends(secure, kind, goodbye, server):
    transport, protocol, far = await secure(kind, server=server)
    await far.send(b"data")
    if goodbye != "FIN":
        await far.goodbye()
    if goodbye != "close_notify":
        far.sock.shutdown(1)
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert protocol.data == b"data"


@pytest.mark.parametrize(
    "goodbye", ["close_notify", pytest.param("FIN", marks=pytest.mark.asyncio_wrong("what is written then is dropped"))]
)
@pytest.mark.parametrize("size", [6, 2_000_000])
async def test_what_eof_received_writes_arrives(secure, goodbye, size):
    transport, protocol, far = await secure(
        overriding(Recorder, eof_received=lambda protocol: protocol.transport.write(pattern(size)))
    )
    if goodbye == "close_notify":
        await far.goodbye()
    else:
        far.sock.shutdown(1)
    received = bytearray()
    with contextlib.suppress(EOFError, ssl.SSLZeroReturnError):
        while piece := await far.do(far.ssl.read, 1 << 16):
            received += piece
    assert received == pattern(size)
    assert await protocol.lost() is None
    assert protocol.story[-2:] == ["eof", "lost"] or "pause" in protocol.story


@pytest.mark.asyncio_wrong("the end is told before what is still to be read")
async def test_the_end_waits_for_what_was_held_back(secure):
    """Resumed, and the peer's FIN comes first: what was decrypted before goes before it."""
    transport, protocol, far = await secure(
        overriding(lambda_recorder(), buffer_updated=lambda protocol: protocol.transport.pause_reading())
    )
    await far.send(pattern(1000))
    await protocol.reaches("data")
    far.sock.shutdown(1)
    await settle()
    while len(protocol.data) < 1000:
        before = len(protocol.data)
        assert "eof" not in protocol.log
        transport.resume_reading()
        await protocol.until(lambda before=before: len(protocol.data) > before or "eof" in protocol.log)
    assert protocol.data == pattern(1000)
    transport.resume_reading()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]


def lambda_recorder() -> type:
    class Small(BufferedRecorder):
        def __init__(self) -> None:
            super().__init__(100)

    return Small


async def test_paused_the_end_is_not_told(secure):
    transport, protocol, far = await secure()
    transport.pause_reading()
    await far.send(b"data")
    await far.goodbye()
    far.sock.shutdown(1)
    await settle()
    assert protocol.log == ["made"]
    transport.resume_reading()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]


@pytest.mark.asyncio_wrong("it does not say goodbye")
async def test_paused_and_closed(secure):
    transport, protocol, far = await secure()
    transport.pause_reading()
    await far.send(b"never seen")
    await settle()
    transport.write(b"bye")
    transport.close()
    assert (await far.read_all(), far.end) == (b"bye", "close_notify")
    await far.goodbye()
    await protocol.lost()
    assert "data" not in protocol.log


@pytest.mark.parametrize("when", ["idle", "writing", "closing"])
async def test_reset(secure, when):
    transport, protocol, far = await secure()
    if when == "writing":
        transport.write(bytes(10_000_000))
    elif when == "closing":
        transport.write(bytes(10_000_000))
        transport.close()
    await settle()
    reset(far.sock)
    assert isinstance(await protocol.lost(), OSError)
    assert protocol.log[0], protocol.log[-1] == ("made", "lost")
    assert transport.get_write_buffer_size() == 0
    transport.write(b"dropped")
    transport.close()
    transport.abort()


@pytest.mark.parametrize("size", [100, 30_000_000])
@pytest.mark.asyncio_wrong("each record of what is left brings a warning")
async def test_writing_to_who_has_reset(secure, caplog, size):
    """What could not be sent is not encrypted, and nobody is warned of a write that came before the news."""
    transport, protocol, far = await secure()
    reset(far.sock)
    transport.write(bytes(size))
    assert isinstance(await protocol.lost(), OSError)
    assert "socket.send() raised exception" not in caplog.text


async def test_reset_under_load(secure):
    """Data in both directions; the connection ends once, whatever comes first."""
    for rounds in range(20):
        transport, protocol, far = await secure()
        transport.write(bytes(3_000_000))
        far.ssl.write(bytes(10_000))
        await far.flush()
        for _ in range(rounds):
            transport.write(bytes(100_000))
            await far.receive(10_000)
        reset(far.sock)
        transport.write(b"more")
        assert isinstance(await protocol.lost(), OSError)


async def test_data_before_a_reset_arrive(secure):
    transport, protocol, far = await secure()
    await far.send(pattern(50_000))
    assert await protocol.receives(50_000) == pattern(50_000)
    await far.send(b"last")
    await settle()
    reset(far.sock)
    await protocol.lost()
    assert protocol.data[50_000:] == b"last"


async def test_abort(secure):
    transport, protocol, far = await secure()
    transport.write(bytes(10_000_000))
    transport.abort()
    assert await protocol.lost() is None
    await far.read_all()
    assert far.end != "close_notify"


@pytest.mark.asyncio_wrong("connection_lost gets an SSLError")
@pytest.mark.parametrize("size", [1, 200_000])
async def test_a_peer_that_keeps_sending_after_our_close(secure, size):
    transport, protocol, far = await secure()
    transport.close()
    sent = 0
    with contextlib.suppress(OSError):
        while sent < 100_000_000:
            await far.send(bytes(size))
            sent += size
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]
    assert sent < 20_000_000  # what the kernel's buffers take


async def test_a_silent_peer(secure):
    transport, protocol, far = await secure(ssl_shutdown_timeout=0.05)
    transport.close()
    assert isinstance(await protocol.lost(), TimeoutError)
    assert (await far.read_all(), far.end != "") == (b"", True)


@pytest.mark.parametrize("size", [100_000, 10_000_000])
async def test_a_peer_that_never_reads(secure, size):
    transport, protocol, far = await secure(ssl_shutdown_timeout=0.05)
    transport.write(bytes(size))
    transport.close()
    assert isinstance(await protocol.lost(), TimeoutError)
    assert protocol.log[-1] == "lost"


@pytest.mark.asyncio_wrong("the shutdown timeout is over")
async def test_a_slow_reader_gets_it_all(secure):
    """The shutdown takes many times its timeout, but there is progress."""
    transport, protocol, far = await secure(ssl_shutdown_timeout=0.2)
    size = 12_000_000
    for sock, option in ((far.sock, socket.SO_RCVBUF), (transport.get_extra_info("socket"), socket.SO_SNDBUF)):
        sock.setsockopt(socket.SOL_SOCKET, option, 1 << 17)
    transport.write(pattern(size))
    transport.close()
    received = bytearray()
    for _ in range(12):
        received += await far.receive(size // 12)
        await asyncio.sleep(0.05)
    assert received == pattern(size)
    assert (await far.read_all(), far.end) == (b"", "close_notify")
    await far.goodbye()
    assert await protocol.lost() is None


@pytest.mark.asyncio_wrong("connection_lost gets an SSLError")
async def test_a_peer_that_sends_and_never_reads(secure):
    """It has ended the exchange of goodbyes, but what we wrote still fills the kernel: the timeout holds."""
    transport, protocol, far = await secure(ssl_shutdown_timeout=0.05)
    transport.set_write_buffer_limits(1 << 30)
    far.ssl.write(b"unwelcome")
    await far.flush()
    await protocol.receives(9)
    sock = transport.get_extra_info("socket")
    filler = bytearray()
    while transport.get_write_buffer_size() == 0:  # until the kernel takes no more
        transport.write(bytes(10_000))
        filler += b"."
        await asyncio.sleep(0)
    assert sock.fileno() >= 0
    transport.close()
    far.ssl.write(b"unwelcome")
    await far.flush()
    await protocol.lost()
    assert protocol.story == ["made", "data", "lost"] or "pause" in protocol.log


@pytest.mark.asyncio_wrong("the connection ends before the alert has left")
@KINDS
async def test_garbage_in_the_middle(secure, kind):
    transport, protocol, far = await secure(kind)
    await far.send(b"fine")
    await protocol.receives(4)
    far.sock.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert isinstance(await protocol.lost(), ssl.SSLError)
    assert protocol.story == ["made", "data", "lost"]
    assert await far.read_all() == b""
    assert far.end in ("SSLError", "ConnectionResetError")


@pytest.mark.asyncio_wrong("the data before it are lost")
async def test_what_came_before_the_garbage_arrives(secure):
    transport, protocol, far = await secure()
    far.ssl.write(b"fine")
    far.sock.send(far.outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
    assert isinstance(await protocol.lost(), ssl.SSLError)
    assert protocol.data == b"fine"


async def test_write_after_the_end(secure, caplog):
    transport, protocol, far = await secure()
    transport.close()
    for _ in range(7):
        transport.write(b"dropped")
    transport.writelines([b"dropped"])
    assert (await far.read_all(), far.end) == (b"", "close_notify")
    await far.goodbye()
    await protocol.lost()
    transport.write(b"dropped")
    transport.pause_reading()
    transport.resume_reading()
    assert "SSL connection is closed" in caplog.text


async def test_half_a_record_then_fin(secure):
    transport, protocol, far = await secure()
    far.ssl.write(b"truncated")
    far.sock.send(far.outgoing.read()[:-3])
    far.sock.shutdown(1)
    assert await protocol.lost() is None
    assert protocol.log == ["made", "eof", "lost"]


async def test_both_close_at_once(loop, serve):
    served = await serve(ssl=server_context())
    transport, near = await loop.create_connection(
        Recorder, *served.address, ssl=client_context(), server_hostname="localhost"
    )
    far = await served.made.nth()
    transport.close()
    far.transport.close()
    assert [await near.lost(), await far.lost()] == [None, None]


async def test_the_loop_is_closed_with_a_connection_open(loop, attach):
    """Nothing is called, nothing crashes, and the descriptor is closed when the transport is forgotten."""
    transport, protocol, peer = await attach()
    far = Far(peer, server_context(), server_side=True)
    secured, _ = await asyncio.gather(
        loop.start_tls(transport, protocol, client_context(), server_hostname="localhost"), far.handshake()
    )
    secured.write(b"x")
    secured.abort()
