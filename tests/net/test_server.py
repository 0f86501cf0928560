"""The Server object: what it shows, how it ends, and who waits for whom."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import weakref

import pytest

from tests.net.peers import Echo, Factory, Recorder, overriding, raiser, recv_all, settle


async def connected(served, number=1):
    client = served.connect()
    return client, await served.made.nth(number)


async def test_shows_its_loop_sockets_and_state(loop, serve):
    server = (await serve()).server
    assert isinstance(server, asyncio.AbstractServer)
    assert server.get_loop() is loop
    assert server.is_serving()
    (sock,) = server.sockets
    assert isinstance(server.sockets, tuple)
    assert sock.family == socket.AF_INET
    assert sock.getsockname()[0] == "127.0.0.1"


async def test_repr_names_the_sockets_and_works_when_closed(serve):
    server = (await serve()).server
    assert repr(server).startswith("<Server sockets=(<asyncio.TransportSocket fd=")
    server.close()
    assert repr(server) in ("<Server sockets=()>", "<Server sockets=None>")


async def test_close_ends_serving_and_releases_the_address(loop, serve):
    served = await serve()
    served.server.close()
    assert not served.server.is_serving()
    assert served.server.sockets == ()
    with pytest.raises(ConnectionRefusedError):
        await loop.create_connection(Recorder, *served.address)
    again = await serve(port=served.address[1])
    assert again.address == served.address


async def test_close_twice_is_harmless(serve):
    server = (await serve()).server
    server.close()
    server.close()
    await server.wait_closed()
    server.close()


async def test_close_leaves_connections_open(serve):
    served = await serve(Echo)
    client, protocol = await connected(served)
    served.server.close()
    client.send(b"still served")
    assert await protocol.receives(12) == b"still served"
    assert await asyncio.to_thread(client.recv, 100) == b"still served"
    assert protocol.log == ["made", "data"]


async def test_close_before_serving_releases_the_address(loop, serve):
    served = await serve(start_serving=False)
    served.server.close()
    await served.server.wait_closed()
    again = await serve(port=served.address[1])
    assert again.address == served.address


@pytest.mark.since(3, 13)
async def test_close_clients_flushes_what_was_written(serve):
    served = await serve()
    first, one = await connected(served, 1)
    second, two = await connected(served, 2)
    one.transport.write(b"goodbye" * 1_000_000)
    served.server.close()
    served.server.close_clients()
    assert one.transport.is_closing()
    assert two.transport.is_closing()
    assert await asyncio.to_thread(recv_all, first) == b"goodbye" * 1_000_000
    assert await asyncio.to_thread(recv_all, second) == b""
    assert await one.lost() is None
    assert await two.lost() is None
    await served.server.wait_closed()


@pytest.mark.since(3, 13)
async def test_abort_clients_drops_what_was_written(serve):
    served = await serve()
    _, one = await connected(served)
    one.transport.write(bytes(20_000_000))
    served.server.close()
    served.server.abort_clients()
    assert await one.lost() is None
    await served.server.wait_closed()


@pytest.mark.since(3, 13)
async def test_close_clients_may_come_before_close(serve):
    served = await serve()
    client, protocol = await connected(served)
    served.server.close_clients()
    assert await protocol.lost() is None
    assert served.server.is_serving()
    _, other = await connected(served, 2)
    served.server.close_clients()
    assert await other.lost() is None
    assert client.recv(1) == b""


@pytest.mark.since(3, 13)
async def test_close_and_abort_clients_without_clients(serve):
    server = (await serve()).server
    server.close_clients()
    server.abort_clients()
    server.close()
    server.close_clients()
    server.abort_clients()


async def test_wait_closed_returns_when_closed_without_connections(serve):
    server = (await serve()).server
    server.close()
    await server.wait_closed()
    await server.wait_closed()


@pytest.mark.since(3, 12)
async def test_wait_closed_waits_for_close(serve):
    server = (await serve()).server
    waiter = asyncio.create_task(server.wait_closed())
    await settle()
    assert not waiter.done()
    server.close()
    await waiter


async def test_wait_closed_waits_for_connections_from_python_3_12_on(serve):
    served = await serve()
    client, protocol = await connected(served)
    served.server.close()
    waiters = [asyncio.create_task(served.server.wait_closed()) for _ in range(2)]
    await settle()
    waits = sys.version_info >= (3, 12)
    assert [waiter.done() for waiter in waiters] == [not waits] * 2
    client.close()
    assert await protocol.lost() is None
    await asyncio.gather(*waiters)


async def test_wait_closed_can_be_cancelled(serve):
    served = await serve()
    client, _ = await connected(served)
    waiters = [asyncio.create_task(served.server.wait_closed()) for _ in range(2)]
    await settle()
    served.server.close()
    waiters[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters[0]
    client.close()
    await waiters[1]


@pytest.mark.since(3, 12)
async def test_wait_closed_counts_a_connection_whose_protocol_raises_in_connection_lost(serve, errors):
    served = await serve(overriding(Recorder, connection_lost=raiser(ZeroDivisionError)))
    client, _ = await connected(served)
    served.server.close()
    client.close()
    await served.server.wait_closed()
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError]


async def test_async_with_closes(serve):
    served = await serve()
    async with served.server as server:
        assert server is served.server
        assert server.is_serving()
    assert not server.is_serving()
    assert server.sockets == ()


async def test_async_with_closes_when_the_body_raises(serve):
    server = (await serve()).server
    with pytest.raises(ZeroDivisionError):
        async with server:
            raise ZeroDivisionError
    assert not server.is_serving()


async def test_start_serving_twice_is_harmless(serve):
    served = await serve()
    await served.server.start_serving()
    await served.server.start_serving()
    assert served.server.is_serving()
    await connected(served)


@pytest.mark.asyncio_wrong("says that it serves after the failure")
async def test_start_serving_after_close_is_an_error(serve):
    server = (await serve()).server
    server.close()
    with pytest.raises((RuntimeError, TypeError)):
        await server.start_serving()
    assert not server.is_serving()


async def forever(server):
    task = asyncio.create_task(server.serve_forever())
    await settle()
    assert not task.done()
    return task


async def test_serve_forever_starts_serving(serve):
    served = await serve(Echo, start_serving=False)
    task = await forever(served.server)
    assert served.server.is_serving()
    await connected(served)
    task.cancel()


async def test_serve_forever_cancelled_closes_the_server(serve):
    served = await serve()
    task = await forever(served.server)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not served.server.is_serving()
    assert served.server.sockets == ()


@pytest.mark.since(3, 12)
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="from 3.13 on it closes them")
async def test_serve_forever_cancelled_waits_for_connections(serve):
    served = await serve()
    client, _ = await connected(served)
    task = await forever(served.server)
    task.cancel()
    await settle()
    assert not served.server.is_serving()
    assert not task.done()
    client.close()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.since(3, 13)
@pytest.mark.asyncio_wrong(
    "the first releases of 3.13 wait for the connections",
    when="close_clients" not in asyncio.Server.serve_forever.__code__.co_names,
)
async def test_serve_forever_cancelled_closes_connections(serve):
    served = await serve()
    client, _ = await connected(served)
    task = await forever(served.server)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not served.server.is_serving()
    client.close()


async def test_close_ends_serve_forever(serve):
    served = await serve()
    task = await forever(served.server)
    served.server.close()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_serve_forever_twice_at_once_is_refused(serve):
    server = (await serve()).server
    task = await forever(server)
    with pytest.raises(RuntimeError, match="is already being awaited on serve_forever"):
        await server.serve_forever()
    assert server.is_serving()
    assert not task.done()
    task.cancel()


async def test_serve_forever_on_a_closed_server_is_refused(serve):
    server = (await serve()).server
    server.close()
    with pytest.raises(RuntimeError, match="is closed"):
        await server.serve_forever()


async def test_server_that_nobody_holds_goes_on_serving(loop, sockets):
    made = Factory(Echo)
    server = await loop.create_server(made, "127.0.0.1", 0)
    address, reference = server.sockets[0].getsockname(), weakref.ref(server)
    del server
    gc.collect()
    client = sockets.enter_context(socket.create_connection(address, 10))
    protocol = await made.nth()
    client.send(b"hello")
    await protocol.receives(5)
    client.close()
    await protocol.lost()
    reference().close()


async def test_close_inside_connection_made_keeps_the_connection(serve):
    closed = []

    def close(_):
        served.server.close()
        closed.append(1)

    served = await serve(overriding(Echo, connection_made=close))
    client, protocol = await connected(served)
    assert closed
    client.send(b"hello")
    assert await protocol.receives(5) == b"hello"


async def test_clients_still_queued_at_close_are_turned_away(serve):
    served = await serve()
    client = served.connect()
    served.server.close()  # in the turn of the connect: nothing is accepted yet
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.to_thread(client.recv, 1) == b""
    assert not served.made.made


async def test_servers_on_one_loop_do_not_mix(serve):
    one, two = await serve(), await serve()
    _, protocol = await connected(one)
    two.server.close()
    assert one.server.is_serving()
    assert not two.made.made
    assert protocol.log == ["made"]


@pytest.mark.since(3, 13)
async def test_transport_that_was_lost_is_no_client_any_more(serve):
    served = await serve()
    client, protocol = await connected(served)
    client.close()
    await protocol.lost()
    served.server.close()
    await served.server.wait_closed()
    served.server.close_clients()
    served.server.abort_clients()
    assert protocol.log == ["made", "eof", "lost"]
