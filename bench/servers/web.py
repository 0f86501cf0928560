"""HTTP servers: an aiohttp application, and a bare ASGI application under uvicorn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from bench.servers import BACKLOG, KEPT, bound

BODY = b"x" * 65536
DOCUMENT = {"message": "Hello, World!", "numbers": list(range(10)), "nested": {"true": True, "none": None}}


async def aiohttp(options: dict[str, Any]) -> str:
    from aiohttp import WSMsgType, web

    async def text(request: web.Request) -> web.StreamResponse:
        return web.Response(text="Hello, World!")

    async def document(request: web.Request) -> web.StreamResponse:
        return web.json_response(DOCUMENT)

    async def body(request: web.Request) -> web.StreamResponse:
        return web.Response(body=BODY)

    async def websocket(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        async for message in answer:
            if message.type is WSMsgType.BINARY:
                await answer.send_bytes(message.data)
        return answer

    application = web.Application()
    handlers = {"/text": text, "/json": document, "/64k": body, "/websocket": websocket}
    application.add_routes([web.get(path, handler) for path, handler in handlers.items()])
    if "directory" in options:
        application.add_routes([web.static("/static", Path(options["directory"]))])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    listener, address = bound(options)
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    KEPT.append(runner)
    return address


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application without a framework."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "bytes": message["bytes"]})
        return
    if scope["path"] == "/json":
        body, kind = json.dumps(DOCUMENT).encode(), b"application/json"
    else:
        body, kind = b"Hello, World!", b"text/plain"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def uvicorn(options: dict[str, Any]) -> str:
    from uvicorn import Config, Server

    listener, address = bound(options)
    config = Config(
        plain,
        loop="none",
        http="httptools",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
    server = Server(config)
    KEPT.append(asyncio.ensure_future(server.serve(sockets=[listener])))
    while not server.started:
        await asyncio.sleep(0.01)
        if KEPT[-1].done():
            KEPT[-1].result()
    return address
