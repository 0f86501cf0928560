"""How a TLS connection writes: records, system calls, water marks, memory."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc

import pytest

from tests.net.peers import Recorder, overriding, pattern, settle, started
from tests.tls.far import DATA, Far

BULK = 200_000_000  # bytes


async def count(far: Far, size: int, chunk: int = 1 << 20) -> int:
    """Read so many bytes of ciphertext or more, or up to the end, without decrypting; return how many came."""
    received = 0
    while received < size and (piece := await far.loop.sock_recv(far.sock, chunk)):
        received += len(piece)
    return received


@pytest.mark.asyncio_wrong("each write makes a record of its own")
@pytest.mark.parametrize("how", ["write", "writelines"])
async def test_small_writes_of_a_turn_share_a_record(secure, how):
    transport, _, far = await secure()
    await settle()
    if how == "write":
        for _ in range(100):
            transport.write(b"0123456789")
    else:
        transport.writelines([b"0123456789", b"", bytearray(b"0123456789")] * 50)
    before = len(far.records())
    assert await far.receive(1000) == b"0123456789" * 100
    records = far.records()[before:]
    assert [kind for kind, _ in records] == [DATA]
    assert 1000 < records[0][1] < 1100


async def test_large_writes_make_full_records(secure):
    transport, _, far = await secure()
    before = len(far.records())
    transport.write(bytes(5 * 16384))
    await far.receive(5 * 16384)
    assert len(far.records()[before:]) == 5


@pytest.mark.parametrize(
    "sizes", [[1, 16383, 1], [16384, 1], [16385], [40_000, 40_000, 3], [1] * 50 + [100_000] + [1] * 50]
)
async def test_pieces_of_every_size_stay_in_order(secure, sizes):
    transport, _, far = await secure()
    data = pattern(sum(sizes))
    position = 0
    for size in sizes:
        transport.write(data[position : position + size])
        position += size
    assert await far.receive(len(data)) == data


@pytest.mark.asyncio_wrong("the buffer itself is kept")
async def test_a_buffer_may_be_changed_after_write(secure):
    transport, _, far = await secure()
    for data in (bytearray(b"a" * 10), bytearray(b"b" * 300_000)):
        transport.write(data)
        expected = bytes(data)
        data[:] = bytes(len(data))
        assert await far.receive(len(expected)) == expected


@pytest.mark.asyncio_wrong("it takes whatever is written, and pauses late")
@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
async def test_flow_control_is_told_in_pairs(secure, size):
    transport, protocol, far = await secure()
    transport.set_write_buffer_limits(high=size)
    total = 12_000_000
    transport.write(pattern(total))
    assert await far.receive(total) == pattern(total)
    transport.write(b"x")
    await far.receive(1)
    await settle()
    told = [event for event in protocol.log if event in ("pause", "resume")]
    assert told == ["pause", "resume"] * (len(told) // 2)
    assert told
    assert transport.get_write_buffer_size() == 0


@pytest.mark.asyncio_wrong("what its transport below holds does not count")
async def test_what_the_transport_below_holds_counts(secure):
    transport, protocol, far = await secure()
    transport.set_write_buffer_limits(high=256, low=128)
    total = 0
    while not transport.get_write_buffer_size():
        transport.write(bytes(16384))
        total += 16384
    assert protocol.log[-1] == "pause"
    await far.receive(total)
    await protocol.reaches("resume")
    assert transport.get_write_buffer_size() == 0


@pytest.mark.asyncio_wrong("it takes whatever is written, and pauses late")
@pytest.mark.parametrize("size", range(104_000, 240_000, 8_000))
async def test_whoever_was_paused_is_resumed(secure, size):
    """However what is left is spread over this transport, the one below and the kernel."""
    transport, protocol, far = await secure(kind="unix")
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    transport.set_write_buffer_limits(high=100_000)
    transport.write(pattern(size))
    assert await far.receive(size) == pattern(size)
    await settle()
    assert protocol.log.count("pause") == protocol.log.count("resume")


async def test_limits(secure):
    transport, protocol, far = await secure()
    assert transport.get_write_buffer_limits() == (128 * 1024, 512 * 1024)
    transport.set_write_buffer_limits(high=100, low=10)
    assert transport.get_write_buffer_limits() == (10, 100)
    transport.set_write_buffer_limits()
    assert transport.get_write_buffer_limits() == (128 * 1024, 512 * 1024)
    with pytest.raises(ValueError, match="must be >="):
        transport.set_write_buffer_limits(high=1, low=2)


@pytest.mark.asyncio_wrong("it takes whatever is written, and pauses late")
@pytest.mark.parametrize("callback", ["pause_writing", "resume_writing", "connection_made"])
@pytest.mark.parametrize("size", [3, 1_000_000])
async def test_writing_from_a_callback(secure, callback, size):
    done = []

    def write(protocol):
        if not done:
            done.append(callback)
            protocol.transport.write(pattern(size))

    transport, protocol, far = await secure(overriding(Recorder, **{callback: write}))
    first = b"" if callback == "connection_made" else bytes(8_000_000)
    transport.write(first)
    assert await far.receive(len(first) + size) == first + pattern(size)
    assert done


async def test_writing_from_connection_lost(secure):
    transport, protocol, far = await secure(
        overriding(Recorder, connection_lost=lambda protocol: protocol.transport.write(b"dropped"))
    )
    transport.abort()
    assert await protocol.lost() is None


async def test_a_paused_reader_stops_the_peer(secure):
    transport, protocol, far = await secure()
    transport.pause_reading()
    assert not transport.is_reading()
    sending = asyncio.ensure_future(far.send(pattern(20_000_000)))
    await settle(20)
    assert protocol.log == ["made"]
    assert transport.get_read_buffer_size() <= 512 * 1024 if hasattr(transport, "get_read_buffer_size") else True
    transport.resume_reading()
    assert await protocol.receives(20_000_000) == pattern(20_000_000)
    await sending


async def test_pausing_in_every_delivery(loop, secure):
    def pause(protocol):
        protocol.transport.pause_reading()
        loop.call_soon(protocol.transport.resume_reading)

    transport, protocol, far = await secure(overriding(Recorder, data_received=pause))
    sending = asyncio.ensure_future(far.send(pattern(3_000_000)))
    assert await protocol.receives(3_000_000) == pattern(3_000_000)
    await sending


@pytest.mark.parametrize("chunk", [1 << 20, 20_000], ids=["fast", "slow"])
async def test_much_is_written_in_bounded_memory(loop, secure, chunk):
    """An application that honours flow control, with a reader that takes all, or a little at a time."""
    total = BULK if chunk > 20_000 else 20_000_000

    class Writer(Recorder):
        def __init__(self) -> None:
            super().__init__()
            self.may = asyncio.Event()
            self.may.set()

        def pause_writing(self) -> None:
            self.may.clear()

        def resume_writing(self) -> None:
            self.may.set()

    async def write() -> None:
        for _ in range(total // 100_000):
            transport.write(block)
            await protocol.may.wait()

    transport, protocol, far = await secure(Writer)
    block = bytes(100_000)
    gc.collect()
    tracemalloc.start()
    try:
        writing = asyncio.ensure_future(write())
        await count(far, total, chunk)
        await writing
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


@pytest.mark.asyncio_wrong("all of it is encrypted at once")
async def test_one_large_write_is_not_copied_whole(secure):
    transport, protocol, far = await secure()
    data = bytes(50_000_000)
    tracemalloc.start()
    try:
        transport.write(data)
        await count(far, len(data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


async def test_memory_returns_after_a_spike(secure):
    transport, protocol, far = await secure()
    tracemalloc.start()
    try:
        await settle()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            transport.write(bytes(20_000))
        await count(far, 20_000_000)
        await settle()
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert left < 100_000


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_sendfile(loop, secure, make_file, size):
    transport, protocol, far = await secure()
    transport.write(b"head")
    sending = asyncio.ensure_future(loop.sendfile(transport, make_file(size)))
    assert await far.receive(4 + size) == b"head" + pattern(size)
    assert await sending == size
    transport.write(b"tail")
    assert await far.receive(4) == b"tail"


async def test_sendfile_without_a_fallback(loop, secure, make_file):
    transport, protocol, far = await secure()
    with pytest.raises(RuntimeError):
        await loop.sendfile(transport, make_file(10), fallback=False)


@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.asyncio_wrong("the caller waits for ever")
async def test_sendfile_ends_with_its_connection(loop, secure, make_file, how):
    transport, protocol, far = await secure(ssl_shutdown_timeout=0.05)
    sending = await started(loop, transport, make_file(30_000_000))
    getattr(transport, how)()
    with pytest.raises(ConnectionError):
        await sending
    await protocol.lost()
