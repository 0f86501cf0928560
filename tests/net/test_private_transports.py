"""The private names by which libraries inspect asyncio's transports and drive them: do they mean the same here?"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import sys

import pytest

from tests.net.peers import Recorder, turns, unix_pair

BLOCK = bytes(1 << 20)  # more than a socket takes
NEW_BUFFER = pytest.mark.asyncio_wrong("it is one bytearray", when=sys.version_info < (3, 12))


def unsent(transport):
    return b"".join([bytes(piece) for piece in transport._buffer])


@NEW_BUFFER
async def test_what_is_not_sent_yet(attach):
    transport, _, _ = await attach(kind="unix")
    assert not transport._buffer
    transport.write(BLOCK)
    transport.write(b"more")
    await turns(2)
    assert len(unsent(transport)) == transport.get_write_buffer_size() > 4
    assert unsent(transport).endswith(b"\0more")
    assert transport._protocol_paused
    transport.abort()


async def test_water_marks(attach):
    transport, protocol, _ = await attach(kind="unix")
    transport.write(BLOCK)
    await turns(2)
    assert (transport._low_water, transport._high_water) == transport.get_write_buffer_limits()
    transport._set_write_buffer_limits(high=1 << 24)
    assert transport._high_water == 1 << 24
    assert protocol.log.count("resume") == 0
    transport._maybe_resume_protocol()
    assert not transport._protocol_paused
    assert protocol.log[-1] == "resume"
    transport._set_write_buffer_limits(high=0)
    transport._maybe_pause_protocol()
    assert transport._protocol_paused
    assert protocol.log[-1] == "pause"
    transport.abort()


async def test_state_of_a_stream(attach):
    transport, protocol, _ = await attach(kind="unix")
    assert not transport._paused
    assert not transport._eof
    assert not transport._closing
    assert transport._protocol_connected
    transport.pause_reading()
    transport.write_eof()
    assert transport._paused
    assert transport._eof
    transport.close()
    assert transport._closing
    await protocol.lost()


async def test_extra_info_is_one_dict(attach):
    transport, _, _ = await attach()
    assert transport._extra["socket"] is transport.get_extra_info("socket")
    assert transport._extra["sockname"] == transport.get_extra_info("sockname")
    assert transport._extra["peername"] == transport.get_extra_info("peername")
    transport._extra["peername"] = ("192.0.2.1", 1)  # as servers do that are told of a client by a proxy
    assert transport.get_extra_info("peername") == ("192.0.2.1", 1)


async def test_reading_and_writing_on_demand(attach):
    transport, protocol, peer = await attach(kind="unix")
    peer.send(b"request")
    transport._read_ready()
    assert protocol.data == b"request"
    transport.write(BLOCK)
    await turns(2)
    left = transport.get_write_buffer_size()
    peer.recv(1 << 16)
    peer.recv(1 << 16)
    transport._write_ready()
    assert transport.get_write_buffer_size() < left
    transport.abort()


@pytest.mark.parametrize("fatal", [ConnectionResetError(), OSError(errno.ENETDOWN, "down")])
async def test_an_error_of_the_system_is_only_told_to_the_protocol(attach, fatal):
    transport, protocol, _ = await attach()
    transport._fatal_error(fatal, "It broke")
    assert await protocol.lost() is fatal


async def test_any_other_fatal_error_is_reported(attach, errors):
    transport, protocol, _ = await attach()
    fatal = ValueError()
    transport._fatal_error(fatal, "It broke")
    assert await protocol.lost() is fatal
    assert [(context["message"], context["exception"]) for context in errors] == [("It broke", fatal)]
    assert errors[0]["transport"] is transport
    assert errors[0]["protocol"] is protocol


async def test_force_close(attach):
    transport, protocol, _ = await attach()
    error = OSError()
    transport._force_close(error)
    assert transport._conn_lost == 1
    assert await protocol.lost() is error


async def test_a_transport_made_by_hand(loop):
    near, far = unix_pair()
    near.setblocking(False)
    waiter = loop.create_future()
    transport = loop._make_socket_transport(near, Recorder(), waiter, extra={"peername": "somebody"})
    await waiter
    assert transport.get_extra_info("peername") == "somebody"
    assert transport.get_extra_info("socket").fileno() == near.fileno()
    protocol = transport.get_protocol()
    far.close()
    await protocol.lost()


async def test_datagrams_not_sent_yet(datagrams):
    transport, _ = await datagrams()
    assert transport._address is None
    assert not transport._buffer
    assert not transport._buffer_size
    assert not transport._protocol_paused
    assert transport._extra["sockname"] == transport.get_extra_info("sockname")
    connected, _ = await datagrams(remote_addr=transport.get_extra_info("sockname"))
    assert connected._address == transport.get_extra_info("sockname")


@pytest.mark.epoque_only("asyncio sends at once")
async def test_datagrams_of_this_turn(datagrams):
    transport, _ = await datagrams()
    address = transport.get_extra_info("sockname")
    transport.sendto(b"one", address)
    transport.sendto(b"two", address)
    assert list(transport._buffer) == [(b"one", address), (b"two", address)]
    assert transport._buffer_size == transport.get_write_buffer_size() > 0
    transport._sendto_ready()
    await turns(1)
    assert not transport._buffer


async def test_pipes(loop):
    (reading, writing), fatal = os.pipe(), OSError(errno.EBADF, "bad")
    source, sink = io.FileIO(reading), io.FileIO(writing, "w")
    reader, received = await loop.connect_read_pipe(Recorder, source)
    writer, sent = await loop.connect_write_pipe(Recorder, sink)
    assert reader._extra == {"pipe": source}
    assert writer._extra == {"pipe": sink}
    assert (reader._fileno, writer._fileno) == (reading, writing)
    reader.pause_reading()
    assert reader._paused
    writer.write(BLOCK)
    await turns(2)
    assert isinstance(writer._buffer, bytearray)
    assert len(writer._buffer) == writer.get_write_buffer_size() > 0
    assert writer._protocol_paused
    writer._close(fatal)
    assert await sent.lost() is fatal
    reader._close(None)
    assert await received.lost() is None


async def test_a_writer_whose_reader_has_gone(loop):
    reading, writing = os.pipe()
    writer, protocol = await loop.connect_write_pipe(Recorder, io.FileIO(writing, "w"))
    writer._read_ready()
    assert await protocol.lost() is None
    os.close(reading)


async def test_a_child(loop):
    transport, _ = await loop.subprocess_exec(asyncio.SubprocessProtocol, "cat", stderr=None)
    transport._check_proc()
    assert transport._pending_calls is None
    assert not transport._finished
    waiting = loop.create_task(transport._wait())
    await turns(1)
    assert len(transport._exit_waiters) == 1
    transport.get_pipe_transport(0).close()
    await waiting
    while transport._protocol is not None:
        await turns(1)
    assert transport._finished
    with pytest.raises(ProcessLookupError):
        transport._check_proc()
    transport.close()
