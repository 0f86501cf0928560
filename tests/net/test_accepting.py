"""How connections come in: bursts, bad factories, peers that are gone already, descriptors running out."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

import pytest

from tests.loops import checked_script
from tests.net.peers import Echo, Recorder, listener, raiser, recv_all, reset, settle, tcp_pair, unix_pair

BURST = 500


async def test_burst_of_queued_clients_is_served_completely(serve, sockets):
    served = await serve(Echo, backlog=BURST, start_serving=False)
    await served.server.start_serving()
    clients = [sockets.enter_context(socket.create_connection(served.address, 10)) for _ in range(BURST)]
    for number, client in enumerate(clients):
        client.send(b"%05d" % number)
    answers = await asyncio.to_thread(lambda: [client.recv(100) for client in clients])
    assert answers == [b"%05d" % number for number in range(BURST)]
    assert len(served.made.made) == BURST


async def test_clients_that_came_during_a_long_turn_need_not_wait_for_one_another(serve, sockets):
    served = await serve(backlog=32)
    sockets.enter_context(socket.create_connection(served.address, 10))
    await served.made.nth()
    for _ in range(20):
        sockets.enter_context(socket.create_connection(served.address, 10))
    time.sleep(0.001)
    await settle(3)
    assert len(served.made.made) == 21


@pytest.mark.asyncio_wrong("accepts the whole backlog in one turn")
async def test_other_callbacks_run_while_a_burst_is_accepted(loop, serve, sockets):
    turn = 0
    seen_in = []

    def tick():
        nonlocal turn
        turn += 1
        if len(seen_in) < BURST:
            loop.call_soon(tick)

    def protocol():
        seen_in.append(turn)
        return Recorder()

    served = await serve(protocol, backlog=BURST)
    for _ in range(BURST):
        sockets.enter_context(socket.create_connection(served.address, 10))
    loop.call_soon(tick)
    await served.made.nth(BURST)
    most_in_one_turn = max(seen_in.count(turn) for turn in set(seen_in))
    assert most_in_one_turn <= BURST // 2


@pytest.mark.asyncio_wrong("leaves the accepted socket to the garbage collector")
async def test_factory_that_raises_turns_that_client_away_and_serves_the_next(serve, errors):
    kinds = [raiser(ZeroDivisionError), Echo]
    served = await serve(lambda: kinds.pop(0)())
    first = served.connect()
    assert await asyncio.to_thread(first.recv, 1) == b""
    second = served.connect()
    second.send(b"hello")
    assert await asyncio.to_thread(second.recv, 5) == b"hello"


@pytest.mark.asyncio_wrong("leaves the accepted socket to the garbage collector, reports it in debug mode only")
@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("kind", [ZeroDivisionError, GeneratorExit, asyncio.CancelledError])
async def test_factory_that_raises_is_reported_once(loop, serve, errors, debug, kind):
    loop.set_debug(debug)
    served = await serve(raiser(kind))
    client = served.connect()
    assert await asyncio.to_thread(client.recv, 1) == b""
    assert [type(context["exception"]) for context in errors] == [kind]
    assert errors[0]["message"] == "Error on transport creation for incoming connection"


@pytest.mark.asyncio_wrong("leaves the accepted socket to the garbage collector")
@pytest.mark.parametrize("nonsense", [None, 42, object()])
async def test_factory_that_makes_nonsense_loses_no_descriptor(serve, errors, nonsense):
    served = await serve(lambda: nonsense)
    client = served.connect()
    assert await asyncio.to_thread(recv_all, client) == b""
    assert isinstance(errors[0]["exception"], AttributeError)


async def test_peername_is_known_even_if_the_peer_has_reset_before_accept(serve):
    served = await serve()
    client = served.connect()
    name = client.getsockname()
    reset(client)
    protocol = await served.made.nth()
    assert protocol.transport.get_extra_info("peername") == name
    assert isinstance(await protocol.lost(), ConnectionResetError)
    assert protocol.log == ["made", "lost"]


async def test_data_of_a_client_that_has_closed_before_accept_arrives(serve):
    served = await serve()
    client = served.connect()
    client.send(b"short visit")
    client.close()
    protocol = await served.made.nth()
    assert await protocol.lost() is None
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert protocol.data == b"short visit"


@pytest.mark.parametrize("pair", [tcp_pair, unix_pair])
@pytest.mark.parametrize("blocking", [True, False])
async def test_accepted_socket_is_connected_to_a_protocol(loop, pair, blocking):
    near, far = pair()
    near.setblocking(blocking)
    transport, protocol = await loop.connect_accepted_socket(Echo, near)
    assert protocol.log == ["made"]
    assert near.gettimeout() == 0
    with far:
        far.send(b"hello")
        assert await asyncio.to_thread(far.recv, 5) == b"hello"
    assert await protocol.lost() is None
    assert near.fileno() == -1


async def test_socket_accepted_by_hand_is_connected_to_a_protocol(loop, sockets):
    lst = sockets.enter_context(listener())
    client = sockets.enter_context(socket.create_connection(lst.getsockname(), 10))
    sock, address = await loop.sock_accept(lst)
    transport, protocol = await loop.connect_accepted_socket(Recorder, sock)
    assert transport.get_extra_info("peername") == address == client.getsockname()
    client.close()
    await protocol.lost()


async def test_connect_accepted_socket_refuses_other_types(loop, sockets):
    sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with pytest.raises(ValueError, match="A Stream Socket was expected, got"):
        await loop.connect_accepted_socket(Recorder, sock)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    wrapped = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await loop.connect_accepted_socket(Recorder, wrapped)


@pytest.mark.parametrize("option", ["ssl_handshake_timeout", "ssl_shutdown_timeout"])
async def test_connect_accepted_socket_refuses_options_of_tls(loop, sockets, option):
    near, far = unix_pair()
    sockets.enter_context(near)
    sockets.enter_context(far)
    with pytest.raises(ValueError, match=f"{option} is only meaningful with ssl"):
        await loop.connect_accepted_socket(Recorder, near, **{option: 1})


OUT_OF_DESCRIPTORS = """
    import contextlib, resource
    loop = new_loop()
    reports = []
    loop.set_exception_handler(lambda loop, context: reports.append(context))

    class Hello(asyncio.Protocol):
        def connection_made(self, transport):
            transport.write(b"hello")
            transport.close()

    async def main():
        server = await loop.create_server(Hello, "127.0.0.1", 0)
        clients = [socket.socket() for _ in range(5)]
        names = server.sockets[0].getsockname()
        await asyncio.sleep(0.001)  # what the loop waits with is opened while there are descriptors
        highest = max(int(fd) for fd in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        hog = []
        with contextlib.suppress(OSError):
            while True:
                hog.append(os.open("/dev/null", os.O_RDONLY))
        for client in clients:
            client.connect(names)
        cpu, clock = time.process_time(), time.monotonic()
        while not reports:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.6)
        cpu, clock = time.process_time() - cpu, time.monotonic() - clock
        starved = len(reports)
        for fd in hog:
            os.close(fd)
        def read(client):
            client.settimeout(10)
            return client.recv(100)
        answers = await asyncio.gather(*(asyncio.to_thread(read, client) for client in clients))
        for client in clients:
            client.close()
        server.close()
        print(answers.count(b"hello"), starved, clock, cpu)
        assert all(isinstance(context["exception"], OSError) for context in reports), reports
        assert {context["message"] for context in reports} == {"socket.accept() out of system resource"}, reports

    run(loop, main(), 20)
    run(loop, loop.shutdown_default_executor())
    loop.close()
"""


@pytest.fixture(scope="module")
def starvation():
    """Clients that were answered, reports during the shortage, its length and the CPU time it cost, in seconds."""
    answered, reports, clock, cpu = checked_script(OUT_OF_DESCRIPTORS).split()
    return int(answered), int(reports), float(clock), float(cpu)


def test_clients_stay_queued_while_descriptors_are_out_and_are_served_later(starvation):
    assert starvation[0] == 5


@pytest.mark.asyncio_wrong("one report for every place in the backlog, each time")
def test_running_out_of_descriptors_is_reported_twice_a_second_at_most(starvation):
    _, reports, clock, _ = starvation
    assert 1 <= reports <= 1 + 2 * clock


def test_running_out_of_descriptors_does_not_spin(starvation):
    _, _, clock, cpu = starvation
    assert cpu < clock / 2


def test_a_loop_that_has_never_waited_can_still_wait_when_descriptors_are_out():
    code = """
        import contextlib, resource
        loop = new_loop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        hog = []
        with contextlib.suppress(OSError):
            while True:
                hog.append(os.open("/dev/null", os.O_RDONLY))
        loop.run_until_complete(asyncio.sleep(0.001))
        print("waited")
        loop.close()
    """
    assert checked_script(code) == "waited\n"
