"""Who hears of an exception that nobody waits for? The exception handler, asyncio's or the user's."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from epoque.core.debug import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from epoque.loop import EventLoop

    Handler = Callable[[EventLoop, dict[str, Any]], object]

__all__ = ["call_exception_handler", "default_exception_handler", "get_exception_handler", "set_exception_handler"]

_TRACEBACKS = {"source_traceback": "Object", "handle_traceback": "Handle"}


def get_exception_handler(loop: EventLoop) -> Handler | None:
    """The handler in use, or None for the default one."""
    return loop._exception_handler


def set_exception_handler(loop: EventLoop, handler: Handler | None) -> None:
    """Let ``handler(loop, context)`` hear of exceptions; None restores the default. TypeError if not callable."""
    if handler is not None and not callable(handler):
        raise TypeError(f"A callable object or None is expected, got {handler!r}")
    loop._exception_handler = handler


def default_exception_handler(loop: EventLoop, context: dict[str, Any]) -> None:
    """Log `context` as an error of the logger ``asyncio``, with the exception's traceback."""
    exception = context.get("exception")
    origin = loop._current_origin()
    if "source_traceback" not in context and origin:
        context["handle_traceback"] = origin
    lines = [context.get("message") or "Unhandled exception in event loop"]
    for key in sorted(context.keys() - {"message", "exception"}):
        value = repr(context[key])
        if key in _TRACEBACKS:
            stack = "".join(traceback.format_list(context[key])).rstrip()
            value = f"{_TRACEBACKS[key]} created at (most recent call last):\n{stack}"
        lines.append(f"{key}: {value}")
    logger.error("\n".join(lines), exc_info=exception if exception is not None else False)


def call_exception_handler(loop: EventLoop, context: dict[str, Any]) -> None:
    """Report `context`.

    Its keys are ``message`` and, where they apply, ``exception``, ``future``, ``task``, ``handle``, ``protocol``,
    ``transport``, ``socket`` and ``asyncgen``.

    A handler that fails is reported to the default one. Only SystemExit and KeyboardInterrupt come out.
    """
    handler = loop._exception_handler
    try:
        if handler is None:
            loop.default_exception_handler(context)
        else:
            _in_context(context, handler, loop)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as exc:
        if handler is None:
            logger.error("Exception in default exception handler", exc_info=True)
        else:
            _handler_failed(loop, context, exc)


def _in_context(context: dict[str, Any], handler: Handler, loop: EventLoop) -> None:
    thing = context.get("task") or context.get("future") or context.get("handle")
    run = getattr(thing.get_context(), "run", None) if hasattr(thing, "get_context") else None
    if run is None:
        handler(loop, context)
    else:
        run(handler, loop, context)


def _handler_failed(loop: EventLoop, context: dict[str, Any], exc: BaseException) -> None:
    report = {"message": "Unhandled error in exception handler", "exception": exc, "context": context}
    try:
        loop.default_exception_handler(report)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        logger.error(
            "Exception in default exception handler while handling an unexpected error in custom exception handler",
            exc_info=True,
        )
