"""create_server: where it listens, with which options, and what it refuses."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import struct
import sys
import threading

import pytest

from tests.net.peers import Echo, Factory, Recorder, answering, listener, needs_ipv6, reserved, settle


async def echoes(loop, address):
    transport, protocol = await loop.create_connection(Recorder, *address[:2])
    transport.write(b"echo")
    assert await protocol.receives(4) == b"echo"
    transport.close()
    await protocol.lost()


def hosts_of(server):
    return sorted(sock.getsockname()[0] for sock in server.sockets)


async def test_serves_on_a_free_port(loop, serve):
    served = await serve(Echo)
    assert served.address[1] > 0
    assert served.server.is_serving()
    await echoes(loop, served.address)


@needs_ipv6
@pytest.mark.parametrize("host", [None, ""])
async def test_no_host_means_every_interface_of_both_families(loop, serve, host):
    server = (await serve(Echo, host=host)).server
    assert {sock.family for sock in server.sockets} == {socket.AF_INET, socket.AF_INET6}
    assert hosts_of(server) == ["0.0.0.0", "::"]
    for sock in server.sockets:
        loopback = "::1" if sock.family == socket.AF_INET6 else "127.0.0.1"
        await echoes(loop, (loopback, sock.getsockname()[1]))


@needs_ipv6
@pytest.mark.asyncio_wrong("every family gets an ephemeral port of its own")
@pytest.mark.parametrize("host", [None, ["127.0.0.1", "::1"], ["127.0.0.1", "127.0.0.2", "127.0.0.3"]])
async def test_ephemeral_port_is_one_for_all_addresses(serve, host):
    for _ in range(20):
        served = await serve(host=host)
        assert len(served.server.sockets) > 1
        assert len({sock.getsockname()[1] for sock in served.server.sockets}) == 1


@needs_ipv6
async def test_family_limits_the_addresses(serve):
    assert hosts_of((await serve(host=None, family=socket.AF_INET)).server) == ["0.0.0.0"]
    assert hosts_of((await serve(host=None, family=socket.AF_INET6)).server) == ["::"]


async def test_flags_reach_the_lookup(serve, monkeypatch):
    calls = answering(monkeypatch, (socket.AF_INET, ("127.0.0.1", 0)))
    await serve(host="a.name", flags=socket.AI_CANONNAME)
    await serve(host="a.name")
    assert [flags for *_, flags in calls] == [socket.AI_CANONNAME, socket.AI_PASSIVE]


@pytest.mark.parametrize("kind", [list, tuple, iter])
async def test_several_hosts_are_all_served(loop, serve, kind):
    server = (await serve(Echo, host=kind(["127.0.0.1", "127.0.0.2"]))).server
    assert hosts_of(server) == ["127.0.0.1", "127.0.0.2"]
    for sock in server.sockets:
        await echoes(loop, sock.getsockname())


async def test_host_named_twice_is_bound_once(loop, serve):
    server = (await serve(Echo, host=["127.0.0.1", "127.0.0.1", "localhost"], family=socket.AF_INET)).server
    assert hosts_of(server) == ["127.0.0.1"]
    await echoes(loop, server.sockets[0].getsockname())


@needs_ipv6
async def test_ipv6_sockets_do_not_take_ipv4_clients(serve):
    server = (await serve(host="::", port=0)).server
    assert server.sockets[0].getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


async def test_address_reuse_is_on_unless_switched_off(serve):
    def option(served):
        return bool(served.server.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR))

    assert option(await serve())
    assert option(await serve(reuse_address=True))
    assert not option(await serve(reuse_address=False))


async def test_port_can_be_shared_when_asked(loop, serve):
    first = await serve(Echo, reuse_port=True)
    second = await serve(Echo, reuse_port=True, port=first.address[1])
    assert first.address == second.address
    for _ in range(10):
        await echoes(loop, first.address)
    assert len(first.made.made) + len(second.made.made) == 10


async def test_port_is_not_shared_by_default(serve):
    served = await serve()
    assert not served.server.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)


@pytest.mark.since(3, 13)
@pytest.mark.parametrize("value", [None, False, True])
async def test_keep_alive_is_set_on_the_listener_and_inherited(serve, value):
    served = await serve(keep_alive=value)
    assert bool(served.server.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) is bool(value)
    served.connect()
    accepted = (await served.made.nth()).transport.get_extra_info("socket")
    assert bool(accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) is bool(value)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the length of the queue from Linux's TCP_INFO")
@pytest.mark.asyncio_wrong("leaves the bound socket open")
@pytest.mark.parametrize("backlog", [1.5, "1"])
async def test_a_backlog_is_an_integer(loop, backlog):
    with pytest.raises(TypeError, match="integer"):
        await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, backlog=backlog)


async def test_backlog_is_the_length_of_the_queue(serve):
    sock = (await serve(backlog=7)).server.sockets[0]
    (longest,) = struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 64), 28)
    assert longest == 7


async def test_start_serving_false_binds_and_refuses_clients_until_started(loop, serve):
    served = await serve(Echo, start_serving=False)
    assert not served.server.is_serving()
    with pytest.raises(ConnectionRefusedError):
        await loop.create_connection(Recorder, *served.address)
    await served.server.start_serving()
    assert served.server.is_serving()
    await echoes(loop, served.address)


@pytest.mark.parametrize("listening", [True, False])
async def test_given_socket_is_served(loop, serve, listening):
    sock = listener() if listening else reserved()
    sock.setblocking(True)
    served = await serve(Echo, sock=sock)
    assert sock.gettimeout() == 0
    await echoes(loop, served.address)


async def test_clients_queued_before_the_server_started_are_served(serve, sockets):
    sock = listener()
    clients = [sockets.enter_context(socket.create_connection(sock.getsockname(), 10)) for _ in range(3)]
    for client in clients:
        client.send(b"early")
    served = await serve(sock=sock)
    for number in range(1, 4):
        protocol = await served.made.nth(number)
        assert await protocol.receives(5) == b"early"


async def test_neither_host_nor_socket_is_refused(loop):
    with pytest.raises(ValueError, match="Neither host/port nor sock were specified"):
        await loop.create_server(Recorder)


@pytest.mark.parametrize("address", [{"host": "127.0.0.1"}, {"port": 0}])
async def test_host_and_socket_together_are_refused(loop, sockets, address):
    sock = sockets.enter_context(listener())
    with pytest.raises(ValueError, match="host/port and sock can not be specified at the same time"):
        await loop.create_server(Recorder, sock=sock, **address)
    assert sock.fileno() != -1


async def test_socket_of_another_type_is_refused(loop, sockets):
    sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with pytest.raises(ValueError, match="A Stream Socket was expected, got"):
        await loop.create_server(Recorder, sock=sock)
    assert sock.fileno() != -1


async def test_wrapped_ssl_socket_is_refused(loop, sockets):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    sock = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await loop.create_server(Recorder, sock=sock)


@pytest.mark.parametrize("value", [True, False])
async def test_ssl_must_be_a_context(loop, value):
    with pytest.raises(TypeError, match="ssl argument must be an SSLContext or None"):
        await loop.create_server(Recorder, "127.0.0.1", 0, ssl=value)


@pytest.mark.parametrize("option", ["ssl_handshake_timeout", "ssl_shutdown_timeout"])
async def test_options_of_tls_need_ssl(loop, option):
    with pytest.raises(ValueError, match=f"{option} is only meaningful with ssl"):
        await loop.create_server(Recorder, "127.0.0.1", 0, **{option: 1})


async def test_address_in_use_is_named(loop, serve):
    served = await serve()
    with pytest.raises(OSError, match="error while attempting to bind on address") as caught:
        await loop.create_server(Recorder, *served.address)
    assert caught.value.errno == errno.EADDRINUSE
    assert repr(served.address) in str(caught.value)
    assert "address already in use" in str(caught.value)


async def test_one_address_in_use_of_several_is_an_error(loop, sockets):
    """The sockets that were bound before are closed: the fixture `loop` looks for them."""
    port = sockets.enter_context(reserved("127.0.0.2")).getsockname()[1]
    with pytest.raises(OSError, match="error while attempting to bind on address") as caught:
        await loop.create_server(Recorder, ["127.0.0.1", "127.0.0.2", "127.0.0.3"], port)
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.since(3, 13)
async def test_addresses_this_machine_lacks_are_left_out(loop, serve, monkeypatch):
    there, missing = ("127.0.0.1", 0), ("192.0.2.1", 0)
    answering(monkeypatch, (socket.AF_INET, missing), (socket.AF_INET, there))
    assert hosts_of((await serve(host="a.name")).server) == ["127.0.0.1"]


@pytest.mark.since(3, 13)
async def test_no_address_left_is_an_error_that_names_them(loop):
    with pytest.raises(OSError, match="could not bind on any address out of .*192.0.2.1"):
        await loop.create_server(Recorder, "192.0.2.1", 0)


async def test_listening_that_fails_is_an_error(loop, serve):
    """Two sockets may be bound to one address with SO_REUSEADDR, but only one of them can listen."""
    first = await serve(start_serving=False)
    second = await serve(start_serving=False, port=first.address[1])
    await first.server.start_serving()
    with pytest.raises(OSError) as caught:
        await second.server.start_serving()
    assert caught.value.errno == errno.EADDRINUSE


async def test_lookup_failures_come_through(loop):
    with pytest.raises(socket.gaierror):
        await loop.create_server(Recorder, "127.0.0.1", 0, family=socket.AF_INET6)


async def test_empty_answer_of_the_lookup_names_the_host(loop, monkeypatch):
    answering(monkeypatch)
    with pytest.raises(OSError, match=r"getaddrinfo\('a.name'\) returned empty list"):
        await loop.create_server(Recorder, "a.name", 0)


async def test_port_out_of_range_is_an_overflow(loop):
    with pytest.raises(OverflowError):
        await loop.create_server(Recorder, "127.0.0.1", 70000)


async def test_create_server_cancelled_during_the_lookup_leaves_nothing(loop, monkeypatch):
    asked, go_on = threading.Event(), threading.Event()

    def getaddrinfo(*_):
        asked.set()
        go_on.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    made = Factory()
    task = asyncio.create_task(loop.create_server(made, "a.name", 0))
    while not asked.is_set():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await settle()
    assert not made.made
