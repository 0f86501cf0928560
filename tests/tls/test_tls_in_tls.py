"""TLS inside TLS, as through an HTTPS proxy."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from tests.net.peers import BufferedRecorder, Echo, Recorder, pattern
from tests.tls.far import client_context, server_context

SIZE = 8_000_000


class Both:
    def __init__(self, loop, served) -> None:
        self.loop, self.served = loop, served

    async def upgrade(self) -> tuple:
        transport, near = await self.loop.create_connection(
            Recorder, *self.served.address, ssl=client_context(), server_hostname="localhost"
        )
        far = await self.served.made.nth()
        inner, far.transport = await asyncio.gather(
            self.loop.start_tls(transport, near, client_context(), server_hostname="localhost"),
            self.loop.start_tls(far.transport, far, server_context(), server_side=True),
        )
        return inner, near, far


@pytest.mark.asyncio_wrong("connection_lost gets an SSLError")
@pytest.mark.parametrize("kind", [Echo, BufferedRecorder])
async def test_in_and_out(loop, serve, kind):
    served = await serve(kind, ssl=server_context())
    inner, near, far = await Both(loop, served).upgrade()
    inner.write(b"hello")
    assert await far.receives(5) == b"hello"
    assert isinstance(inner.get_extra_info("ssl_object"), ssl.SSLObject)
    assert inner.get_extra_info("peername") == served.address
    inner.close()
    assert [await near.lost(), await far.lost()] == [None, None]
    assert far.story == ["made", "data", "eof", "lost"]
    assert "eof" not in near.log or near.story[-2:] == ["eof", "lost"]


async def test_bulk_both_ways(loop, serve):
    served = await serve(Recorder, ssl=server_context())
    inner, near, far = await Both(loop, served).upgrade()
    inner.write(pattern(SIZE))
    far.transport.write(pattern(SIZE))
    assert await far.receives(SIZE) == pattern(SIZE)
    assert await near.receives(SIZE) == pattern(SIZE)
    assert near.log.count("pause") == near.log.count("resume")
    far.transport.write(b"last words")
    far.transport.close()
    assert [await near.lost(), await far.lost()] == [None, None]
    assert near.data[SIZE:] == b"last words"


@pytest.mark.asyncio_wrong("it takes whatever is written, and pauses late")
async def test_paused_below(loop, serve):
    served = await serve(Recorder, ssl=server_context())
    inner, near, far = await Both(loop, served).upgrade()
    far.transport.pause_reading()
    inner.write(pattern(SIZE))
    assert "pause" in near.log
    await asyncio.sleep(0)
    assert not far.data
    far.transport.resume_reading()
    assert await far.receives(SIZE) == pattern(SIZE)
    await near.reaches("resume")
    inner.abort()
    await near.lost()
    await far.lost()


async def test_three_deep(loop, serve):
    served = await serve(Echo, ssl=server_context())
    inner, near, far = await Both(loop, served).upgrade()
    innermost, far.transport = await asyncio.gather(
        loop.start_tls(inner, near, client_context(), server_hostname="localhost"),
        loop.start_tls(far.transport, far, server_context(), server_side=True),
    )
    innermost.write(pattern(300_000))
    assert await near.receives(300_000) == pattern(300_000)
    innermost.close()
    assert [await near.lost(), await far.lost()] == [None, None]


@pytest.mark.parametrize("layer", ["inner", "outer"])
@pytest.mark.parametrize("how", ["abort", "close"])
@pytest.mark.asyncio_wrong("the protocol is told twice, or never")
async def test_either_layer_ends_it(loop, serve, layer, how):
    served = await serve(ssl=server_context())
    inner, near, far = await Both(loop, served).upgrade()
    outer = far.transport
    if layer == "outer":
        transport = near.transport  # the one that connection_made has given
    else:
        transport = inner
    getattr(transport, how)()
    assert await near.lost() is None
    await far.lost()
    assert near.log == ["made", "lost"]
    assert outer.is_closing()


@pytest.mark.asyncio_wrong("connection_lost fails with an AttributeError")
async def test_the_inner_handshake_fails(loop, serve):
    served = await serve(ssl=server_context())
    transport, near = await loop.create_connection(
        Recorder, *served.address, ssl=client_context(), server_hostname="localhost"
    )
    far = await served.made.nth()
    results = await asyncio.gather(
        loop.start_tls(transport, near, client_context("strangers"), server_hostname="localhost"),
        loop.start_tls(far.transport, far, server_context(), server_side=True),
        return_exceptions=True,
    )
    assert isinstance(results[0], ssl.SSLCertVerificationError)
    assert isinstance(results[1], OSError)
