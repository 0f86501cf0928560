"""Starting children: Popen's keywords, what a child inherits, and what is left when it fails or is cancelled."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.children.recorder import SLEEPER, Recorder, python
from tests.loops import checked_script
from tests.net.peers import raiser

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL


async def output_of(command, **options):
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, **options)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().strip()


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        ({"cwd": "/"}, "os.getcwd()", "/"),
        ({"env": {"EPOQUE_CHILD": "yes"}}, "os.environ['EPOQUE_CHILD']", "yes"),
        ({"start_new_session": True}, "os.getsid(0) == os.getpid()", "True"),
        ({"process_group": 0}, "os.getpgid(0) == os.getpid()", "True"),
        ({"umask": 0o27}, "os.umask(0)", str(0o27)),
        ({"pipesize": 1 << 20}, "__import__('fcntl').fcntl(1, 1032)", str(1 << 20)),
        ({"preexec_fn": lambda: os.nice(3)}, f"os.nice(0) - {os.nice(0)}", "3"),
        ({"executable": "/bin/echo"}, "", "-I -S -c import os; print()"),
        ({"close_fds": False}, "len(os.listdir('/proc/self/fd')) > 3", "True"),
        ({"stdin": DEVNULL}, "os.readlink('/proc/self/fd/0')", "/dev/null"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_keywords_of_popen(loop, options, code, expected):
    assert await output_of(python(f"import os; print({code})"), **options) == expected


async def test_passed_descriptors_reach_the_child_and_no_others(loop):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        code = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))"
        fds = await output_of(python(code), pass_fds=[writer], stdin=DEVNULL)
        assert set(eval(fds)) - {3} == {0, 1, 2, writer} - {3}
    finally:
        os.close(reader)
        os.close(writer)


async def test_a_child_starts_with_a_clean_signal_mask_and_default_actions(loop):
    loop.add_signal_handler(signal.SIGUSR1, print)
    loop.add_signal_handler(signal.SIGTERM, print)
    await asyncio.sleep(0)
    code = (
        "import signal as s; print(s.pthread_sigmask(s.SIG_BLOCK, []),"
        "[s.getsignal(n) for n in (s.SIGUSR1, s.SIGTERM, s.SIGPIPE, s.SIGCHLD)] == [s.SIG_DFL] * 4)"
    )
    # Python itself ignores SIGPIPE and SIGXFSZ, so the shell is asked. What was ignored before us stays so.
    output = await output_of(("sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"))
    blocked, ignored = (int(line.split()[1], 16) for line in output.splitlines())
    status = Path("/proc/self/status").read_text()
    [before] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn")]
    pythons = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert (blocked, ignored) == (0, before & ~pythons)
    assert await output_of(python(code.replace("s.SIGPIPE, ", "").replace("* 4", "* 3"))) == "set() True"
    loop.remove_signal_handler(signal.SIGUSR1)
    loop.remove_signal_handler(signal.SIGTERM)


@pytest.mark.parametrize(
    ("command", "number"),
    [(("/no/such/program",), errno.ENOENT), (("/etc/passwd",), errno.EACCES), (("/",), errno.EACCES)],
)
async def test_what_cannot_be_started_says_why_and_leaves_nothing(loop, command, number):
    for _ in range(50):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            await loop.subprocess_exec(Recorder, *command)
        assert caught.value.errno == number
    with pytest.raises(FileNotFoundError):
        await loop.subprocess_exec(Recorder, "true", cwd="/no/such/directory")


async def test_preexec_fn_that_raises(loop):
    with pytest.raises(subprocess.SubprocessError):
        await loop.subprocess_exec(Recorder, "true", preexec_fn=raiser(ZeroDivisionError))


async def test_a_protocol_factory_that_raises_starts_nothing(loop):
    with pytest.raises(ZeroDivisionError):
        await loop.subprocess_exec(raiser(ZeroDivisionError), "true")


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancelled_start_leaves_nothing(loop, turns):
    """No process, no zombie (the fixture looks for those), no descriptor, at whichever point it is cancelled."""
    task = loop.create_task(loop.subprocess_exec(Recorder, *SLEEPER))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        transport, protocol = await task
    except asyncio.CancelledError:
        return
    transport.close()
    assert await protocol.ends() == -signal.SIGKILL


@pytest.mark.epoque_only("asyncio connects the pipes in a task of its own")
@pytest.mark.parametrize("number", [0, 1, 2])
async def test_a_pipe_that_cannot_be_connected_leaves_nothing(loop, monkeypatch, number):
    calls = []

    def failing(connect):
        async def call(*args):
            calls.append(connect)
            if len(calls) > number:
                raise ZeroDivisionError
            return await connect(*args)

        return call

    loop.connect_read_pipe = failing(loop.connect_read_pipe)
    loop.connect_write_pipe = failing(loop.connect_write_pipe)
    with pytest.raises(ZeroDivisionError):
        await loop.subprocess_exec(Recorder, *SLEEPER)
    del loop.connect_read_pipe, loop.connect_write_pipe


@pytest.mark.epoque_only("how a child is watched is the loop's own business")
async def test_a_child_that_cannot_be_watched_leaves_nothing(loop, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(loop, "add_reader", raiser(ZeroDivisionError))
        await loop.subprocess_exec(Recorder, *SLEEPER)


async def test_at_fork_hooks_do_not_run(loop):
    output = checked_script("""
        os.register_at_fork(before=lambda: print("a hook ran"))
        loop = new_loop()
        async def main():
            process = await asyncio.create_subprocess_exec("true")
            print(await process.wait())
        run(loop, main())
        loop.close()
    """)
    assert output.split() == ["0"]
