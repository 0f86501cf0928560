"""One that takes all it can get beside many that want little."""

from __future__ import annotations

import threading

from tests.net.peers import Echo, Recorder, nonblocking_pair, tcp_pair

SLOW = 100


async def test_a_flood_on_one_connection_does_not_hold_up_a_hundred_others(loop):
    """Counted in receives of the flood, not in seconds."""
    near, far = tcp_pair()
    flood, drain = await loop.create_connection(Recorder, sock=near)
    stop = threading.Event()

    def pour():
        block = bytes(1 << 20)
        try:
            while not stop.is_set():
                far.sendall(block)
        except OSError:
            pass

    pouring = loop.run_in_executor(None, pour)
    pairs = [nonblocking_pair() for _ in range(SLOW)]
    echoes = [await loop.create_connection(Echo, sock=pair[0]) for pair in pairs]
    await drain.receives(1 << 20)
    try:
        for round_ in range(3):
            for _, peer in pairs:
                peer.send(b"?")
            before = drain.log.count("data")
            for (_, protocol), (_, peer) in zip(echoes, pairs, strict=True):
                await protocol.receives(round_ + 1)
                drain.data.clear()
                assert await loop.sock_recv(peer, 10) == b"?"
            assert drain.log.count("data") - before < 3 * SLOW
    finally:
        stop.set()
        flood.abort()
        far.close()
        await pouring
        for (transport, _), (_, peer) in zip(echoes, pairs, strict=True):
            transport.abort()
            peer.close()
