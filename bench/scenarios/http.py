"""What does a request cost a web server, most of it the framework's own work? And a client?"""

from __future__ import annotations

import asyncio
import resource
from time import perf_counter

from bench.rows.inside import Inside, Work
from bench.rows.served import Served

CLIENTS = 16


def client(loop: asyncio.AbstractEventLoop, work: Work) -> dict[str, float]:
    """CPU time of a process that asks a server in C."""

    async def main() -> dict[str, float]:
        import aiohttp

        url = f"http://127.0.0.1:{work.peer}/"
        count = 0

        async def ask(session: aiohttp.ClientSession, end: float) -> None:
            nonlocal count
            while perf_counter() < end:
                async with session.get(url) as answer:
                    await answer.read()
                count += 1

        async def load(session: aiohttp.ClientSession, seconds: float) -> None:
            end = perf_counter() + seconds
            await asyncio.gather(*[ask(session, end) for _ in range(CLIENTS)])

        async with aiohttp.ClientSession() as session:
            await load(session, work.seconds / 4)
            count = 0
            before, start = resource.getrusage(resource.RUSAGE_SELF), perf_counter()
            await load(session, work.seconds)
            after, taken = resource.getrusage(resource.RUSAGE_SELF), perf_counter() - start
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        sample = {"value": user + system, "user": user, "system": system}
        return {key: 1e6 * value / count for key, value in sample.items()} | {"rate": count / taken}

    return loop.run_until_complete(main())


def served(name: str, what: str, server: str, path: str, kind: str = "http") -> Served:
    return Served(
        name=f"http/{name}",
        what=f"{what}: 64 connections",
        server=f"web.{server}",
        load=("exchange", f"kind={kind}", f"path={path}"),
        connections=64,
        message=1024 if kind == "websocket" else None,
    )


ROWS = (
    served("aiohttp_text", "aiohttp, Hello, World!", "aiohttp", "/text"),
    served("aiohttp_json", "aiohttp, a small JSON document", "aiohttp", "/json"),
    served("aiohttp_64KiB", "aiohttp, a body of 64 KiB", "aiohttp", "/64k"),
    served("aiohttp_websocket", "aiohttp, WebSocket echo of 1 KiB", "aiohttp", "/websocket", "websocket"),
    served("uvicorn_text", "uvicorn with httptools, Hello, World!", "uvicorn", "/"),
    served("uvicorn_json", "uvicorn with httptools, a small JSON document", "uvicorn", "/json"),
    served("uvicorn_websocket", "uvicorn with websockets, WebSocket echo of 1 KiB", "uvicorn", "/", "websocket"),
    Inside(
        name="http/aiohttp_client",
        what="aiohttp's client, 16 requests under way, against a server in C: the client's CPU a request",
        body=client,
        peer=("server", "address=0", "answer=13"),
    ),
)
