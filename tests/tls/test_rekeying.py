"""New keys in the middle of a connection: key updates in TLS 1.3, renegotiation in TLS 1.2."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ssl
import sys
from typing import Any

import pytest

from tests.net.peers import Echo, Recorder, pattern, settle
from tests.tls.far import Far, client_context, server_context, version_2

if sys.implementation.name != "cpython":
    pytest.skip("needs to know where the ssl module keeps OpenSSL's object", allow_module_level=True)

_ssl = pytest.importorskip("_ssl")
openssl = ctypes.CDLL(getattr(_ssl, "__file__", None))
KEEP, ASK = 0, 1  # whether the other side is asked to update its keys too (RFC 8446, 4.6.3)


def inside(far: Far) -> ctypes.c_void_p:
    inner: Any = far.ssl._sslobj
    return ctypes.c_void_p.from_address(id(inner) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))


async def update_keys(far: Far, kind: int) -> None:
    assert openssl.SSL_key_update(inside(far), kind) == 1
    await far.do(far.ssl.do_handshake)


@pytest.mark.parametrize("kind", [KEEP, ASK])
@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
async def test_key_updates(secure, kind, server):
    _, protocol, far = await secure(Echo, server=server)
    for _ in range(20):
        await update_keys(far, kind)
        await far.send(b"data")
        assert await far.receive(4) == b"data"
    assert protocol.data == b"data" * 20


@pytest.mark.asyncio_wrong("the answers pile up without bound")
async def test_a_peer_that_asks_for_new_keys_and_reads_nothing(secure):
    transport, protocol, far = await secure()
    transport.write(bytes(12_000_000))
    before = transport.get_write_buffer_size()
    with pytest.raises(OSError):
        for _ in range(5000):
            await update_keys(far, ASK)
            await settle(1)  # each is read by itself, and so each is answered
    assert before > 1_000_000
    assert isinstance(await protocol.lost(), ConnectionAbortedError)


async def test_key_updates_under_load(secure):
    transport, protocol, far = await secure()
    size = 5_000_000
    transport.write(pattern(size))
    received = bytearray()
    while len(received) < size:
        await update_keys(far, ASK)
        await far.send(b"x")
        received += await far.receive(min(500_000, size - len(received)))
    assert received == pattern(size)
    await protocol.receives(10)


async def test_key_updates_to_a_paused_reader(secure):
    transport, protocol, far = await secure()
    transport.pause_reading()
    await update_keys(far, ASK)
    await far.send(b"data")
    await settle()
    transport.write(b"out")
    assert await far.receive(3) == b"out"
    transport.resume_reading()
    assert await protocol.receives(4) == b"data"


def renegotiating() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    near, far = version_2(client_context()), server_context()
    near.options &= ~ssl.OP_NO_RENEGOTIATION
    far.options &= ~ssl.OP_NO_RENEGOTIATION
    return near, far


async def test_renegotiation(secure):
    near, far_context = renegotiating()
    transport, protocol, far = await secure(near=near, far=far_context)
    for _ in range(3):
        assert openssl.SSL_renegotiate(inside(far)) == 1
        with contextlib.suppress(ssl.SSLWantReadError):
            far.ssl.do_handshake()
        await far.flush()
        transport.write(b"out")
        await far.send(b"in")
        assert await far.receive(3) == b"out"
    assert await protocol.receives(6) == b"ininin"


async def test_renegotiation_while_writing(loop, secure):
    """OpenSSL may refuse to write until it has read: what waits is sent all the same, and the protocol resumed."""
    near, far_context = renegotiating()
    transport, protocol, far = await secure(near=near, far=far_context)
    transport.set_write_buffer_limits(high=1000)
    size = 3_000_000
    assert openssl.SSL_renegotiate(inside(far)) == 1
    with contextlib.suppress(ssl.SSLWantReadError):
        far.ssl.do_handshake()
    await far.flush()
    await settle()
    transport.write(pattern(size))
    receiving = asyncio.ensure_future(far.receive(size))
    assert await receiving == pattern(size)
    await settle()
    told = [event for event in protocol.log if event in ("pause", "resume")]
    assert told == ["pause", "resume"] * (len(told) // 2)
    transport.write(b"last")
    transport.close()
    assert (await far.read_all(), far.end) == (b"last", "close_notify")


@pytest.mark.asyncio_wrong("what was written is lost")
@pytest.mark.parametrize("end", ["close", "abort"])
async def test_the_end_while_openssl_cannot_write(secure, end):
    near, far_context = renegotiating()
    transport, protocol, far = await secure(near=near, far=far_context, ssl_shutdown_timeout=1)
    assert openssl.SSL_renegotiate(inside(far)) == 1
    with contextlib.suppress(ssl.SSLWantReadError):
        far.ssl.do_handshake()
    await far.flush()
    await settle()
    transport.write(b"waits for the renegotiation")
    getattr(transport, end)()
    if end == "close":
        assert (await far.read_all(), far.end) == (b"waits for the renegotiation", "close_notify")
        await far.goodbye()
    await protocol.lost()
    assert protocol.log == ["made", "lost"]
    assert isinstance(protocol, Recorder)
