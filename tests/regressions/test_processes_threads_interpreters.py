"""Loops that are forked, written to by other threads, or run in a sub-interpreter."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from tests.core.idle import SPIN, cpu_share, sent_when_idle
from tests.loops import checked_script, exit_code, forked, on_library, run
from tests.net.peers import LIMIT, nonblocking_pair, recv_exactly, settle, waiting


async def test_what_another_thread_writes_while_the_loop_is_idle_leaves_at_once(loop, attach):
    transport, _, peer = await attach()
    idle = threading.Event()

    def write():
        idle.wait()
        transport.write(b"from a thread")
        return recv_exactly(peer, 13)

    loop.call_later(0.02, idle.set)
    peer.settimeout(LIMIT)
    assert await loop.run_in_executor(None, write) == b"from a thread"


@pytest.mark.asyncio_wrong("the child cannot close the loop, and its edits are the parent's")
async def test_a_child_that_ends_the_connections_it_inherited_leaves_its_parents_alone(loop, attach):
    transport, protocol, peer = await attach()

    def child():
        transport.pause_reading()
        transport.resume_reading()
        transport.close()
        transport.abort()
        loop.close()

    assert exit_code(forked(child)) == 0
    peer.send(b"question")
    assert await protocol.receives(8) == b"question"
    transport.write(b"answer")
    await settle()
    assert waiting(peer) == [b"answer"]
    assert protocol.log == ["made", "data"]


@pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), signal.SIGINT)", "loop.stop()"])
def test_what_was_written_before_a_fork_in_the_same_turn_is_sent_once(end):
    """However the child leaves the run that it has inherited."""
    code = f"""
    near, far = socket.socketpair()
    pipe_end, write_end = os.pipe()
    loop = new_loop()
    parent = os.getpid()
    stream, _ = run(loop, loop.create_connection(asyncio.Protocol, sock=near))
    pipe, _ = run(loop, loop.connect_write_pipe(asyncio.BaseProtocol, open(write_end, "wb", 0)))

    def write_and_fork():
        stream.write(b"once")
        pipe.write(b"once")
        child = os.fork()
        if not child:
            {end}
        else:
            os.waitpid(child, 0)
            loop.stop()

    try:
        loop.call_soon(write_and_fork)
        loop.run_forever()
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert (far.recv(100), os.read(pipe_end, 100)) == (b"once", b"once")
    os._exit(0)
    """
    checked_script(code)


@pytest.mark.epoque_only("on asyncio nothing waits for the end of the turn")
def test_what_was_written_before_a_fork_out_of_resume_writing_is_sent_once():
    """While the turn's output leaves, some of it has left and some has not."""
    code = """
    near, far = socket.socketpair()
    other_near, other_far = socket.socketpair()
    loop = new_loop()
    parent = os.getpid()

    class Forking(asyncio.Protocol):
        def resume_writing(self):
            if not os.fork():
                loop.call_soon(loop.stop)
            else:
                os.wait()
                loop.call_soon(loop.stop)

    first, _ = run(loop, loop.create_connection(Forking, sock=near))
    second, _ = run(loop, loop.create_connection(asyncio.Protocol, sock=other_near))

    def write():
        first.write(b"x")
        first.set_write_buffer_limits(high=0)
        second.write(b"once")

    try:
        loop.call_soon(write)
        loop.run_forever()
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert other_far.recv(100) == b"once"
    os._exit(0)
    """
    checked_script(code)


def test_what_was_written_over_tls_before_a_fork_in_the_same_turn_is_sent_once():
    """Sent twice, the second copy would break the connection."""
    code = """
    from tests.net.peers import Recorder, tls_contexts
    near, far = socket.socketpair()
    server, client = tls_contexts()
    loop = new_loop()
    parent = os.getpid()

    async def connect():
        return await asyncio.gather(
            loop.create_connection(asyncio.Protocol, sock=near, ssl=client, server_hostname="a.test"),
            loop.connect_accepted_socket(Recorder, far, ssl=server),
        )

    (transport, _), (_, recorder) = run(loop, connect())

    def write_and_fork():
        transport.write(b"once")
        if not os.fork():
            loop.stop()
        else:
            os.wait()
            loop.stop()

    try:
        loop.call_soon(write_and_fork)
        loop.run_forever()
    finally:
        if os.getpid() != parent:
            os._exit(0)
    transport.close()
    run(loop, recorder.lost())
    assert recorder.story == ["made", "data", "eof", "lost"], recorder.story
    assert recorder.data == b"once", recorder.data
    os._exit(0)
    """
    checked_script(code)


def test_processes_that_share_a_listener_serve_every_client(loop):
    code = """
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    children = []
    for _ in range(2):
        children.append(os.fork())
        if not children[-1]:
            async def serve():
                async def answer(reader, writer):
                    writer.write(await reader.readline())
                    writer.close()
                server = await asyncio.start_server(answer, sock=listener)
                await server.serve_forever()
            try:
                new_loop().run_until_complete(serve())
            finally:
                os._exit(1)
    try:
        for number in range(60):
            with socket.create_connection(listener.getsockname(), 10) as client:
                client.sendall(b"%d\\n" % number)
                assert client.makefile("rb").read() == b"%d\\n" % number
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    """
    checked_script(code)


@pytest.mark.skipif(on_library, reason="a sub-interpreter takes the interpreted form, and Python has no kqueue here")
@pytest.mark.parametrize("isolated", [True, False])
def test_a_loop_runs_in_a_sub_interpreter_and_in_the_main_one_afterwards(isolated):
    """Compiled, the modules can be loaded by one interpreter only; the others have to do with the sources."""
    if isolated and sys.version_info[:2] == (3, 12):
        pytest.skip("ctypes of this Python cannot be imported by an isolated interpreter")
    code = """
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    isolated = sys.argv[1] == "True"
    if sys.version_info >= (3, 13):
        inner = interpreters.create("isolated" if isolated else "legacy")
    else:
        inner = interpreters.create(isolated=isolated)
    try:
        failure = interpreters.run_string(inner, sys.argv[2], {"PATHS": "\\0".join(sys.path)})
        assert failure is None, failure
    finally:
        interpreters.destroy(inner)
    loop = new_loop()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    """
    inner = """if True:
    import asyncio, sys
    sys.path[:] = PATHS.split("\\0")
    from tests.loops import new_loop

    async def main():
        async def answer(reader, writer):
            writer.write(await reader.readline())
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"line\\n")
            assert await reader.read() == b"line\\n"
            writer.close()

    loop = new_loop()
    loop.run_until_complete(asyncio.wait_for(main(), 10))
    loop.close()
    """
    checked_script(code, str(isolated), inner)


@pytest.mark.asyncio_wrong("it spins")
def test_a_wake_up_descriptor_that_somebody_closes_neither_spins_nor_loses_a_signal(loop):
    hits = []
    loop.add_signal_handler(signal.SIGUSR1, hits.append, 1)
    loop.call_soon(lambda: os.close(signal.set_wakeup_fd(-1)))
    assert run(loop, cpu_share()) < SPIN
    with sent_when_idle(loop, signal.SIGUSR1):
        loop.call_later(LIMIT, loop.stop)
        loop.remove_signal_handler(signal.SIGUSR1)
        loop.add_signal_handler(signal.SIGUSR1, lambda: (hits.append(1), loop.stop()))
        loop.run_forever()
    assert hits == [1]


@pytest.mark.asyncio_wrong("the run cannot begin")
def test_a_wake_up_descriptor_that_is_closed_between_two_runs_is_replaced(loop):
    """Its number is a stranger's by then, who must not be written to."""
    hits = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: (hits.append(1), loop.stop()))
    number = signal.set_wakeup_fd(-1)
    near, far = nonblocking_pair()
    with near, far:
        os.dup2(near.fileno(), number)
        assert run(loop, cpu_share()) < SPIN
        with sent_when_idle(loop, signal.SIGUSR1):
            loop.run_forever()
        with pytest.raises(BlockingIOError):
            far.recv(1)
        os.close(number)
    assert hits == [1]


@pytest.mark.asyncio_wrong("the signal is lost with the byte")
def test_a_wake_up_descriptor_that_is_full_neither_spins_nor_loses_a_signal(loop):
    hits = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: (hits.append(1), loop.stop()))

    def fill():
        number = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(number, warn_on_full_buffer=False)
        if not fill.full:
            fill.full = True
            try:
                while True:
                    os.write(number, bytes(512))
            except BlockingIOError:
                os.kill(os.getpid(), signal.SIGUSR1)

    fill.full = False
    loop.call_soon(fill)
    loop.call_later(LIMIT, loop.stop)
    loop.run_forever()
    assert hits == [1]
    assert run(loop, cpu_share()) < SPIN
