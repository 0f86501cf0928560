"""Child processes that do not start, do not read, or end at the wrong moment."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import resource

import pytest

from tests.children.conftest import no_child_left
from tests.conftest import open_descriptors
from tests.loops import checked_script

__all__ = ["no_child_left"]

PIPE = asyncio.subprocess.PIPE
PIPES = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}


def raise_an_error():
    raise ValueError


FAILURES = {
    "no such program": (("/nonexistent/program",), {}, errno.ENOENT),
    "not executable": (("/dev/null",), {}, errno.EACCES),
    "no such directory": (("true",), {"cwd": "/nonexistent"}, errno.ENOENT),
    "preexec_fn": (("true",), {"preexec_fn": raise_an_error}, None),
    "no such user": (("true",), {"user": "no user of this name"}, None),
    "nonsense": (("true",), {"env": {1: 2}}, None),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_fifty_failed_starts_say_why_and_leave_nothing(loop, failure):
    args, options, number = FAILURES[failure]
    before = open_descriptors()
    for _ in range(50):
        with pytest.raises((OSError, asyncio.subprocess.subprocess.SubprocessError, KeyError, TypeError)) as caught:
            await asyncio.create_subprocess_exec(*args, **PIPES, **options)
        if number is not None:
            assert caught.value.errno == number
        del caught
    gc.collect()
    assert open_descriptors() == before


async def test_starts_without_spare_descriptors_fail_with_emfile_and_leave_nothing(loop):
    numbers = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_descriptors()) + 20, hard))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for spare in range(20):
            before = len(os.listdir("/proc/self/fd")) if spare else None
            try:
                child = await asyncio.create_subprocess_exec("true", **PIPES)
            except OSError as exc:
                numbers.append(exc.errno)
            else:
                await child.communicate()
                break
            gc.collect()
            assert before is None or len(os.listdir("/proc/self/fd")) == before
            os.close(taken.pop())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in taken:
            os.close(number)
    assert numbers
    assert set(numbers) == {errno.EMFILE}


async def test_a_child_can_open_its_own_streams_again(loop):
    """Which it could not if they were sockets."""
    child = await asyncio.create_subprocess_exec("sh", "-c", "cat /dev/stdin >/dev/stdout", stdin=PIPE, stdout=PIPE)
    assert await child.communicate(b"through") == (b"through", None)


async def test_input_closed_before_anything_is_written_is_an_end_of_file(loop):
    child = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    child.stdin.close()
    await child.stdin.wait_closed()
    assert await child.stdout.read() == b""
    assert await child.wait() == 0


async def test_a_child_killed_while_its_input_is_full_ends_whoever_waits(loop):
    child = await asyncio.create_subprocess_exec("sleep", "60", stdin=PIPE)
    child.stdin.write(bytes(1_000_000))
    draining = loop.create_task(child.stdin.drain())
    await asyncio.sleep(0)
    child.kill()
    assert await child.wait() == -9
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        await draining
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        await child.stdin.wait_closed()


async def test_a_child_that_closes_its_input_and_lives_on_is_heard_to_its_end(loop):
    command = "exec 0<&-; echo closed; read line <&3; echo alive"
    child = await asyncio.create_subprocess_exec("sh", "-c", f"exec 3<>/dev/null; {command}", stdin=PIPE, stdout=PIPE)
    assert await child.stdout.readline() == b"closed\n"
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        while True:
            child.stdin.write(b"nobody reads this")
            await child.stdin.drain()
            await asyncio.sleep(0)
    assert await child.stdout.read() == b"alive\n"
    assert await child.wait() == 0


def test_children_start_and_talk_in_a_process_without_standard_descriptors():
    code = """
    kept = os.dup2(1, 50, inheritable=False)
    for number in (0, 1, 2):
        os.close(number)
    async def main():
        pipe = asyncio.subprocess.PIPE
        command = "read line; echo out $line; echo err >&2"
        child = await asyncio.create_subprocess_exec("sh", "-c", command, stdin=pipe, stdout=pipe, stderr=pipe)
        return await child.communicate(b"in\\n")
    loop = new_loop()
    answer = run(loop, main(), 20)
    loop.close()
    os.write(kept, repr(answer).encode())
    """
    assert checked_script(code) == repr((b"out in\n", b"err\n"))
