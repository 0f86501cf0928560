"""Who serves this application: which loop, in which mode, on which versions?"""

from __future__ import annotations

import asyncio
import platform
import time
from typing import Any

import aiohttp
from aiohttp import web

from .pulse import PULSE
from .rooms import ROOMS


def describe_loop(loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    kind = type(loop)
    about = {
        "loop": f"{kind.__module__}.{kind.__qualname__}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "aiohttp": aiohttp.__version__,
    }
    if kind.__module__.partition(".")[0] == "epoque":
        import epoque

        about |= {"epoque": epoque.__version__, "mode": "compiled" if epoque.compiled else "interpreted"}
    return about


async def show(request: web.Request) -> web.Response:
    pulse = request.app[PULSE]
    return web.json_response(
        describe_loop(asyncio.get_running_loop())
        | {
            "uptime": round(time.monotonic() - pulse.started, 3),
            "cpu_seconds": time.process_time(),
            "beats": pulse.beats,
            "rooms": request.app[ROOMS].members(),
        }
    )
