"""What a transport tells about itself, and that it answers sanely in every state."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import warnings
import weakref

import pytest

from tests.loops import new_loop, run
from tests.net.peers import Echo, Recorder, needs_ipv6, overriding, recv_all, settle, unix_pair


async def ends(loop, serve, host="127.0.0.1"):
    served = await serve(Echo, host=host)
    transport, protocol = await loop.create_connection(Recorder, *served.address[:2])
    return transport, protocol, (await served.made.nth()).transport


async def end(transport, protocol):
    transport.close()
    await protocol.lost()


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
async def test_names_of_both_ends_mirror_each_other(loop, serve, host):
    client, protocol, server = await ends(loop, serve, host)
    assert client.get_extra_info("sockname") == server.get_extra_info("peername")
    assert client.get_extra_info("peername") == server.get_extra_info("sockname")
    assert client.get_extra_info("peername")[0] == host
    assert len(client.get_extra_info("peername")) == (4 if ":" in host else 2)
    await end(client, protocol)


async def test_unknown_names_give_the_default(attach):
    transport, _, _ = await attach()
    assert transport.get_extra_info("no such thing") is None
    assert transport.get_extra_info("no such thing", "default") == "default"
    assert transport.get_extra_info("peername", "default") != "default"
    assert transport.get_extra_info("sslcontext") is None


async def test_socket_can_be_looked_at_and_set_up(attach):
    transport, _, peer = await attach()
    sock = transport.get_extra_info("socket")
    assert isinstance(sock, asyncio.trsock.TransportSocket)
    assert sock.getpeername() == peer.getsockname() == transport.get_extra_info("peername")
    assert sock.getsockname() == peer.getpeername() == transport.get_extra_info("sockname")
    assert sock.family == socket.AF_INET
    assert sock.type == socket.SOCK_STREAM
    assert sock.gettimeout() == 0
    assert sock.fileno() >= 0
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert transport.get_extra_info("socket") is sock


async def test_names_are_known_in_connection_made_and_after_the_end(attach):
    seen = []

    def look(protocol):
        seen.append([protocol.transport.get_extra_info(name) for name in ("peername", "sockname")])

    transport, protocol, peer = await attach(overriding(Recorder, connection_made=look, connection_lost=look))
    names = [peer.getsockname(), peer.getpeername()]
    await end(transport, protocol)
    look(protocol)
    assert seen == [names] * 3


async def test_socket_of_an_ended_connection_has_no_descriptor(attach):
    transport, protocol, _ = await attach()
    sock = transport.get_extra_info("socket")
    await end(transport, protocol)
    assert sock.fileno() == -1
    assert transport.get_extra_info("socket").fileno() == -1


async def test_socket_can_be_asked_for_when_the_connection_has_ended(serve):
    served = await serve()
    served.connect().close()
    protocol = await served.made.nth()
    await protocol.lost()
    assert protocol.transport.get_extra_info("socket").fileno() == -1


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
async def test_small_packets_are_not_held_back_on_either_side(loop, serve, host):
    client, protocol, server = await ends(loop, serve, host)
    for transport in (client, server):
        assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    await end(client, protocol)


async def test_transports_are_asyncio_transports(attach):
    transport, protocol, _ = await attach()
    assert isinstance(transport, asyncio.Transport)
    assert transport.get_protocol() is protocol
    assert weakref.ref(transport)() is transport
    assert len({transport, transport}) == 1


def states_of(transport):
    """Every public question and harmless request, as functions of no arguments."""
    yield lambda: repr(transport)
    yield lambda: str(transport)
    yield transport.is_closing
    yield transport.is_reading
    yield transport.get_protocol
    yield transport.get_write_buffer_size
    yield transport.get_write_buffer_limits
    yield transport.can_write_eof
    yield lambda: transport.get_extra_info("socket")
    yield lambda: transport.get_extra_info("peername")


async def test_answers_in_every_state_without_raising(attach):
    def ask(transport):
        for question in states_of(transport):
            question()

    transport, protocol, peer = await attach(overriding(Recorder, connection_made=lambda p: ask(p.transport)))
    ask(transport)
    transport.pause_reading()
    ask(transport)
    transport.write(bytes(20_000_000))
    ask(transport)
    transport.resume_reading()
    transport.write_eof()
    ask(transport)
    transport.close()
    ask(transport)
    transport.abort()
    ask(transport)
    await protocol.lost()
    ask(transport)


async def test_repr_tells_closing_and_closed(attach):
    transport, protocol, _ = await attach()
    assert "clos" not in repr(transport)
    transport.close()
    assert "closing" in repr(transport)
    await protocol.lost()
    assert "closed" in repr(transport)


async def test_an_ended_connection_is_not_kept_alive(loop):
    near, far = unix_pair()
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    references = weakref.ref(transport), weakref.ref(protocol)
    far.close()
    await protocol.lost()
    protocol.transport = None
    del transport, protocol
    await settle()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def abandoned(kind):
    """A connection left in that state by a loop that was closed; the far side stays a plain socket."""
    loop = new_loop()
    near, far = unix_pair()
    transport, protocol = run(loop, loop.create_connection(Recorder, sock=near))
    if kind == "paused":
        transport.pause_reading()
    elif kind in ("writing", "closing"):
        transport.write(bytes(5_000_000))
    if kind == "closing":
        transport.close()
    loop.close()
    protocol.transport = None
    return transport, far


@pytest.mark.parametrize("kind", ["open", "paused", "writing", "closing"])
def test_transport_that_nobody_closed_warns_and_closes_its_socket(kind):
    transport, far = abandoned(kind)
    with far, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del transport
        gc.collect()
        recv_all(far)  # raises if the socket stayed open
    texts = [str(warning.message) for warning in caught if warning.category is ResourceWarning]
    assert [text for text in texts if text.startswith("unclosed transport")]


METHODS = [
    ("write", b"data"),
    ("write", bytes(5_000_000)),
    ("writelines", [b"data"]),
    ("write_eof",),
    ("pause_reading",),
    ("resume_reading",),
    ("set_write_buffer_limits", 10),
    ("set_protocol", asyncio.Protocol()),
    ("close",),
    ("abort",),
    ("__repr__",),
    ("get_write_buffer_size",),
    ("get_write_buffer_limits",),
    ("is_reading",),
    ("is_closing",),
    ("get_protocol",),
    ("can_write_eof",),
    ("get_extra_info", "socket"),
]


@pytest.mark.parametrize("kind", ["open", "paused", "writing"])
def test_transport_used_after_its_loop_closed_raises_at_most_an_exception(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for start in range(len(METHODS)):
            transport, far = abandoned(kind)
            with far:
                for name, *arguments in METHODS[start:] + METHODS[:start]:
                    with contextlib.suppress(Exception):
                        getattr(transport, name)(*arguments)
                del transport
                gc.collect()
                recv_all(far)  # raises if the socket stayed open


async def test_watching_the_descriptor_of_a_transport_is_refused(loop, attach):
    transport, protocol, peer = await attach(Echo)
    sock = transport.get_extra_info("socket")
    for fd in (sock, sock.fileno()):
        for add in (loop.add_reader, loop.add_writer):
            with pytest.raises(RuntimeError, match="is used by transport"):
                add(fd, print)
        for remove in (loop.remove_reader, loop.remove_writer):
            with pytest.raises(RuntimeError, match="is used by transport"):
                remove(fd)
    peer.send(b"undisturbed")
    assert await protocol.receives(11) == b"undisturbed"


async def test_socket_methods_on_the_socket_of_a_transport_are_refused(loop, sockets):
    near, far = unix_pair()
    sockets.enter_context(far)
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    for operation in (loop.sock_recv(near, 10), loop.sock_recv_into(near, bytearray(10))):
        with pytest.raises(RuntimeError, match="is used by transport"):
            await operation
    far.send(b"undisturbed")
    assert await protocol.receives(11) == b"undisturbed"
    await end(transport, protocol)


@pytest.mark.since(3, 12)
@pytest.mark.asyncio_wrong("it closes the first one's socket", when=sys.version_info >= (3, 14))
async def test_second_transport_on_one_socket_is_refused(loop, sockets):
    near, far = unix_pair()
    sockets.enter_context(far)
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    with pytest.raises(RuntimeError, match="is used by transport"):
        await loop.create_connection(Recorder, sock=near)
    far.send(b"undisturbed")
    assert await protocol.receives(11) == b"undisturbed"
    await end(transport, protocol)


async def test_descriptor_of_an_ended_connection_may_be_watched_when_it_comes_back(loop, attach, sockets):
    transport, protocol, _ = await attach()
    number = transport.get_extra_info("socket").fileno()
    await end(transport, protocol)
    heirs = [sockets.enter_context(sock) for _ in range(4) for sock in socket.socketpair()]
    (heir,) = [sock for sock in heirs if sock.fileno() == number]
    writable = loop.create_future()
    loop.add_writer(heir, writable.set_result, None)
    await writable
    assert loop.remove_writer(heir)
