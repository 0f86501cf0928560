"""How many system calls a connection costs, counted by strace in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from tests.loops import LOOP, ROOT, on_kqueue

pytestmark = [
    pytest.mark.epoque_only("asyncio promises nothing about system calls"),
    pytest.mark.skipif(on_kqueue, reason="counts the calls of epoll"),
    pytest.mark.skipif(not shutil.which("strace"), reason="counts system calls with strace, which is not installed"),
]

HEAD = """
import asyncio, os, socket, sys
from tests.loops import new_loop, run
from tests.net.peers import Echo, Recorder, recv_exactly, settle

loop = new_loop()

def mark(name):
    os.getpriority(os.PRIO_PROCESS, int(name == "begin"))

async def attach(kind=Recorder):
    near, far = socket.socketpair()
    return *await loop.create_connection(kind, sock=near), far
"""


def system_calls(code: str, tmp_path) -> Counter[str]:
    """System calls of the main thread between mark("begin") and mark("end")."""
    trace = tmp_path / "trace"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        ["strace", "-o", str(trace), sys.executable, "-c", HEAD + textwrap.dedent(code)],
        env=dict(os.environ, PYTHONPATH=path, EPOQUE_TEST_LOOP=LOOP),
        capture_output=True,
        text=True,
        timeout=50,
    )
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    names = re.findall(r"^(\w+)\(([^,)]*, [01])?", trace.read_text(), re.MULTILINE)
    calls = [name + (arguments[-2:] if name == "getpriority" else "") for name, arguments in names]
    return Counter(calls[calls.index("getpriority 1") + 1 : calls.index("getpriority 0")])


SENDING = ("write", "writev", "sendto", "sendmsg", "send")
ARMING = ("epoll_ctl", "epoll_create1")
SETTINGS = ("getsockopt", "setsockopt", "fcntl", "ioctl")


def test_five_small_writes_of_one_turn_are_one_system_call(tmp_path):
    calls = system_calls(
        """
        async def main():
            transport, _, far = await attach()
            mark("begin")
            for number in range(4):
                transport.write(b"%d" % number)
            transport.writelines([b"4", b"5"])
            await asyncio.sleep(0)
            mark("end")
            assert recv_exactly(far, 6) == b"012345"
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert sum(calls[name] for name in SENDING) == 1, calls


def test_a_request_and_its_answer_touch_no_registration_and_no_option(tmp_path):
    calls = system_calls(
        """
        async def main():
            transport, protocol, far = await attach(Echo)
            far.send(b"warm up")
            await protocol.receives(7)
            await asyncio.sleep(0)
            far.recv(100)
            mark("begin")
            for number in range(1, 21):
                far.send(b"request")
                await protocol.receives(7 + 7 * number)
                await asyncio.sleep(0)
                assert far.recv(100) == b"request"
            mark("end")
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert not sum(calls[name] for name in (*ARMING, *SETTINGS)), calls
    assert calls["recvfrom"] + calls["read"] + calls["recvmsg"] <= 20 * 3, calls


def test_pausing_and_resuming_in_one_turn_touches_no_registration(tmp_path):
    calls = system_calls(
        """
        async def main():
            transport, protocol, far = await attach()
            far.send(b"warm up")
            await protocol.receives(7)
            mark("begin")
            for number in range(20):
                transport.pause_reading()
                transport.resume_reading()
                await asyncio.sleep(0)
            mark("end")
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert not sum(calls[name] for name in ARMING), calls


def test_a_paused_reader_with_data_waiting_does_not_spin(tmp_path):
    calls = system_calls(
        """
        async def main():
            transport, protocol, far = await attach()
            transport.pause_reading()
            far.send(b"waiting")
            await settle()
            mark("begin")
            await asyncio.sleep(0.2)
            mark("end")
            assert protocol.log == ["made"]
            far.close()
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert calls["epoll_wait"] + calls["epoll_pwait"] + calls["epoll_pwait2"] <= 5, calls


@pytest.mark.parametrize("ending", ["far.close()", "far.shutdown(socket.SHUT_WR)", "reset(far)"])
def test_a_paused_reader_whose_peer_is_gone_does_not_spin(tmp_path, ending):
    calls = system_calls(
        f"""
        from tests.net.peers import reset, tcp_pair
        async def main():
            near, far = tcp_pair()
            transport, protocol = await loop.create_connection(Recorder, sock=near)
            transport.pause_reading()
            far.send(b"last words")
            {ending}
            await settle()
            mark("begin")
            await asyncio.sleep(0.2)
            mark("end")
            assert protocol.log == ["made"]
            far.close()
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert calls["epoll_wait"] + calls["epoll_pwait"] + calls["epoll_pwait2"] <= 5, calls


def test_a_half_open_connection_does_not_spin(tmp_path):
    calls = system_calls(
        """
        class KeepsOpen(Recorder):
            keep_open = True
        async def main():
            transport, protocol, far = await attach(KeepsOpen)
            far.close()
            await protocol.reaches("eof")
            await settle()
            mark("begin")
            await asyncio.sleep(0.2)
            mark("end")
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert calls["epoll_wait"] + calls["epoll_pwait"] + calls["epoll_pwait2"] <= 5, calls


def test_a_file_leaves_by_sendfile_right_behind_what_was_written(tmp_path):
    calls = system_calls(
        """
        import tempfile
        file = tempfile.TemporaryFile()
        file.write(b"x" * 10_000)
        file.flush()
        async def main():
            transport, _, far = await attach()
            transport.write(b"warm up")
            await settle()
            mark("begin")
            transport.write(b"head")
            await loop.sendfile(transport, file, 0, 10_000)
            mark("end")
            assert recv_exactly(far, 10_011) == b"warm uphead" + b"x" * 10_000
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert calls["sendfile"] + calls["sendfile64"] == 1, calls
    assert sum(calls[name] for name in SENDING) == 1, calls
    assert not sum(calls[name] for name in (*ARMING, *SETTINGS, "read", "pread64", "dup")), calls


def test_a_slow_peer_costs_one_registration_per_file(tmp_path):
    calls = system_calls(
        """
        import tempfile, threading
        size = 20_000_000
        file = tempfile.TemporaryFile()
        file.truncate(size)
        async def main():
            transport, _, far = await attach()
            peer = threading.Thread(target=recv_exactly, args=(far, size))
            await settle()
            mark("begin")
            task = asyncio.ensure_future(loop.sendfile(transport, file))
            await asyncio.sleep(0)
            peer.start()
            await task
            mark("end")
            peer.join()
            transport.abort()
            await settle()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert calls["sendfile"] + calls["sendfile64"] > 5, calls
    assert not sum(calls[name] for name in (*SENDING, "read", "pread64")), calls
    assert sum(calls[name] for name in ARMING) <= 3, calls


def test_coroutines_that_ask_and_answer_by_turns_change_no_registration(tmp_path):
    calls = system_calls(
        """
        async def main():
            near, far = socket.socketpair()
            near.setblocking(False)
            far.setblocking(False)
            async def answer():
                while data := await loop.sock_recv(far, 100):
                    await loop.sock_sendall(far, data)
            async def ask(times):
                for _ in range(times):
                    await loop.sock_sendall(near, b"request")
                    assert await loop.sock_recv(near, 100) == b"request"
            task = loop.create_task(answer())
            await ask(2)
            mark("begin")
            await ask(20)
            mark("end")
            near.close()
            await task
            far.close()
        run(loop, main())
        loop.close()
        """,
        tmp_path,
    )
    assert not calls["epoll_create1"], calls
    assert calls["epoll_ctl"] <= 45, calls  # one for each wait asks whether it is still the same file
    assert calls["epoll_wait"] <= 45, calls
