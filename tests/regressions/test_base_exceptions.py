"""Interrupts raised where a protocol is told about its output, and what they leave behind."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.loops import run
from tests.net.peers import Recorder, datagram_pair, nonblocking_pair, turns

UNNAMED = pytest.mark.asyncio_wrong("it cannot send to a peer without a name")
SIZE = 400_000  # bytes; more than a socket of this system takes at once


class Interrupted(Recorder):
    """Its callback of the given name raises, once."""

    def __init__(self, name, exception):
        super().__init__()
        self.exception = exception
        setattr(self, name, self.interrupt)

    def interrupt(self):
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception


async def stream(loop, protocol):
    near, far = nonblocking_pair()
    transport, _ = await loop.create_connection(lambda: protocol, sock=near)
    return transport, lambda: transport.write(bytes(SIZE)), lambda: far.recv(1 << 20), far.close


async def pipe(loop, protocol):
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(write_end, "wb", 0))
    return (
        transport,
        lambda: transport.write(bytes(SIZE)),
        lambda: os.read(read_end, 1 << 20),
        lambda: os.close(read_end),
    )


async def datagrams(loop, protocol):
    near, far = datagram_pair(4096)
    far.setblocking(False)

    def write():
        for _ in range(100):
            transport.sendto(bytes(1000))

    transport, _ = await loop.create_datagram_endpoint(lambda: protocol, sock=near)
    return transport, write, lambda: far.recv(1 << 16), far.close


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kind", [stream, pipe, datagrams])
@pytest.mark.asyncio_wrong("what was to be done after the callback is not done")
def test_an_interrupt_in_resume_writing_does_not_keep_a_closing_transport_open(loop, kind, exception):
    protocol = Interrupted("resume_writing", exception())
    transport, write, read, close = run(loop, kind(loop, protocol))
    transport.set_write_buffer_limits(0)

    def write_and_close():
        write()
        transport.close()

    async def read_until_it_ends():
        while not protocol.lost_with:
            try:
                read()
            except BlockingIOError:
                pass
            await asyncio.sleep(0)

    loop.call_soon(write_and_close)
    with pytest.raises(exception):
        run(loop, read_until_it_ends())
    run(loop, read_until_it_ends())
    assert protocol.lost_with == [None]
    close()


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kind", [stream, pipe, pytest.param(datagrams, marks=UNNAMED)])
def test_an_interrupt_in_pause_writing_leaves_the_run_and_the_output_arrives(loop, kind, exception):
    protocol = Interrupted("pause_writing", exception())
    transport, write, read, close = run(loop, kind(loop, protocol))
    received = []

    def write_and_close():
        try:
            write()
        finally:
            transport.close()

    async def read_until_it_ends():
        while not protocol.lost_with:
            await asyncio.sleep(0)
            try:
                received.append(len(read()))
            except BlockingIOError:
                pass

    loop.call_soon(write_and_close)
    with pytest.raises(exception):
        run(loop, turns(5))
    run(loop, read_until_it_ends())
    assert protocol.lost_with == [None]
    if kind is not datagrams:
        while len(chunk := read()):
            received.append(len(chunk))
        assert sum(received) == SIZE
    close()
