"""What can the loop do? An index of `asyncio.AbstractEventLoop`: each method stands where its name is bound."""

from __future__ import annotations

import asyncio
import warnings
import weakref

from epoque import _sub_interpreter
from epoque.core import asyncgens, exceptions, executors
from epoque.core.reactor import Reactor
from epoque.endpoints import files, names, pipes, process, sock, tcp, tls, udp, unix

__all__ = ["EventLoop"]


class EventLoop(Reactor, asyncio.AbstractEventLoop):
    """An event loop over epoll or kqueue. All of it is asyncio's interface; see the documentation of asyncio's loop."""

    # Without them each loop would have a dictionary from the start, to be looked into at each `loop.method`.
    __slots__ = (
        "_asyncgens",
        "_asyncgens_shutdown_called",
        "_default_executor",
        "_exception_handler",
        "_executor_shutdown_called",
        "_resolver",
    )

    # Seconds that a callback may take before debug mode reports it.
    slow_callback_duration = 0.1

    # Whether threads may outlive the interpreter; the end of a sub-interpreter would be that of the process.
    _daemons = not _sub_interpreter

    # Seconds; deadlines are nanoseconds.
    _clock_resolution = 1e-9

    def __init__(self) -> None:
        Reactor.__init__(self)
        self._exception_handler = None
        self._default_executor = None
        self._executor_shutdown_called = False
        self._resolver = None
        self._asyncgens = weakref.WeakSet()
        self._asyncgens_shutdown_called = False

    # Exceptions, executors and asynchronous generators.
    call_exception_handler = exceptions.call_exception_handler
    default_exception_handler = exceptions.default_exception_handler
    get_exception_handler = exceptions.get_exception_handler
    set_exception_handler = exceptions.set_exception_handler
    run_in_executor = executors.run_in_executor
    set_default_executor = executors.set_default_executor
    shutdown_default_executor = executors.shutdown_default_executor
    _check_default_executor = executors.check_default_executor
    _do_shutdown = executors.do_shutdown
    shutdown_asyncgens = asyncgens.shutdown_asyncgens
    _asyncgen_firstiter_hook = asyncgens.firstiter_hook
    _asyncgen_finalizer_hook = asyncgens.finalizer_hook

    # Names.
    getaddrinfo = names.getaddrinfo
    getnameinfo = names.getnameinfo
    _look_up = names.look_up

    # Connections and servers.
    create_connection = tcp.create_connection
    create_server = tcp.create_server
    connect_accepted_socket = tcp.connect_accepted_socket
    create_unix_connection = unix.create_unix_connection
    create_unix_server = unix.create_unix_server
    start_tls = tls.start_tls
    _make_socket_transport = tcp.make_socket_transport

    # Datagrams.
    create_datagram_endpoint = udp.create_datagram_endpoint

    # Pipes and child processes.
    connect_read_pipe = pipes.connect_read_pipe
    connect_write_pipe = pipes.connect_write_pipe
    subprocess_exec = process.subprocess_exec
    subprocess_shell = process.subprocess_shell

    # Files.
    sendfile = files.sendfile
    sock_sendfile = files.sock_sendfile
    _sendfile_native = files.sendfile_native
    _sock_sendfile_native = files.sock_sendfile_native

    # Bare sockets.
    sock_accept = sock.sock_accept
    sock_connect = sock.sock_connect
    sock_recv = sock.sock_recv
    sock_recv_into = sock.sock_recv_into
    sock_recvfrom = sock.sock_recvfrom
    sock_recvfrom_into = sock.sock_recvfrom_into
    sock_sendall = sock.sock_sendall
    sock_sendto = sock.sock_sendto

    def close(self) -> None:
        """Close the loop: drop what is scheduled, give descriptors back, let executors end without waiting for them.

        RuntimeError while it runs. Closing twice is harmless.
        """
        Reactor.close(self)
        names.close_resolver(self)
        executor, self._default_executor = self._default_executor, None
        self._executor_shutdown_called = True
        if executor is not None:
            executor.shutdown(wait=False)

    def _forked(self) -> None:
        # Threads do not follow into a child: pools that wait for them would wait for ever.
        Reactor._forked(self)
        self._resolver = None
        self._default_executor = None

    def __del__(self) -> None:
        if not self.is_closed():
            warnings.warn(f"unclosed event loop {self!r}", ResourceWarning, source=self, stacklevel=2)
            if not self.is_running():
                self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} running={self.is_running()} closed={self.is_closed()} debug={self.get_debug()}>"
