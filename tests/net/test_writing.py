"""write and writelines: what they take, in which order it arrives, and that it is what it was when written."""

from __future__ import annotations

import array
import asyncio
import itertools
import logging
import socket
import struct
import sys

import pytest

from tests.loops import run
from tests.net.peers import Recorder, pattern, raiser, recv_all, recv_exactly, reset, settle, unix_pair

HUGE = 20_000_000  # bytes: more than the kernel takes at once
KEEPS_GOOD_PARTS = pytest.mark.asyncio_wrong("it keeps the parts before the bad one", when=sys.version_info >= (3, 15))
both_kinds = pytest.mark.parametrize("kind", ["tcp", "unix"])


async def sent(transport, peer):
    """All that reaches the peer once the transport is closed."""
    transport.close()
    return await asyncio.to_thread(recv_all, peer)


class Bytes(bytes):
    pass


@pytest.mark.parametrize(
    "data", [b"data", bytearray(b"data"), memoryview(b"data"), memoryview(bytearray(b"data")), Bytes(b"data")]
)
async def test_bytes_like_objects_are_written(attach, data):
    transport, _, peer = await attach()
    transport.write(data)
    transport.writelines([data, data])
    assert await sent(transport, peer) == b"data" * 3


@pytest.mark.parametrize("data", [None, "text", 42, 1.5, [b"list"], (), object(), array.array("B", b"x")])
async def test_other_objects_are_refused(attach, data):
    transport, _, peer = await attach()
    with pytest.raises(TypeError, match="data argument must be a .*bytes.* object, not"):
        transport.write(data)
    transport.write(b"unharmed")
    assert await sent(transport, peer) == b"unharmed"


@pytest.mark.parametrize("data", [b"", bytearray(), memoryview(b"")])
async def test_writing_nothing_is_harmless(attach, data):
    transport, protocol, peer = await attach()
    transport.write(data)
    assert transport.get_write_buffer_size() == 0
    transport.write(b"something")
    transport.write(data)
    assert await sent(transport, peer) == b"something"
    assert await protocol.lost() is None


@both_kinds
async def test_a_huge_write_arrives_whole(attach, kind):
    transport, protocol, peer = await attach(kind=kind)
    transport.write(pattern(HUGE))
    assert await sent(transport, peer) == pattern(HUGE)
    assert await protocol.lost() is None


@both_kinds
async def test_small_and_large_writes_of_one_turn_arrive_in_order(attach, kind):
    transport, _, peer = await attach(kind=kind)
    sizes = [1, 10, 100_000, 1, 3_000_000, 7, 64, 65_536, 1, 500_000, 3]
    data = pattern(sum(sizes))
    start = 0
    for size in sizes:
        transport.write(data[start : start + size])
        start += size
    assert await sent(transport, peer) == data


@both_kinds
async def test_writes_of_many_turns_arrive_in_order(attach, kind):
    transport, _, peer = await attach(kind=kind)
    for number in range(300):
        transport.write(b"%04d" % number)
        if number % 3 == 0:
            transport.writelines([b"%04d" % number, b"."])
            await asyncio.sleep(0)
    expected = b"".join(b"%04d" % n + (b"%04d." % n if n % 3 == 0 else b"") for n in range(300))
    assert await sent(transport, peer) == expected


async def test_thousands_of_small_writes_behind_a_full_socket_arrive_in_order(attach):
    transport, _, peer = await attach()
    transport.write(pattern(HUGE))
    for number in range(5000):
        transport.write(b"%05d" % number)
    expected = pattern(HUGE) + b"".join(b"%05d" % number for number in range(5000))
    assert await sent(transport, peer) == expected


async def test_bytes_have_left_when_the_next_turn_begins(attach):
    transport, _, peer = await attach(kind="unix")
    peer.setblocking(False)
    for number in range(5):
        transport.write(b"%d" % number)
    await asyncio.sleep(0)
    assert peer.recv(100) == b"01234"


def test_bytes_written_last_of_all_have_left_when_the_loop_stops(loop, sockets):
    near, far = unix_pair()
    sockets.enter_context(far)

    async def main():
        transport, _ = await loop.create_connection(Recorder, sock=near)
        transport.write(b"goodbye")
        return transport

    transport = run(loop, main())
    far.setblocking(False)
    assert far.recv(100) == b"goodbye"
    transport.abort()
    run(loop, settle())


@pytest.mark.parametrize("exc", [KeyboardInterrupt, SystemExit])
def test_bytes_written_in_a_turn_that_an_interrupt_leaves_are_not_lost(loop, sockets, exc):
    near, far = unix_pair()
    sockets.enter_context(far)
    transport, _ = run(loop, loop.create_connection(Recorder, sock=near))
    loop.call_soon(transport.write, b"before")
    loop.call_soon(raiser(exc))
    loop.call_soon(transport.write, b"after")
    with pytest.raises(exc):
        loop.run_forever()
    run(loop, settle())
    far.setblocking(False)
    assert far.recv(100) == b"beforeafter"
    transport.abort()
    run(loop, settle())


async def test_bytes_written_by_a_callback_that_raises_are_sent(loop, attach, errors):
    transport, _, peer = await attach()

    def callback():
        transport.write(b"all the same")
        raise ZeroDivisionError

    loop.call_soon(callback)
    assert await asyncio.to_thread(recv_exactly, peer, 12) == b"all the same"
    assert len(errors) == 1


@pytest.mark.epoque_only("asyncio sends each write by itself")
@pytest.mark.skipif(sys.platform != "linux", reason="counts segments with Linux's TCP_INFO")
async def test_small_writes_of_one_turn_leave_in_one_segment(attach):
    transport, _, peer = await attach()
    transport.write(b"first ")
    transport.write(bytearray(b"second "))
    transport.writelines([b"third ", memoryview(b"fourth ")])
    transport.write(b"fifth")
    assert await asyncio.to_thread(recv_exactly, peer, 31) == b"first second third fourth fifth"
    info = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
    assert struct.unpack_from("I", info, 156) == (1,)  # tcpi_data_segs_out


@pytest.mark.asyncio_wrong("from Python 3.12 on it keeps a view of the caller's buffer")
@pytest.mark.parametrize("wrap", [lambda buffer: buffer, memoryview, lambda buffer: memoryview(buffer)[1:-1]])
async def test_a_buffer_changed_after_write_does_not_change_what_is_sent(attach, wrap):
    transport, _, peer = await attach()
    buffers = [bytearray(letter * size) for letter, size in ((b"a", 10), (b"b", 5_000_000), (b"c", 10), (b"d", 1000))]
    expected = b"".join(bytes(wrap(buffer)) for buffer in buffers)
    transport.write(wrap(buffers[0]))
    transport.write(wrap(buffers[1]))
    transport.writelines([wrap(buffer) for buffer in buffers[2:]])
    for buffer in buffers:
        buffer[:] = b"#" * len(buffer)
    assert await sent(transport, peer) == expected


@pytest.mark.asyncio_wrong("from Python 3.12 on it keeps a view of the caller's buffer")
async def test_a_buffer_may_be_resized_right_after_write(attach):
    transport, _, peer = await attach()
    buffers = [bytearray(b"x" * size) for size in (10, 5_000_000, 10)]
    for buffer in buffers:
        transport.write(buffer)
        buffer.clear()
    transport.writelines(buffers)
    for buffer in buffers:
        buffer.extend(b"not this")
    assert await sent(transport, peer) == b"x" * 5_000_020


@pytest.mark.asyncio_wrong("from Python 3.12 on it keeps the caller's view")
async def test_a_view_may_be_released_right_after_write(attach):
    transport, _, peer = await attach()
    for size in (10, 5_000_000, 10):
        with memoryview(bytes(size)) as view:
            transport.write(view)
            transport.writelines([view, view])
    assert await sent(transport, peer) == bytes(3 * 5_000_020)


@pytest.mark.asyncio_wrong("counts items for bytes, and the socket takes contiguous memory only")
@pytest.mark.parametrize("size", [24, 4_000_000])
@pytest.mark.parametrize(
    "shape",
    [
        lambda data: memoryview(data)[::2],
        lambda data: memoryview(data)[::-1],
        lambda data: memoryview(data)[3:-5:3],
        lambda data: memoryview(data).cast("I"),
        lambda data: memoryview(data).cast("d"),
        lambda data: memoryview(data).cast("I")[::2],
        lambda data: memoryview(data).cast("B", (4, len(data) // 4)),
        lambda data: memoryview(array.array("Q", data)),
        lambda data: memoryview(data).cast("B", (2, len(data) // 8, 4)),
    ],
)
async def test_memoryviews_of_every_shape_are_sent_as_their_bytes(attach, shape, size):
    view = shape(pattern(size))
    transport, _, peer = await attach()
    transport.write(view)
    transport.writelines([view, b"|", view])
    assert await sent(transport, peer) == view.tobytes() * 2 + b"|" + view.tobytes()


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda parts: (part for part in parts), dict.fromkeys])
async def test_writelines_takes_any_iterable(attach, kind):
    transport, _, peer = await attach()
    transport.write(b"zero ")
    transport.writelines(kind([b"one ", b"two ", b"three "]))
    transport.write(b"four")
    assert await sent(transport, peer) == b"zero one two three four"


async def test_writelines_takes_every_kind_of_bytes(attach):
    transport, _, peer = await attach()
    transport.writelines([b"one", bytearray(b"two"), memoryview(b"three"), Bytes(b"four")])
    assert await sent(transport, peer) == b"onetwothreefour"


@pytest.mark.parametrize(
    "kind", [list, tuple, pytest.param(iter, marks=pytest.mark.asyncio_wrong("asserts that there is something"))]
)
async def test_writelines_of_nothing_is_harmless(attach, kind):
    transport, _, peer = await attach()
    transport.writelines(kind([]))
    assert transport.get_write_buffer_size() == 0
    transport.write(b"something")
    assert await sent(transport, peer) == b"something"


@pytest.mark.asyncio_wrong("from Python 3.12 on empty parts stay in the queue for ever")
@pytest.mark.parametrize("parts", [[b""], [b"", bytearray()], [b"", b"a", b"", b"b", b""]])
async def test_empty_parts_of_writelines_do_not_stay_in_the_queue(attach, parts):
    transport, protocol, peer = await attach()
    transport.writelines(parts)
    assert await sent(transport, peer) == b"".join(parts)
    assert await protocol.lost() is None


async def test_writelines_of_more_parts_than_one_system_call_takes(attach):
    transport, _, peer = await attach()
    parts = [b"%05d" % number for number in range(5000)]
    transport.writelines(parts)
    assert await sent(transport, peer) == b"".join(parts)


async def test_writelines_of_huge_parts(attach):
    transport, protocol, peer = await attach()
    transport.writelines([pattern(HUGE)[start : start + 1_000_000] for start in range(0, HUGE, 1_000_000)])
    assert await sent(transport, peer) == pattern(HUGE)
    assert await protocol.lost() is None


@pytest.mark.parametrize(
    "parts",
    [
        ["text"],
        pytest.param([b"good", "bad"], marks=KEEPS_GOOD_PARTS),
        pytest.param(
            [b"good", None], marks=pytest.mark.asyncio_wrong("None is skipped", when=sys.version_info >= (3, 14))
        ),
        [1, 2],
        [[b"nested"]],
    ],
)
async def test_writelines_refuses_parts_of_other_kinds_and_sends_none(attach, parts):
    transport, _, peer = await attach()
    with pytest.raises(TypeError):
        transport.writelines(parts)
    transport.write(b"unharmed")
    assert await sent(transport, peer) == b"unharmed"


@pytest.mark.parametrize("parts", [42, object(), 1.5])
async def test_writelines_refuses_what_is_no_iterable(attach, parts):
    transport, _, peer = await attach()
    with pytest.raises(TypeError):
        transport.writelines(parts)
    transport.write(b"unharmed")
    assert await sent(transport, peer) == b"unharmed"


@KEEPS_GOOD_PARTS
async def test_iterable_of_writelines_that_raises_sends_nothing(attach):
    transport, _, peer = await attach()
    with pytest.raises(ZeroDivisionError):
        transport.writelines(b"x" * (1 // number) for number in (1, 1, 0))
    transport.write(b"unharmed")
    assert await sent(transport, peer) == b"unharmed"


@pytest.mark.parametrize("pending", [0, HUGE])
async def test_writing_after_write_eof_is_an_error(attach, pending):
    transport, _, peer = await attach()
    transport.write(bytes(pending))
    transport.write_eof()
    with pytest.raises(RuntimeError, match=r"Cannot call write\(\) after write_eof\(\)"):
        transport.write(b"more")
    with pytest.raises(RuntimeError, match=r"after write_eof\(\)"):
        transport.writelines([b"more"])
    assert await asyncio.to_thread(recv_all, peer) == bytes(pending)


async def test_writing_after_close_is_quiet(attach):
    transport, protocol, peer = await attach()
    transport.write(b"before")
    transport.close()
    for _ in range(3):
        transport.write(b"")
        transport.write(b"after")
    assert (await asyncio.to_thread(recv_all, peer)).startswith(b"before")
    await protocol.lost()
    assert protocol.log == ["made", "lost"]


@pytest.mark.parametrize("ending", ["close", "abort", "peer closes", "peer resets"])
async def test_writing_after_the_end_is_quiet(attach, ending):
    transport, protocol, peer = await attach()
    if ending == "peer closes":
        peer.close()
    elif ending == "peer resets":
        reset(peer)
    else:
        getattr(transport, ending)()
    await protocol.lost()
    for _ in range(10):
        transport.write(b"nobody is there")
        transport.write_eof()
    assert transport.get_write_buffer_size() == 0
    transport.close()
    transport.abort()
    await settle()
    assert protocol.log.count("lost") == 1


@pytest.mark.asyncio_wrong("from Python 3.12 on the method that sends is gone after close()")
@pytest.mark.parametrize("lost", [True, False])
async def test_writelines_after_the_end_is_quiet(attach, lost):
    transport, protocol, _ = await attach()
    transport.close()
    if lost:
        await protocol.lost()
    for _ in range(10):
        transport.writelines([b"nobody", b"is there"])
    await protocol.lost()
    assert protocol.log == ["made", "lost"]


async def test_writing_on_and_on_after_the_end_is_logged(attach, caplog):
    transport, protocol, peer = await attach()
    reset(peer)
    await protocol.lost()
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            transport.write(b"nobody is there")
        assert not caplog.records
        for _ in range(4):
            transport.write(b"nobody is there")
    assert {record.getMessage() for record in caplog.records} == {"socket.send() raised exception."}
    assert {record.name for record in caplog.records} == {"asyncio"}


async def test_arguments_are_checked_after_the_end_too(attach):
    transport, protocol, _ = await attach()
    transport.close()
    await protocol.lost()
    with pytest.raises(TypeError):
        transport.write("text")


async def test_write_and_abort_in_one_turn_ends_the_connection(attach):
    transport, protocol, peer = await attach()
    transport.write(b"small")
    transport.write(bytes(HUGE))
    transport.abort()
    assert transport.get_write_buffer_size() == 0
    assert await protocol.lost() is None
    assert len(await asyncio.to_thread(recv_all, peer)) < HUGE


async def test_two_transports_written_to_in_turns_do_not_mix(attach):
    ends = [await attach() for _ in range(3)]
    for number, (index, (transport, _, _)) in itertools.product(range(100), enumerate(ends)):
        transport.write(b"%d:%02d " % (index, number))
    for index, (transport, _, peer) in enumerate(ends):
        assert await sent(transport, peer) == b"".join(b"%d:%02d " % (index, number) for number in range(100))
