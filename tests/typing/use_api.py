"""Does a program that uses every public name of epoque pass `mypy --strict`? Checked by `make lint`, never run."""

from __future__ import annotations

import asyncio
from typing import assert_type

import epoque


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def main() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, epoque.EventLoop)
    loop.call_soon(print, "soon")
    timer = loop.call_later(0.5, print, "never")
    timer.cancel()
    server = await loop.create_server(Echo, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    transport, protocol = await loop.create_connection(Echo, *address)
    assert_type(protocol, Echo)
    transport.close()
    server.close()
    await server.wait_closed()
    return 0


def ways_to_run() -> None:
    assert_type(epoque.run(main()), int)
    assert_type(epoque.run(main(), debug=True), int)
    with asyncio.Runner(loop_factory=epoque.new_event_loop) as runner:
        assert_type(runner.run(main()), int)
    with asyncio.Runner(loop_factory=epoque.EventLoop) as runner:
        assert_type(runner.run(main()), int)

    epoque.install()
    policy: asyncio.AbstractEventLoopPolicy = epoque.EventLoopPolicy()
    asyncio.set_event_loop_policy(policy)

    assert_type(epoque.new_event_loop(), asyncio.AbstractEventLoop)
    loop: asyncio.AbstractEventLoop = epoque.EventLoop()
    assert_type(loop.run_until_complete(main()), int)
    loop.close()


class Counting(epoque.EventLoop):
    """Loops may be subclassed."""

    def close(self) -> None:
        super().close()


def facts() -> None:
    assert_type(epoque.compiled, bool)
    assert_type(epoque.__version__, str)
