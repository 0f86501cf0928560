"""What all servers under test share: the counters, and where they listen."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BACKLOG = 4096


@dataclass
class Served:
    """What a server has done so far."""

    accepted: int = 0
    connections: int = 0  # open now
    received: int = 0  # datagrams


SERVED = Served()
KEPT: list[Any] = []  # servers and tasks that live as long as the process


def context(options: dict[str, Any]) -> ssl.SSLContext | None:
    if "certificate" not in options:
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(options["certificate"], options["key"])
    return made


async def listen(options: dict[str, Any], factory: Callable[[], asyncio.BaseProtocol]) -> str:
    """Serve with that protocol on a port of 127.0.0.1 or, if the address is a path, a Unix socket; its address."""
    loop = asyncio.get_running_loop()
    if options["address"].startswith("/"):
        KEPT.append(await loop.create_unix_server(factory, options["address"], backlog=BACKLOG))
        return str(options["address"])
    server = await loop.create_server(factory, "127.0.0.1", 0, backlog=BACKLOG, ssl=context(options))
    KEPT.append(server)
    return str(server.sockets[0].getsockname()[1])


def bound(options: dict[str, Any]) -> tuple[socket.socket, str]:
    """A listening socket, and its address, for servers that want to be given one."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    listener.setblocking(False)
    return listener, str(listener.getsockname()[1])
