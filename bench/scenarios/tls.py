"""What does TLS add?"""

from __future__ import annotations

from bench.rows.served import Served
from bench.scenarios.echo import KIB, SIZES

BULK = 4 * KIB * KIB

ROWS = (
    *(
        Served(
            name=f"tls/echo_{name}",
            what=f"Protocol over TLS: {size:,} bytes, 64 connections",
            server="echo.protocol",
            load=("exchange-tls",),
            limit=("server-tls",),
            tls=True,
            message=size,
            connections=64,
        )
        for name, size in SIZES.items()
    ),
    Served(
        name="tls/read_1KiB",
        what="streams, read() over TLS: 1,024 bytes, 64 connections",
        server="echo.read",
        load=("exchange-tls",),
        limit=("server-tls",),
        tls=True,
        message=KIB,
        connections=64,
    ),
    Served(
        name="tls/handshake",
        what="accept, a full handshake, 64 bytes echoed, close; 8 clients",
        server="echo.protocol",
        load=("connect-tls",),
        limit=("server-tls",),
        tls=True,
        message=64,
        connections=8,
        settle=True,
    ),
    Served(
        name="tls/bulk",
        what="4 MiB sent for each small request, 4 connections",
        server="echo.bulk",
        load=("exchange-tls", "kind=fixed", f"answer={BULK}"),
        options={"answer": BULK},
        tls=True,
        message=64,
        connections=4,
    ),
)
