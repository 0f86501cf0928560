"""How do datagrams leave: addresses, order, errors of single ones, host names."""

from __future__ import annotations

import array
import asyncio
import errno
import os
import socket
import sys
import threading
from typing import Any

import pytest

from tests.loops import run
from tests.net.peers import (
    LIMIT,
    DatagramRecorder,
    datagram_pair,
    overriding,
    raiser,
    settle,
    turns,
    udp_socket,
    waiting,
)

HEADER = 8 if sys.version_info >= (3, 13) else 0  # bytes that asyncio counts for a datagram's header


def texts(sock: socket.socket, count: int) -> list[bytes]:
    return [sock.recv(1 << 18) for _ in range(count)]


async def test_datagrams_of_one_turn_arrive_in_order(datagrams: Any, sockets: Any) -> None:
    transport, _ = await datagrams()
    peer = sockets.enter_context(udp_socket())
    sent = [b"%d" % number for number in range(150)]
    for text in sent:
        transport.sendto(text, peer.getsockname())
    await turns(2)
    assert waiting(peer) == sent


async def test_a_turn_may_send_to_several_addresses(datagrams: Any, sockets: Any) -> None:
    transport, _ = await datagrams()
    peers = [sockets.enter_context(udp_socket()) for _ in range(3)]
    for number in range(12):
        transport.sendto(b"%d" % number, peers[number % 3].getsockname())
    await turns(2)
    for index, peer in enumerate(peers):
        assert waiting(peer) == [b"%d" % number for number in range(index, 12, 3)]


def test_what_is_sent_while_the_loop_stands_leaves_at_once(loop: Any, datagrams: Any, sockets: Any) -> None:
    transport, _ = run(loop, datagrams())
    peer = sockets.enter_context(udp_socket())
    transport.sendto(b"now", peer.getsockname())
    assert waiting(peer) == [b"now"]


async def test_a_connected_endpoint_sends_to_its_peer(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, protocol = await datagrams(remote_addr=peer.getsockname())
    transport.sendto(b"one")
    transport.sendto(b"two", None)
    transport.sendto(b"three", peer.getsockname())
    await turns(2)
    assert texts(peer, 3) == [b"one", b"two", b"three"]
    peer.sendto(b"back", transport.get_extra_info("sockname"))
    await protocol.gets(1)
    assert protocol.got == [(b"back", peer.getsockname())]


async def test_another_address_than_the_remote_one_is_refused(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, _ = await datagrams(remote_addr=peer.getsockname())
    with pytest.raises(ValueError, match=r"Invalid address: must be None or \('127.0.0.1', \d+\)"):
        transport.sendto(b"x", ("127.0.0.1", 9))
    transport.sendto(b"still here")
    await turns(2)
    assert waiting(peer) == [b"still here"]


async def test_a_connected_socket_brought_along_sends_to_its_peer(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(peer.getsockname())
    transport, _ = await datagrams(sock=sock)
    transport.sendto(b"x")
    await turns(2)
    assert waiting(peer) == [b"x"]


@pytest.mark.asyncio_wrong("a peer without a name counts as none, and sendto(data) ends the endpoint")
async def test_unnamed_unix_sockets_send_to_their_peer(datagrams: Any, sockets: Any) -> None:
    near, far = datagram_pair()
    sockets.enter_context(far)
    transport, _ = await datagrams(sock=near)
    transport.sendto(b"one")
    transport.sendto(b"two")
    await turns(2)
    assert waiting(far) == [b"one", b"two"]


async def test_unix_paths_and_abstract_names_as_addresses(datagrams: Any, sockets: Any, tmp_path: Any) -> None:
    transport, _ = await datagrams(local_addr=str(tmp_path / "me"), family=socket.AF_UNIX)
    addresses = [str(tmp_path / "text"), os.fsencode(tmp_path / "bytes")]
    if sys.platform == "linux":
        addresses += [b"\0epoque-test-" + os.urandom(8).hex().encode(), "\0epoque-test-" + os.urandom(8).hex()]
    peers = []
    for address in addresses:
        peers.append(sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)))
        peers[-1].bind(address)
        peers[-1].settimeout(LIMIT)
        transport.sendto(b"x", address)
    await turns(2)
    assert [peer.recvfrom(10) for peer in peers] == [(b"x", str(tmp_path / "me"))] * len(peers)


@pytest.mark.parametrize(
    "make",
    [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data)), lambda data: memoryview(data)[::1]],
    ids=["bytes", "bytearray", "view of bytes", "view of a bytearray", "slice of a view"],
)
async def test_any_buffer_of_bytes_can_be_sent(datagrams: Any, sockets: Any, make: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, _ = await datagrams(remote_addr=peer.getsockname())
    transport.sendto(make(b"payload"))
    await turns(2)
    assert waiting(peer) == [b"payload"]


@pytest.mark.parametrize("data", ["text", None, 5, [b"x"], array.array("b", b"xy")], ids=repr)
async def test_other_types_are_refused(datagrams: Any, sockets: Any, data: Any) -> None:
    peer = sockets.enter_context(udp_socket())
    transport, _ = await datagrams(remote_addr=peer.getsockname())
    with pytest.raises(TypeError, match=f"data argument must be a bytes-like object, not '{type(data).__name__}'"):
        transport.sendto(data)
    transport.sendto(b"fine")
    await turns(2)
    assert waiting(peer) == [b"fine"]


async def test_a_buffer_may_be_reused_at_once(datagrams: Any, sockets: Any) -> None:
    transport, _ = await datagrams()
    peer = sockets.enter_context(udp_socket())
    buffer = bytearray(b"first")
    transport.sendto(buffer, peer.getsockname())
    buffer[:] = b"other"
    transport.sendto(memoryview(buffer), peer.getsockname())
    buffer[:] = b"wrong"
    await turns(2)
    assert waiting(peer) == [b"first", b"other"]


@pytest.mark.since(3, 13)
async def test_an_empty_datagram_is_sent(datagrams: Any, sockets: Any) -> None:
    transport, _ = await datagrams()
    peer = sockets.enter_context(udp_socket())
    for data in (b"", bytearray(), b"x", memoryview(b"")):
        transport.sendto(data, peer.getsockname())
    await turns(2)
    assert waiting(peer) == [b"", b"", b"x", b""]


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="since Python 3.13 empty datagrams are sent")
async def test_before_3_13_an_empty_datagram_is_not_sent(datagrams: Any, sockets: Any) -> None:
    transport, _ = await datagrams()
    peer = sockets.enter_context(udp_socket())
    transport.sendto(b"", peer.getsockname())
    transport.sendto(b"x", peer.getsockname())
    await turns(2)
    assert waiting(peer) == [b"x"]


# Errors belong to one datagram.


async def test_one_too_large_is_told_and_the_others_are_sent(datagrams: Any, sockets: Any) -> None:
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    for data in (b"one", bytes(65508), b"two", bytes(100_000), b"three"):
        transport.sendto(data, peer.getsockname())
    await turns(2)
    assert waiting(peer) == [b"one", b"two", b"three"]
    assert [exc.errno for exc in protocol.failures] == [errno.EMSGSIZE] * 2
    assert not transport.is_closing()
    assert transport.get_write_buffer_size() == 0


async def test_a_path_that_nobody_has_is_told_and_the_others_are_sent(
    datagrams: Any, sockets: Any, tmp_path: Any
) -> None:
    transport, protocol = await datagrams(local_addr=str(tmp_path / "me"), family=socket.AF_UNIX)
    peer = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    peer.bind(str(tmp_path / "peer"))
    for text, path in ((b"one", "peer"), (b"lost", "nobody"), (b"two", "peer")):
        transport.sendto(text, str(tmp_path / path))
    transport.sendto(b"long", "x" * 200)
    await turns(2)
    assert waiting(peer) == [b"one", b"two"]
    assert isinstance(protocol.failures[0], FileNotFoundError)
    assert str(protocol.failures[1]) == "AF_UNIX path too long"


async def test_error_received_that_sends_again_cannot_hold_the_loop(datagrams: Any, sockets: Any) -> None:
    peer = sockets.enter_context(udp_socket())

    def again(self: Any) -> None:
        if len(self.failures) < 200:
            self.transport.sendto(bytes(65508))

    transport, protocol = await datagrams(
        overriding(DatagramRecorder, error_received=again), remote_addr=peer.getsockname()
    )
    transport.sendto(bytes(65508))
    transport.sendto(b"after")
    await protocol.reaches("error", 200)
    assert waiting(peer) == [b"after"]


async def test_an_error_within_a_callback_of_the_endpoint_is_told(datagrams: Any, sockets: Any) -> None:
    """Sending so much at once leaves at once, in the context in which datagram_received runs already."""
    answer = overriding(
        DatagramRecorder,
        datagram_received=lambda self: [self.transport.sendto(bytes(65508), self.got[0][1]) for _ in range(3)],
    )
    transport, protocol = await datagrams(answer)
    peer = sockets.enter_context(udp_socket())
    peer.sendto(b"x", transport.get_extra_info("sockname"))
    await protocol.reaches("error", 3)
    assert [exc.errno for exc in protocol.failures] == [errno.EMSGSIZE] * 3


async def test_error_received_that_raises_is_contained(
    datagrams: Any, sockets: Any, errors: list[dict[str, Any]]
) -> None:
    """asyncio lets it out of sendto() or, later, of the callback that sends: either way the endpoint lives."""
    failing = overriding(DatagramRecorder, error_received=raiser(lambda: ZeroDivisionError("mine")))
    transport, protocol = await datagrams(failing)
    peer = sockets.enter_context(udp_socket())
    try:
        transport.sendto(bytes(65508), peer.getsockname())
    except ZeroDivisionError as exc:
        errors.append({"exception": exc})
    transport.sendto(b"after", peer.getsockname())
    await turns(2)
    assert waiting(peer) == [b"after"]
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError]
    assert not transport.is_closing()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.epoque_only("asyncio sends within sendto(), where the exception is the caller's")
def test_a_base_exception_while_sending_loses_no_datagram(loop: Any, sockets: Any, kind: Any) -> None:
    failing = overriding(DatagramRecorder, error_received=raiser(lambda: kind("now")))
    transport, protocol = run(loop, loop.create_datagram_endpoint(failing, local_addr=("127.0.0.1", 0)))
    peer = sockets.enter_context(udp_socket())

    def send() -> None:
        try:
            for data in (b"one", bytes(65508), b"two"):
                transport.sendto(data, peer.getsockname())
        finally:
            transport.close()

    loop.call_soon(send)
    with pytest.raises(kind):
        loop.run_forever()
    assert run(loop, protocol.lost()) is None
    assert waiting(peer) == [b"one", b"two"]
    assert protocol.log == ["made", "error", "lost"]


@pytest.mark.parametrize(
    "address",
    [None, "nonsense", 5, ("127.0.0.1",), ("127.0.0.1", "9"), ("127.0.0.1", 70_000), (None, 9), (5, 9), ("a", 1, 2)],
    ids=repr,
)
async def test_what_is_no_address_ends_the_endpoint(datagrams: Any, errors: list[dict[str, Any]], address: Any) -> None:
    transport, protocol = await datagrams()
    transport.sendto(b"x", address)
    exc = await protocol.lost()
    assert isinstance(exc, (TypeError, OverflowError))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, pytest.raises(type(exc)) as same:
        sock.sendto(b"x", address)
    assert str(exc) == str(same.value)
    assert [context["message"] for context in errors] == ["Fatal write error on datagram transport"]
    assert errors[0]["exception"] is exc
    assert errors[0]["transport"] is transport
    assert protocol.lost_with == [exc]


# Host names.


async def test_host_names_are_resolved(datagrams: Any, sockets: Any) -> None:
    transport, _ = await datagrams()
    peer = sockets.enter_context(udp_socket())
    transport.sendto(b"x", ("localhost", peer.getsockname()[1]))
    transport.sendto(b"y", (b"localhost", peer.getsockname()[1]))
    assert await _texts(peer, 2) == [b"x", b"y"]


async def _texts(sock: socket.socket, count: int) -> list[bytes]:
    return await asyncio.to_thread(texts, sock, count)


@pytest.mark.asyncio_wrong("it looks the name up itself, and blocks the loop")
async def test_a_slow_look_up_holds_up_neither_the_loop_nor_the_order(
    datagrams: Any, sockets: Any, monkeypatch: Any
) -> None:
    go, asked = threading.Event(), []

    def getaddrinfo(host: Any, port: Any, family: int = 0, *rest: Any) -> Any:
        asked.append(host)
        assert go.wait(LIMIT)
        return [(family, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    transport, _ = await datagrams()
    peer = sockets.enter_context(udp_socket())
    port = peer.getsockname()[1]
    transport.sendto(b"one", peer.getsockname())
    transport.sendto(b"two", ("slow.test", port))
    transport.sendto(b"three", peer.getsockname())
    transport.sendto(b"four", ("slow.test", port))
    transport.sendto(b"five", ("other.test", port))
    await settle()
    assert waiting(peer) == [b"one"]
    assert transport.get_write_buffer_size() == len(b"twothreefourfive") + 4 * HEADER
    transport.close()
    await turns(3)
    go.set()
    assert await _texts(peer, 4) == [b"two", b"three", b"four", b"five"]
    assert sorted(asked) == ["other.test", "slow.test"]


@pytest.mark.epoque_only("asyncio looks the name up by a way that a test cannot replace")
async def test_a_name_that_does_not_exist_is_told_and_the_others_are_sent(
    datagrams: Any, sockets: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", raiser(lambda: socket.gaierror(socket.EAI_NONAME, "no such name")))
    transport, protocol = await datagrams()
    peer = sockets.enter_context(udp_socket())
    transport.sendto(b"one", peer.getsockname())
    transport.sendto(b"lost", ("nowhere.test", 9))
    transport.sendto(b"two", peer.getsockname())
    await protocol.reaches("error")
    assert await _texts(peer, 2) == [b"one", b"two"]
    assert [type(exc) for exc in protocol.failures] == [socket.gaierror]


@pytest.mark.epoque_only("asyncio looks the name up on the spot")
async def test_an_endpoint_aborted_during_a_look_up_ends_at_once(datagrams: Any, monkeypatch: Any) -> None:
    go = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> Any:
        assert go.wait(LIMIT)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    transport, protocol = await datagrams()
    transport.sendto(b"x", ("slow.test", 9))
    transport.abort()
    assert await protocol.lost() is None
    go.set()
    await settle()
    assert protocol.log == ["made", "lost"]


async def test_answering_from_datagram_received(datagrams: Any, sockets: Any) -> None:
    echo = overriding(DatagramRecorder, datagram_received=lambda self: self.transport.sendto(*self.got[-1]))
    transport, _ = await datagrams(echo)
    peer = sockets.enter_context(udp_socket())
    sent = [b"%d" % number for number in range(100)]
    for text in sent:
        peer.sendto(text, transport.get_extra_info("sockname"))
    assert await _texts(peer, 100) == sent


@pytest.mark.asyncio_wrong("it takes the datagram back into its queue, and its end is called twice")
async def test_a_transport_that_is_aborted_by_what_runs_while_it_sends(
    datagrams: Any, sockets: Any, tmp_path: Any
) -> None:
    class Interrupted(socket.socket):
        """Sending runs Python code, as signal handlers and finalizers do in its midst."""

        def fileno(self) -> int:
            return self.interrupt() or super().fileno()

        def sendto(self, *args: Any) -> int:
            return self.interrupt() or super().sendto(*args)

        def interrupt(self) -> None:
            if armed:
                armed.clear()
                transport.abort()

    armed: list[bool] = []
    peer = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    peer.bind(str(tmp_path / "peer"))
    sock = Interrupted(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.setblocking(False)
    transport, protocol = await datagrams(sock=sock)
    while transport.get_write_buffer_size() < 4 * (HEADER + 1):
        transport.sendto(b"x", str(tmp_path / "peer"))
        await turns(1)
    armed.append(True)
    while armed:
        waiting(peer)
        await settle(1)
    assert await protocol.lost() is None
    assert transport.get_write_buffer_size() == 0
