"""What does a datagram cost?"""

from __future__ import annotations

import asyncio
import resource
from time import perf_counter

from bench.rows.inside import Inside, Work
from bench.rows.served import Served

SIZE = 64
TURN = 64  # datagrams sent in one turn


def flood(loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    """CPU time of this process for a datagram that it sends."""

    async def send(seconds: float, transport: asyncio.DatagramTransport) -> int:
        count = 0
        data = b"x" * SIZE
        end = perf_counter() + seconds
        while perf_counter() < end:
            for _ in range(TURN):
                transport.sendto(data)
            count += TURN
            await asyncio.sleep(0)
        waiting = getattr(transport, "get_write_buffer_size", int)  # not every loop's transport tells
        while waiting():
            await asyncio.sleep(0.001)
        return count

    async def main() -> dict[str, float]:
        peer = ("127.0.0.1", int(work.peer))
        transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=peer)
        warm = await send(work.seconds / 4, transport)
        before = resource.getrusage(resource.RUSAGE_SELF)
        count = await send(work.seconds, transport)
        after = resource.getrusage(resource.RUSAGE_SELF)
        transport.close()
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        sample = {"value": user + system, "user": user, "system": system}
        return {key: 1e6 * value / count for key, value in sample.items()} | {"sent": warm + count}

    return loop.run_until_complete(main())


ROWS = (
    Served(
        name="udp/echo",
        what="sendto() from datagram_received: 64 bytes, 16 clients",
        server="datagrams.echo",
        load=("datagrams", "role=echo"),
        limit=("datagrams", "role=server"),
        message=SIZE,
        connections=16,
    ),
    Served(
        name="udp/echo_1KiB",
        what="the same with 1,024 bytes",
        server="datagrams.echo",
        load=("datagrams", "role=echo"),
        limit=("datagrams", "role=server"),
        message=1024,
        connections=16,
    ),
    Served(
        name="udp/flood_received",
        what="datagrams of 64 bytes come faster than they can be taken: server CPU a datagram taken",
        server="datagrams.sink",
        load=("datagrams", "role=flood"),
        limit=("datagrams", "role=sink"),
        message=SIZE,
        per="received",
        settle=True,
    ),
    Inside(
        name="udp/flood_sent",
        what="64 bytes by sendto() on a connected endpoint, 64 a turn: the sender's CPU a datagram",
        body=flood,
        peer=("datagrams", "role=sink"),
        message=SIZE,
    ),
)
