"""Servers on UDP."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.servers import KEPT, SERVED


class Sink(asyncio.DatagramProtocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        SERVED.received += 1


class Echo(Sink):
    def datagram_received(self, data: bytes, addr: Any) -> None:
        SERVED.received += 1
        self.transport.sendto(data, addr)


async def _bind(factory: type[Sink]) -> str:
    endpoint = await asyncio.get_running_loop().create_datagram_endpoint(factory, ("127.0.0.1", 0))
    KEPT.append(endpoint)
    return str(endpoint[0].get_extra_info("sockname")[1])


async def echo(options: dict[str, Any]) -> str:
    return await _bind(Echo)


async def sink(options: dict[str, Any]) -> str:
    return await _bind(Sink)
