"""Streams over Unix sockets: paths, abstract names, and what happens to the file of a server."""

from __future__ import annotations

import asyncio
import errno
import os
import pathlib
import socket
import stat
import sys

import pytest

from tests.net.peers import Echo, Factory, Recorder, raiser, settle, unix_pair

needs_abstract_names = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract socket names")
cleans_up = sys.version_info >= (3, 13)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A short path (the kernel takes some 100 bytes at most), relative to a directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    return "socket"


@pytest.fixture
def serve_unix(loop):
    started = []

    async def serve_unix(kind=Echo, path=None, **options):
        made = Factory(kind)
        started.append((await loop.create_unix_server(made, path, **options), made))
        return started[-1]

    yield serve_unix
    for server, made in started:
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        for protocol in made.made:
            if protocol.transport and not protocol.lost_with:
                protocol.transport.abort()
    loop.run_until_complete(asyncio.sleep(0))


async def echoes(loop, path):
    transport, protocol = await loop.create_unix_connection(Recorder, path)
    transport.write(b"echo")
    assert await protocol.receives(4) == b"echo"
    transport.close()
    assert await protocol.lost() is None


@pytest.mark.parametrize("kind", [str, pathlib.Path, os.fsencode])
async def test_paths_of_every_kind_are_served(loop, serve_unix, path, kind):
    server, _ = await serve_unix(path=kind(path))
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert server.sockets[0].getsockname() == path
    await echoes(loop, kind(path))


@needs_abstract_names
@pytest.mark.parametrize(
    "template", ["\0epoque-test-{}", b"\0epoque-test-bytes-{}", b"\0epoque-test\0inner-{}", "\0epoque-\N{SNOWMAN}-{}"]
)
async def test_abstract_names_are_served(loop, serve_unix, template):
    number = str(os.getpid())
    name = template.replace(b"{}", number.encode()) if isinstance(template, bytes) else template.format(number)
    await serve_unix(path=name)
    transport, protocol = await loop.create_unix_connection(Recorder, name)
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(name)
        assert transport.get_extra_info("peername") == plain.getpeername() == os.fsencode(name)
    transport.close()
    await protocol.lost()
    await echoes(loop, name)


async def test_names_of_both_ends_are_known(loop, serve_unix, path):
    _, made = await serve_unix(path=path)
    transport, protocol = await loop.create_unix_connection(Recorder, path)
    assert transport.get_extra_info("peername") == path
    assert transport.get_extra_info("sockname") == ""
    assert transport.get_extra_info("socket").family == socket.AF_UNIX
    at_server = await made.nth()
    assert at_server.transport.get_extra_info("sockname") == path
    assert at_server.transport.get_extra_info("peername") == ""
    transport.close()
    await protocol.lost()


async def test_given_sockets_are_used(loop, serve_unix, path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    _, made = await serve_unix(sock=listening)
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(path)
    transport, protocol = await loop.create_unix_connection(Recorder, sock=connected)
    transport.write(b"echo")
    assert await protocol.receives(4) == b"echo"
    transport.close()
    await protocol.lost()
    assert len(made.made) == 1


async def test_stale_socket_is_replaced(loop, serve_unix, path):
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with pytest.raises(ConnectionRefusedError):
        await loop.create_unix_connection(Recorder, path)
    await serve_unix(path=path)
    await echoes(loop, path)


@pytest.mark.parametrize("kind", [str, os.fsencode])
async def test_file_that_is_no_socket_is_left_alone(serve_unix, path, kind):
    pathlib.Path(path).write_text("precious")
    with pytest.raises(OSError, match="is already in use") as caught:
        await serve_unix(path=kind(path))
    assert caught.value.errno == errno.EADDRINUSE
    assert repr(kind(path)) in str(caught.value)
    assert pathlib.Path(path).read_text() == "precious"


@needs_abstract_names
async def test_abstract_name_in_use_is_named(loop, serve_unix):
    name = f"\0epoque-test-twice-{os.getpid()}"
    await serve_unix(path=name)
    with pytest.raises(OSError, match="is already in use") as caught:
        await loop.create_unix_server(Recorder, name)
    assert caught.value.errno == errno.EADDRINUSE
    await echoes(loop, name)


async def test_directory_that_does_not_exist_is_an_error(loop, path):
    with pytest.raises(FileNotFoundError):
        await loop.create_unix_server(Recorder, "missing/" + path)
    with pytest.raises(FileNotFoundError):
        await loop.create_unix_connection(Recorder, "missing/" + path)


async def test_path_too_long_is_an_error(loop):
    with pytest.raises(OSError, match="path too long"):
        await loop.create_unix_server(Recorder, "x" * 300)
    with pytest.raises(OSError, match="path too long"):
        await loop.create_unix_connection(Recorder, "x" * 300)


async def test_connect_to_what_is_no_socket_is_refused(loop, path):
    pathlib.Path(path).touch()
    with pytest.raises(ConnectionRefusedError):
        await loop.create_unix_connection(Recorder, path)


@pytest.mark.parametrize(
    ("options", "stays"),
    [
        pytest.param({}, not cleans_up, id="default"),
        pytest.param({"cleanup_socket": True}, False, id="on", marks=pytest.mark.since(3, 13)),
        pytest.param({"cleanup_socket": False}, True, id="off", marks=pytest.mark.since(3, 13)),
    ],
)
async def test_file_of_a_closed_server_is_removed_from_python_3_13_on(serve_unix, path, options, stays):
    server, _ = await serve_unix(path=path, **options)
    server.close()
    await server.wait_closed()
    assert os.path.exists(path) is stays


@pytest.mark.since(3, 13)
async def test_file_of_a_given_socket_is_removed_too(serve_unix, path):
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    server, _ = await serve_unix(sock=sock)
    server.close()
    assert not os.path.exists(path)


@pytest.mark.since(3, 13)
async def test_file_is_removed_when_the_server_never_served(serve_unix, path):
    server, _ = await serve_unix(path=path, start_serving=False)
    server.close()
    assert not os.path.exists(path)


@pytest.mark.since(3, 13)
async def test_file_that_somebody_else_put_in_place_stays(loop, serve_unix, path):
    first, _ = await serve_unix(path=path)
    await serve_unix(path=path)  # replaces the socket of the first one
    first.close()
    assert os.path.exists(path)
    await echoes(loop, path)


@pytest.mark.since(3, 13)
async def test_file_that_is_gone_already_does_not_disturb(serve_unix, path):
    server, _ = await serve_unix(path=path)
    os.unlink(path)
    server.close()
    await server.wait_closed()


@needs_abstract_names
@pytest.mark.since(3, 13)
async def test_abstract_names_need_no_cleaning(serve_unix):
    server, _ = await serve_unix(path=f"\0epoque-test-clean-{os.getpid()}", cleanup_socket=True)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("create", ["create_unix_connection", "create_unix_server"])
class TestArguments:
    async def test_neither_path_nor_socket_is_refused(self, loop, create):
        with pytest.raises(ValueError, match="path"):
            await getattr(loop, create)(Recorder)

    async def test_path_and_socket_together_are_refused(self, loop, sockets, create):
        sock = sockets.enter_context(socket.socket(socket.AF_UNIX))
        with pytest.raises(ValueError, match="path and sock can not be specified at the same time"):
            await getattr(loop, create)(Recorder, "path", sock=sock)
        assert sock.fileno() != -1

    @pytest.mark.parametrize(
        ("family", "type_"), [(socket.AF_INET, socket.SOCK_STREAM), (socket.AF_UNIX, socket.SOCK_DGRAM)]
    )
    async def test_sockets_of_another_kind_are_refused(self, loop, sockets, create, family, type_):
        sock = sockets.enter_context(socket.socket(family, type_))
        with pytest.raises(ValueError, match="A UNIX Domain Stream Socket was expected, got"):
            await getattr(loop, create)(Recorder, sock=sock)
        assert sock.fileno() != -1

    @pytest.mark.parametrize("option", ["ssl_handshake_timeout", "ssl_shutdown_timeout"])
    async def test_options_of_tls_need_ssl(self, loop, create, option):
        with pytest.raises(ValueError, match=f"{option} is only meaningful with ssl"):
            await getattr(loop, create)(Recorder, "path", **{option: 1})

    @pytest.mark.parametrize("path", [3, 1.5, object()])
    async def test_paths_that_are_none_are_refused(self, loop, create, path):
        with pytest.raises(TypeError):
            await getattr(loop, create)(Recorder, path)


async def test_server_hostname_needs_ssl(loop):
    with pytest.raises(ValueError, match="server_hostname is only meaningful with ssl"):
        await loop.create_unix_connection(Recorder, "path", server_hostname="a.name")


async def test_tls_needs_a_server_hostname(loop):
    with pytest.raises(ValueError, match="you have to pass server_hostname when using ssl"):
        await loop.create_unix_connection(Recorder, "path", ssl=True)


async def test_server_refuses_ssl_that_is_no_context(loop):
    with pytest.raises(TypeError, match="ssl argument must be an SSLContext or None"):
        await loop.create_unix_server(Recorder, "path", ssl=True)


async def test_start_serving_false_refuses_clients_until_started(loop, serve_unix, path):
    server, _ = await serve_unix(path=path, start_serving=False)
    assert not server.is_serving()
    with pytest.raises(ConnectionRefusedError):
        await loop.create_unix_connection(Recorder, path)
    await server.start_serving()
    await echoes(loop, path)


async def test_failed_listen_or_connect_leaves_no_socket(loop, path):
    with pytest.raises(FileNotFoundError):
        await loop.create_unix_connection(Recorder, path)
    near, far = unix_pair()
    with near, far:
        with pytest.raises(ZeroDivisionError):
            await loop.create_unix_connection(raiser(ZeroDivisionError), sock=near)


@pytest.mark.asyncio_wrong("takes the socket that could not be queued for a connected one")
async def test_full_queue_of_a_unix_server_is_never_taken_for_a_connection(loop, sockets, path):
    """connect(2) answers EAGAIN there, and the socket is no nearer to being connected."""
    listening = sockets.enter_context(socket.socket(socket.AF_UNIX))
    listening.bind(path)
    listening.listen(0)
    listening.setblocking(False)
    sockets.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
    task = asyncio.create_task(loop.create_unix_connection(Recorder, path))
    await settle()
    sockets.enter_context((await loop.sock_accept(listening))[0])
    try:
        transport, protocol = await task
    except OSError:
        return  # to be turned away is an answer, too
    accepted = sockets.enter_context((await loop.sock_accept(listening))[0])
    accepted.send(b"hello")
    assert await protocol.receives(5) == b"hello"
    transport.close()
    await protocol.lost()
