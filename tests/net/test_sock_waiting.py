"""Coroutines that wait for a bare socket: what they leave armed, and who uses the descriptor after them."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from tests.core.idle import SPIN, cpu_share
from tests.net.peers import Recorder, nonblocking_pair, settle


@pytest.fixture
def pair(sockets):
    near, far = nonblocking_pair()
    sockets.enter_context(near)
    sockets.enter_context(far)
    return near, far


async def receives(loop, near, far, data):
    """A receive that has to wait."""
    waiting = asyncio.create_task(loop.sock_recv(near, 100))
    await settle()
    far.send(data)
    assert await waiting == data


async def test_what_nobody_reads_afterwards_keeps_no_loop_busy(loop, pair):
    near, far = pair
    await receives(loop, near, far, b"first")
    far.send(b"second")
    assert await cpu_share() < SPIN
    assert await loop.sock_recv(near, 100) == b"second"


async def test_a_hangup_afterwards_keeps_no_loop_busy(loop, pair):
    near, far = pair
    await receives(loop, near, far, b"first")
    far.close()
    assert await cpu_share() < SPIN
    assert await loop.sock_recv(near, 100) == b""


async def test_closed_afterwards_while_a_duplicate_lives_it_keeps_no_loop_busy(loop, pair):
    near, far = pair
    await receives(loop, near, far, b"first")
    with near.dup() as duplicate:
        near.close()
        far.send(b"second")
        assert await cpu_share() < SPIN
        assert duplicate.recv(100) == b"second"


async def test_another_file_under_the_same_number_is_waited_for(loop, pair, sockets):
    near, far = pair
    await receives(loop, near, far, b"first")
    other, other_far = nonblocking_pair()
    with other:
        os.dup2(other.fileno(), near.fileno())
    sockets.enter_context(other_far)
    await receives(loop, near, other_far, b"second")


async def test_another_socket_object_of_the_same_number_is_waited_for(loop, pair, sockets):
    near, far = pair
    await receives(loop, near, far, b"first")
    again = sockets.enter_context(socket.socket(fileno=near.detach()))
    await receives(loop, again, far, b"second")
    number = again.fileno()
    again.close()
    heirs = [sockets.enter_context(sock) for sock in nonblocking_pair()]
    assert number in [sock.fileno() for sock in heirs]
    await receives(loop, *heirs, b"for the first heir")
    await receives(loop, *reversed(heirs), b"for the second")


async def test_a_transport_may_take_over(loop, pair):
    near, far = pair
    await receives(loop, near, far, b"first")
    transport, protocol = await loop.create_connection(Recorder, sock=near)
    far.send(b"second")
    await protocol.receives(6)
    with pytest.raises(RuntimeError, match="is used by transport"):
        await loop.sock_recv(near, 100)
    transport.abort()
    await settle()


async def test_a_reader_may_take_over_and_leave(loop, pair):
    near, far = pair
    await receives(loop, near, far, b"first")
    assert loop.remove_reader(near) is False
    called = loop.create_future()
    loop.add_reader(near, lambda: called.done() or called.set_result(near.recv(100)))
    far.send(b"second")
    assert await called == b"second"
    assert loop.remove_reader(near) is True
    assert loop.remove_reader(near) is False
    await receives(loop, near, far, b"third")


async def test_both_directions_wait_at_once_and_each_gets_its_own(loop, pair):
    near, far = pair
    sending = asyncio.create_task(loop.sock_sendall(near, bytes(4 << 20)))
    receiving = asyncio.create_task(loop.sock_recv(near, 100))
    await settle()
    far.send(b"an answer")
    assert await receiving == b"an answer"
    assert not sending.done()
    left = 4 << 20
    while left:
        left -= len(await loop.sock_recv(far, 1 << 20))
    await sending
    await receives(loop, near, far, b"more")
    assert await cpu_share() < SPIN  # there is room to write all the time, and nobody who would


async def test_one_who_gave_up_and_one_who_waits_in_the_other_direction(loop, pair):
    near, far = pair
    sending = asyncio.create_task(loop.sock_sendall(near, bytes(4 << 20)))
    receiving = asyncio.create_task(loop.sock_recv(near, 100))
    await settle()
    sending.cancel()
    await settle()
    assert loop.remove_writer(near) is False
    while True:
        try:
            far.recv(1 << 20)
        except BlockingIOError:
            break
    assert await cpu_share() < SPIN
    far.send(b"an answer")
    assert await receiving == b"an answer"


async def test_who_replaces_the_connect_of_all_sockets_is_heard(loop, monkeypatch):
    def guarded(sock, address):
        raise PermissionError(f"{address[0]} is out of bounds")

    monkeypatch.setattr(socket.socket, "connect", guarded)
    with socket.socket() as sock:
        sock.setblocking(False)
        with pytest.raises(PermissionError, match="127.0.0.1 is out of bounds"):
            await loop.sock_connect(sock, ("127.0.0.1", 1))
