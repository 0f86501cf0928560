"""How do a child process and its pipes become one transport? `SubprocessTransport`.

A protocol hears of three things in the order in which they happen: what comes through the pipes and their ends, the
exit of the process, and, when all of that is over, ``connection_lost``. Nothing is told before ``connection_made``,
which waits for the pipes to be connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import warnings
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from epoque.transports.child import Child, sigchld_held_back, watch
from epoque.transports.pipe import make_elastic

if TYPE_CHECKING:
    from collections.abc import Callable

    from epoque.kernel.children import Sentinel

__all__ = ["SubprocessTransport", "spawn"]

# Seconds that wait() gives the pipes to end after the process, whose own ends are closed by then. Whatever takes longer
# is held open by another process, or not read from.
GRACE = 0.05


class SubprocessTransport(asyncio.SubprocessTransport):
    """asyncio's interface. Extra info: ``subprocess``, the Popen object."""

    def __init__(self, loop: Any, protocol: Any, popen: subprocess.Popen[bytes], sentinel: Sentinel | None) -> None:
        super().__init__({"subprocess": popen})
        self._closed = True  # nothing to be closed, should this fail
        self._loop = loop
        self._protocol = protocol
        self._proc: subprocess.Popen[bytes] | None = popen  # by this name programs reach for it
        self._pid = popen.pid
        self._returncode: int | None = None
        self._files = {fd: file for fd, file in enumerate((popen.stdin, popen.stdout, popen.stderr)) if file}
        self._pipes: dict[int, _Pipe | None] = dict.fromkeys(self._files)
        self._pending_calls: list[tuple[Any, ...]] | None = []  # before connection_made
        self._exit_waiters: list[asyncio.Future[int | None]] = []
        self._finished = False
        self._exit = loop.create_future()
        self._child: Child | None = Child(loop, popen, self._process_exited, sentinel)
        self._closed = False

    def __repr__(self) -> str:
        parts = [type(self).__name__]
        if self._closed:
            parts.append("closed")
        parts.append(f"pid={self._pid}")
        parts.append("running" if self._returncode is None else f"returncode={self._returncode}")
        for fd, name in enumerate(("stdin", "stdout", "stderr")):
            pipe = self._pipes.get(fd)
            if pipe is not None:
                parts.append(f"{name}={pipe.transport!r}")
        return f"<{' '.join(parts)}>"

    def get_protocol(self) -> Any:
        """The protocol, None after connection_lost."""
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        """Let another protocol hear what happens from now on."""
        self._protocol = protocol

    def is_closing(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def get_pid(self) -> int:
        """The process id."""
        return self._pid

    def get_returncode(self) -> int | None:
        """The exit code, negative for the number of the signal that ended the process; None while it runs."""
        return self._returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """The transport of stdin (0), stdout (1) or stderr (2), None for what is no pipe."""
        pipe = self._pipes.get(fd)
        return None if pipe is None else pipe.transport

    def send_signal(self, signal: int) -> None:
        """Send a signal to the process; to no other one, and to none after its exit.

        ProcessLookupError after connection_lost, OSError for what is no signal.
        """
        self._check_proc()
        if self._returncode is None:
            self._child.send_signal(signal)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes, and kill the process if it still runs. Closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        for pipe in self._pipes.values():
            if pipe is not None:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and now the pipe is too
                    pipe.transport.close()
        popen = self.get_extra_info("subprocess")
        if popen.returncode is not None or self._child is None or not self._child.is_ours():
            return
        if self._loop.get_debug():
            logger.warning("Close running child process: kill %r", self)
        with contextlib.suppress(PermissionError):  # it runs as somebody else
            popen.kill()
        if self._loop.is_closed():
            self._child.abandon()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"unclosed transport {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    async def _wait(self) -> int | None:
        """What `asyncio.subprocess.Process.wait` waits for: the exit, and the end of the pipes if that is near."""
        if self._returncode is not None:
            return self._returncode
        waiter = self._loop.create_future()
        self._exit_waiters.append(waiter)
        return await waiter

    async def _connect_pipes(self) -> None:
        """Give each pipe its transport; returns when connection_made and what is to follow it have been called."""
        for fd, file in self._files.items():
            connect = self._loop.connect_read_pipe if fd else self._loop.connect_write_pipe
            kind = _Output if fd else _Input
            transport, self._pipes[fd] = await connect(lambda kind=kind, fd=fd: kind(self, fd), file)
            if self.get_extra_info("subprocess").pipesize <= 0:
                make_elastic(transport)
        self._files.clear()
        calls, self._pending_calls = self._pending_calls, None
        self._loop.call_soon(self._protocol.connection_made, self)
        for call in calls or ():
            self._loop.call_soon(*call)
        connected = self._loop.create_future()
        self._loop.call_soon(_set_result, connected)
        await connected

    async def _discard(self) -> None:
        """After a failure of `_connect_pipes`: end everything."""
        self.close()
        for fd, file in self._files.items():
            if self._pipes[fd] is None:
                file.close()
        await self._exit

    def _check_proc(self) -> None:
        if self._child is None:
            raise ProcessLookupError

    def _call(self, callback: Callable[..., object], *args: Any) -> None:
        if self._pending_calls is None:
            self._loop.call_soon(callback, *args)
        else:
            self._pending_calls.append((callback, *args))

    def _pipe_data_received(self, fd: int, data: bytes) -> None:
        self._call(self._protocol.pipe_data_received, fd, data)

    def _pipe_connection_lost(self, fd: int, exc: BaseException | None) -> None:
        self._call(self._protocol.pipe_connection_lost, fd, exc)
        self._try_finish()

    def _process_exited(self, returncode: int) -> None:
        if self._loop.get_debug():
            logger.info("%r exited with return code %r", self, returncode)
        self._returncode = returncode
        _set_result(self._exit)
        self._call(self._protocol.process_exited)
        if not self._try_finish():
            self._loop.call_later(GRACE, self._wake)

    def _try_finish(self) -> bool:
        self._finished = self._returncode is not None and all(pipe and pipe.lost for pipe in self._pipes.values())
        if self._finished:
            self._call(self._call_connection_lost)
        return self._finished

    def _call_connection_lost(self) -> None:
        try:
            self._protocol.connection_lost(None)
        finally:
            self._wake()
            self._child = None
            self._proc = None
            self._protocol = None

    def _wake(self) -> None:
        waiters, self._exit_waiters = self._exit_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(self._returncode)


class _Pipe(asyncio.BaseProtocol):
    """The protocol of one pipe of the process."""

    transport: Any

    def __init__(self, process: SubprocessTransport, fd: int) -> None:
        self.process = process
        self.fd = fd
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = True
        self.process._pipe_connection_lost(self.fd, exc)


class _Input(_Pipe):
    def pause_writing(self) -> None:
        self.process._protocol.pause_writing()

    def resume_writing(self) -> None:
        self.process._protocol.resume_writing()


class _Output(_Pipe, asyncio.Protocol):
    def data_received(self, data: bytes) -> None:
        self.process._pipe_data_received(self.fd, data)


async def spawn(loop: Any, protocol: Any, args: Any, **options: Any) -> SubprocessTransport:
    """Start a process with `subprocess.Popen`; returns once the protocol has been told.

    If this fails or is cancelled, nothing is left: no descriptor, no process, no zombie.
    """
    popen = sentinel = None
    try:
        with sigchld_held_back():
            popen = subprocess.Popen(args, **options)
            sentinel = watch(popen.pid)
        transport = SubprocessTransport(loop, protocol, popen, sentinel)
    except BaseException:
        try:
            if popen is not None:
                with popen:
                    popen.kill()
        finally:
            if sentinel is not None:
                sentinel.close()
        raise
    if loop.get_debug():
        logger.debug("process %r created: pid %s", args if isinstance(args, (str, bytes)) else args[0], popen.pid)
    try:
        await transport._connect_pipes()
    except BaseException:
        await transport._discard()
        raise
    return transport


def _set_result(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
