"""What becomes of asynchronous generators that nobody finishes? PEP 525: the loop closes them."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from epoque.loop import EventLoop

__all__ = ["finalizer_hook", "firstiter_hook", "shutdown_asyncgens"]


def firstiter_hook(loop: EventLoop, agen: AsyncGenerator[Any, Any]) -> None:
    """A generator is iterated for the first time."""
    if loop._asyncgens_shutdown_called:
        warnings.warn(
            f"asynchronous generator {agen!r} was scheduled after loop.shutdown_asyncgens() call",
            ResourceWarning,
            source=loop,
            stacklevel=2,
        )
    loop._asyncgens.add(agen)


def finalizer_hook(loop: EventLoop, agen: AsyncGenerator[Any, Any]) -> None:
    """A generator was dropped unfinished, in whichever thread."""
    loop._asyncgens.discard(agen)
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.create_task, agen.aclose())


async def shutdown_asyncgens(loop: EventLoop) -> None:
    """Close all asynchronous generators that are still active; what they raise goes to the exception handler."""
    loop._asyncgens_shutdown_called = True
    if not len(loop._asyncgens):
        return
    closing = list(loop._asyncgens)
    loop._asyncgens.clear()
    results = await asyncio.gather(*(agen.aclose() for agen in closing), return_exceptions=True)
    for result, agen in zip(results, closing, strict=True):
        if isinstance(result, Exception):
            loop.call_exception_handler(
                {
                    "message": f"an error occurred during closing of asynchronous generator {agen!r}",
                    "exception": result,
                    "asyncgen": agen,
                }
            )


# By this name pytest-asyncio and others know the warning that it was never awaited, and silence it.
shutdown_asyncgens.__qualname__ = "BaseEventLoop.shutdown_asyncgens"
