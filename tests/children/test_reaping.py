"""How the exit of a child is noticed: by any loop in any thread, beside code that reaps what is not its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.children.recorder import SLEEPER, Recorder, gated, python, wait_until_it_has_ended
from tests.conftest import shut_down
from tests.loops import checked_script, exit_code, forked, new_loop, on_kqueue

DEVNULL = subprocess.DEVNULL


async def start(loop, *command):
    return await loop.subprocess_exec(Recorder, *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)


@pytest.mark.asyncio_wrong("the return code is 255")
async def test_the_popen_object_may_be_waited_for_as_well(loop):
    transport, protocol, end = await gated(loop, "exit 5")
    end()
    popen = transport.get_extra_info("subprocess")
    assert popen.wait() == 5
    assert await protocol.ends() == 5
    transport.close()


def _exit_info_is_kept() -> bool:
    """Does the kernel tell how a process ended that was reaped? By a pidfd from Linux 6.15 on, by kqueue always."""
    return on_kqueue or tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15)


@pytest.mark.epoque_only("asyncio reports 255")
@pytest.mark.parametrize(("command", "code"), [("exit 5", 5), ("kill -TERM $$", -signal.SIGTERM)])
async def test_a_child_that_somebody_else_has_reaped(loop, caplog, command, code):
    transport, protocol, end = await gated(loop, command)
    end()
    os.waitpid(transport.get_pid(), 0)
    known = _exit_info_is_kept()
    assert await protocol.ends() == (code if known else 255)
    assert ("exit status already read" in caplog.text) is not known
    assert transport.get_extra_info("subprocess").returncode == transport.get_returncode()
    transport.close()


@pytest.mark.asyncio_wrong("a child that is reaped early is an error, and one that is reaped late has return code 255")
async def test_sigchld_is_left_to_the_user(loop):
    """A handler of the user's that reaps everything."""
    reaped = []

    def reap(*_):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            reaped.append(pid)

    started = set()
    previous = signal.signal(signal.SIGCHLD, reap)
    try:
        for _ in range(50):
            transport, protocol = await start(loop, "sh", "-c", "exit 5")
            started.add(transport.get_pid())
            assert await protocol.ends() in ((5,) if _exit_info_is_kept() else (5, 255))
            transport.close()
        # Nearly all, each once: the kernel tells the loop's descriptor a moment before it sends the signal.
        assert reaped
        assert len(reaped) == len(started & set(reaped))
        for pid in started:
            with pytest.raises(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    finally:
        signal.signal(signal.SIGCHLD, previous)


@pytest.mark.epoque_only("asyncio does not see to it")
async def test_a_sigchld_handler_that_raises_while_a_child_starts_leaves_nothing(loop, monkeypatch):
    once = [ZeroDivisionError]

    def fail(*_):
        if once:
            raise once.pop()

    class Quick(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            signal.raise_signal(signal.SIGCHLD)

    monkeypatch.setattr(subprocess, "Popen", Quick)
    previous = signal.signal(signal.SIGCHLD, fail)
    try:
        with pytest.raises(ZeroDivisionError):
            await start(loop, *SLEEPER)
        assert signal.getsignal(signal.SIGCHLD) is fail
    finally:
        signal.signal(signal.SIGCHLD, previous)


async def test_children_and_the_loops_own_sigchld_handler(loop):
    hits = asyncio.Event()
    loop.add_signal_handler(signal.SIGCHLD, hits.set)
    try:
        transport, protocol = await start(loop, "sh", "-c", "exit 5")
        assert await protocol.ends() == 5
        await hits.wait()
        transport.close()
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)


async def test_children_of_others_are_left_alone(loop):
    with subprocess.Popen(["sh", "-c", "exit 9"]) as theirs:
        wait_until_it_has_ended(theirs.pid)
        transport, protocol = await start(loop, "sh", "-c", "exit 5")
        assert await protocol.ends() == 5
        transport.close()
        assert theirs.wait() == 9


@pytest.mark.epoque_only("asyncio signals the number")
async def test_a_signal_cannot_reach_another_process(loop, monkeypatch):
    """The child was reaped behind our back: its number, perhaps another process's by now, must not be used."""
    transport, protocol = await start(loop, *SLEEPER)
    popen, numbers = transport.get_extra_info("subprocess"), []
    os.kill(transport.get_pid(), signal.SIGTERM)
    os.waitpid(transport.get_pid(), 0)
    monkeypatch.setattr(os, "kill", lambda *args: numbers.append(args))
    transport.send_signal(signal.SIGTERM)
    popen.terminate()
    transport.close()
    assert numbers == []
    await protocol.ends()


def run_children(results, count):
    loop = new_loop()

    async def main():
        for number in range(count):
            options = {"stdout": asyncio.subprocess.PIPE, "stdin": asyncio.subprocess.PIPE}
            process = await asyncio.create_subprocess_shell(f"cat; exit {number}", **options)
            output, _ = await process.communicate(b"x" * 100_000)
            results.append((len(output), process.returncode))

    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(asyncio.wait_for(main(), 30))
    finally:
        shut_down(loop)
        asyncio.set_event_loop(None)


def test_loops_of_six_threads_start_children_at_once():
    results = [[] for _ in range(6)]
    threads = [threading.Thread(target=run_children, args=(result, 5)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert results == [[(100_000, number) for number in range(5)]] * 6


async def test_a_hundred_children_at_once(loop):
    made = await asyncio.gather(*(start(loop, "sh", "-c", f"exit {number}") for number in range(100)))
    assert [await protocol.ends() for _, protocol in made] == list(range(100))
    for transport, _ in made:
        transport.close()


# --- without pidfds


@pytest.fixture(params=["missing", "refused"])
def no_pidfd(request, monkeypatch):
    if request.param == "missing":
        monkeypatch.setattr("epoque.kernel.children._pidfd_open", None)
        monkeypatch.setattr("epoque.kernel.children._kqueue", None)
    else:

        def refuse(*args):
            raise PermissionError

        monkeypatch.setattr("epoque.kernel.children._pidfd_open", refuse)


@pytest.mark.epoque_only("asyncio decides once, which way it goes")
async def test_without_pidfds_a_thread_waits(loop, no_pidfd, monkeypatch):
    transport, protocol = await start(loop, "sh", "-c", "exit 5")
    assert await protocol.ends() == 5
    transport.close()
    transport, protocol = await start(loop, *SLEEPER)
    transport.terminate()
    assert await protocol.ends() == -signal.SIGTERM
    transport.close()
    transport, protocol = await start(loop, *SLEEPER)
    transport.close()
    assert await protocol.ends() == -signal.SIGKILL


@pytest.mark.epoque_only("asyncio decides once, which way it goes")
async def test_without_pidfds_a_child_that_somebody_else_has_reaped(loop, no_pidfd, caplog):
    transport, protocol = await start(loop, *SLEEPER)
    os.kill(transport.get_pid(), signal.SIGTERM)
    os.waitpid(transport.get_pid(), 0)
    assert await protocol.ends() == 255
    assert "will report returncode 255" in caplog.text
    transport.close()


# --- after the loop


@pytest.mark.asyncio_wrong("its thread reaps the child without telling Popen", when=sys.version_info < (3, 12))
def test_a_child_that_outlives_the_loop():
    """It goes on, and is reaped when its Popen object is."""
    output = checked_script("""
        import subprocess
        loop = new_loop()
        async def main():
            options = {"stdin": reader, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return await loop.subprocess_shell(asyncio.SubprocessProtocol, "read line; exit 4", **options)
        reader, writer = os.pipe()
        transport, _ = loop.run_until_complete(main())
        popen = transport.get_extra_info("subprocess")
        loop.close()
        os.kill(popen.pid, 0)
        os.close(writer)
        print(popen.wait())
        transport.close()
    """)
    assert output.split() == ["4"]


@pytest.mark.asyncio_wrong("its close() needs the loop")
def test_closing_after_the_loop_leaves_no_zombie():
    output = checked_script("""
        loop = new_loop()
        transport, _ = loop.run_until_complete(loop.subprocess_exec(asyncio.SubprocessProtocol, "sleep", "60"))
        before = len(os.listdir("/proc/self/fd"))
        loop.close()
        transport.close()
        print(transport.get_extra_info("subprocess").wait(10))
        print(len(os.listdir("/proc/self/fd")) < before)
    """)
    assert output.split() == ["-9", "True"]


async def test_a_fork_that_closes_the_transport_leaves_the_child_alone(loop):
    transport, protocol = await start(loop, *SLEEPER)
    assert exit_code(forked(transport.close)) == 0
    transport.terminate()
    assert await protocol.ends() == -signal.SIGTERM
    transport.close()


async def test_an_unclosed_transport_is_reported(loop):
    made = [await start(loop, "true")]
    await made[0][1].ends()
    with pytest.warns(ResourceWarning, match="unclosed transport"):
        made.clear()


async def test_an_immediate_exit_is_not_missed(loop):
    for _ in range(20):
        transport, protocol = await start(loop, "true")
        assert await protocol.ends() == 0
        transport.close()


async def test_a_child_that_stops_has_not_ended(loop):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    transport, protocol = await start(loop, *python(code))
    os.waitid(os.P_PID, transport.get_pid(), os.WSTOPPED | os.WNOWAIT)
    await asyncio.sleep(0.05)
    assert transport.get_returncode() is None
    transport.send_signal(signal.SIGCONT)
    assert await protocol.ends() == 0
    transport.close()
