"""create_connection with several addresses at once: their order, who wins, and what the losers leave behind."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from tests.net.peers import Echo, Recorder, answering, black_hole, needs_ipv6, reserved, settle

NEVER = 3600  # seconds: a stagger delay that no test waits for


@pytest.fixture
def refusing(sockets):
    """Addresses that refuse, two of each family, with the ports in a list to recognise them by."""
    bound = [sockets.enter_context(reserved(host)) for host in ("::1", "::1", "127.0.0.1", "127.0.0.1")]
    return [(sock.family, sock.getsockname()) for sock in bound]


async def order_of_attempts(loop, monkeypatch, infos, **options):
    """The indexes of the addresses in the order in which they were tried, read off the combined error."""
    answering(monkeypatch, *infos)
    with pytest.raises(OSError, match="Multiple exceptions") as caught:
        await loop.create_connection(Recorder, "a.name", 80, **options)
    ports = [int(port) for port in re.findall(r"Connect call failed \('[^']*', (\d+)", str(caught.value))]
    known = [address[1] for _, address in infos]
    return [known.index(port) for port in ports]


@needs_ipv6
@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({}, [0, 1, 2, 3]),
        ({"interleave": 0}, [0, 1, 2, 3]),
        ({"interleave": 1}, [0, 2, 1, 3]),
        ({"interleave": 2}, [0, 1, 2, 3]),
        ({"happy_eyeballs_delay": NEVER}, [0, 2, 1, 3]),
        ({"happy_eyeballs_delay": NEVER, "interleave": 0}, [0, 1, 2, 3]),
        ({"happy_eyeballs_delay": NEVER, "interleave": 2}, [0, 1, 2, 3]),
    ],
)
async def test_addresses_of_both_families_are_interleaved_as_asked(loop, refusing, monkeypatch, options, order):
    assert await order_of_attempts(loop, monkeypatch, refusing, **options) == order


@needs_ipv6
async def test_interleaving_with_one_long_family_puts_the_rest_at_the_end(loop, refusing, monkeypatch):
    infos = [refusing[2], refusing[3], refusing[0]]
    assert await order_of_attempts(loop, monkeypatch, infos, interleave=2) == [0, 1, 2]
    assert await order_of_attempts(loop, monkeypatch, infos, interleave=1) == [0, 2, 1]


async def connects_past_the_hole(loop, serve, monkeypatch, delay):
    served = await serve(Echo)
    with black_hole() as hole:
        answering(monkeypatch, (socket.AF_INET, hole), (socket.AF_INET, served.address))
        transport, protocol = await loop.create_connection(Recorder, "a.name", 80, happy_eyeballs_delay=delay)
    assert transport.get_extra_info("peername") == served.address
    transport.write(b"still here")
    await settle()
    assert await protocol.receives(10) == b"still here"
    transport.close()
    assert await protocol.lost() is None


@pytest.mark.parametrize("delay", [0, 0.01])
async def test_an_address_that_does_not_answer_is_overtaken_after_the_delay(loop, serve, monkeypatch, delay):
    await connects_past_the_hole(loop, serve, monkeypatch, delay)


async def test_a_refusal_starts_the_next_attempt_without_waiting_for_the_delay(loop, serve, sockets, monkeypatch):
    served = await serve()
    dead = sockets.enter_context(reserved()).getsockname()
    answering(monkeypatch, (socket.AF_INET, dead), (socket.AF_INET, served.address))
    transport, protocol = await loop.create_connection(Recorder, "a.name", 80, happy_eyeballs_delay=NEVER)
    assert transport.get_extra_info("peername") == served.address
    transport.close()
    await protocol.lost()


async def test_the_first_address_wins_when_it_answers(loop, serve, monkeypatch):
    first, second = await serve(), await serve()
    answering(monkeypatch, (socket.AF_INET, first.address), (socket.AF_INET, second.address))
    transport, protocol = await loop.create_connection(Recorder, "a.name", 80, happy_eyeballs_delay=NEVER)
    assert transport.get_extra_info("peername") == first.address
    await settle()
    assert not second.made.made
    transport.close()
    await protocol.lost()


@pytest.mark.since(3, 12)
async def test_all_errors_of_a_race_come_in_the_order_of_the_attempts(loop, sockets, monkeypatch):
    addresses = [sockets.enter_context(reserved()).getsockname() for _ in range(3)]
    answering(monkeypatch, *((socket.AF_INET, address) for address in addresses))
    with pytest.raises(ExceptionGroup, match="create_connection failed") as caught:
        await loop.create_connection(Recorder, "a.name", 80, happy_eyeballs_delay=NEVER, all_errors=True)
    assert [repr(address) in str(exc) for address, exc in zip(addresses, caught.value.exceptions, strict=True)] == [
        True,
        True,
        True,
    ]


@pytest.mark.parametrize("options", [{}, {"happy_eyeballs_delay": 0.001}, {"happy_eyeballs_delay": NEVER}])
async def test_cancelled_connect_leaves_nothing_behind(loop, monkeypatch, options):
    made, before = [], asyncio.all_tasks()
    with black_hole() as hole:
        answering(monkeypatch, (socket.AF_INET, hole), (socket.AF_INET, hole))
        task = asyncio.create_task(loop.create_connection(lambda: made.append(1), "a.name", 80, **options))
        await settle()
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settle()
    assert not made
    assert asyncio.all_tasks() == before


async def test_connect_that_times_out_leaves_nothing_behind(loop):
    before = asyncio.all_tasks()
    with black_hole() as hole:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_connection(Recorder, *hole), 0.01)
        await settle()
    assert asyncio.all_tasks() == before


async def test_connect_cancelled_at_any_turn_leaves_nothing_behind(loop, serve):
    served = await serve()
    for wait in range(12):
        protocols = []

        def factory(protocols=protocols):
            protocols.append(Recorder())
            return protocols[-1]

        task = asyncio.create_task(loop.create_connection(factory, *served.address))
        for _ in range(wait):
            await asyncio.sleep(0)
        task.cancel()
        try:
            transport, protocol = await task
        except asyncio.CancelledError:
            await settle()
            assert [protocol.log for protocol in protocols] in ([], [[]], [["made", "lost"]])
        else:
            transport.close()
            await protocol.lost()


async def test_connection_made_from_a_socket_and_cancelled_owns_nothing_afterwards(loop, sockets):
    for wait in range(4):
        near, far = socket.socketpair()
        sockets.enter_context(far)
        protocol = Recorder()
        task = asyncio.create_task(loop.create_connection(lambda protocol=protocol: protocol, sock=near))
        for _ in range(wait):
            await asyncio.sleep(0)
        task.cancel()
        try:
            (transport, _) = await task
        except asyncio.CancelledError:
            await settle()
            assert protocol.log in ([], ["made", "lost"])
        else:
            transport.close()
            await protocol.lost()
        strangers = [sockets.enter_context(socket.socket()) for _ in range(4)]
        near.close()
        await settle()
        for stranger in strangers:
            assert stranger.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
