"""Who looks a name up, and on which thread."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from tests.loops import checked_script
from tests.net.peers import Factory, udp_socket


@pytest.fixture
def asked(monkeypatch):
    """Lets every name stand for this machine; gives the names asked for, and fails if the loop's thread was held up."""
    names = []
    real, here = socket.getaddrinfo, threading.get_ident()

    def getaddrinfo(host, *args, **options):
        assert threading.get_ident() != here
        names.append(host)
        return real("127.0.0.1", *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


@pytest.mark.asyncio_wrong("sock_sendto and sendto look names up on the loop's own thread, by other means")
async def test_every_call_that_takes_a_name_asks_the_patched_getaddrinfo(loop, asked, sockets):
    made = Factory()
    server = await loop.create_server(made, "server.test", 0)
    port = server.sockets[0].getsockname()[1]
    transport, _ = await loop.create_connection(made, "client.test", port, local_addr=("local.test", 0))
    transport.abort()
    sock = sockets.enter_context(socket.socket())
    sock.setblocking(False)
    await loop.sock_connect(sock, ("sock-connect.test", port))
    receiver = sockets.enter_context(udp_socket())
    port = receiver.getsockname()[1]
    sender = sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    sender.setblocking(False)
    await loop.sock_sendto(sender, b"from a socket", ("sock-sendto.test", port))
    endpoint, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("udp-local.test", 0))
    endpoint.sendto(b"from an endpoint", ("sendto.test", port))
    endpoint.close()
    other, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("udp-remote.test", port))
    other.close()
    assert {await loop.run_in_executor(None, receiver.recv, 100) for _ in range(2)} == {
        b"from a socket",
        b"from an endpoint",
    }
    server.close()
    names = ["server", "client", "local", "sock-connect", "sock-sendto", "udp-local", "sendto", "udp-remote"]
    assert sorted(asked) == sorted(f"{name}.test" for name in names)


@pytest.mark.asyncio_wrong("the interpreter waits for the thread")
@pytest.mark.parametrize("closed", [True, False])
def test_a_name_server_that_does_not_answer_does_not_hold_up_the_exit(closed):
    """The look-up is given up; its thread cannot be."""
    code = f"""
    socket.getaddrinfo = lambda *args: time.sleep(60)
    async def main():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().create_connection(asyncio.Protocol, "a.test", 1), 0.05)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().getaddrinfo("b.test", 1), 0.05)
    import contextlib
    loop = new_loop()
    loop.run_until_complete(main())
    if {closed}:
        loop.close()
    print("the end")
    """
    assert checked_script(code, timeout=20) == "the end\n"
