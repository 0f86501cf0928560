"""connect_write_pipe: what can be written to, when the bytes leave, and how either side ends it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import socket
import tty

import pytest

from tests.loops import is_epoque
from tests.net.peers import Recorder, overriding, pattern, raiser, settle, turns

PIPE_SIZE = 1 << 16  # bytes that a pipe takes by default, pipe(7)


@pytest.fixture
def opened():
    """Closes at the end what a test enters."""
    with contextlib.ExitStack() as stack:
        yield stack


def as_file(file, mode, **options):
    return open(file, mode, 0, **options)


def a_pipe(opened, tmp_path):
    reader, writer = os.pipe()
    return as_file(writer, "wb"), opened.enter_context(as_file(reader, "rb"))


def a_fifo(opened, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = opened.enter_context(as_file(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb"))
    os.set_blocking(reader.fileno(), True)
    return as_file(os.open(path, os.O_WRONLY), "wb"), reader


def a_socket(opened, tmp_path):
    reader, writer = socket.socketpair()
    return writer, opened.enter_context(as_file(reader.detach(), "rb"))


def a_terminal(opened, tmp_path):
    master, slave = os.openpty()
    tty.setraw(slave)
    return as_file(slave, "wb"), opened.enter_context(as_file(master, "rb"))


KINDS = [a_pipe, a_fifo, a_socket]
every_kind = pytest.mark.parametrize("kind", KINDS)
terminal_too = pytest.mark.parametrize("kind", [*KINDS, a_terminal])


def read_exactly(reader, size):
    """Blocking: for a thread."""
    received = bytearray()
    while len(received) < size and (chunk := reader.read(size - len(received))):
        received += chunk
    return bytes(received)


@terminal_too
async def test_what_is_written_arrives(loop, opened, tmp_path, kind):
    writer, reader = kind(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(b"abc")
    transport.writelines([b"de", bytearray(b"f"), memoryview(b"gh")])
    assert await asyncio.to_thread(read_exactly, reader, 8) == b"abcdefgh"
    assert transport.get_write_buffer_size() == 0
    transport.close()
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]
    assert writer.closed if hasattr(writer, "closed") else writer.fileno() == -1


@every_kind
@pytest.mark.parametrize("end", ["close", "write_eof"])
async def test_all_that_was_written_before_the_end_arrives(loop, opened, tmp_path, kind, end):
    writer, reader = kind(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(pattern(1_000_000))
    getattr(transport, end)()
    assert transport.is_closing()
    assert await asyncio.to_thread(read_exactly, reader, 2_000_000) == pattern(1_000_000)
    assert await protocol.lost() is None
    assert protocol.log.count("lost") == 1


@every_kind
async def test_a_reader_that_goes_away_is_noticed_while_idle(loop, opened, tmp_path, kind):
    writer, reader = kind(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(b"abc")
    await settle()
    reader.close()
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]
    assert transport.is_closing()


@every_kind
async def test_a_reader_that_goes_away_before_all_is_written(loop, opened, tmp_path, kind):
    writer, reader = kind(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(bytes(1_000_000))
    await settle()
    assert transport.get_write_buffer_size() > 0
    reader.close()
    assert isinstance(await protocol.lost(), (BrokenPipeError, ConnectionResetError))
    assert protocol.log == ["made", "pause", "lost"]
    assert transport.get_write_buffer_size() == 0


async def test_a_reader_that_has_gone_already(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    reader.close()
    transport.write(b"abc")
    assert isinstance(await protocol.lost(), BrokenPipeError)


async def test_writes_of_one_turn_arrive_in_order(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    data = pattern(500_000)
    arriving = asyncio.create_task(asyncio.to_thread(read_exactly, reader, len(data)))
    position, size = 0, 1
    while position < len(data):
        transport.write(data[position : position + size])
        position, size = position + size, size * 3 % 7001 + 1
        if size % 5 == 0:
            await asyncio.sleep(0)
    assert await arriving == data
    transport.close()
    assert await protocol.lost() is None


@pytest.mark.epoque_only("asyncio writes each by itself")
async def test_writes_of_one_turn_leave_together(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    os.set_blocking(reader.fileno(), False)
    for _ in range(5):
        transport.write(b"abc")
    assert reader.read(100) is None
    await asyncio.sleep(0)
    assert reader.read(100) == b"abc" * 5
    transport.close()
    await protocol.lost()


@pytest.mark.parametrize("kind", ["datagrams", "packets"])
async def test_what_makes_a_message_of_each_write_gets_each_by_itself(loop, opened, kind):
    if kind == "packets":
        reader, fd = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
        opened.callback(os.close, reader)
        writer = as_file(fd, "wb")
    else:
        far, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        reader = opened.enter_context(far).fileno()
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(b"abc")
    transport.write(b"de")
    assert os.read(reader, 100) == b"abc"
    assert os.read(reader, 100) == b"de"
    transport.close()
    await protocol.lost()


async def test_a_buffer_changed_after_write_does_not_change_what_arrives(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    for size in (3, 200_000):
        data = bytearray(b"x" * size)
        transport.write(data)
        data[:] = b"y" * size
        assert await asyncio.to_thread(read_exactly, reader, size) == b"x" * size
    transport.close()
    await protocol.lost()


@pytest.mark.parametrize("data", ["text", None, 5, [b"a"]])
async def test_what_is_not_bytes_is_refused(loop, opened, tmp_path, data):
    writer, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    with pytest.raises(TypeError if is_epoque else AssertionError):
        transport.write(data)
    transport.close()
    assert await protocol.lost() is None


async def test_flow_control(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    assert transport.get_write_buffer_limits() == (PIPE_SIZE // 4, PIPE_SIZE)
    transport.set_write_buffer_limits(high=1000)
    assert transport.get_write_buffer_limits() == (250, 1000)
    transport.write(bytes(PIPE_SIZE))
    await settle()
    assert protocol.log == ["made"]
    transport.write(bytes(1001))
    await settle()
    assert protocol.log == ["made", "pause"]
    assert transport.get_write_buffer_size() == 1001
    await asyncio.to_thread(read_exactly, reader, PIPE_SIZE + 1001)
    await protocol.reaches("resume")
    assert transport.get_write_buffer_size() == 0
    with pytest.raises(ValueError, match="must be >= low"):
        transport.set_write_buffer_limits(high=1, low=2)
    transport.close()
    await protocol.lost()


async def test_abort_drops_what_is_not_written(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(bytes(1_000_000))
    transport.abort()
    assert transport.is_closing()
    assert await protocol.lost() is None
    assert len(await asyncio.to_thread(read_exactly, reader, 2_000_000)) == PIPE_SIZE


async def test_what_fits_was_written_before_an_abort_of_the_same_turn(loop, opened, tmp_path):
    writer, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(b"abc")
    transport.abort()
    assert await protocol.lost() is None
    assert await asyncio.to_thread(read_exactly, reader, 100) == b"abc"


async def test_abort_ends_a_close_that_waits(loop, opened, tmp_path):
    writer, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(bytes(1_000_000))
    transport.close()
    await settle()
    assert "lost" not in protocol.log
    transport.abort()
    assert await protocol.lost() is None


async def test_writing_on_and_on_after_the_end_is_logged(loop, opened, tmp_path, caplog):
    writer, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.close()
    for _ in range(8):
        transport.write(b"abc")
    assert await protocol.lost() is None
    assert {record.getMessage() for record in caplog.records} == {
        "pipe closed by peer or os.write(pipe, data) raised exception."
    }


async def test_a_transport_is_what_asyncio_calls_one(loop, opened, tmp_path):
    writer, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    assert isinstance(transport, asyncio.WriteTransport)
    assert transport.can_write_eof()
    assert transport.get_extra_info("pipe") is writer
    assert transport.get_extra_info("sockname", 5) == 5
    assert transport.get_protocol() is protocol
    assert f"fd={writer.fileno()}" in repr(transport)
    transport.close()
    transport.close()
    await settle()
    assert protocol.log == ["made", "lost"]
    assert "closed" in repr(transport)


async def test_a_regular_file_is_refused_and_stays_open(loop, tmp_path):
    with open(tmp_path / "file", "wb") as file:
        with pytest.raises(ValueError, match=r"^Pipe transport is only for pipes, sockets and character devices$"):
            await loop.connect_write_pipe(Recorder, file)
        assert not file.closed


async def test_a_device_that_cannot_be_watched(loop):
    transport, protocol = await loop.connect_write_pipe(Recorder, as_file(os.devnull, "wb"))
    transport.write(bytes(1_000_000))
    await settle()
    assert transport.get_write_buffer_size() == 0
    transport.close()
    assert await protocol.lost() is None
    assert protocol.log == ["made", "lost"]


async def test_a_device_that_is_full(loop):
    transport, protocol = await loop.connect_write_pipe(Recorder, as_file("/dev/full", "wb"))
    transport.write(b"abc")
    assert isinstance(await protocol.lost(), OSError)


@pytest.mark.asyncio_wrong("takes data for the end of the connection")
async def test_data_on_the_descriptor_of_a_writer_do_not_end_it(loop, opened):
    far, near = socket.socketpair()
    opened.enter_context(far)
    transport, protocol = await loop.connect_write_pipe(Recorder, near)
    far.send(b"never read")
    await settle()
    transport.write(b"abc")
    assert await asyncio.to_thread(far.recv, 100) == b"abc"
    assert protocol.log == ["made"]
    far.shutdown(socket.SHUT_WR)
    assert await protocol.lost() is None


@pytest.mark.parametrize("name", ["connection_made", "connection_lost", "pause_writing", "resume_writing"])
async def test_a_protocol_that_raises_is_reported(loop, opened, tmp_path, errors, name):
    writer, reader = a_pipe(opened, tmp_path)
    failing = overriding(Recorder, **{name: raiser(lambda: ZeroDivisionError("ours"))})
    transport, protocol = await loop.connect_write_pipe(failing, writer)
    transport.write(bytes(1_000_000))
    transport.close()
    await asyncio.to_thread(read_exactly, reader, 2_000_000)
    await protocol.reaches("lost")
    await settle()
    assert [str(context["exception"]) for context in errors] == ["ours"]
    assert protocol.log.count("lost") == 1


async def test_a_cancelled_call_leaves_nothing(loop, opened, tmp_path):
    writer, _ = a_pipe(opened, tmp_path)
    protocol = Recorder()
    task = loop.create_task(loop.connect_write_pipe(lambda: protocol, writer))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settle()
    assert protocol.log == ["made", "lost"]
    assert writer.closed


async def test_a_stream_writer_drains_into_a_pipe(loop, opened, tmp_path):
    pipe, reader = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    arriving = asyncio.create_task(asyncio.to_thread(read_exactly, reader, 3_000_000))
    for _ in range(30):
        writer.write(bytes(100_000))
        await writer.drain()
    writer.close()
    assert len(await arriving) == 3_000_000
    await settle()


# --- two transports on one descriptor


@pytest.mark.asyncio_wrong("the end of the writer unregisters the reader")
async def test_one_terminal_carries_two_transports(loop, opened):
    master, slave = os.openpty()
    tty.setraw(slave)
    opened.callback(os.close, slave)
    reading, readers = await loop.connect_read_pipe(Recorder, as_file(master, "rb"))
    writing, writers = await loop.connect_write_pipe(Recorder, as_file(master, "wb", closefd=False))
    writing.write(b"abc")
    assert await asyncio.to_thread(os.read, slave, 100) == b"abc"
    os.write(slave, b"def")
    assert await readers.receives(3) == b"def"
    writing.close()
    assert await writers.lost() is None
    os.write(slave, b"ghi")
    assert await readers.receives(6) == b"defghi"
    reading.close()
    assert await readers.lost() is None


@pytest.mark.asyncio_wrong("the writer's registration takes the place of the reader's")
@pytest.mark.parametrize("first", ["reading", "writing"])
async def test_one_socket_carries_two_transports(loop, opened, first):
    far, near = socket.socketpair()
    opened.enter_context(far)
    calls = [loop.connect_read_pipe, loop.connect_write_pipe]
    made = {}
    for call in calls if first == "reading" else calls[::-1]:
        made[call] = await call(Recorder, near)
    (reading, readers), (writing, writers) = (made[call] for call in calls)
    far.send(b"abc")
    assert await readers.receives(3) == b"abc"
    writing.write(b"def")
    assert await asyncio.to_thread(far.recv, 100) == b"def"
    await settle()
    assert writers.log == ["made"]
    reading.close()
    assert await readers.lost() is None
    writing.write(b"ghi")
    assert await asyncio.to_thread(far.recv, 100) == b"ghi"
    writing.close()
    assert await writers.lost() is None
    assert far.recv(100) == b""


@pytest.mark.epoque_only("asyncio lets a reader take the place of the transport's")
async def test_the_descriptor_of_a_transport_cannot_be_watched_besides(loop, opened, tmp_path):
    writer, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    with pytest.raises(RuntimeError, match="is used by transport"):
        loop.add_writer(writer, print)
    transport.close()
    await protocol.lost()
    assert not loop.remove_writer(1000)


async def test_an_idle_writer_costs_no_turns(loop, opened, tmp_path):
    """What the reader has not read yet, and room for more, are no events."""
    writer, _ = a_pipe(opened, tmp_path)
    transport, protocol = await loop.connect_write_pipe(Recorder, writer)
    transport.write(b"abc")
    await turns(2)
    before = os.times()
    await asyncio.sleep(0.2)
    assert os.times().user - before.user < 0.1
    transport.close()
    await protocol.lost()


def test_the_size_of_a_pipe_is_what_these_tests_take_it_for():
    reader, writer = os.pipe()
    try:
        assert fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ) == PIPE_SIZE
    finally:
        os.close(reader)
        os.close(writer)


def test_a_child_behind_a_terminal(loop):
    """As a program that drives another through pty.fork() would."""

    async def converse():
        pid, master = pty.fork()
        if pid == 0:
            os.execv("/bin/sh", ["sh", "-c", "stty -echo; read line; echo got $line"])
        reading, readers = await loop.connect_read_pipe(Recorder, as_file(master, "rb"))
        writing, writers = await loop.connect_write_pipe(Recorder, as_file(master, "wb", closefd=False))
        writing.write(b"it\n")
        await readers.lost()
        assert b"got it" in readers.data
        assert os.waitpid(pid, 0)[1] == 0
        writing.abort()
        await writers.lost()

    loop.run_until_complete(asyncio.wait_for(converse(), 10))
