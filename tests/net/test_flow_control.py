"""Water marks: when a protocol is told to pause and to resume writing."""

from __future__ import annotations

import asyncio

import pytest

from tests.net.peers import Recorder, overriding, pattern, raiser, recv_all, recv_exactly, settle

HUGE = 20_000_000  # bytes: more than the kernel takes at once
CLOSES_TWICE = "close() in resume_writing ends the connection twice, the second time with an AttributeError"


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        ({}, (16 * 1024, 64 * 1024)),
        ({"high": 4000}, (1000, 4000)),
        ({"high": 4003}, (1000, 4003)),
        ({"low": 1000}, (1000, 4000)),
        ({"high": 4000, "low": 3000}, (3000, 4000)),
        ({"high": 4000, "low": 4000}, (4000, 4000)),
        ({"high": 4000, "low": 0}, (0, 4000)),
        ({"high": 0}, (0, 0)),
        ({"low": 0}, (0, 0)),
        ({"high": None, "low": None}, (16 * 1024, 64 * 1024)),
        ({"high": 1 << 40}, (1 << 38, 1 << 40)),
    ],
)
async def test_limits_are_set_and_told(attach, arguments, limits):
    transport, _, _ = await attach()
    assert transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
    transport.set_write_buffer_limits(high=1, low=1)
    transport.set_write_buffer_limits(**arguments)
    assert transport.get_write_buffer_limits() == limits


async def test_limits_may_be_given_by_position(attach):
    transport, _, _ = await attach()
    transport.set_write_buffer_limits(2000, 500)
    assert transport.get_write_buffer_limits() == (500, 2000)


@pytest.mark.parametrize("arguments", [{"high": 1, "low": 2}, {"high": -1}, {"low": -1}, {"high": 5, "low": -1}])
async def test_limits_in_the_wrong_order_are_refused(attach, arguments):
    transport, _, _ = await attach()
    with pytest.raises(ValueError, match="must be >= low"):
        transport.set_write_buffer_limits(**arguments)
    assert transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)


@pytest.mark.parametrize("arguments", [{"high": "much"}, {"low": "little"}, {"high": []}])
async def test_limits_that_are_no_numbers_are_refused(attach, arguments):
    transport, _, _ = await attach()
    with pytest.raises(TypeError):
        transport.set_write_buffer_limits(**arguments)
    assert transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_protocol_pauses_once_above_the_high_mark_and_resumes_once_at_the_low_mark(attach, kind):
    sizes = []
    look = overriding(Recorder, resume_writing=lambda p: sizes.append(p.transport.get_write_buffer_size()))
    transport, protocol, peer = await attach(look, kind=kind)
    transport.write(pattern(HUGE))
    assert protocol.log == ["made", "pause"]
    assert transport.get_write_buffer_size() > 64 * 1024
    for _ in range(3):
        transport.write(b"more")
    assert protocol.log == ["made", "pause"]
    transport.close()
    assert await asyncio.to_thread(recv_all, peer) == pattern(HUGE) + b"more" * 3
    await protocol.lost()
    assert protocol.log == ["made", "pause", "resume", "lost"]
    assert sizes[0] <= 16 * 1024


async def test_every_crossing_is_told_once(attach):
    transport, protocol, peer = await attach()
    for crossing in range(1, 4):
        transport.write(bytes(HUGE))
        assert protocol.log.count("pause") == crossing
        await asyncio.to_thread(recv_exactly, peer, HUGE)
        await protocol.reaches("resume", crossing)
    assert protocol.log == ["made"] + ["pause", "resume"] * 3


async def test_nothing_is_told_below_the_high_mark(attach):
    transport, protocol, peer = await attach()
    transport.set_write_buffer_limits(high=HUGE)
    transport.write(bytes(HUGE // 2))
    transport.close()
    await asyncio.to_thread(recv_all, peer)
    await protocol.lost()
    assert protocol.log == ["made", "lost"]


async def test_lower_limits_pause_at_once_what_is_above_them(attach):
    transport, protocol, _ = await attach()
    transport.set_write_buffer_limits(high=2 * HUGE)
    transport.write(bytes(HUGE))
    assert protocol.log == ["made"]
    transport.set_write_buffer_limits(high=1000)
    assert protocol.log == ["made", "pause"]
    transport.set_write_buffer_limits(high=100)
    assert protocol.log == ["made", "pause"]


async def test_with_a_low_mark_of_zero_the_protocol_resumes_when_all_is_sent(attach):
    sizes = []
    look = overriding(Recorder, resume_writing=lambda p: sizes.append(p.transport.get_write_buffer_size()))
    transport, protocol, peer = await attach(look)
    transport.set_write_buffer_limits(high=0)
    transport.write(bytes(HUGE))
    assert protocol.log == ["made", "pause"]
    await asyncio.to_thread(recv_exactly, peer, HUGE)
    await protocol.reaches("resume")
    assert sizes[0] == 0


async def test_buffer_size_is_what_still_has_to_be_sent(attach):
    transport, protocol, peer = await attach()
    assert transport.get_write_buffer_size() == 0
    transport.write(bytes(HUGE))
    waiting = transport.get_write_buffer_size()
    assert 0 < waiting <= HUGE
    transport.write(bytes(1000))
    assert transport.get_write_buffer_size() == waiting + 1000
    await asyncio.to_thread(recv_exactly, peer, HUGE + 1000)
    await protocol.reaches("resume")
    await settle()
    assert transport.get_write_buffer_size() == 0
    transport.write(b"small")
    await settle()
    assert transport.get_write_buffer_size() == 0


@pytest.mark.asyncio_wrong("from Python 3.12 on it counts the items of a memoryview, not its bytes")
async def test_buffer_size_counts_bytes_of_wide_memoryviews(attach):
    transport, _, _ = await attach()
    transport.write(bytes(HUGE))
    waiting = transport.get_write_buffer_size()
    transport.write(memoryview(bytes(8000)).cast("Q"))
    assert transport.get_write_buffer_size() == waiting + 8000


@pytest.mark.asyncio_wrong("from Python 3.12 on writelines does not look at the water marks")
async def test_writelines_is_under_flow_control(attach):
    transport, protocol, peer = await attach()
    transport.writelines([bytes(HUGE // 10)] * 10)
    assert protocol.log == ["made", "pause"]
    await asyncio.to_thread(recv_exactly, peer, HUGE)
    await protocol.reaches("resume")


@pytest.mark.parametrize("callback", ["pause_writing", "resume_writing"])
async def test_callback_that_raises_is_reported_and_the_connection_lives_on(attach, errors, callback):
    transport, protocol, peer = await attach(overriding(Recorder, **{callback: raiser(ZeroDivisionError)}))
    transport.write(pattern(HUGE))
    transport.write(b"more")
    assert await asyncio.to_thread(recv_exactly, peer, HUGE + 4) == pattern(HUGE) + b"more"
    await protocol.reaches("resume")
    peer.send(b"thanks")
    await protocol.receives(6)
    assert protocol.story == ["made", "pause", "resume", "data"]
    (context,) = errors
    assert context["message"] == f"protocol.{callback}() failed"
    assert type(context["exception"]) is ZeroDivisionError
    assert context["transport"] is transport
    assert context["protocol"] is protocol


async def test_writing_in_pause_writing_is_queued_in_order(attach):
    def add(protocol):
        protocol.transport.write(b"from pause_writing")

    transport, _, peer = await attach(overriding(Recorder, pause_writing=add))
    transport.write(pattern(HUGE))
    transport.write(b", afterwards")
    transport.close()
    expected = pattern(HUGE) + b"from pause_writing, afterwards"
    assert await asyncio.to_thread(recv_all, peer) == expected


class Producer(Recorder):
    """Sends its chunks as the water marks allow, then closes."""

    def __init__(self, chunks):
        super().__init__()
        self.chunks = chunks
        self.paused = False
        self.largest = 0

    def connection_made(self, transport):
        super().connection_made(transport)
        self.produce()

    def pause_writing(self):
        super().pause_writing()
        self.paused = True

    def resume_writing(self):
        super().resume_writing()
        self.paused = False
        self.produce()

    def produce(self):
        while self.chunks and not self.paused:
            self.transport.write(self.chunks.pop(0))
            self.largest = max(self.largest, self.transport.get_write_buffer_size())
        if not self.chunks:
            self.transport.close()


@pytest.mark.asyncio_wrong(CLOSES_TWICE)
@pytest.mark.parametrize("size", [10_000, 5_000_000])
async def test_a_producer_driven_by_the_marks_sends_everything_within_bounded_memory(attach, size):
    data = pattern(HUGE)
    chunks = [data[start : start + size] for start in range(0, HUGE, size)]
    _, protocol, peer = await attach(lambda: Producer(chunks))
    assert await asyncio.to_thread(recv_all, peer) == data
    assert await protocol.lost() is None
    assert protocol.log.count("lost") == 1
    assert protocol.largest <= 64 * 1024 + size


@pytest.mark.asyncio_wrong(CLOSES_TWICE)
async def test_close_in_resume_writing_ends_the_connection_once(attach):
    transport, protocol, peer = await attach(overriding(Recorder, resume_writing=lambda p: p.transport.close()))
    transport.write(pattern(HUGE))
    assert await asyncio.to_thread(recv_all, peer) == pattern(HUGE)
    assert await protocol.lost() is None
    await settle()
    assert protocol.log == ["made", "pause", "resume", "lost"]


async def test_close_in_pause_writing_still_sends_everything(attach):
    transport, protocol, peer = await attach(overriding(Recorder, pause_writing=lambda p: p.transport.close()))
    transport.write(pattern(HUGE))
    assert await asyncio.to_thread(recv_all, peer) == pattern(HUGE)
    assert await protocol.lost() is None
    await settle()
    assert protocol.log.count("lost") == 1


@pytest.mark.parametrize(
    "callback", ["pause_writing", pytest.param("resume_writing", marks=pytest.mark.asyncio_wrong(CLOSES_TWICE))]
)
async def test_abort_in_a_callback_ends_the_connection_once(attach, callback):
    transport, protocol, peer = await attach(overriding(Recorder, **{callback: lambda p: p.transport.abort()}))
    transport.write(pattern(HUGE))
    await asyncio.to_thread(recv_all, peer)
    assert await protocol.lost() is None
    await settle()
    assert protocol.log == ["made", "pause", *["resume"] * (callback == "resume_writing"), "lost"]


async def test_nobody_is_told_to_resume_after_an_abort(attach):
    transport, protocol, _ = await attach()
    transport.write(bytes(HUGE))
    transport.abort()
    await protocol.lost()
    await settle()
    assert protocol.log == ["made", "pause", "lost"]
    assert transport.get_write_buffer_size() == 0
