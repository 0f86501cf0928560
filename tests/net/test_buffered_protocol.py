"""BufferedProtocol: received bytes land in the protocol's own buffer; and protocols exchanged in mid-stream."""

from __future__ import annotations

import array
import asyncio
import mmap

import pytest

from tests.net.peers import BufferedRecorder, Echo, Recorder, overriding, pattern, recv_all, settle

GET_BUFFER_FAILED = "Fatal error: protocol.get_buffer() call failed."


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
async def test_buffers_of_any_size_receive_everything(attach, size):
    _, protocol, peer = await attach(lambda: BufferedRecorder(size))
    data = pattern(5000)
    peer.sendall(data)
    assert await protocol.receives(5000) == data
    assert all(isinstance(hint, int) for hint in protocol.hints)


@pytest.mark.parametrize(
    "make",
    [bytearray, lambda n: memoryview(bytearray(n)), lambda n: array.array("B", bytes(n)), lambda n: mmap.mmap(-1, n)],
)
async def test_every_writable_buffer_will_do(attach, make):
    class Various(BufferedRecorder):
        def __init__(self):
            super().__init__()
            self.buffer = make(100)

    _, protocol, peer = await attach(Various)
    peer.send(b"hello")
    assert await protocol.receives(5) == b"hello"
    peer.send(b"again")
    assert await protocol.receives(10) == b"helloagain"


async def test_never_more_is_written_than_the_buffer_holds(attach):
    store = bytearray(b"." * 30)

    class Window(BufferedRecorder):
        def get_buffer(self, sizehint):
            self.buffer = memoryview(store)[10:20]
            return self.buffer

    _, protocol, peer = await attach(Window)
    peer.send(b"x" * 15)
    assert await protocol.receives(15) == b"x" * 15
    assert store[:10] == store[20:] == b"." * 10


async def test_a_new_buffer_may_be_given_each_time(attach):
    class Fresh(BufferedRecorder):
        def get_buffer(self, sizehint):
            self.buffer = bytearray(3)
            return self.buffer

    _, protocol, peer = await attach(Fresh)
    peer.send(b"0123456789")
    assert await protocol.receives(10) == b"0123456789"


async def test_the_buffer_may_be_resized_between_reads_and_in_buffer_updated(attach):
    class Growing(BufferedRecorder):
        def buffer_updated(self, nbytes):
            super().buffer_updated(nbytes)
            self.buffer.extend(bytes(10))

    transport, protocol, peer = await attach(lambda: Growing(4))
    peer.send(b"0123")
    await protocol.receives(4)
    protocol.buffer.clear()
    protocol.buffer.extend(bytes(2))
    peer.send(b"4567")
    assert await protocol.receives(8) == b"01234567"
    transport.pause_reading()
    await settle()
    protocol.buffer.clear()


async def test_an_empty_buffer_ends_the_connection(attach, errors):
    transport, protocol, peer = await attach(lambda: BufferedRecorder(0))
    peer.send(b"hello")
    exc = await protocol.lost()
    assert isinstance(exc, RuntimeError)
    assert str(exc) == "get_buffer() returned an empty buffer"
    (context,) = errors
    assert context == {
        "message": GET_BUFFER_FAILED,
        "exception": exc,
        "transport": transport,
        "protocol": protocol,
    }


@pytest.mark.parametrize("nonsense", [None, 42, "text", b"read only"])
async def test_what_is_no_writable_buffer_ends_the_connection(attach, errors, nonsense):
    class Nonsense(BufferedRecorder):
        def get_buffer(self, sizehint):
            return nonsense

    transport, protocol, peer = await attach(Nonsense)
    peer.send(b"hello")
    exc = await protocol.lost()
    assert isinstance(exc, (TypeError, BufferError))
    assert protocol.log == ["made", "lost"]
    (context,) = errors
    assert (context["exception"], context["transport"], context["protocol"]) == (exc, transport, protocol)


async def test_eof_received_true_keeps_a_buffered_protocol_writing(attach):
    class KeepsOpen(BufferedRecorder):
        keep_open = True

    transport, protocol, peer = await attach(KeepsOpen)
    peer.shutdown(1)
    await protocol.reaches("eof")
    transport.write(b"answer")
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == b"answer"


async def test_exchanged_protocol_hears_the_rest(attach):
    transport, first, peer = await attach()
    peer.send(b"first")
    await first.receives(5)
    second = Recorder()
    transport.set_protocol(second)
    assert transport.get_protocol() is second
    peer.send(b"second")
    assert await second.receives(6) == b"second"
    peer.close()
    await second.lost()
    assert first.log == ["made", "data"]
    assert second.log == ["data", "eof", "lost"]


@pytest.mark.parametrize("old_class", [Recorder, BufferedRecorder])
@pytest.mark.parametrize("new_class", [Recorder, BufferedRecorder])
async def test_protocols_of_both_kinds_take_over_from_each_other(attach, old_class, new_class):
    transport, protocol, peer = await attach(old_class)
    for number in range(6):
        peer.send(b"%d" % number)
        assert await protocol.receives(1) == b"%d" % number
        protocol = (old_class if number % 2 else new_class)()
        transport.set_protocol(protocol)
    peer.close()
    assert await protocol.lost() is None
    assert protocol.log == ["eof", "lost"]


@pytest.mark.parametrize(("old_class", "callback"), [(Recorder, "data_received"), (BufferedRecorder, "buffer_updated")])
@pytest.mark.parametrize("new_class", [Recorder, BufferedRecorder])
async def test_exchange_within_the_delivery_of_data_takes_effect_at_once(attach, old_class, callback, new_class):
    second = new_class()

    def exchange(protocol):
        protocol.transport.set_protocol(second)

    _, first, peer = await attach(overriding(old_class, **{callback: exchange}))
    peer.send(b"STARTTLS")
    await first.receives(8)
    peer.sendall(pattern(10_000))
    peer.close()
    await second.lost()
    assert first.data == b"STARTTLS"
    assert second.data == pattern(10_000)
    assert second.story == ["data", "eof", "lost"]


@pytest.mark.parametrize("new_class", [Recorder, BufferedRecorder])
async def test_exchange_in_connection_made(attach, new_class):
    second = new_class()
    _, first, peer = await attach(overriding(Recorder, connection_made=lambda p: p.transport.set_protocol(second)))
    peer.send(b"hello")
    peer.close()
    await second.lost()
    assert first.log == ["made"]
    assert second.story == ["data", "eof", "lost"]


async def test_exchange_while_reading_is_paused(attach):
    transport, first, peer = await attach()
    transport.pause_reading()
    peer.send(b"waiting")
    await settle()
    second = BufferedRecorder()
    transport.set_protocol(second)
    transport.resume_reading()
    assert await second.receives(7) == b"waiting"
    assert first.log == ["made"]


async def test_exchanged_protocol_is_told_to_resume_writing(attach):
    transport, first, peer = await attach()
    transport.write(bytes(20_000_000))
    assert first.log == ["made", "pause"]
    second = Echo()
    transport.set_protocol(second)
    transport.close()
    assert len(await asyncio.to_thread(recv_all, peer)) == 20_000_000
    await second.lost()
    assert first.log == ["made", "pause"]
    assert second.log == ["resume", "lost"]
