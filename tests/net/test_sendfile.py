"""loop.sendfile() and loop.sock_sendfile(): what arrives, in which order, and what is left if it ends early."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl

import pytest
from aiohttp import ClientSession, web

from tests.net.peers import exactly, nonblocking_pair, pattern, received, settle, started, tcp_pair

SMALL = 10_000  # bytes: the kernel takes them at once
LARGE = 20_000_000  # more than the kernel takes at once
NEVER_ENDS = "the transport forgets that somebody waits for it"

KINDS = ["tcp", "unix"]


# --- the kernel sends


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, SMALL, LARGE])
async def test_a_file_arrives_whole(loop, attach, make_file, kind, size):
    transport, _, peer = await attach(kind=kind)
    file = make_file(size)
    arriving = loop.create_task(received(loop, peer))
    assert await loop.sendfile(transport, file, fallback=False) == size
    assert file.tell() == size
    transport.close()
    assert await arriving == pattern(size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("offset", "count", "sent"),
    [(0, 1, 1), (1000, 2000, 2000), (1000, None, SMALL - 1000), (0, SMALL, SMALL), (9000, 2000, 1000)],
)
async def test_a_part_of_a_file_arrives(loop, attach, make_file, kind, offset, count, sent):
    transport, _, peer = await attach(kind=kind)
    file = make_file(SMALL)
    assert await loop.sendfile(transport, file, offset, count, fallback=False) == sent
    assert file.tell() == offset + sent
    transport.close()
    assert await received(loop, peer) == pattern(SMALL)[offset : offset + sent]


@pytest.mark.asyncio_wrong(
    "releases before 2026 leave the position alone if nothing was sent",
    when="total_sent" in asyncio.SelectorEventLoop._sock_sendfile_update_filepos.__code__.co_varnames,
)
@pytest.mark.parametrize("offset", [SMALL, SMALL + 1, 1 << 40])
async def test_behind_the_end_of_the_file_there_is_nothing_to_send(loop, attach, make_file, offset):
    transport, _, peer = await attach()
    file = make_file(SMALL)
    assert await loop.sendfile(transport, file, offset, fallback=False) == 0
    assert file.tell() == offset
    transport.close()
    assert await received(loop, peer) == b""


@pytest.mark.parametrize("kind", ["transport", "socket"])
async def test_what_is_appended_meanwhile_is_sent_too(loop, attach, sockets, make_file, kind):
    file = make_file(LARGE)
    if kind == "transport":
        transport, _, peer = await attach()
        task = await started(loop, transport, file)
    else:
        near, peer = map(sockets.enter_context, nonblocking_pair())
        task = loop.create_task(loop.sock_sendfile(near, file, fallback=False))
        await settle()
    with open(file.name, "ab") as end:
        end.write(b"more")
    arriving = loop.create_task(exactly(loop, peer, LARGE + 4))
    assert await task == LARGE + 4 == file.tell()
    assert await arriving == pattern(LARGE) + b"more"


async def test_the_position_of_the_file_does_not_matter(loop, attach, make_file):
    transport, _, peer = await attach()
    file = make_file(SMALL)
    file.seek(5)
    assert await loop.sendfile(transport, file) == SMALL
    transport.close()
    assert await received(loop, peer) == pattern(SMALL)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [10, LARGE])
async def test_what_was_written_before_goes_first(loop, attach, make_file, kind, before):
    transport, _, peer = await attach(kind=kind)
    arriving = loop.create_task(received(loop, peer))
    transport.write(b"b" * before)
    transport.write(b"efore")
    assert await loop.sendfile(transport, make_file(SMALL)) == SMALL
    transport.write(b"after")
    assert await loop.sendfile(transport, make_file(1)) == 1
    transport.close()
    assert await arriving == b"b" * before + b"efore" + pattern(SMALL) + b"after" + pattern(1)


async def test_writes_are_refused_meanwhile(loop, attach, make_file):
    transport, protocol, peer = await attach()
    task = await started(loop, transport, make_file(LARGE))
    for data in (b"data", bytearray(b"d" * LARGE)):
        with pytest.raises(RuntimeError, match="^unable to write; sendfile is in progress$"):
            transport.write(data)
    assert await exactly(loop, peer, LARGE) == pattern(LARGE)
    assert await task == LARGE
    transport.write(b"again")
    assert await exactly(loop, peer, 5) == b"again"
    assert protocol.log == ["made"]


@pytest.mark.since(3, 13)
async def test_writelines_is_refused_meanwhile(loop, attach, make_file):
    transport, _, _ = await attach()
    task = await started(loop, transport, make_file(LARGE))
    with pytest.raises(RuntimeError, match="^unable to writelines; sendfile is in progress$"):
        transport.writelines([b"data"])
    task.cancel()


@pytest.mark.asyncio_wrong("a KeyError, and the first sendfile ends with one too")
async def test_a_second_sendfile_is_refused_meanwhile(loop, attach, make_file):
    transport, _, peer = await attach()
    task = await started(loop, transport, make_file(LARGE))
    with pytest.raises(RuntimeError, match="sendfile is in progress"):
        await loop.sendfile(transport, make_file(SMALL))
    assert await exactly(loop, peer, LARGE) == pattern(LARGE)
    assert await task == LARGE


async def test_nothing_is_read_meanwhile_and_nothing_lost(loop, attach, make_file):
    transport, protocol, peer = await attach()
    task = await started(loop, transport, make_file(LARGE))
    peer.send(b"hello")
    await settle()
    assert protocol.data == b""
    await exactly(loop, peer, LARGE)
    await task
    assert await protocol.receives(5) == b"hello"


async def test_a_peer_that_has_sent_eof_gets_the_whole_file(loop, attach, make_file):
    transport, protocol, peer = await attach()
    task = await started(loop, transport, make_file(LARGE))
    peer.shutdown(socket.SHUT_WR)
    await settle()
    assert await received(loop, peer) == pattern(LARGE)
    assert await task == LARGE
    await protocol.lost()


async def test_a_paused_reader_stays_paused(loop, attach, make_file):
    transport, protocol, peer = await attach()
    transport.pause_reading()
    await loop.sendfile(transport, make_file(SMALL))
    assert not transport.is_reading()
    peer.send(b"hello")
    await settle()
    assert protocol.data == b""
    transport.resume_reading()
    assert await protocol.receives(5) == b"hello"


@pytest.mark.asyncio_wrong("reading goes on after the file, or before its end")
@pytest.mark.parametrize("paused_at_last", [True, False])
async def test_pausing_and_resuming_meanwhile_count_from_the_end_on(loop, attach, make_file, paused_at_last):
    transport, protocol, peer = await attach()
    task = await started(loop, transport, make_file(LARGE))
    peer.send(b"hello")
    transport.pause_reading()
    if not paused_at_last:
        transport.resume_reading()
    await settle()
    assert protocol.data == b""
    await exactly(loop, peer, LARGE)
    await task
    await settle()
    assert protocol.data == (b"" if paused_at_last else b"hello")


@pytest.mark.asyncio_wrong("FIN cuts the file short")
async def test_eof_written_meanwhile_follows_the_file(loop, attach, make_file):
    transport, _, peer = await attach()
    task = await started(loop, transport, make_file(LARGE))
    transport.write_eof()
    assert await received(loop, peer) == pattern(LARGE)
    assert await task == LARGE
    with pytest.raises(RuntimeError, match="after write_eof"):
        transport.write(b"data")


# --- what ends it early


@pytest.mark.parametrize("kind", KINDS)
async def test_cancellation_leaves_the_transport_usable(loop, attach, make_file, kind):
    transport, protocol, peer = await attach(kind=kind)
    task = await started(loop, transport, make_file(LARGE))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    transport.write(b"end")
    transport.write_eof()
    got = await received(loop, peer)
    assert got.endswith(b"end")
    assert pattern(LARGE).startswith(got[:-3])
    peer.send(b"hello")
    assert await protocol.receives(5) == b"hello"


@pytest.mark.asyncio_wrong("the position stays where it was")
async def test_cancellation_leaves_the_file_behind_what_was_sent(loop, attach, make_file):
    transport, _, peer = await attach()
    file = make_file(LARGE)
    task = await started(loop, transport, file)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    transport.close()
    assert 0 < len(await received(loop, peer)) == file.tell() < LARGE


@pytest.mark.asyncio_wrong("the transport refuses writes ever after")
async def test_cancellation_before_earlier_data_has_left_sends_nothing_of_the_file(loop, attach, make_file):
    transport, _, peer = await attach()
    file = make_file(SMALL)
    transport.write(b"b" * LARGE)
    task = await started(loop, transport, file)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert file.tell() == 0
    transport.write(b"end")
    transport.close()
    assert await received(loop, peer) == b"b" * LARGE + b"end"


@pytest.mark.asyncio_wrong(NEVER_ENDS)
@pytest.mark.parametrize("ending", ["close", "abort"])
async def test_ending_the_connection_meanwhile_is_an_error(loop, attach, make_file, ending):
    transport, protocol, peer = await attach()
    file = make_file(LARGE)
    task = await started(loop, transport, file)
    getattr(transport, ending)()
    with pytest.raises(ConnectionError):
        await task
    assert await protocol.lost() is None
    assert 0 < len(await received(loop, peer)) == file.tell() < LARGE


@pytest.mark.asyncio_wrong(NEVER_ENDS)
@pytest.mark.parametrize("ending", ["close", "abort"])
async def test_ending_the_connection_while_earlier_data_leaves_is_an_error(loop, attach, make_file, ending):
    transport, protocol, peer = await attach()
    file = make_file(SMALL)
    transport.write(b"b" * LARGE)
    task = await started(loop, transport, file)
    getattr(transport, ending)()
    arriving = loop.create_task(received(loop, peer))
    with pytest.raises(ConnectionError):
        await task
    assert await protocol.lost() is None
    assert await arriving == b"b" * LARGE if ending == "close" else (b"b" * LARGE).startswith(await arriving)
    assert file.tell() == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_a_peer_that_goes_away_is_an_error(loop, attach, make_file, kind):
    transport, protocol, peer = await attach(kind=kind)
    file = make_file(LARGE)
    task = await started(loop, transport, file)
    await exactly(loop, peer, SMALL)
    peer.close()
    with pytest.raises(ConnectionError):
        await task
    assert SMALL <= file.tell() < LARGE
    await protocol.lost()


async def test_a_closing_transport_is_refused(loop, attach, make_file):
    transport, _, peer = await attach()
    transport.write(b"b" * LARGE)
    transport.close()
    with pytest.raises(RuntimeError, match="^Transport is closing$"):
        await loop.sendfile(transport, make_file(SMALL))
    assert await received(loop, peer) == b"b" * LARGE


async def test_a_transport_of_another_kind_is_refused(loop, make_file):
    class Other(asyncio.Transport):
        def is_closing(self):
            return False

    with pytest.raises(RuntimeError, match="^sendfile is not supported for transport <.*Other object at .*>$"):
        await loop.sendfile(Other(), make_file(SMALL))


# --- what is asked for

WRONG = [
    ({"count": 0}, ValueError, r"count must be a positive integer \(got 0\)"),
    ({"count": -1}, ValueError, r"count must be a positive integer \(got -1\)"),
    ({"count": 1.5}, TypeError, r"count must be a positive integer \(got 1.5\)"),
    ({"count": "1"}, TypeError, r"count must be a positive integer \(got '1'\)"),
    ({"offset": -1}, ValueError, r"offset must be a non-negative integer \(got -1\)"),
    ({"offset": 1.5}, TypeError, r"offset must be a non-negative integer \(got 1.5\)"),
    ({"offset": None}, TypeError, r"offset must be a non-negative integer \(got None\)"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
async def test_a_range_that_makes_no_sense_is_refused(loop, attach, sockets, make_file, arguments, error, message):
    transport, _, peer = await attach()
    near, far = map(sockets.enter_context, nonblocking_pair())
    file = make_file(SMALL)
    with pytest.raises(error, match=f"^{message}$"):
        await loop.sendfile(transport, file, **arguments)
    with pytest.raises(error, match=f"^{message}$"):
        await loop.sock_sendfile(near, file, **arguments)
    transport.write(b"usable")
    assert await exactly(loop, peer, 6) == b"usable"


async def test_a_text_file_is_refused(loop, attach, sockets, tmp_path):
    transport, _, _ = await attach()
    near, far = map(sockets.enter_context, nonblocking_pair())
    file = sockets.enter_context((tmp_path / "text").open("w+"))
    with pytest.raises(ValueError, match="^file should be opened in binary mode$"):
        await loop.sendfile(transport, file)
    with pytest.raises(ValueError, match="^file should be opened in binary mode$"):
        await loop.sock_sendfile(near, file)


# --- bare sockets


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
async def test_a_socket_sends_a_file(loop, sockets, make_file, size):
    near, far = map(sockets.enter_context, tcp_pair())
    near.setblocking(False)
    file = make_file(size)
    arriving = loop.create_task(received(loop, far))
    await loop.sock_sendall(near, b"before")
    assert await loop.sock_sendfile(near, file, fallback=False) == size
    assert file.tell() == size
    await loop.sock_sendall(near, b"after")
    near.close()
    assert await arriving == b"before" + pattern(size) + b"after"


@pytest.mark.parametrize("kind", ["kernel", "copy"])
@pytest.mark.parametrize(("offset", "count"), [(0, 5), (1000, 2000), (5_000_000, LARGE), (1000, None)])
async def test_a_socket_sends_a_part_of_a_file(loop, sockets, make_file, kind, offset, count):
    near, far = map(sockets.enter_context, nonblocking_pair())
    file = make_file(LARGE) if kind == "kernel" else io.BytesIO(pattern(LARGE))
    part = pattern(LARGE)[offset : offset + count if count else None]
    arriving = loop.create_task(received(loop, far))
    assert await loop.sock_sendfile(near, file, offset, count) == len(part)
    assert file.tell() == offset + len(part)
    near.close()
    assert await arriving == part


@pytest.mark.parametrize("kind", ["kernel", "copy"])
async def test_a_cancelled_socket_is_watched_no_more(loop, sockets, make_file, kind):
    near, far = map(sockets.enter_context, nonblocking_pair())
    task = loop.create_task(
        loop.sock_sendfile(near, make_file(LARGE) if kind == "kernel" else io.BytesIO(b"b" * LARGE))
    )
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not loop.remove_writer(near)


async def test_a_socket_whose_peer_goes_away_is_an_error(loop, sockets, make_file):
    near, far = map(sockets.enter_context, nonblocking_pair())
    task = loop.create_task(loop.sock_sendfile(near, make_file(LARGE)))
    await settle()
    far.close()
    with pytest.raises(ConnectionError):
        await task


async def test_other_sockets_are_refused(loop, attach, sockets, make_file):
    file = make_file(LARGE)
    datagram = sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    with pytest.raises(ValueError, match="^only SOCK_STREAM type sockets are supported$"):
        await loop.sock_sendfile(datagram, file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    wrapped = sockets.enter_context(context.wrap_socket(socket.socket(), server_hostname="a.name"))
    with pytest.raises(TypeError, match="Socket cannot be of type SSLSocket"):
        await loop.sock_sendfile(wrapped, file)
    transport, _, _ = await attach()
    with pytest.raises(RuntimeError, match="is used by transport"):
        await loop.sock_sendfile(transport.get_extra_info("socket")._sock, file)
    loop.set_debug(True)
    blocking = sockets.enter_context(socket.socket())
    with pytest.raises(ValueError, match="the socket must be non-blocking"):
        await loop.sock_sendfile(blocking, file)


# --- who uses it


async def test_aiohttp_serves_files_by_sendfile(loop, make_file, monkeypatch):
    sent = []
    sendfile = os.sendfile

    def count(out, source, offset, size):
        sent.append(sendfile(out, source, offset, size))
        return sent[-1]

    monkeypatch.setattr(os, "sendfile", count)
    path = make_file(LARGE).name
    app = web.Application()

    async def get(request):
        return web.FileResponse(path)

    app.router.add_get("/", get)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with ClientSession() as session:
        url = "http://{}:{}/".format(*runner.addresses[0])
        async with session.get(url) as response:
            assert await response.read() == pattern(LARGE)
        assert sum(sent) == LARGE
        async with session.get(url, headers={"Range": "bytes=1000-2999"}) as response:
            assert await response.read() == pattern(LARGE)[1000:3000]
    assert sum(sent) == LARGE + 2000
    await runner.cleanup()
