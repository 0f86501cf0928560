"""How does a program or a shell command become a child process with a protocol?

It is started by `subprocess.Popen` (vfork(2): no at-fork hooks run, and the parent's heap does not matter), so every
keyword of it is accepted, and the child starts with its signals neither blocked nor handled, as `subprocess` does it.
"""

from __future__ import annotations

import subprocess
from asyncio.log import logger
from typing import TYPE_CHECKING, Any, TypeVar

from epoque.transports.process import spawn

if TYPE_CHECKING:
    import asyncio
    import os
    from collections.abc import Callable

Proto = TypeVar("Proto", bound="asyncio.SubprocessProtocol")

_NAMES = {subprocess.PIPE: "<pipe>", subprocess.STDOUT: "<stdout>", subprocess.DEVNULL: "<devnull>"}


async def subprocess_exec(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    program: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *args: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    stdin: Any = subprocess.PIPE,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    universal_newlines: bool = False,
    shell: bool = False,
    bufsize: int = 0,
    encoding: None = None,
    errors: None = None,
    text: bool | None = None,
    **kwargs: Any,
) -> tuple[asyncio.SubprocessTransport, Proto]:
    """Run a program; return the transport and the protocol. Keywords are those of `subprocess.Popen`.

    ValueError for keywords that mean text, a shell or a buffer; what Popen raises (OSError with the errno of exec) if
    the program cannot be started.
    """
    if shell:
        raise ValueError("shell must be False")
    _check(universal_newlines, bufsize, text, encoding, errors)
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    return await _spawn(
        loop, protocol_factory, f"execute program {program!r}", (program, *args), False, streams, kwargs
    )


async def subprocess_shell(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    cmd: str | bytes,
    *,
    stdin: Any = subprocess.PIPE,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    universal_newlines: bool = False,
    shell: bool = True,
    bufsize: int = 0,
    encoding: None = None,
    errors: None = None,
    text: bool | None = None,
    **kwargs: Any,
) -> tuple[asyncio.SubprocessTransport, Proto]:
    """Run a command by the shell; otherwise as `subprocess_exec`."""
    if not isinstance(cmd, (bytes, str)):
        raise ValueError("cmd must be a string")
    if not shell:
        raise ValueError("shell must be True")
    _check(universal_newlines, bufsize, text, encoding, errors)
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    return await _spawn(loop, protocol_factory, f"run shell command {cmd!r}", cmd, True, streams, kwargs)


def _check(universal_newlines: object, bufsize: object, text: object, encoding: object, errors: object) -> None:
    if universal_newlines:
        raise ValueError("universal_newlines must be False")
    if bufsize != 0:
        raise ValueError("bufsize must be 0")
    if text:
        raise ValueError("text must be False")
    if encoding is not None:
        raise ValueError("encoding must be None")
    if errors is not None:
        raise ValueError("errors must be None")


async def _spawn(
    loop: Any,
    protocol_factory: Callable[[], Proto],
    what: str,
    args: Any,
    shell: bool,
    streams: dict[str, Any],
    options: dict[str, Any],
) -> tuple[asyncio.SubprocessTransport, Proto]:
    protocol = protocol_factory()
    if loop.get_debug():  # without the arguments, which may be secret
        logger.debug("%s %s", what, " ".join(f"{name}={_NAMES.get(end, end)}" for name, end in streams.items()))
    transport = await spawn(loop, protocol, args, shell=shell, bufsize=0, **streams, **options)
    if loop.get_debug():
        logger.info("%s: %r", what, transport)
    return transport, protocol
