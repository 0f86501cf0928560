"""How many system calls a TLS connection costs."""

from __future__ import annotations

import pytest

from tests.net import test_syscalls as net

pytestmark = net.pytestmark

BEGINNING = """
from tests.tls.far import Far, client_context, server_context

async def main():
    near, other = socket.socketpair()
    far = Far(other, server_context(), server_side=True)
    connecting = loop.create_connection(Recorder, sock=near, ssl=client_context(), server_hostname="localhost")
    (transport, protocol), _ = await asyncio.gather(connecting, far.handshake())
    await settle()
    transport.write(b"x")
    await settle()  # what the far end's waiting left armed is let go by an event that finds nobody
    far.incoming.write(other.recv(100))
    assert far.ssl.read() == b"x"
"""

END = """
    transport.abort()
    await settle()
    other.close()
run(loop, main())
loop.close()
"""


def test_five_small_writes_of_one_turn_are_one_system_call(tmp_path):
    calls = net.system_calls(
        BEGINNING
        + """
    mark("begin")
    for number in range(4):
        transport.write(b"%d" % number)
    transport.writelines([b"4", b"5"])
    await asyncio.sleep(0)
    mark("end")
    assert await far.receive(6) == b"012345"
"""
        + END,
        tmp_path,
    )
    assert sum(calls[name] for name in net.SENDING) == 1, calls
    assert not any(calls[name] for name in net.ARMING), calls


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_delivery_is_one_receive(tmp_path, size):
    calls = net.system_calls(
        BEGINNING
        + f"""
    other.setblocking(True)
    far.ssl.write(bytes({size}))
    data = far.outgoing.read()
    os.write(other.fileno(), data)
    mark("begin")
    await protocol.receives({size})
    mark("end")
"""
        + END,
        tmp_path,
    )
    assert calls["recvfrom"] + calls["read"] == 1, calls
    assert not any(calls[name] for name in net.ARMING), calls
