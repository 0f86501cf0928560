"""Servers whose connections are under TLS."""

from __future__ import annotations

import asyncio

import pytest

from tests.net.peers import Echo, Recorder, settle
from tests.tls.far import Far, client_context, server_context


async def clients(served, count: int) -> list[Far]:
    context = client_context()
    peers = [Far(served.connect(), context, server_side=False) for _ in range(count)]
    return await asyncio.gather(*(peer.handshake() for peer in peers))


@pytest.mark.since(3, 13)
@pytest.mark.asyncio_wrong("the connection below is closed, without a goodbye")
async def test_close_clients_says_goodbye(serve):
    served = await serve(ssl=server_context())
    peers = await clients(served, 3)
    for protocol in served.made.made:
        await protocol.reaches("made")
        protocol.transport.write(b"last words")
    served.server.close()
    served.server.close_clients()
    for peer in peers:
        assert (await peer.read_all(), peer.end) == (b"last words", "close_notify")
        await peer.goodbye()
    await served.server.wait_closed()
    assert [protocol.log for protocol in served.made.made] == [["made", "lost"]] * 3


@pytest.mark.since(3, 13)
@pytest.mark.asyncio_wrong("the connection below is closed, without a goodbye")
async def test_close_clients_says_goodbye_after_start_tls(loop, serve):
    served = await serve()
    client = served.connect()
    protocol = await served.made.nth()
    far = Far(client, client_context(), server_side=False)
    await asyncio.gather(
        loop.start_tls(protocol.transport, protocol, server_context(), server_side=True), far.handshake()
    )
    served.server.close_clients()
    assert (await far.read_all(), far.end) == (b"", "close_notify")
    await far.goodbye()
    await protocol.lost()


@pytest.mark.since(3, 13)
async def test_abort_clients(serve):
    served = await serve(ssl=server_context())
    peers = await clients(served, 3)
    silent = served.connect()  # still in its handshake
    await served.made.nth(3)
    await settle()
    served.server.close()
    served.server.abort_clients()
    await served.server.wait_closed()
    for peer in peers:
        assert await peer.read_all() == b""
        assert peer.end != "close_notify"
    assert [protocol.log for protocol in served.made.made] == [["made", "lost"]] * 3 + [[]]
    silent.close()


@pytest.mark.since(3, 13)
async def test_close_clients_during_the_handshake(serve):
    served = await serve(ssl=server_context())
    silent = served.connect()
    while not served.made.made:
        await settle()
    served.server.close()
    served.server.close_clients()
    await served.server.wait_closed()
    silent.close()


@pytest.mark.since(3, 12)
async def test_wait_closed_waits_for_the_last_connection(loop, serve):
    served = await serve(Echo, ssl=server_context())
    (peer,) = await clients(served, 1)
    await served.made.nth()
    served.server.close()
    waiting = asyncio.ensure_future(served.server.wait_closed())
    await peer.send(b"still")
    assert await peer.receive(5) == b"still"
    assert not waiting.done()
    await peer.goodbye()
    await waiting
    assert served.made.made[0].log[-1] == "lost"


@pytest.mark.asyncio_wrong("nothing is reported, and the client stays connected")
async def test_a_factory_that_raises(serve, errors):
    def refuse() -> Recorder:
        raise ZeroDivisionError

    served = await serve(refuse, ssl=server_context())
    client = served.connect()
    while not errors:
        await settle()
    assert isinstance(errors[0]["exception"], ZeroDivisionError)
    client.close()
