"""What does a request cost an echo server? From one middle case, one thing is changed at a time."""

from __future__ import annotations

from typing import Any

from bench.rows.served import Served

KIB = 1024
SIZES = {"64B": 64, "1KiB": KIB, "16KiB": 16 * KIB, "64KiB": 64 * KIB, "256KiB": 256 * KIB, "1MiB": KIB * KIB}
STYLES = {
    "protocol": "Protocol",
    "buffered": "BufferedProtocol",
    "read": "streams, read()",
    "readline": "streams, readline()",
    "sockets": "sock_recv and sock_sendall",
}


def echo(style: str, name: str, size: int = KIB, connections: int = 64, depth: int = 1, **changed: Any) -> Served:
    family = "a Unix socket" if changed.get("unix") else "TCP"
    under_way = f", {depth} requests under way on each" if depth > 1 else ""
    what = f"{STYLES.get(style, style)} over {family}: {size:,} bytes, {connections} connections{under_way}"
    return Served(
        name=f"echo/{name}",
        what=changed.pop("what", what),
        server=f"echo.{style}",
        load=("exchange", f"depth={depth}"),
        limit=("server",),
        message=size,
        connections=connections,
        **changed,
    )


ROWS = (
    *(echo(style, f"{style}_1KiB") for style in STYLES),
    *(echo("protocol", f"protocol_{name}", size) for name, size in SIZES.items() if size != KIB),
    *(echo("read", f"read_{name}", size) for name, size in SIZES.items() if size != KIB),
    *(echo("protocol", f"protocol_{count}_connections", connections=count) for count in (1, 1000)),
    *(echo(style, f"{style}_unix", unix=True) for style in ("protocol", "read")),
    echo("protocol", "protocol_pipelined", size=64, depth=16),
    echo("pieces", "protocol_pieces", what="Protocol over TCP: 1,024 bytes come back by 16 calls of write()"),
)
