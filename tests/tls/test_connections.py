"""Connections under TLS, from end to end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import pytest

from tests.net.peers import BufferedRecorder, Echo, Factory, Recorder, pattern
from tests.tls.far import client_context, server_context, version_2

SIZE = 3_000_000


async def bulk_echo(near: Any) -> None:
    near.transport.write(pattern(SIZE))
    assert await near.receives(SIZE) == pattern(SIZE)
    near.transport.close()
    assert await near.lost() is None


@pytest.mark.parametrize("kind", [Echo, BufferedRecorder])
async def test_tcp(loop, serve, kind):
    served = await serve(kind, ssl=server_context())
    transport, near = await loop.create_connection(
        Recorder, *served.address, ssl=client_context(), server_hostname="localhost"
    )
    if kind is Echo:
        await bulk_echo(near)
    else:
        transport.write(pattern(SIZE))
        far = await served.made.nth()
        assert await far.receives(SIZE) == pattern(SIZE)
        transport.close()
        assert await near.lost() is None
    far = await served.made.nth()
    assert await far.lost() is None
    assert far.story == ["made", "data", "eof", "lost"]


async def test_unix(loop, tmp_path):
    made = Factory(Echo)
    path = str(tmp_path / "socket")
    async with await loop.create_unix_server(made, path, ssl=server_context()):
        transport, near = await loop.create_unix_connection(
            Recorder, path, ssl=client_context(), server_hostname="localhost"
        )
        await bulk_echo(near)
        assert await made.made[0].lost() is None


@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
@pytest.mark.parametrize("version", [2, 3])
async def test_both_ends_against_the_ssl_module(secure, kind, server, version):
    contexts = {"near": server_context(), "far": client_context()} if server else {}
    if version == 2:
        contexts = {"near": version_2(server_context() if server else client_context())}
    transport, near, far = await secure(Echo, server=server, kind=kind, **contexts)
    assert transport.get_extra_info("ssl_object").version() == f"TLSv1.{version}"
    data = pattern(100_000)
    sent = asyncio.ensure_future(far.send(data))
    assert await far.receive(len(data)) == data
    await sent
    await far.goodbye()
    assert await near.lost() is None
    assert near.story == ["made", "data", "eof", "lost"]


async def test_extra_info(secure):
    transport, _, far = await secure()
    info = transport.get_extra_info
    assert isinstance(info("ssl_object"), ssl.SSLObject)
    assert isinstance(info("sslcontext"), ssl.SSLContext)
    assert info("sslcontext") is info("ssl_object").context
    if not hasattr(transport, "_ssl_protocol"):  # aiohttp looks for the one, then for the other
        assert transport._sslcontext is info("sslcontext")
    assert ("DNS", "localhost") in info("peercert")["subjectAltName"]
    assert info("cipher") == far.ssl.cipher()
    assert info("compression", "default") is None
    assert info("peername") == far.sock.getsockname()
    assert info("sockname") == far.sock.getpeername()
    assert info("socket").type == socket.SOCK_STREAM
    assert info("nonsense", "default") == "default"
    transport.abort()


@pytest.mark.asyncio_wrong("all that was known below goes with the connection")
async def test_names_and_certificate_stay_known(secure):
    transport, near, far = await secure()
    name = far.sock.getsockname()
    transport.abort()
    await near.lost()
    assert transport.get_extra_info("peername") == name
    assert transport.get_extra_info("peercert")["subjectAltName"]


async def test_a_buffered_protocol(secure):
    transport, near, far = await secure(BufferedRecorder)
    data = pattern(300_000)
    await far.send(data)
    assert await near.receives(len(data)) == data
    await far.goodbye()
    assert await near.lost() is None
    assert near.story == ["made", "data", "eof", "lost"]


async def test_another_kind_of_protocol_takes_over(secure):
    transport, first, far = await secure()
    second = BufferedRecorder(100)
    second.log.append("made")
    await far.send(b"first")
    await first.receives(5)
    transport.set_protocol(second)
    assert transport.get_protocol() is second
    await far.send(b"second" * 100)
    assert await second.receives(600) == b"second" * 100
    transport.set_protocol(first)
    await far.send(b"third")
    assert await first.receives(10) == b"firstthird"
    transport.abort()
    await first.lost()


async def test_streams(loop, secure, serve):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context())
    async with server:
        reader, writer = await asyncio.open_connection(
            *server.sockets[0].getsockname(), ssl=client_context(), server_hostname="localhost"
        )
        writer.write(b"hello\n")
        assert await reader.read() == b"HELLO\n"
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("debug", [False, True])
async def test_a_transport_describes_itself(loop, secure, debug):
    loop.set_debug(debug)
    transport, near, _ = await secure()
    assert repr(transport)
    transport.abort()
    await near.lost()
    assert repr(transport)
    assert transport.is_closing()


async def test_what_tls_does_not_have(secure):
    transport, _, _ = await secure()
    assert not transport.can_write_eof()
    with pytest.raises(NotImplementedError):
        transport.write_eof()


@pytest.mark.asyncio_wrong("writelines() takes whatever is iterable, and the connection breaks")
async def test_only_bytes_are_written(secure):
    transport, _, _ = await secure()
    with pytest.raises(TypeError):
        transport.write("text")
    with pytest.raises(TypeError):
        transport.writelines([b"", "text"])
