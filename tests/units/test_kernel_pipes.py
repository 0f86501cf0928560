"""write(2) and writev(2) on descriptors of any kind, in both forms; read(2) is tested through the transports."""

from __future__ import annotations

import os

import pytest

from tests.units.real import close
from tests.units.twins import FORMS, twin

SIZE = 1 << 16  # bytes that a pipe takes by default


@pytest.fixture(params=FORMS)
def pipes(request):
    return twin("pipes", request.param)


@pytest.fixture
def pipe(stack):
    ends = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for end in ends:
        stack.callback(close, end)
    return ends


@pytest.mark.parametrize("data", [b"abcdef", memoryview(b"abcdef"), bytearray(b"abcdef")])
@pytest.mark.parametrize("offset", [0, 2, 6])
def test_write_begins_at_the_offset(pipes, pipe, data, offset):
    reader, writer = pipe
    assert pipes.write(writer, data, offset) == 6 - offset
    assert (os.read(reader, 100) if offset < 6 else b"") == b"abcdef"[offset:]


@pytest.mark.parametrize("offset", [0, 2])
def test_writev_writes_all_pieces_the_first_from_the_offset_on(pipes, pipe, offset):
    reader, writer = pipe
    assert pipes.writev(writer, [b"abc", memoryview(b"de"), b"f"], offset) == 6 - offset
    assert os.read(reader, 100) == b"abcdef"[offset:]


def test_writev_takes_so_many_pieces_and_no_more(pipes, pipe):
    assert pipes.writev(pipe[1], [b"x"] * 1000, 0) == 256


def test_what_does_not_fit_is_not_taken_and_then_it_would_block(pipes, pipe):
    _, writer = pipe
    assert pipes.write(writer, bytes(SIZE + 1), 0) == SIZE
    assert pipes.write(writer, b"x", 0) == -1
    assert pipes.writev(writer, [b"x", b"y"], 0) == -1


def test_without_a_reader_both_fail(pipes, pipe, stack):
    reader, writer = os.pipe2(os.O_NONBLOCK)
    os.close(reader)
    stack.callback(os.close, writer)
    with pytest.raises(BrokenPipeError):
        pipes.write(writer, b"x", 0)
    with pytest.raises(BrokenPipeError):
        pipes.writev(writer, [b"x", b"y"], 0)


def test_what_is_not_bytes_like_is_refused(pipes, pipe):
    with pytest.raises(TypeError):
        pipes.write(pipe[1], "text", 0)
