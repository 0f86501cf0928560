"""What a loop asks of the interpreter: contexts (PEP 567), signals that wait, threads, forks."""

import os
import weakref
from contextvars import copy_context
from threading import get_ident

__all__ = [
    "attempt",
    "call",
    "call_method",
    "call_method_2",
    "check_signals",
    "copy",
    "copy_context",
    "drop_dict",
    "tell_of_forks",
    "thread_ident",
]

thread_ident = get_ident
check_signals = bool  # the bytecode loop runs the Python signal handlers that are due by itself
_told = weakref.WeakSet()


def call(context, callback, args):
    """Run ``callback(*args)`` in `context` and return its result."""
    try:
        return context.run(callback, *args)
    finally:
        # A traceback kept by what ran (a task's exception) holds this frame; it must not hold the task in turn.
        del context, callback, args


def attempt(context, callback, args):
    """Run ``callback(*args)`` in `context`; return what it raises but for SystemExit and KeyboardInterrupt, or None."""
    try:
        context.run(callback, *args)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as exc:
        return exc
    finally:
        del context, callback, args
    return None


def call_method(context, target, name, argument):
    """Run ``target.name(argument)`` in `context` and return its result."""
    try:
        return context.run(getattr(target, name), argument)
    finally:
        del context, target, argument


def call_method_2(context, target, name, first, second):
    """Run ``target.name(first, second)`` in `context` and return its result."""
    try:
        return context.run(getattr(target, name), first, second)
    finally:
        del context, target, first, second


def copy(context):
    """Another context with the same variables."""
    return context.copy()


def drop_dict(owner):
    """Let a new object be without a dictionary until one is needed; interpreted, it is."""


def tell_of_forks(owner):
    """Call ``owner._forked()`` in every child process that inherits `owner`, before anything else runs there.

    And ``owner._about_to_fork()`` in the thread that forks this process, before it does.
    """
    _told.add(owner)


def _forked():
    for owner in list(_told):
        owner._forked()


def _about_to_fork():
    for owner in list(_told):
        owner._about_to_fork()


os.register_at_fork(before=_about_to_fork, after_in_child=_forked)
