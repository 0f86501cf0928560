"""Which of several addresses gets connected, tried one after the other or side by side ("happy eyeballs", RFC 8305)?"""

from __future__ import annotations

import asyncio
import functools
import itertools
import socket
from typing import TYPE_CHECKING, Any

from epoque.endpoints.bind import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from epoque.endpoints.names import AddrInfo

    Attempt = Callable[[], Coroutine[Any, Any, socket.socket]]
    Task = asyncio.Task[socket.socket]

_NONBLOCK = getattr(socket, "SOCK_NONBLOCK", 0)  # not on macOS


def interleaved(infos: list[AddrInfo], first_family_count: int) -> list[AddrInfo]:
    """Let the families take turns, the first one after that many of its addresses; RFC 8305, section 4."""
    families: dict[int, list[AddrInfo]] = {}
    for info in infos:
        families.setdefault(info[0], []).append(info)
    first = families[infos[0][0]]
    head = first[: max(first_family_count - 1, 0)]
    del first[: len(head)]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*families.values()))
    return head + [info for info in turns if info is not None]


async def connect_any(
    loop: Any,
    infos: list[AddrInfo],
    local_infos: list[AddrInfo] | None,
    delay: float | None,
    all_errors: bool,
) -> socket.socket:
    """Return a socket connected to one of the addresses; with a delay (seconds) the attempts overlap.

    Raises OSError, or with all_errors an ExceptionGroup, when no address accepts.
    """
    failures: list[list[OSError]] = []  # a list for each attempt, in the order they began
    try:
        if delay is not None:
            attempts = [functools.partial(connect, loop, failures, info, local_infos) for info in infos]
            sock = await _race(loop, attempts, delay)
            if sock is not None:
                return sock
        else:
            for info in infos:
                try:
                    return await connect(loop, failures, info, local_infos)
                except OSError:
                    continue
        raise _joined([exc for attempt_failures in failures for exc in attempt_failures], all_errors)
    finally:
        failures.clear()  # their tracebacks refer to frames that refer to this list


async def connect(
    loop: Any, failures: list[list[OSError]], info: AddrInfo, local_infos: list[AddrInfo] | None
) -> socket.socket:
    """Make, bind and connect one socket; what goes wrong is raised, and put in a list of its own in `failures`."""
    family, kind, proto, _, address = info
    mine: list[OSError] = []
    failures.append(mine)
    sock = None
    try:
        sock = nonblocking_socket(family, kind, proto)
        if local_infos is not None:
            _bind_local(sock, family, local_infos, mine)
        await loop.sock_connect(sock, address)
        return sock
    except BaseException as exc:
        if isinstance(exc, OSError):
            mine.append(exc)
        if sock is not None:
            sock.close()
        raise
    finally:
        del failures, mine


def nonblocking_socket(family: int, kind: int, proto: int = 0) -> socket.socket:
    if _NONBLOCK and getattr(socket.socket, "__base__", None) is socket.SocketType:
        return socket.socket(family, kind | _NONBLOCK, proto)
    sock = socket.socket(family, kind, proto)  # what has its place (a proxy's class) need not know of the flag
    sock.setblocking(False)
    return sock


def _bind_local(sock: socket.socket, family: int, local_infos: list[AddrInfo], failures: list[OSError]) -> None:
    for local_family, _, _, _, address in local_infos:
        if local_family == family:
            try:
                return bind(sock, address)
            except OSError as exc:
                failures.append(exc)
    raise failures.pop() if failures else OSError(f"no matching local address with {family=} found")


def _joined(failures: list[OSError], all_errors: bool) -> Exception:
    """The one exception that tells of all attempts."""
    if all_errors and failures:
        return ExceptionGroup("create_connection failed", failures)
    texts = [str(exc) for exc in failures]
    if not texts:
        return TimeoutError("create_connection failed")
    if all(text == texts[0] for text in texts):
        return failures[0]
    return OSError(f"Multiple exceptions: {', '.join(texts)}")


async def _race(loop: Any, attempts: Iterable[Attempt], delay: float) -> socket.socket | None:
    """Begin an attempt whenever the newest one has failed or is delay seconds old; the first to connect wins.

    The others are cancelled, and have closed their sockets before this returns. None: all failed with OSError.
    """
    tasks: list[Task] = []
    try:
        winner = await _first(loop, attempts, delay, tasks)
    except GeneratorExit:
        raise  # the coroutine is thrown away, it cannot wait any more
    except BaseException:
        await _retire(tasks)
        raise
    if winner is None:
        return None
    tasks.remove(winner)
    sock = winner.result()
    try:
        await _retire(tasks)
    except BaseException:
        sock.close()
        raise
    return sock


async def _first(loop: Any, attempts: Iterable[Attempt], delay: float, tasks: list[Task]) -> Task | None:
    """Return the task of the first attempt to connect; all tasks made are added to the list."""
    running: set[Task] = set()
    waiting = list(attempts)[::-1]
    while waiting or running:
        if waiting:
            newest = loop.create_task(waiting.pop()())
            tasks.append(newest)
            running.add(newest)
            next_at = loop.time() + delay
        while running:
            timeout = max(0, next_at - loop.time()) if waiting else None
            done, running = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            winner = _winner(task for task in tasks if task in done)
            if winner is not None:
                return winner
            if waiting and (not done or newest in done):
                break
    return None


def _winner(done: Iterable[Task]) -> Task | None:
    """The first of the tasks that has connected. An error that is no OSError is nobody's to pass over."""
    for task in done:
        if task.cancelled():
            continue
        error = task.exception()
        if error is None:
            return task
        if not isinstance(error, OSError):
            raise error
    return None


async def _retire(tasks: list[Task]) -> None:
    """Cancel the tasks and wait for their end; what has connected all the same is closed."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    for task in tasks:
        if task.done():
            _close_result(task)
        else:
            task.add_done_callback(_close_result)
    if running:
        await asyncio.wait(running)


def _close_result(task: Task) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()
