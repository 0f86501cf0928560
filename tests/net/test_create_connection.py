"""create_connection: where it connects to, from where, and what it refuses."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import pytest

from tests.net.peers import (
    BufferedRecorder,
    Echo,
    Recorder,
    answering,
    needs_ipv6,
    raiser,
    reserved,
    tcp_pair,
    unix_pair,
)

MPTCP = 262  # IPPROTO_MPTCP of Linux; not every build of Python has the name


@pytest.mark.parametrize("protocol_class", [Recorder, BufferedRecorder])
async def test_gives_the_transport_and_the_protocol_made_by_the_factory(loop, serve, protocol_class):
    served = await serve(Echo)
    transport, protocol = await loop.create_connection(protocol_class, *served.address)
    assert type(protocol) is protocol_class
    assert protocol.log == ["made"]
    assert protocol.transport is transport
    assert transport.get_protocol() is protocol
    transport.write(b"hello")
    assert await protocol.receives(5) == b"hello"
    transport.close()
    assert await protocol.lost() is None


@pytest.mark.parametrize("host", ["127.0.0.1", b"127.0.0.1", "localhost"])
@pytest.mark.parametrize("port_type", [int, str])
async def test_connects_to_literal_addresses_and_names(loop, serve, host, port_type):
    served = await serve()
    transport, protocol = await loop.create_connection(Recorder, host, port_type(served.address[1]))
    assert transport.get_extra_info("peername") == served.address
    transport.close()
    await protocol.lost()


@needs_ipv6
async def test_connects_over_ipv6(loop, serve):
    served = await serve(host="::1")
    transport, protocol = await loop.create_connection(Recorder, "::1", served.address[1])
    assert transport.get_extra_info("peername")[:2] == served.address[:2]
    transport.close()
    await protocol.lost()


async def test_port_alone_means_this_machine(loop, serve):
    served = await serve()
    transport, protocol = await loop.create_connection(Recorder, port=served.address[1], family=socket.AF_INET)
    assert transport.get_extra_info("peername") == served.address
    transport.close()
    await protocol.lost()


async def test_family_proto_and_flags_reach_the_lookup(loop, serve, monkeypatch):
    served = await serve()
    calls = answering(monkeypatch, (socket.AF_INET, served.address))
    options = {"family": socket.AF_INET, "proto": socket.IPPROTO_TCP, "flags": socket.AI_ADDRCONFIG}
    transport, protocol = await loop.create_connection(Recorder, "a.name", 80, **options)
    assert calls == [("a.name", 80, socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.AI_ADDRCONFIG)]
    transport.close()
    await protocol.lost()


async def test_literal_addresses_are_not_looked_up(loop, serve, monkeypatch):
    served = await serve()
    monkeypatch.setattr(socket, "getaddrinfo", raiser(AssertionError))
    transport, protocol = await loop.create_connection(Recorder, *served.address)
    transport.close()
    await protocol.lost()


async def test_a_class_in_the_place_of_socket_makes_and_names_the_connection(loop, serve, monkeypatch):
    served = await serve()

    class Proxied(socket.socket):
        """As proxies' classes are: they know two types of sockets, block to connect, and name the far end."""

        def __init__(self, family, type, proto, fileno=None):
            assert type in (socket.SOCK_STREAM, socket.SOCK_DGRAM)
            super().__init__(family, type, proto, fileno)

        def connect(self, address):
            self.setblocking(True)
            super().connect(served.address)
            self.far_end = address

        def getpeername(self):
            return self.far_end

    monkeypatch.setattr(socket, "socket", Proxied)
    transport, protocol = await loop.create_connection(Recorder, "192.0.2.1", 80)
    assert transport.get_extra_info("peername") == ("192.0.2.1", 80)
    assert not os.get_blocking(transport.get_extra_info("socket").fileno())
    transport.close()
    await protocol.lost()


async def test_literal_of_another_family_is_refused(loop):
    with pytest.raises(socket.gaierror):
        await loop.create_connection(Recorder, "127.0.0.1", 80, family=socket.AF_INET6)


async def test_lookup_failures_come_through(loop, monkeypatch):
    failure = raiser(lambda: socket.gaierror(socket.EAI_NONAME, "nobody knows"))
    monkeypatch.setattr(socket, "getaddrinfo", failure)
    with pytest.raises(socket.gaierror) as caught:
        await loop.create_connection(Recorder, "a.name", 80)
    assert caught.value.errno == socket.EAI_NONAME


async def test_empty_answer_of_the_lookup_is_an_error(loop, monkeypatch):
    answering(monkeypatch)
    with pytest.raises(OSError, match=r"getaddrinfo\(\) returned empty list"):
        await loop.create_connection(Recorder, "a.name", 80)


async def test_empty_answer_for_the_local_address_is_an_error(loop, monkeypatch):
    answering(monkeypatch)
    with pytest.raises(OSError, match=r"getaddrinfo\(\) returned empty list"):
        await loop.create_connection(Recorder, "127.0.0.1", 80, local_addr=("a.name", 0))


async def test_next_address_is_tried_when_one_refuses(loop, serve, sockets, monkeypatch):
    served = await serve()
    dead = sockets.enter_context(reserved())
    answering(monkeypatch, (socket.AF_INET, dead.getsockname()), (socket.AF_INET, served.address))
    transport, protocol = await loop.create_connection(Recorder, "a.name", 80)
    assert transport.get_extra_info("peername") == served.address
    transport.close()
    await protocol.lost()


async def test_refused_connect_names_the_address(loop, sockets):
    address = sockets.enter_context(reserved()).getsockname()
    with pytest.raises(ConnectionRefusedError) as caught:
        await loop.create_connection(Recorder, *address)
    assert caught.value.errno == errno.ECONNREFUSED
    assert "Connect call failed" in str(caught.value)
    assert repr(address) in str(caught.value)


async def test_several_different_failures_are_all_named(loop, sockets, monkeypatch):
    addresses = [sockets.enter_context(reserved()).getsockname() for _ in range(3)]
    answering(monkeypatch, *((socket.AF_INET, address) for address in addresses))
    with pytest.raises(OSError, match="^Multiple exceptions: ") as caught:
        await loop.create_connection(Recorder, "a.name", 80)
    text = str(caught.value)
    places = [text.index(repr(address)) for address in addresses]
    assert places == sorted(places)


async def test_equal_failures_are_raised_as_one(loop, sockets, monkeypatch):
    address = sockets.enter_context(reserved()).getsockname()
    answering(monkeypatch, (socket.AF_INET, address), (socket.AF_INET, address))
    with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
        await loop.create_connection(Recorder, "a.name", 80)


@pytest.mark.since(3, 12)
@pytest.mark.parametrize("count", [1, 2])
async def test_all_errors_raises_a_group_of_every_failure(loop, sockets, monkeypatch, count):
    addresses = [sockets.enter_context(reserved()).getsockname() for _ in range(count)]
    answering(monkeypatch, *((socket.AF_INET, address) for address in addresses))
    with pytest.raises(ExceptionGroup, match="create_connection failed") as caught:
        await loop.create_connection(Recorder, "a.name", 80, all_errors=True)
    assert [type(exc) for exc in caught.value.exceptions] == [ConnectionRefusedError] * count
    for exc, address in zip(caught.value.exceptions, addresses, strict=True):
        assert repr(address) in str(exc)


async def test_local_addr_is_where_the_connection_comes_from(loop, serve):
    served = await serve()
    transport, protocol = await loop.create_connection(Recorder, *served.address, local_addr=("127.0.0.2", 0))
    assert transport.get_extra_info("sockname")[0] == "127.0.0.2"
    at_server = await served.made.nth()
    assert at_server.transport.get_extra_info("peername") == transport.get_extra_info("sockname")
    transport.close()
    await protocol.lost()


async def test_local_addr_may_be_a_name(loop, serve):
    served = await serve()
    options = {"family": socket.AF_INET, "local_addr": ("localhost", 0)}
    transport, protocol = await loop.create_connection(Recorder, *served.address, **options)
    assert transport.get_extra_info("sockname")[0] == "127.0.0.1"
    transport.close()
    await protocol.lost()


async def test_local_addr_in_use_is_named(loop, serve, sockets):
    served = await serve()
    taken = sockets.enter_context(reserved()).getsockname()
    with pytest.raises(OSError, match="error while attempting to bind on address") as caught:
        await loop.create_connection(Recorder, *served.address, local_addr=taken)
    assert caught.value.errno == errno.EADDRINUSE
    assert repr(taken) in str(caught.value)


async def test_next_local_address_is_tried_when_one_is_in_use(loop, serve, sockets, monkeypatch):
    served = await serve()
    taken = sockets.enter_context(reserved()).getsockname()
    answering(monkeypatch, (socket.AF_INET, taken), (socket.AF_INET, ("127.0.0.2", 0)))
    options = {"local_addr": ("a.name", 0)}
    transport, protocol = await loop.create_connection(Recorder, *served.address, **options)
    assert transport.get_extra_info("sockname")[0] == "127.0.0.2"
    transport.close()
    await protocol.lost()


async def test_local_address_of_another_family_does_not_match(loop, serve):
    served = await serve()
    with pytest.raises(OSError, match="no matching local address with family="):
        await loop.create_connection(Recorder, *served.address, local_addr=("::1", 0))


@pytest.mark.parametrize("blocking", [True, False])
async def test_connected_socket_is_taken_over_and_made_nonblocking(loop, blocking):
    near, far = unix_pair()
    near.setblocking(blocking)
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    assert near.gettimeout() == 0
    with far:
        far.sendall(b"over a socket made elsewhere")
        assert await protocol.receives(28) == b"over a socket made elsewhere"
    assert await protocol.lost() is None
    assert near.fileno() == -1
    assert transport.is_closing()


async def test_sockets_of_other_stream_protocols_pass_through(loop, serve):
    """Multipath TCP (RFC 8684) on both sides, where the kernel has it."""
    try:
        listening, client = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) for _ in range(2))
    except OSError as exc:
        pytest.skip(f"this kernel has no Multipath TCP: {exc}")
    listening.bind(("127.0.0.1", 0))
    served = await serve(Echo, sock=listening)
    client.connect(served.address)
    transport, protocol = await loop.create_connection(Recorder, sock=client)
    assert transport.get_extra_info("socket").proto == MPTCP
    transport.write(b"hello")
    assert await protocol.receives(5) == b"hello"
    transport.close()
    await protocol.lost()


async def test_socket_that_is_not_connected_fails_once(loop):
    transport, protocol = await loop.create_connection(Recorder, sock=socket.socket())
    exc = await protocol.lost()
    assert isinstance(exc, OSError)
    assert protocol.log == ["made", "lost"]
    assert transport.is_closing()


async def test_neither_host_nor_socket_is_refused(loop):
    with pytest.raises(ValueError, match="host and port was not specified and no sock specified"):
        await loop.create_connection(Recorder)


@pytest.mark.parametrize("address", [{"host": "127.0.0.1"}, {"port": 80}, {"host": "127.0.0.1", "port": 80}])
async def test_host_and_socket_together_are_refused(loop, sockets, address):
    sock = sockets.enter_context(socket.socket())
    with pytest.raises(ValueError, match="host/port and sock can not be specified at the same time"):
        await loop.create_connection(Recorder, sock=sock, **address)
    assert sock.fileno() != -1


async def test_socket_of_another_type_is_refused(loop, sockets):
    sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with pytest.raises(ValueError, match="A Stream Socket was expected, got"):
        await loop.create_connection(Recorder, sock=sock)
    assert sock.fileno() != -1


async def test_wrapped_ssl_socket_is_refused(loop, sockets):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    sock = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await loop.create_connection(Recorder, sock=sock)


@pytest.mark.parametrize("option", ["server_hostname", "ssl_handshake_timeout", "ssl_shutdown_timeout"])
async def test_options_of_tls_need_ssl(loop, option):
    with pytest.raises(ValueError, match=f"{option} is only meaningful with ssl"):
        await loop.create_connection(Recorder, "127.0.0.1", 80, **{option: 1})


async def test_tls_without_a_host_needs_a_name_to_verify(loop, sockets):
    near, far = unix_pair()
    sockets.enter_context(near)
    sockets.enter_context(far)
    with pytest.raises(ValueError, match="You must set server_hostname when using ssl without a host"):
        await loop.create_connection(Recorder, sock=near, ssl=True)


@pytest.mark.asyncio_wrong("the connected socket is left to the garbage collector")
async def test_factory_that_raises_costs_the_connection_and_nothing_else(loop, serve):
    served = await serve()
    with pytest.raises(ZeroDivisionError):
        await loop.create_connection(raiser(ZeroDivisionError), *served.address)
    assert await (await served.made.nth()).lost() is None


async def test_two_connections_on_one_loop_do_not_mix(loop, serve):
    served = await serve(Echo)
    pairs = [await loop.create_connection(Recorder, *served.address) for _ in range(2)]
    for number, (transport, _) in enumerate(pairs):
        transport.write(b"%d" % number * 1000)
    for number, (transport, protocol) in enumerate(pairs):
        assert await protocol.receives(1000) == b"%d" % number * 1000
        transport.close()
        await protocol.lost()


class Wrapped:
    """Looks like a socket, and is none."""

    def __init__(self, sock):
        self.sock = sock

    def __getattr__(self, name):
        return getattr(self.sock, name)


async def test_an_object_that_acts_as_a_socket_is_as_good(loop):
    near, far = tcp_pair()
    with far:
        transport, protocol = await loop.create_connection(Recorder, sock=Wrapped(near))
        transport.write(b"out")
        assert await loop.run_in_executor(None, far.recv, 3) == b"out"
        transport.close()
        await protocol.lost()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(Wrapped(client), listener.getsockname())
        assert client.getpeername() == listener.getsockname()
