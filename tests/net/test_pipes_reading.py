"""connect_read_pipe: what can be read from, in which order a protocol hears what, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import socket
import tty

import pytest

from tests.loops import exit_code, forked
from tests.net.peers import Recorder, overriding, pattern, raiser, settle, turns


@pytest.fixture
def opened():
    """Closes at the end what a test enters, or gives as a number."""
    with contextlib.ExitStack() as stack:
        yield stack


def as_file(file, mode):
    return open(file, mode, 0)


def a_pipe(opened, tmp_path):
    reader, writer = os.pipe()
    return as_file(reader, "rb"), opened.enter_context(as_file(writer, "wb"))


def a_fifo(opened, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = as_file(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    return reader, opened.enter_context(as_file(os.open(path, os.O_WRONLY), "wb"))


def a_socket(opened, tmp_path):
    reader, writer = socket.socketpair()
    return reader, opened.enter_context(as_file(writer.detach(), "wb"))


def a_terminal(opened, tmp_path):
    master, slave = os.openpty()
    tty.setraw(slave)
    return as_file(slave, "rb"), opened.enter_context(as_file(master, "wb"))


KINDS = [a_pipe, a_fifo, a_socket]
every_kind = pytest.mark.parametrize("kind", KINDS)
terminal_too = pytest.mark.parametrize("kind", [*KINDS, a_terminal])


@terminal_too
async def test_data_arrive(loop, opened, tmp_path, kind):
    reader, writer = kind(opened, tmp_path)
    transport, protocol = await loop.connect_read_pipe(Recorder, reader)
    assert protocol.transport is transport
    writer.write(b"abc")
    assert await protocol.receives(3) == b"abc"
    writer.write(b"def")
    assert await protocol.receives(6) == b"abcdef"
    assert protocol.story == ["made", "data"]
    transport.close()
    assert await protocol.lost() is None
    assert reader.closed if hasattr(reader, "closed") else reader.fileno() == -1


@every_kind
async def test_end_comes_after_all_data(loop, opened, tmp_path, kind):
    reader, writer = kind(opened, tmp_path)
    transport, protocol = await loop.connect_read_pipe(Recorder, reader)
    sending = asyncio.to_thread(lambda: (_write_all(writer, pattern(1_000_000)), writer.close()))
    await asyncio.gather(sending, protocol.lost())
    assert bytes(protocol.data) == pattern(1_000_000)
    assert protocol.story == ["made", "data", "eof", "lost"]
    assert protocol.lost_with == [None]
    assert transport.is_closing()


def _write_all(writer, data):
    view = memoryview(data)
    while view:
        view = view[writer.write(view) :]


async def test_a_protocol_cannot_keep_a_pipe_open_after_its_end(loop, opened, tmp_path):
    class KeepsOpen(Recorder):
        keep_open = True

    reader, writer = a_pipe(opened, tmp_path)
    _, protocol = await loop.connect_read_pipe(KeepsOpen, reader)
    writer.close()
    assert await protocol.lost() is None


async def test_a_terminal_hangs_up_with_an_error(loop, opened):
    master, slave = os.openpty()
    _, protocol = await loop.connect_read_pipe(Recorder, as_file(master, "rb"))
    os.write(slave, b"bye")
    assert await protocol.receives(3) == b"bye"
    os.close(slave)
    exc = await protocol.lost()
    assert isinstance(exc, OSError)
    assert exc.errno == errno.EIO
    assert protocol.story == ["made", "data", "lost"]


@pytest.mark.asyncio_wrong("epoll refuses such devices, and the error goes to the exception handler")
async def test_a_device_that_cannot_be_watched_is_read_all_the_same(loop):
    transport, protocol = await loop.connect_read_pipe(Recorder, as_file(os.devnull, "rb"))
    assert await protocol.lost() is None
    assert protocol.story == ["made", "eof", "lost"]
    transport, protocol = await loop.connect_read_pipe(Recorder, as_file("/dev/zero", "rb"))
    assert not any(await protocol.receives(300_000))
    transport.pause_reading()
    await turns(3)
    size = len(protocol.data)
    await turns(3)
    assert len(protocol.data) == size
    transport.resume_reading()
    await protocol.receives(size + 1)
    transport.close()
    assert await protocol.lost() is None


@pytest.mark.epoque_only("epoll refuses such devices")
def test_a_device_that_cannot_be_watched_survives_a_new_selector(loop):
    """A forked child makes one for all that its loop watches."""
    connecting = loop.connect_read_pipe(Recorder, as_file("/dev/zero", "rb"))
    transport, protocol = loop.run_until_complete(connecting)

    def child():
        size = len(protocol.data)
        loop.run_until_complete(protocol.receives(size + 1_000_000))
        assert "lost" not in protocol.log

    assert exit_code(forked(child)) == 0
    transport.close()
    assert loop.run_until_complete(protocol.lost()) is None


async def test_a_regular_file_is_refused_and_stays_open(loop, tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        with pytest.raises(ValueError, match=r"^Pipe transport is for pipes/sockets only\.$"):
            await loop.connect_read_pipe(Recorder, file)
        assert not file.closed
        os.fstat(file.fileno())


@pytest.mark.asyncio_wrong("a transport that was never opened warns that it is unclosed")
async def test_what_has_no_descriptor_is_refused(loop):
    with pytest.raises(io.UnsupportedOperation):
        await loop.connect_read_pipe(Recorder, io.BytesIO())


async def test_the_descriptor_becomes_non_blocking(loop, opened, tmp_path):
    reader, _ = a_pipe(opened, tmp_path)
    transport, _ = await loop.connect_read_pipe(Recorder, reader)
    assert not os.get_blocking(reader.fileno())
    transport.close()
    await settle()


async def test_a_transport_is_what_asyncio_calls_one(loop, opened, tmp_path):
    reader, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_read_pipe(Recorder, reader)
    assert isinstance(transport, asyncio.ReadTransport)
    assert not isinstance(transport, asyncio.WriteTransport)
    assert transport.get_extra_info("pipe") is reader
    assert transport.get_extra_info("socket") is None
    assert transport.get_extra_info("peername", "none") == "none"
    assert transport.get_protocol() is protocol
    assert f"fd={reader.fileno()}" in repr(transport)
    transport.close()
    await settle()
    assert "closed" in repr(transport)
    assert transport.get_extra_info("pipe") is reader


async def test_pausing_and_resuming(loop, opened, tmp_path):
    reader, writer = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_read_pipe(Recorder, reader)
    assert transport.is_reading()
    transport.pause_reading()
    transport.pause_reading()
    assert not transport.is_reading()
    writer.write(b"abc")
    writer.close()
    await settle()
    assert protocol.log == ["made"]
    transport.resume_reading()
    transport.resume_reading()
    assert transport.is_reading()
    assert await protocol.lost() is None
    assert protocol.data == b"abc"


async def test_pausing_in_connection_made(loop, opened, tmp_path):
    pausing = overriding(Recorder, connection_made=lambda self: self.transport.pause_reading())
    reader, writer = a_pipe(opened, tmp_path)
    writer.write(b"abc")
    transport, protocol = await loop.connect_read_pipe(pausing, reader)
    await settle()
    assert not protocol.data
    transport.resume_reading()
    assert await protocol.receives(3) == b"abc"
    transport.close()
    await settle()


@pytest.mark.parametrize("name", ["connection_made", "data_received", "connection_lost"])
async def test_closing_in_a_callback(loop, opened, tmp_path, name):
    closing = overriding(Recorder, **{name: lambda self: self.transport.close()})
    reader, writer = a_pipe(opened, tmp_path)
    writer.write(b"abc")
    transport, protocol = await loop.connect_read_pipe(closing, reader)
    if name == "connection_lost":
        await protocol.receives(3)
        transport.close()
    assert await protocol.lost() is None
    await settle()
    assert protocol.story == (["made", "lost"] if name == "connection_made" else ["made", "data", "lost"])


async def test_closing_twice_is_harmless(loop, opened, tmp_path):
    reader, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_read_pipe(Recorder, reader)
    transport.close()
    transport.close()
    await settle()
    transport.close()
    assert protocol.log == ["made", "lost"]


async def test_another_protocol_can_take_over(loop, opened, tmp_path):
    reader, writer = a_pipe(opened, tmp_path)
    transport, first = await loop.connect_read_pipe(Recorder, reader)
    second = Recorder()
    transport.set_protocol(second)
    assert transport.get_protocol() is second
    writer.write(b"abc")
    assert await second.receives(3) == b"abc"
    assert first.log == ["made"]
    transport.close()
    await settle()
    assert second.log == ["data", "lost"]


@pytest.mark.parametrize("name", ["connection_made", "data_received", "eof_received", "connection_lost"])
async def test_a_protocol_that_raises_is_reported(loop, opened, tmp_path, errors, name):
    reader, writer = a_pipe(opened, tmp_path)
    failing = overriding(Recorder, **{name: raiser(lambda: ZeroDivisionError("ours"))})
    writer.write(b"abc")
    writer.close()
    transport, protocol = await loop.connect_read_pipe(failing, reader)
    await protocol.reaches("lost")
    await settle()
    assert [str(context["exception"]) for context in errors] == ["ours"]
    assert protocol.log.count("lost") == 1
    assert transport.is_closing()


async def test_a_cancelled_call_leaves_nothing(loop, opened, tmp_path):
    reader, _ = a_pipe(opened, tmp_path)
    protocol = Recorder()
    task = loop.create_task(loop.connect_read_pipe(lambda: protocol, reader))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settle()
    assert protocol.log == ["made", "lost"]
    assert reader.closed


async def test_a_protocol_factory_that_raises_leaves_the_pipe_to_the_caller(loop, opened, tmp_path):
    reader, _ = a_pipe(opened, tmp_path)
    with reader, pytest.raises(ZeroDivisionError):
        await loop.connect_read_pipe(raiser(ZeroDivisionError), reader)


async def test_a_stream_reader_reads_from_a_pipe(loop, opened, tmp_path):
    reader, writer = a_pipe(opened, tmp_path)
    stream = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), reader)
    writer.write(b"one\ntwo\n")
    assert await stream.readline() == b"one\n"
    writer.close()
    assert await stream.read() == b"two\n"
    await settle()


def test_an_unclosed_transport_is_reported(loop, opened, tmp_path):
    reader, _ = a_pipe(opened, tmp_path)
    connected = list(loop.run_until_complete(loop.connect_read_pipe(asyncio.Protocol, reader)))
    connected[0].pause_reading()
    loop.close()
    with pytest.warns(ResourceWarning, match="unclosed transport"):
        connected.clear()
    assert reader.closed


@pytest.mark.parametrize("exc", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("name", ["data_received", "eof_received"])
def test_an_interrupt_leaves_the_loop_and_the_pipe_usable(loop, opened, tmp_path, exc, name):
    once = [exc]

    def interrupt(self, *_):
        if once:
            raise once.pop()

    reader, writer = a_pipe(opened, tmp_path)
    connecting = loop.connect_read_pipe(overriding(Recorder, **{name: interrupt}), reader)
    _, protocol = loop.run_until_complete(connecting)
    writer.write(b"abc")
    writer.close()
    with pytest.raises(exc):
        loop.run_until_complete(asyncio.sleep(5))
    loop.run_until_complete(protocol.lost())
    assert protocol.log[-1] == "lost"
