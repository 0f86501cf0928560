"""What can a person see of the loop? How callbacks are described, and what debug mode adds.

Texts are made by asyncio's own formatting, so that logs and reprs read the same on either loop, on every Python.
"""

import asyncio
import logging
import os
import sys
from asyncio import constants, coroutines, format_helpers

if sys.version_info >= (3, 14):
    from inspect import iscoroutinefunction  # asyncio's own is deprecated
else:
    from asyncio.coroutines import iscoroutinefunction

__all__ = [
    "check_callback",
    "created_at",
    "describe_call",
    "env_debug",
    "is_coroutine",
    "logger",
    "origin",
    "report_slow",
    "track_coroutine_origins",
    "without_own_frame",
]

logger = logging.getLogger("asyncio")

if sys.version_info >= (3, 13):

    def describe_call(callback, args, debug):
        """``name(arguments) at file:line``; without `debug` the arguments are left out, they may be secret or huge."""
        return format_helpers._format_callback_source(callback, args, debug=debug)
else:

    def describe_call(callback, args, debug):
        """``name(arguments) at file:line``"""
        return format_helpers._format_callback_source(callback, args)


def env_debug():
    """The debug mode that a new loop starts in: ``python -X dev``, or PYTHONASYNCIODEBUG."""
    return sys.flags.dev_mode or (not sys.flags.ignore_environment and bool(os.environ.get("PYTHONASYNCIODEBUG")))


def origin():
    """Where the caller of epoque stands: a `traceback.StackSummary`, kept by handles in debug mode."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("epoque."):
        frame = frame.f_back  # interpreted, our own frames are there too; compiled, there are none
    return format_helpers.extract_stack(frame)


def created_at(stack):
    """Where the newest frame of `stack` is, for a repr."""
    return f"created at {stack[-1].filename}:{stack[-1].lineno}"


def without_own_frame(task):
    """The task; its origin ends where ``create_task`` was called, not inside it (when that is interpreted)."""
    stack = getattr(task, "_source_traceback", None)
    if stack and f"{os.sep}epoque{os.sep}core{os.sep}" in stack[-1].filename:
        del stack[-1]
    return task


def is_coroutine(callback):
    """Whether this is a coroutine or the function for one, which is no callback."""
    return coroutines.iscoroutine(callback) or iscoroutinefunction(callback)


def check_callback(callback, method):
    """TypeError for what cannot be a callback, coroutines above all; asyncio checks it in debug mode only."""
    if is_coroutine(callback):
        raise TypeError(f"coroutines cannot be used with {method}()")
    if not callable(callback):
        raise TypeError(f"a callable object was expected by {method}(), got {callback!r}")


def report_slow(handle, seconds):
    """Log a callback that held the loop up; a step of a task is shown as its task."""
    owner = getattr(handle._callback, "__self__", None)
    shown = repr(owner) if isinstance(owner, asyncio.Task) else str(handle)
    logger.warning("Executing %s took %.3f seconds", shown, seconds)


def track_coroutine_origins(depth):
    """Let coroutines remember where they were made, `depth` frames deep; return the depth that was in force."""
    previous = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(constants.DEBUG_STACK_DEPTH if depth is None else depth)
    return previous
