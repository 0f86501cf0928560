"""What TLS connections leave behind, and what they hold while they live."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import ssl
import warnings
import weakref
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from tests.loops import run
from tests.net.peers import Factory, Recorder, settle, tcp_pair
from tests.tls.far import Far, client_context, server_context


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def visit(loop, address, context: ssl.SSLContext) -> None:
    _, near = await loop.create_connection(Recorder, *address, ssl=context, server_hostname="localhost")
    near.transport.write(b"x")
    near.transport.close()
    await near.lost()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
async def test_a_thousand_connections_leave_nothing(loop, serve):
    served = await serve(ssl=server_context())
    context = client_context()
    gc.collect()
    known = weakref.WeakSet()
    before = 0
    for number in range(1000):
        await visit(loop, served.address, context)
        while served.made.made:
            protocol = served.made.made.pop()
            await protocol.lost()
            known.add(protocol)
            del protocol
        if number == 300:
            gc.collect()
            descriptors, before = open_descriptors(), resident()
    gc.collect()
    await settle()
    assert len(open_descriptors()) == len(descriptors)  # the loop may have changed one of its own
    assert resident() - before < 2_000_000
    assert not known


@pytest.mark.asyncio_wrong("transports and protocols of TLS refer to each other until a collection")
async def test_a_connection_is_gone_without_the_collector(loop, serve):
    served = await serve(ssl=server_context())
    context = client_context()
    gc.collect()
    gc.disable()
    try:
        _, near = await loop.create_connection(Recorder, *served.address, ssl=context, server_hostname="localhost")
        known = weakref.ref(near.transport.get_extra_info("ssl_object"))
        near.transport.close()
        await near.lost()
        del near, _
        await settle()
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.asyncio_wrong("it allocates 256 KiB for each connection")
async def test_an_idle_connection_is_small(secure):
    """Both ends, OpenSSL's part (some 50 KiB each) included."""
    near, far = client_context(), server_context()
    connections = [await secure(near=near, far=far) for _ in range(10)]
    gc.collect()
    before = resident()
    for _ in range(100):
        connections.append(await secure(near=near, far=far))
    gc.collect()
    assert (resident() - before) / 100 < 150_000
    for connection in connections:
        connection.transport.abort()


def test_a_forgotten_transport_warns_and_closes(loop):
    sock, other = tcp_pair()

    async def begin() -> None:
        far = Far(other, server_context(), server_side=True)
        connecting = loop.create_connection(Recorder, sock=sock, ssl=client_context(), server_hostname="localhost")
        (transport, protocol), _ = await asyncio.gather(connecting, far.handshake())
        transport.pause_reading()
        protocol.transport = None

    run(loop, begin())
    loop.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert {warning.category for warning in caught} == {ResourceWarning}
    assert any("unclosed" in str(warning.message) for warning in caught)
    other.setblocking(True)
    while other.recv(1000):
        pass
    other.close()


def test_a_closed_transport_does_not_warn(loop, recwarn):
    sock, other = tcp_pair()
    made = Factory()

    async def begin() -> None:
        far = Far(other, server_context(), server_side=True)
        connecting = loop.create_connection(made, sock=sock, ssl=client_context(), server_hostname="localhost")
        (transport, protocol), _ = await asyncio.gather(connecting, far.handshake())
        transport.abort()
        await protocol.lost()

    run(loop, begin())
    made.made.clear()
    gc.collect()
    other.close()
    assert not [warning for warning in recwarn if warning.category is ResourceWarning]


@pytest.mark.parametrize("call", ["close", "abort", "write", "pause_reading", "resume_reading"])
def test_a_transport_used_after_its_loop_has_closed(loop, call):
    sock, other = tcp_pair()
    made = Factory()

    async def begin() -> None:
        far = Far(other, server_context(), server_side=True)
        connecting = loop.create_connection(made, sock=sock, ssl=client_context(), server_hostname="localhost")
        await asyncio.gather(connecting, far.handshake())

    run(loop, begin())
    loop.close()
    transport = made.made[0].transport
    with contextlib.suppress(RuntimeError):  # "Event loop is closed", where the call needs the loop
        getattr(transport, call)(*([b"x"] if call == "write" else []))
    other.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        made.made.clear()
        del transport
        gc.collect()
