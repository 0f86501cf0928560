"""loop.sendfile() and loop.sock_sendfile() where the kernel cannot send the file: it is read and written."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.net.peers import (
    Recorder,
    exactly,
    nonblocking_pair,
    pattern,
    received,
    settle,
    tcp_pair,
    tls_contexts,
)

SMALL = 10_000  # bytes: the kernel takes them at once
LARGE = 20_000_000  # more than the kernel takes at once
TWICE = "a write after the connection has ended fails with an AttributeError"


async def stuck(loop, transport, file):
    """A copy that has begun and waits, while nothing is read: the peer takes no more."""
    loop.set_default_executor(ThreadPoolExecutor(1))
    task = loop.create_task(loop.sendfile(transport, file))
    while transport.get_write_buffer_size() <= transport.get_write_buffer_limits()[1]:
        await settle(1)
    await loop.run_in_executor(None, int)  # behind the last read
    await settle()
    assert not task.done()
    return task


@pytest.fixture
def refused(monkeypatch):
    """Let the kernel refuse every file."""

    def sendfile(*args):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "sendfile", sendfile)


async def without_fallback_nothing_is_sent(loop, sockets, attach, file, message):
    transport, _, peer = await attach()
    near, far = map(sockets.enter_context, nonblocking_pair())
    with pytest.raises(asyncio.SendfileNotAvailableError, match=f"^{message}$"):
        await loop.sendfile(transport, file, fallback=False)
    with pytest.raises(asyncio.SendfileNotAvailableError, match=f"^{message}$"):
        await loop.sock_sendfile(near, file, fallback=False)
    transport.write(b"usable")
    assert await exactly(loop, peer, 6) == b"usable"


async def test_a_kernel_that_refuses_is_an_error_without_fallback(loop, sockets, attach, make_file, refused):
    await without_fallback_nothing_is_sent(loop, sockets, attach, make_file(SMALL), "os.sendfile call failed")


async def test_a_file_without_descriptor_is_an_error_without_fallback(loop, sockets, attach):
    await without_fallback_nothing_is_sent(loop, sockets, attach, io.BytesIO(b"data"), "not a regular file")


async def test_a_system_without_sendfile_is_an_error_without_fallback(loop, sockets, attach, make_file, monkeypatch):
    monkeypatch.delattr(os, "sendfile")
    message = r"os.sendfile\(\) is not available"
    await without_fallback_nothing_is_sent(loop, sockets, attach, make_file(SMALL), message)


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
async def test_a_file_without_descriptor_is_copied(loop, attach, size):
    transport, protocol, peer = await attach()
    file = io.BytesIO(pattern(size))
    arriving = loop.create_task(received(loop, peer))
    transport.write(b"before")
    assert await loop.sendfile(transport, file) == size
    assert file.tell() == size
    assert transport.get_protocol() is protocol
    transport.write(b"after")
    transport.close()
    assert await arriving == b"before" + pattern(size) + b"after"


async def test_where_the_kernel_refuses_a_part_is_copied(loop, attach, make_file, refused):
    transport, _, peer = await attach()
    file = make_file(SMALL)
    assert await loop.sendfile(transport, file, 1000, 2000) == 2000
    assert file.tell() == 3000
    transport.close()
    assert await received(loop, peer) == pattern(SMALL)[1000:3000]


@pytest.mark.asyncio_wrong("the protocol is told to resume what it was never told to pause")
async def test_a_protocol_hears_of_the_water_marks_once_the_file_is_copied(loop, attach):
    transport, protocol, peer = await attach()
    assert await loop.sendfile(transport, io.BytesIO(pattern(LARGE)[: 1 << 18]), fallback=True) == 1 << 18
    transport.write(b"b" * LARGE)
    assert protocol.log == ["made", "pause"]
    await exactly(loop, peer, (1 << 18) + LARGE)
    await protocol.reaches("resume")
    transport.write(b"b" * LARGE)
    assert protocol.log == ["made", "pause", "resume", "pause"]
    task = loop.create_task(loop.sendfile(transport, io.BytesIO(b"file")))
    await settle()
    assert await exactly(loop, peer, LARGE + 4) == b"b" * LARGE + b"file"
    assert await task == 4
    assert protocol.log == ["made", "pause", "resume", "pause", "resume"]


@pytest.mark.asyncio_wrong("a block that waits in the transport is overwritten by the next one")
async def test_a_cancelled_copy_leaves_the_transport_usable(loop, attach):
    transport, protocol, peer = await attach()
    file = io.BytesIO(pattern(LARGE))
    task = await stuck(loop, transport, file)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.get_protocol() is protocol
    transport.write(b"end")
    transport.write_eof()
    got = await received(loop, peer)
    assert got == pattern(LARGE)[: file.tell()] + b"end"
    peer.send(b"hello")
    assert await protocol.receives(5) == b"hello"


@pytest.mark.asyncio_wrong("the position is behind what was read")
async def test_a_copy_cancelled_at_once_has_not_touched_the_file(loop, attach):
    transport, _, _ = await attach()
    began, go_on = threading.Event(), threading.Event()

    class File(io.BytesIO):
        def readinto(self, buffer):
            count = super().readinto(buffer)
            began.set()
            assert go_on.wait(10)
            return count

    file = File(pattern(SMALL))
    task = loop.create_task(loop.sendfile(transport, file, 1000))
    await loop.run_in_executor(None, began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert file.tell() == 1000


@pytest.mark.parametrize(
    "ending", ["close of the peer", pytest.param("close", marks=pytest.mark.asyncio_wrong(TWICE)), "abort"]
)
async def test_a_copy_whose_connection_ends_is_an_error(loop, attach, ending):
    transport, protocol, peer = await attach()
    file = io.BytesIO(pattern(LARGE))
    task = await stuck(loop, transport, file)
    if ending == "close of the peer":
        peer.close()
    else:
        getattr(transport, ending)()
        if ending == "close":
            await received(loop, peer)
    with pytest.raises(ConnectionError):
        await task
    await protocol.lost()
    assert protocol.log.count("lost") == 1
    assert 0 < file.tell() < LARGE


# --- over TLS


async def secured(loop):
    """Two TLS transports with their protocols, connected with each other."""
    near, far = tcp_pair()
    server, client = tls_contexts()
    (one, _), (other, there) = await asyncio.gather(
        loop.create_connection(Recorder, sock=near, ssl=client, server_hostname=""),
        loop.connect_accepted_socket(Recorder, far, ssl=server),
    )
    return one, other, there


@pytest.mark.parametrize(("offset", "count"), [(0, None), (1000, 2000)])
async def test_a_file_goes_over_tls(loop, make_file, offset, count):
    transport, _, there = await secured(loop)
    file = make_file(LARGE)
    part = pattern(LARGE)[offset : offset + count if count else None]
    transport.write(b"before")
    assert await loop.sendfile(transport, file, offset, count) == len(part)
    assert file.tell() == offset + len(part)
    transport.write(b"after")
    transport.close()
    await there.lost()
    assert there.data == b"before" + part + b"after"


async def test_over_tls_nothing_is_sent_without_fallback(loop, make_file):
    transport, _, there = await secured(loop)
    with pytest.raises(RuntimeError, match="^fallback is disabled and native sendfile is not supported for transport"):
        await loop.sendfile(transport, make_file(SMALL), fallback=False)
    transport.close()
    await there.lost()
    assert there.data == b""


@pytest.mark.asyncio_wrong("the last block is sent, but not counted", when=sys.version_info >= (3, 14))
async def test_cancellation_leaves_a_tls_transport_usable(loop, make_file):
    transport, other, there = await secured(loop)
    protocol = transport.get_protocol()
    other.pause_reading()
    file = make_file(LARGE)
    task = await stuck(loop, transport, file)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.get_protocol() is protocol
    other.resume_reading()
    transport.write(b"end")
    await there.until(lambda: there.data.endswith(b"end"))
    assert there.data == pattern(LARGE)[: file.tell()] + b"end"
    other.write(b"hello")
    assert await protocol.receives(5) == b"hello"
    transport.close()
    await there.lost()
