"""How is the application served on a loop of one's choice, and how does it stop?"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from examples.chat import create_app
from examples.chat.events import FEED
from examples.chat.pulse import PULSE
from examples.chat.rooms import ROOMS
from examples.chat.status import describe_loop

GRACE = 5.0  # seconds for requests that are being answered when the server stops


class CannotListen(Exception):
    """The address cannot be had."""


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes a loop; giving it to `asyncio.Runner` is all that an application has to change."""
    if name == "asyncio":
        return asyncio.SelectorEventLoop
    import epoque

    factory: Callable[[], asyncio.AbstractEventLoop] = epoque.new_event_loop
    return factory


def describe(about: dict[str, str]) -> str:
    """Return one line on the loop that `examples.chat.status.describe_loop` told of."""
    version = f" (epoque {about['epoque']}, {about['mode']})" if "epoque" in about else ""
    return f"{about['loop']}{version} on {about['python']}, aiohttp {about['aiohttp']}"


@asynccontextmanager
async def serving(app: web.Application, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str, None]:
    """Serve the application and give its URL; at the end stop gracefully."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise CannotListen(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
        bound = runner.addresses[0][1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound}/"
    finally:
        await runner.cleanup()


async def serve_until_signal(host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM comes, and say so; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[signal.Signals] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        received.set_result(number)

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop, each)
    app = create_app()
    async with serving(app, host, port) as url:
        print(f"{url} is served by {describe(describe_loop(loop))}. Stop it with Ctrl+C.", flush=True)
        number = await received
        members = sum(map(len, app[ROOMS].members().values()))
        streams = len(app[FEED])
    pulse = app[PULSE]
    task = "is still running" if pulse.running else f"ended after {pulse.beats} beats"
    left = sum(map(len, app[ROOMS].members().values())) + len(app[FEED])
    print(
        f"Stopped on {number.name}: {members} WebSockets and {streams} event streams closed, {left} left; "
        f"the background task {task}.",
        flush=True,
    )


def serve(loop_name: str, host: str, port: int) -> int:
    """Run a server process; returns its exit code."""
    try:
        with asyncio.Runner(loop_factory=loop_factory(loop_name)) as runner:
            runner.run(serve_until_signal(host, port))
    except CannotListen as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
