"""What happens between a datagram socket and its protocol: receiving, errors, pausing and the end."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import gc
import socket
import sys
from typing import Any

import pytest

from tests.loops import new_loop, on_kqueue, run
from tests.net.peers import (
    DatagramRecorder,
    datagram_pair,
    needs_ipv6,
    overriding,
    raiser,
    settle,
    turns,
    udp_socket,
)

IP_RECVERR = 11  # <linux/in.h>; the module socket does not have it
ALONE = 12  # datagrams, one after the other, after which epoque asks for no more than one
FLOOD = 150  # datagrams of some bytes, which the kernel's default buffers can hold


async def test_datagrams_come_in_order_with_the_senders_address(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    for text in (b"one", b"two", b"three"):
        peer.sendto(text, transport.get_extra_info("sockname"))
    await protocol.gets(3)
    assert protocol.got == [(text, peer.getsockname()) for text in (b"one", b"two", b"three")]
    assert protocol.story == ["made", "datagram"]


async def test_senders_are_told_apart(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peers = [sockets.enter_context(udp_socket()) for _ in range(3)]
    sent = [(b"%d" % number, peer) for number in range(4) for peer in peers]
    for text, peer in sent:
        peer.sendto(text, transport.get_extra_info("sockname"))
    await protocol.gets(len(sent))
    assert protocol.got == [(text, peer.getsockname()) for text, peer in sent]


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
async def test_each_of_very_many_gets_its_own_answer(datagrams: Any, sockets: Any, host: str) -> None:
    transport, protocol = await datagrams(local_addr=(host, 0))
    peers = [sockets.enter_context(udp_socket(host)) for _ in range(150)]  # more than any table of addresses holds
    for _ in range(2):
        protocol.got.clear()
        for number, peer in enumerate(peers):
            peer.sendto(b"%d" % number, transport.get_extra_info("sockname"))
            if number % 50 == 49:
                await protocol.gets(number + 1)
        for data, address in protocol.got:
            transport.sendto(data, address)
        assert [address for _, address in protocol.got] == [peer.getsockname() for peer in peers]
        await settle()
        assert [peer.recv(100) for peer in peers] == [b"%d" % number for number in range(150)]


async def test_received_data_are_bytes_of_their_own(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"first", transport.get_extra_info("sockname"))
    await protocol.gets(1)
    peer.sendto(b"other", transport.get_extra_info("sockname"))
    await protocol.gets(2)
    assert protocol.payloads == [b"first", b"other"]
    assert all(type(data) is bytes for data in protocol.payloads)


async def test_an_empty_datagram_is_received(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"", transport.get_extra_info("sockname"))
    await protocol.gets(1)
    assert protocol.got == [(b"", peer.getsockname())]


async def test_the_largest_udp_datagram_is_received_whole(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    data = bytes(range(256)) * 255 + bytes(227)
    assert len(data) == 65507
    peer.sendto(data, transport.get_extra_info("sockname"))
    assert await protocol.gets(1) == [data]


async def test_unix_datagrams_larger_than_udps_are_received_whole(datagrams: Any, sockets: Any) -> None:
    near, far = datagram_pair(1 << 20)
    sockets.enter_context(far)
    _, protocol = await datagrams(sock=near)
    far.send(bytes(200_000))
    far.send(b"next")
    assert [len(data) for data in await protocol.gets(2)] == [200_000, 4]


@pytest.mark.asyncio_wrong("it delivers the first 256 KiB as if they were all")
@pytest.mark.parametrize("before", [0, ALONE])
async def test_a_datagram_too_large_to_receive_is_an_error(datagrams: Any, sockets: Any, before: int) -> None:
    near, far = datagram_pair(1 << 20)
    sockets.enter_context(far)
    _, protocol = await datagrams(sock=near)
    for number in range(before):
        far.send(b"alone")
        await protocol.gets(number + 1)
    try:
        far.send(bytes(300_000))
    except OSError:
        pytest.skip("this system has no room for so large a datagram (net.core.wmem_max)")
    far.send(b"next")
    assert await protocol.gets(before + 1) == [b"alone"] * before + [b"next"]
    assert [exc.errno for exc in protocol.failures] == [errno.EMSGSIZE]
    assert protocol.log == ["made", *["datagram"] * before, "error", "datagram"]


async def test_datagrams_that_came_alone_for_long_come_together(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    sent = [b"%d" % number for number in range(ALONE + FLOOD)]
    for number, data in enumerate(sent):
        peer.sendto(data, transport.get_extra_info("sockname"))
        if number < ALONE:
            await protocol.gets(number + 1)
    assert await protocol.gets(len(sent)) == sent


async def test_unix_addresses_are_those_that_recvfrom_gives(datagrams: Any, sockets: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "here")
    transport, protocol = await datagrams(local_addr=path, family=socket.AF_UNIX)
    assert transport.get_extra_info("sockname") == path
    names = [str(tmp_path / "named"), None]
    if sys.platform == "linux":
        names.append(b"\0epoque-test\0" + path.encode()[-40:])
    for name in names:
        peer = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        if name is not None:
            peer.bind(name)
        peer.sendto(b"x", path)
    await protocol.gets(len(names))
    assert protocol.got == [(b"x", name) for name in names]


@needs_ipv6
async def test_ipv6_addresses_have_flow_and_scope(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams(local_addr=("::1", 0))
    peer = sockets.enter_context(udp_socket("::1"))
    peer.sendto(b"six", transport.get_extra_info("sockname"))
    await protocol.gets(1)
    assert protocol.got == [(b"six", peer.getsockname())]
    assert len(protocol.got[0][1]) == 4
    transport.sendto(b"back", protocol.got[0][1])
    transport.sendto(b"short", protocol.got[0][1][:2])
    await turns(2)
    assert [peer.recvfrom(100)[0] for _ in range(2)] == [b"back", b"short"]


@pytest.mark.epoque_only("asyncio receives one datagram each time it looks")
async def test_several_datagrams_are_received_in_one_turn(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    for number in range(40):
        peer.sendto(b"%d" % number, transport.get_extra_info("sockname"))
    before: list[int] = []
    protocol.note = lambda event: before.append(len(protocol.got))
    await settle(1)
    assert protocol.payloads == [b"%d" % number for number in range(40)]


async def test_a_flood_does_not_starve_other_descriptors(datagrams: Any, sockets: Any) -> None:
    """Somebody who answers each datagram with another one to himself cannot keep the loop."""
    transport, protocol = await datagrams()
    me = transport.get_extra_info("sockname")
    protocol.note = lambda event: transport.sendto(b"again", me)
    for _ in range(FLOOD):
        transport.sendto(b"go", me)
    await settle()
    assert protocol.got
    transport.abort()


async def test_no_more_than_a_bounded_number_at_once(loop: Any, datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    for _ in range(FLOOD):
        peer.sendto(b"x", transport.get_extra_info("sockname"))
    seen: list[int] = []

    def look() -> None:
        seen.append(len(protocol.got))
        if len(protocol.got) < FLOOD:
            loop.call_soon(look)

    look()
    await protocol.gets(FLOOD)
    steps = [after - before for before, after in zip(seen, seen[1:], strict=False)]
    assert max(steps) <= 64


# Errors.


async def test_a_refused_datagram_is_told_by_error_received(datagrams: Any, sockets: Any) -> None:
    with udp_socket() as gone:
        address = gone.getsockname()
    transport, protocol = await datagrams(remote_addr=address)
    transport.sendto(b"anybody?")
    await protocol.reaches("error")
    assert isinstance(protocol.failures[0], ConnectionRefusedError)
    assert not transport.is_closing()


async def test_error_received_may_close(datagrams: Any) -> None:
    with udp_socket() as gone:
        address = gone.getsockname()
    closing = overriding(DatagramRecorder, error_received=lambda self: self.transport.close())
    transport, protocol = await datagrams(closing, remote_addr=address)
    transport.sendto(b"anybody?")
    assert await protocol.lost() is None
    assert protocol.log == ["made", "error", "lost"]


@pytest.mark.parametrize("callback", ["datagram_received", "error_received"])
async def test_a_callback_that_raises_is_reported_and_the_endpoint_lives(
    datagrams: Any, sockets: Any, errors: list[dict[str, Any]], callback: str
) -> None:
    peer = sockets.enter_context(udp_socket())
    failing = overriding(DatagramRecorder, **{callback: raiser(lambda: ZeroDivisionError("mine"))})
    transport, protocol = await datagrams(failing, remote_addr=peer.getsockname())
    if callback == "error_received":
        address = peer.getsockname()
        peer.close()
        transport.sendto(b"anybody?")
        await protocol.reaches("error")
        again = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sockets.enter_context(again).bind(address)
        peer = again
    for text in (b"one", b"two"):
        peer.sendto(text, transport.get_extra_info("sockname"))
    assert await protocol.gets(2) == [b"one", b"two"]
    await turns(2)
    assert errors
    assert all(isinstance(context["exception"], ZeroDivisionError) for context in errors)
    assert not transport.is_closing()
    transport.close()
    assert await protocol.lost() is None


async def test_connection_made_that_raises_is_reported_and_the_endpoint_lives(
    datagrams: Any, sockets: Any, errors: list[dict[str, Any]]
) -> None:
    failing = overriding(DatagramRecorder, connection_made=raiser(lambda: ZeroDivisionError("mine")))
    transport, protocol = await datagrams(failing)
    assert isinstance(errors[0]["exception"], ZeroDivisionError)
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"here", transport.get_extra_info("sockname"))
    assert await protocol.gets(1) == [b"here"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_base_exception_leaves_the_loop_and_loses_no_datagram(loop: Any, sockets: Any, kind: Any) -> None:
    pending = [kind("now")]

    def interrupt(_: Any) -> None:
        if pending:
            raise pending.pop()

    kind_of = overriding(DatagramRecorder, datagram_received=interrupt)
    transport, protocol = run(loop, loop.create_datagram_endpoint(kind_of, local_addr=("127.0.0.1", 0)))
    peer = sockets.enter_context(udp_socket())
    for number in range(5):
        peer.sendto(b"%d" % number, transport.get_extra_info("sockname"))
    with pytest.raises(kind):
        run(loop, protocol.gets(5))
    assert run(loop, protocol.gets(5)) == [b"%d" % number for number in range(5)]
    transport.close()
    run(loop, protocol.lost())


@pytest.mark.asyncio_wrong("it spins: the error is reported as long as it stays in the queue")
@pytest.mark.skipif(sys.platform != "linux" or on_kqueue, reason="IP_RECVERR is Linux's")
async def test_errors_that_the_kernel_queues_do_not_spin(datagrams: Any, sockets: Any) -> None:
    with udp_socket() as gone:
        address = gone.getsockname()
    sock = udp_socket()
    sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    transport, protocol = await datagrams(sock=sock)
    transport.sendto(b"anybody?", address)
    await protocol.reaches("error")
    assert isinstance(protocol.failures[0], ConnectionRefusedError)
    await settle()
    with pytest.raises(BlockingIOError):
        sock.recvmsg(1, 1, socket.MSG_ERRQUEUE)
    await settle()
    assert len(protocol.failures) == 1


# Pausing.


async def test_a_paused_endpoint_receives_nothing_and_loses_nothing(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    assert transport.is_reading()
    transport.pause_reading()
    transport.pause_reading()
    assert not transport.is_reading()
    for number in range(5):
        peer.sendto(b"%d" % number, transport.get_extra_info("sockname"))
    await settle()
    assert protocol.got == []
    transport.resume_reading()
    transport.resume_reading()
    assert transport.is_reading()
    assert await protocol.gets(5) == [b"%d" % number for number in range(5)]


async def test_pausing_in_the_middle_of_a_batch_takes_effect_at_once(datagrams: Any, sockets: Any) -> None:
    pausing = overriding(DatagramRecorder, datagram_received=lambda self: self.transport.pause_reading())
    transport, protocol = await datagrams(pausing)
    peer = sockets.enter_context(udp_socket())
    for number in range(5):
        peer.sendto(b"%d" % number, transport.get_extra_info("sockname"))
    for count in range(1, 6):
        await protocol.gets(count)
        await settle()
        assert len(protocol.got) == count
        transport.resume_reading()
    assert protocol.payloads == [b"%d" % number for number in range(5)]


async def test_closing_in_the_middle_of_a_batch_ends_it(datagrams: Any, sockets: Any) -> None:
    closing = overriding(DatagramRecorder, datagram_received=lambda self: self.transport.close())
    transport, protocol = await datagrams(closing)
    peer = sockets.enter_context(udp_socket())
    for number in range(5):
        peer.sendto(b"%d" % number, transport.get_extra_info("sockname"))
    assert await protocol.lost() is None
    assert protocol.log == ["made", "datagram", "lost"]


async def test_pausing_in_connection_made(datagrams: Any, sockets: Any) -> None:
    pausing = overriding(DatagramRecorder, connection_made=lambda self: self.transport.pause_reading())
    transport, protocol = await datagrams(pausing)
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"x", transport.get_extra_info("sockname"))
    await settle()
    assert protocol.got == []
    transport.resume_reading()
    assert await protocol.gets(1) == [b"x"]


# The end.


async def test_close_tells_connection_lost_once(datagrams: Any) -> None:
    transport, protocol = await datagrams()
    transport.close()
    transport.close()
    assert transport.is_closing()
    assert protocol.log == ["made"]
    await turns(3)
    transport.abort()
    await turns(3)
    assert protocol.log == ["made", "lost"]
    assert protocol.lost_with == [None]


async def test_abort_tells_connection_lost_once(datagrams: Any) -> None:
    transport, protocol = await datagrams()
    transport.abort()
    transport.abort()
    await turns(3)
    assert protocol.lost_with == [None]


async def test_what_is_known_stays_known_after_the_end(datagrams: Any) -> None:
    transport, protocol = await datagrams()
    name = transport.get_extra_info("sockname")
    transport.close()
    await protocol.lost()
    assert transport.get_extra_info("sockname") == name
    assert transport.get_extra_info("peername", "nobody") is None
    assert transport.get_extra_info("nonsense", 5) == 5
    assert "closed" in repr(transport)


async def test_extra_info_of_a_connected_endpoint(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, _ = await datagrams(remote_addr=peer.getsockname())
    sock = transport.get_extra_info("socket")
    assert sock.type == socket.SOCK_DGRAM
    assert transport.get_extra_info("sockname") == sock.getsockname()
    assert transport.get_extra_info("peername") == peer.getsockname()
    assert isinstance(transport, asyncio.Transport)
    assert f"fd={sock.fileno()}" in repr(transport)
    assert "read=polling" in repr(transport)


async def test_set_protocol_changes_who_is_told(datagrams: Any, sockets: Any) -> None:
    transport, first = await datagrams()
    second = DatagramRecorder()
    transport.set_protocol(second)
    assert transport.get_protocol() is second
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"x", transport.get_extra_info("sockname"))
    assert await second.gets(1) == [b"x"]
    transport.close()
    await second.lost()
    assert first.log == ["made"]


def test_an_endpoint_that_is_forgotten_warns() -> None:
    loop = new_loop()
    made = run(loop, loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)))
    held = list(made)
    del made
    loop.close()

    def forget() -> None:
        held.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed transport"):
        forget()


@pytest.mark.asyncio_wrong("what is registered with the selector runs in the context of resume_reading()")
async def test_callbacks_run_in_the_context_in_which_the_endpoint_was_made(datagrams: Any, sockets: Any) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []
    asking = overriding(DatagramRecorder, datagram_received=lambda self: seen.append(variable.get()))
    variable.set("made")
    transport, protocol = await datagrams(asking)
    variable.set("resumed")
    transport.pause_reading()
    await settle(1)
    transport.resume_reading()
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"x", transport.get_extra_info("sockname"))
    await protocol.gets(1)
    assert seen == ["made"]


@pytest.mark.asyncio_wrong("it delivers empty datagrams without end, one each turn")
async def test_the_end_of_a_connection_of_packets_is_told_once(datagrams: Any, sockets: Any) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    transport, protocol = await datagrams(sock=near)
    far.send(b"last")
    far.close()
    assert await protocol.gets(2) == [b"last", b""]
    await settle()
    assert len(protocol.got) == 2
    transport.pause_reading()
    transport.resume_reading()
    await settle()
    assert len(protocol.got) == 2
