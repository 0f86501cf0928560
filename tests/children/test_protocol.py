"""subprocess_exec and subprocess_shell: what a protocol hears, in which order, and what the transport answers."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from tests.children.recorder import SLEEPER, Recorder, gated, python, wait_until_it_has_ended
from tests.net.peers import settle

DEVNULL = subprocess.DEVNULL


async def test_the_whole_story(loop):
    code = "import sys; sys.stdout.write(sys.stdin.read()); sys.stdout.flush(); sys.stderr.write('err'); sys.exit(3)"
    transport, protocol = await loop.subprocess_exec(Recorder, *python(code))
    assert protocol.log == ["made"]
    assert protocol.transport is transport
    stdin = transport.get_pipe_transport(0)
    stdin.write(b"out")
    stdin.close()
    assert await protocol.ends() == 3
    assert protocol.data == {1: b"out", 2: b"err"}
    assert protocol.losses == {0: None, 1: None, 2: None}
    assert protocol.log.count("exited") == protocol.log.count("lost") == 1
    assert protocol.log.index("data of stdout") < protocol.log.index("stdout lost")
    assert protocol.log[-1] == "lost"
    transport.close()


async def test_connection_made_comes_first_even_if_the_child_is_quick(loop):
    transport, protocol = await loop.subprocess_exec(Recorder, "true")
    assert await protocol.ends() == 0
    assert protocol.log[0] == "made"
    assert {"stdin lost", "stdout lost", "stderr lost", "exited"} < set(protocol.log)
    transport.close()


async def test_a_child_without_pipes(loop):
    transport, protocol = await loop.subprocess_exec(Recorder, "true", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    assert await protocol.ends() == 0
    assert protocol.log == ["made", "exited", "lost"]
    assert [transport.get_pipe_transport(fd) for fd in range(4)] == [None] * 4
    transport.close()


async def test_a_shell_command(loop):
    transport, protocol = await loop.subprocess_shell(Recorder, "echo one; echo two >&2; exit 7")
    assert await protocol.ends() == 7
    assert protocol.data == {1: b"one\n", 2: b"two\n"}
    transport.close()


async def test_stderr_joins_stdout(loop):
    transport, protocol = await loop.subprocess_shell(Recorder, "echo one; echo two >&2", stderr=subprocess.STDOUT)
    await protocol.ends()
    assert protocol.data == {1: b"one\ntwo\n", 2: b""}
    assert transport.get_pipe_transport(2) is None
    transport.close()


async def test_the_transport_knows_its_process(loop):
    transport, protocol = await loop.subprocess_exec(Recorder, *SLEEPER)
    popen = transport.get_extra_info("subprocess")
    assert isinstance(popen, subprocess.Popen)
    assert isinstance(transport, asyncio.SubprocessTransport)
    assert transport.get_pid() == popen.pid
    assert transport.get_returncode() is None
    assert transport.get_protocol() is protocol
    assert isinstance(transport.get_pipe_transport(0), asyncio.WriteTransport)
    assert isinstance(transport.get_pipe_transport(1), asyncio.ReadTransport)
    assert not transport.is_closing()
    assert f"pid={popen.pid} running" in repr(transport)
    transport.kill()
    assert await protocol.ends() == -signal.SIGKILL
    assert popen.returncode == -signal.SIGKILL
    assert "returncode=-9" in repr(transport)
    transport.close()
    assert transport.is_closing()


@pytest.mark.parametrize(("method", "signum"), [("terminate", signal.SIGTERM), ("kill", signal.SIGKILL)])
async def test_signals(loop, method, signum):
    transport, protocol = await loop.subprocess_exec(Recorder, *SLEEPER)
    getattr(transport, method)()
    assert await protocol.ends() == -signum
    with pytest.raises(ProcessLookupError):
        getattr(transport, method)()
    transport.close()


async def test_send_signal(loop):
    code = "import os, signal as s; s.signal(s.SIGUSR1, lambda *_: os._exit(5)); print(flush=True); s.pause()"
    transport, protocol = await loop.subprocess_exec(Recorder, *python(code))
    await protocol.reaches("data of stdout")
    with pytest.raises(OSError, match="Invalid argument"):
        transport.send_signal(12345)
    transport.send_signal(signal.SIGUSR1)
    assert await protocol.ends() == 5
    with pytest.raises(ProcessLookupError):
        transport.send_signal(signal.SIGUSR1)
    transport.close()


@pytest.mark.asyncio_wrong(
    "Popen's method reaps the child, and the return code is 255", when=sys.version_info < (3, 13)
)
async def test_signals_after_the_exit_that_nobody_has_noticed_yet(loop):
    transport, protocol, end = await gated(loop, "exit 6")
    end()
    wait_until_it_has_ended(transport.get_pid())
    transport.kill()
    transport.terminate()
    assert await protocol.ends() == 6
    transport.close()


async def test_close_kills_the_child(loop):
    transport, protocol = await loop.subprocess_exec(Recorder, *SLEEPER)
    transport.close()
    transport.close()
    assert await protocol.ends() == -signal.SIGKILL
    assert set(protocol.losses.values()) == {None}


@pytest.mark.asyncio_wrong("its close() reaps the child, and the return code is 255")
async def test_close_before_an_unnoticed_exit_keeps_the_return_code(loop):
    transport, protocol, end = await gated(loop, "exit 6")
    end()
    wait_until_it_has_ended(transport.get_pid())
    transport.close()
    assert await protocol.ends() == 6


@pytest.mark.parametrize("name", ["connection_made", "pipe_data_received", "process_exited", "connection_lost"])
async def test_a_protocol_that_raises_is_reported(loop, errors, name):
    def fail(self, *args):
        getattr(Recorder, name)(self, *args)
        raise ZeroDivisionError

    failing = type("Failing", (Recorder,), {name: fail})
    transport, protocol = await loop.subprocess_exec(failing, "echo", "hello")
    assert await protocol.ends() == 0
    await settle()
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError]
    transport.close()


async def test_write_flow_control(loop):
    code = "import sys; sys.stdin.buffer.read(1); print(flush=True); print(len(sys.stdin.buffer.read()))"
    transport, protocol = await loop.subprocess_exec(Recorder, *python(code))
    stdin = transport.get_pipe_transport(0)
    stdin.write(bytes(3_000_000))
    await protocol.reaches("pause")
    await protocol.reaches("resume")
    stdin.close()
    await protocol.ends()
    assert protocol.data[1] == b"\n2999999\n"
    transport.close()


async def test_stdin_that_nobody_reads_any_more(loop):
    transport, protocol = await loop.subprocess_shell(Recorder, "exec <&-; echo closed; sleep 60")
    stdin = transport.get_pipe_transport(0)
    await protocol.reaches("stdin lost")
    assert protocol.losses[0] is None
    assert stdin.is_closing()
    assert transport.get_returncode() is None
    transport.close()
    await protocol.ends()


async def test_a_full_stdin_when_the_child_dies(loop):
    transport, protocol = await loop.subprocess_exec(Recorder, *SLEEPER)
    transport.get_pipe_transport(0).write(bytes(1_000_000))
    await settle()
    transport.kill()
    await protocol.ends()
    assert isinstance(protocol.losses[0], BrokenPipeError)
    transport.close()


async def test_a_grandchild_that_keeps_the_pipes(loop):
    """The exit is told at once, the end of the connection when the grandchild is gone too."""
    transport, protocol = await loop.subprocess_shell(Recorder, "exec 3<&0; (read line <&3) & exit 4")
    await protocol.reaches("exited")
    assert transport.get_returncode() == 4
    await settle()
    assert "lost" not in protocol.log
    transport.close()
    assert await protocol.ends() == 4


async def test_debug_mode(loop, caplog):
    caplog.set_level("DEBUG", "asyncio")
    loop.set_debug(True)
    transport, protocol = await loop.subprocess_shell(Recorder, "exit 4")
    await protocol.ends()
    transport.close()
    text = caplog.text
    assert "run shell command 'exit 4' stdin=<pipe> stdout=<pipe> stderr=<pipe>" in text
    assert "exited with return code 4" in text
    transport, protocol = await loop.subprocess_exec(Recorder, "sleep", "60", stderr=DEVNULL)
    transport.close()
    await protocol.ends()
    assert "execute program 'sleep' stdin=<pipe> stdout=<pipe>" in caplog.text
    assert "Close running child process: kill" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"universal_newlines": True}, "universal_newlines must be False"),
        ({"bufsize": 1}, "bufsize must be 0"),
        ({"text": True}, "text must be False"),
        ({"encoding": "utf-8"}, "encoding must be None"),
        ({"errors": "strict"}, "errors must be None"),
    ],
)
async def test_keywords_for_text_are_refused(loop, options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        await loop.subprocess_exec(Recorder, "true", **options)
    with pytest.raises(ValueError, match=f"^{message}$"):
        await loop.subprocess_shell(Recorder, "true", **options)


async def test_shell_and_exec_are_told_apart(loop):
    with pytest.raises(ValueError, match="^shell must be False$"):
        await loop.subprocess_exec(Recorder, "true", shell=True)
    with pytest.raises(ValueError, match="^shell must be True$"):
        await loop.subprocess_shell(Recorder, "true", shell=False)
    with pytest.raises(ValueError, match="^cmd must be a string$"):
        await loop.subprocess_shell(Recorder, ["true"])
    with pytest.raises(TypeError):
        await loop.subprocess_exec(Recorder, "true", unknown=True)
