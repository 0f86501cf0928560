"""asyncio.create_subprocess_exec and _shell, communicate() and wait() upon the loop's transports."""

from __future__ import annotations

import asyncio
import fcntl
import signal

import pytest

from tests.children.recorder import SLEEPER, python
from tests.net.peers import pattern

PIPE = asyncio.subprocess.PIPE
MIB = 1 << 20


async def test_ten_megabytes_through_each_pipe(loop):
    code = (
        "import sys, threading; data = sys.stdin.buffer.read();"
        "thread = threading.Thread(target=sys.stderr.buffer.write, args=(data[::-1],)); thread.start();"
        "sys.stdout.buffer.write(data); thread.join(); sys.stderr.flush()"
    )
    process = await asyncio.create_subprocess_exec(*python(code), stdin=PIPE, stdout=PIPE, stderr=PIPE)
    output, errors = await process.communicate(pattern(10_000_000))
    assert process.returncode == 0
    assert output == pattern(10_000_000)
    assert errors == pattern(10_000_000)[::-1]


@pytest.mark.epoque_only("asyncio leaves all pipes as they are")
@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="pipes have one size here")
@pytest.mark.parametrize(
    ("options", "amount", "held"),
    [({}, 1000, 64), ({}, MIB, 128), ({"pipesize": 8192}, MIB, 8), ({"pipesize": 65536}, MIB, 64)],
)
async def test_pipes_that_were_full_hold_more_unless_the_caller_says_how_much(loop, options, amount, held):
    process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, **options)
    pipes = [process._transport.get_pipe_transport(fd).get_extra_info("pipe") for fd in (0, 1)]
    process.stdin.write(pattern(amount))
    assert await process.stdout.readexactly(amount) == pattern(amount)
    sizes = [fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) >> 10 for pipe in pipes]
    assert sizes[0] == held
    assert sizes[1] <= max(held, 64)  # the loop may have been faster than cat, whose pipe was never full then
    process.stdin.close()
    assert await process.wait() == 0


async def test_a_conversation_line_by_line(loop):
    process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    for number in range(100):
        process.stdin.write(b"%d\n" % number)
        await process.stdin.drain()
        assert await process.stdout.readline() == b"%d\n" % number
    process.stdin.close()
    await process.stdin.wait_closed()
    assert await process.stdout.read() == b""
    assert await process.wait() == 0


async def test_a_child_that_does_not_read_its_input(loop):
    for delay in (0, 0.02):
        process = await asyncio.create_subprocess_shell("exit 3", stdin=PIPE, stdout=PIPE)
        await asyncio.sleep(delay)
        output, _ = await process.communicate(bytes(500_000))
        assert (output, process.returncode) == (b"", 3)


async def test_wait_by_several(loop):
    process = await asyncio.create_subprocess_shell("read line; exit 4", stdin=PIPE)
    waiting = [asyncio.create_task(process.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    process.stdin.close()
    assert await asyncio.gather(*waiting[1:]) == [4, 4]
    assert await process.wait() == 4


async def test_wait_that_times_out(loop):
    process = await asyncio.create_subprocess_exec(*SLEEPER)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), 0.01)
    process.kill()
    assert await process.wait() == -signal.SIGKILL


@pytest.mark.asyncio_wrong("waits for the pipe, which another process holds")
async def test_wait_does_not_depend_on_who_else_has_the_pipes(loop):
    process = await asyncio.create_subprocess_shell("exec 3<&0; (read line <&3) & exit 4", stdin=PIPE, stdout=PIPE)
    assert await process.wait() == 4
    process.stdin.close()
    assert await process.stdout.read() == b""


async def test_wait_with_output_that_nobody_reads(loop):
    process = await asyncio.create_subprocess_exec("echo", "hello", stdout=PIPE)
    assert await process.wait() == 0
    assert await process.stdout.read() == b"hello\n"


async def test_reading_is_paused_when_nobody_reads(loop):
    process = await asyncio.create_subprocess_exec(
        *python("import sys; sys.stdout.write('x' * 3_000_000)"), stdout=PIPE, limit=1000
    )
    assert len(await process.stdout.readexactly(3_000_000)) == 3_000_000
    assert await process.wait() == 0


async def test_signals_of_a_process(loop):
    process = await asyncio.create_subprocess_exec(*SLEEPER)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == -signal.SIGTERM
    for method in (process.terminate, process.kill, lambda: process.send_signal(signal.SIGTERM)):
        with pytest.raises(ProcessLookupError):
            method()


async def test_a_task_that_is_cancelled_in_communicate(loop):
    process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    task = asyncio.create_task(process.communicate(bytes(10)))
    process._transport.get_pipe_transport(1).pause_reading()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    process._transport.get_pipe_transport(1).resume_reading()
    assert await process.wait() == 0
