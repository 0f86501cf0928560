"""SendQueue: pieces in order, each byte sent once; and `own`, whose pieces nobody can change."""

from __future__ import annotations

import array
import contextlib
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epoque.kernel.masks import SEND_PIECES
from epoque.transports.sendqueue import SendQueue, own

pytestmark = pytest.mark.epoque_only("looks at epoque's own send queue")

BYTES = bytes(range(24))


class Subclass(bytes):
    def __bytes__(self):
        return b"something else"


class Mutable(bytearray):
    def __bytes__(self):
        return b"something else"


def readonly(data):
    return memoryview(data).toreadonly()


def view(data, *casts):
    """A view of `data`, cast step by step; a cast is a format or a shape of bytes."""
    result = memoryview(data)
    for cast in casts:
        result = result.cast(cast) if isinstance(cast, str) else result.cast("B", shape=cast)
    return result


BUFFERS = {
    "bytes": (BYTES, BYTES),
    "bytes, empty": (b"", b""),
    "bytes subclass": (Subclass(BYTES), BYTES),
    "bytearray": (bytearray(BYTES), BYTES),
    "bytearray, empty": (bytearray(), b""),
    "bytearray subclass": (Mutable(BYTES), BYTES),
    "view": (view(BYTES), BYTES),
    "view of a bytes subclass": (view(Subclass(BYTES)), BYTES),
    "view of a bytearray": (view(bytearray(BYTES)), BYTES),
    "view of a bytearray, read-only": (readonly(bytearray(BYTES)), BYTES),
    "view of a view": (memoryview(memoryview(BYTES)[2:])[2:], BYTES[4:]),
    "view of an array": (view(array.array("H", [0x0102, 0x0304])), array.array("H", [0x0102, 0x0304]).tobytes()),
    "part": (view(BYTES)[3:7], BYTES[3:7]),
    "strided": (view(BYTES)[::3], BYTES[::3]),
    "strided view of a bytearray": (view(bytearray(BYTES))[1::2], BYTES[1::2]),
    "backwards": (view(BYTES)[::-1], BYTES[::-1]),
    "one item of a strided view": (view(BYTES)[::-5][1:2], BYTES[18:19]),
    "multi-byte": (view(BYTES, "I"), BYTES),
    "multi-byte, part": (view(BYTES, "Q")[1:], BYTES[8:]),
    "multi-byte, strided": (view(BYTES, "H")[::2], b"".join(BYTES[n : n + 2] for n in range(0, 24, 4))),
    "multi-byte view of a bytearray": (view(bytearray(BYTES), "d"), BYTES),
    "characters": (view(BYTES, "c"), BYTES),
    "signed": (view(BYTES, "b"), BYTES),
    "two dimensions": (view(BYTES, [4, 6]), BYTES),
    "three dimensions": (view(BYTES, [2, 3, 4]), BYTES),
    "three dimensions over a bytearray": (view(bytearray(BYTES), [2, 3, 4]), BYTES),
    "no dimension": (view(b"x", []), b"x"),
    "multi-byte, two dimensions": (memoryview(BYTES).cast("I", shape=[2, 3]), BYTES),
    "zero-length view": (view(b""), b""),
    "zero-length part": (view(BYTES)[5:5], b""),
    "zero-length, multi-byte": (view(BYTES, "I")[3:3], b""),
    "zero-length view of a bytearray": (view(bytearray()), b""),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_own_gives_flat_bytes_of_every_kind_of_buffer(name):
    data, expected = BUFFERS[name]
    piece = own(data)
    assert type(piece) in (bytes, memoryview)
    assert len(piece) == len(expected)
    assert bytes(piece) == expected


def test_own_copies_neither_bytes_nor_contiguous_views_of_them():
    assert own(BYTES) is BYTES
    for data in (memoryview(BYTES), memoryview(BYTES)[5:], memoryview(BYTES).cast("I"), view(BYTES, [4, 6])):
        piece = own(data)
        assert piece is not data
        assert piece.obj is BYTES


@pytest.mark.parametrize("kind", [bytearray, Mutable])
@pytest.mark.parametrize("look", [lambda source: source, memoryview, readonly, lambda source: memoryview(source)[1:-1]])
def test_what_is_owned_does_not_change_with_its_source(kind, look):
    source = kind(BYTES)
    data = look(source)
    expected, piece = memoryview(data).tobytes(), own(data)
    source[:] = bytes(len(source))
    assert bytes(piece) == expected
    if data is not source:
        data.release()
    source.clear()  # nothing refers to its memory any more
    assert bytes(piece) == expected


@pytest.mark.parametrize("data", [memoryview(BYTES)[4:], memoryview(BYTES).cast("I")[1:]])
def test_a_view_may_be_released_once_it_is_owned(data):
    piece = own(data)
    data.release()
    assert bytes(piece) == BYTES[4:]


def test_a_view_released_before_is_refused():
    data = memoryview(BYTES)
    data.release()
    with pytest.raises(ValueError, match="released"):
        own(data)


@pytest.mark.parametrize("data", ["text", None, 7, [1, 2], (b"x",), array.array("B", b"x"), object(), {}])
def test_what_is_not_bytes_like_is_refused_in_asyncios_words(data):
    with pytest.raises(TypeError) as caught:
        own(data)
    assert str(caught.value) == f"data argument must be a bytes-like object, not {type(data).__name__!r}"


# --- the queue


@contextlib.contextmanager
def connection(size=None):
    """A pair of non-blocking sockets, the first with room for about `size` bytes to be sent."""
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        right.setblocking(False)
        if size is not None:
            left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        yield left, right


def received(sock, most=1 << 20):
    """What can be received now, up to `most` bytes."""
    chunks = []
    while most:
        try:
            chunk = sock.recv(most)
        except BlockingIOError:
            break
        chunks.append(chunk)
        most -= len(chunk)
    return b"".join(chunks)


def filled(*pieces):
    queue = SendQueue()
    for piece in pieces:
        queue.push(own(piece))
    return queue


def stream(count, start=0):
    """Bytes of which every neighbourhood is different."""
    return b"".join((start + n).to_bytes(4, "big") for n in range(0, count + 4, 4))[:count]


def test_an_empty_queue_sends_nothing():
    with connection() as (left, right):
        queue = SendQueue()
        queue.send(left.fileno())
        queue.clear()
        assert (queue.size, received(right)) == (0, b"")


def test_pieces_leave_in_order_and_the_size_says_how_many_bytes_wait():
    with connection() as (left, right):
        queue = SendQueue()
        sizes = []
        for piece in (b"one", bytearray(b"two"), memoryview(b"-three-")[1:-1], memoryview(b"fourfive").cast("I")):
            queue.push(own(piece))
            sizes.append(queue.size)
        assert sizes == [3, 6, 11, 19]
        queue.send(left.fileno())
        assert (queue.size, received(right)) == (0, b"onetwothreefourfive")
        queue.push(b"again")
        queue.send(left.fileno())
        assert (queue.size, received(right)) == (0, b"again")


@pytest.mark.parametrize(
    "count", [1, 2, SEND_PIECES - 1, SEND_PIECES, SEND_PIECES + 1, 2 * SEND_PIECES, 2 * SEND_PIECES + 1, 1000]
)
def test_any_number_of_pieces_leaves_in_one_send_while_there_is_room(count):
    pieces = [stream(7, 10 * number) for number in range(count)]
    with connection() as (left, right):
        queue = filled(*pieces)
        queue.send(left.fileno())
        assert (queue.size, received(right)) == (0, b"".join(pieces))


@pytest.mark.parametrize("pieces", [1, 3, 700])
def test_what_the_kernel_does_not_take_leaves_later(pieces):
    whole = stream(400_000)
    step = len(whole) // pieces + 1
    with connection(4096) as (left, right):
        queue = filled(*(whole[n : n + step] for n in range(0, len(whole), step)))
        got = b""
        while queue.size:
            before = queue.size
            queue.send(left.fileno())
            assert queue.size < before
            got += received(right)
            assert len(got) + queue.size == len(whole)
        assert got == whole


def test_a_full_socket_takes_nothing_and_nothing_is_lost():
    with connection(4096) as (left, right):
        queue = filled(stream(100_000))
        queue.send(left.fileno())
        waiting = queue.size
        assert waiting > 0
        for _ in range(3):
            queue.send(left.fileno())
            assert queue.size == waiting
        queue.push(b"more")
        queue.send(left.fileno())
        assert queue.size == waiting + 4
        assert received(right) == stream(100_000)[: 100_000 - waiting]


@settings(max_examples=200)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.data())
def test_dropping_any_count_leaves_exactly_the_rest(sizes, data):
    whole = stream(sum(sizes))
    with connection() as (left, right):
        queue, start = SendQueue(), 0
        for number, size in enumerate(sizes):
            piece = whole[start : start + size]
            queue.push(own(memoryview(piece) if number % 2 else piece))
            start += size
        gone = 0
        for _ in range(3):
            count = data.draw(st.integers(0, queue.size))
            queue.drop(count)
            gone += count
            assert queue.size == len(whole) - gone
        queue.send(left.fileno())
        assert (queue.size, received(right)) == (0, whole[gone:])


STEPS = st.one_of(
    st.tuples(st.just("push"), st.sampled_from([1, 5, 100, 1000, 3000, 20_000])),
    st.tuples(st.just("push many"), st.sampled_from([2, 50, 255, 256, 257, 600])),
    st.tuples(st.just("send"), st.just(0)),
    st.tuples(st.just("receive"), st.sampled_from([1, 500, 5000, 100_000])),
)
KINDS = [bytes, bytearray, memoryview, lambda data: memoryview(b"x" + data)[1:], lambda data: memoryview(data)[::1]]


@settings(max_examples=100)
@given(st.lists(STEPS, min_size=10, max_size=40))
def test_the_stream_is_exact_whatever_the_kernel_takes_at_a_time(steps):
    sent, got, number = bytearray(), bytearray(), 0
    with connection(4096) as (left, right):
        queue = SendQueue()

        def push(size):
            nonlocal number
            data = stream(size, number)
            queue.push(own(KINDS[number % len(KINDS)](data)))
            sent.extend(data)
            number += 1

        for step, count in steps:
            if step == "push":
                push(count)
            elif step == "push many":
                for size in range(count):
                    push(1 + size % 3)
            elif step == "send":
                queue.send(left.fileno())
            else:
                got += received(right, count)
            assert len(got) <= len(sent) - queue.size
        while queue.size:
            queue.send(left.fileno())
            got += received(right)
        got += received(right)
    assert got == sent


def test_a_piece_may_be_pushed_between_two_parts_of_another():
    with connection(4096) as (left, right):
        queue = filled(stream(50_000))
        queue.send(left.fileno())
        queue.push(b"end")
        got = b""
        while queue.size:
            got += received(right)
            queue.send(left.fileno())
        assert got + received(right) == stream(50_000) + b"end"


def test_clear_forgets_what_was_not_sent():
    with connection(4096) as (left, right):
        queue = filled(stream(50_000), b"second")
        queue.send(left.fileno())
        queue.clear()
        assert queue.size == 0
        received(right)
        queue.push(b"fresh")
        queue.send(left.fileno())
        assert received(right) == b"fresh"


class Held:
    """A queue that alone refers to its pieces, so that a bytearray cannot grow while it has them."""

    def __init__(self, count):
        self.queue = SendQueue()
        self.buffers = [bytearray(b"x") for _ in range(count)]
        for buffer in self.buffers:
            self.queue.push(memoryview(buffer))  # own() would copy it

    def held(self):
        return [self.holds(buffer) for buffer in self.buffers]

    def holds(self, buffer):
        try:
            buffer.append(0)
        except BufferError:
            return True
        buffer.pop()
        return False


@pytest.mark.parametrize("count", [1, 2, 300])
@pytest.mark.parametrize("end", ["send", "clear", "drop"])
def test_what_was_sent_dropped_or_cleared_is_let_go_of(count, end):
    pieces = Held(count)
    assert pieces.held() == [True] * count
    with connection() as (left, _):
        if end == "send":
            pieces.queue.send(left.fileno())
        elif end == "clear":
            pieces.queue.clear()
        else:
            pieces.queue.drop(count)
    assert pieces.held() == [False] * count


def test_a_piece_is_let_go_of_as_soon_as_its_last_byte_is_gone():
    pieces = Held(3)
    pieces.queue.drop(1)
    assert pieces.held() == [False, True, True]


@pytest.mark.parametrize("pieces", [[b"one"], [b"one", b"two"]])
def test_a_broken_connection_is_an_error_and_the_pieces_stay(pieces):
    with connection() as (left, right):
        right.close()
        queue = filled(*pieces)
        with pytest.raises(BrokenPipeError):
            queue.send(left.fileno())
        assert queue.size == 3 * len(pieces)


@pytest.mark.parametrize("pieces", [[b"one"], [b"one", b"two"]])
def test_a_closed_descriptor_is_an_error(pieces):
    with connection() as (left, _):
        fd = left.fileno()
        left.close()
        with pytest.raises(OSError):
            filled(*pieces).send(fd)
