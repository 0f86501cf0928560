"""The beginning of a TLS connection, and the ways in which it fails."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import sys
import weakref

import pytest

from tests.net.peers import Factory, Recorder, reset, settle, tcp_pair
from tests.tls.far import ALERT, Far, certificate, client_context, server_context, version_2


async def test_alpn(secure):
    near, far = client_context(), server_context()
    near.set_alpn_protocols(["h2", "http/1.1"])
    far.set_alpn_protocols(["http/1.1"])
    transport, _, _ = await secure(near=near, far=far)
    assert transport.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"


async def test_sni_changes_the_context(secure):
    other = server_context("other.test")
    asked = []

    def choose(ssl_object: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        asked.append(name)
        ssl_object.context = other

    near, far = server_context("first.test"), client_context()
    near.sni_callback = choose
    far.check_hostname = False
    transport, _, peer = await secure(server=True, near=near, far=far)
    assert asked == ["localhost"]
    assert ("DNS", "other.test") in peer.ssl.getpeercert()["subjectAltName"]
    assert transport.get_extra_info("ssl_object").context is other


def _raise(*_):
    raise ZeroDivisionError


@pytest.mark.asyncio_wrong("the connection ends before the alert has left")
@pytest.mark.parametrize("answer", [ssl.ALERT_DESCRIPTION_ACCESS_DENIED, "raises"])
async def test_sni_refuses(loop, secure, answer, monkeypatch):
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: unraisable.append(args.exc_type))
    near = server_context()
    near.sni_callback = _raise if answer == "raises" else lambda *_: answer
    sock, other = tcp_pair()
    far = Far(other, client_context(), server_side=False)
    made = Factory()
    with other:
        results = await asyncio.gather(
            loop.connect_accepted_socket(made, sock, ssl=near), far.handshake(), return_exceptions=True
        )
    assert [type(result) for result in results] == [ssl.SSLError] * 2
    assert ("HANDSHAKE_FAILURE" if answer == "raises" else "ACCESS_DENIED") in results[1].reason
    assert unraisable == ([ZeroDivisionError] if answer == "raises" else [])
    assert made.made[0].log == []


def with_certificate(by: str | None) -> ssl.SSLContext:
    context = client_context()
    if by:
        certificate("client", by).configure_cert(context)
    return context


@pytest.mark.parametrize("version", [2, 3])
async def test_a_client_certificate(secure, version):
    near = server_context(clients="theirs")
    if version == 2:
        version_2(near)
    transport, _, far = await secure(server=True, near=near, far=with_certificate("theirs"))
    assert ("DNS", "client") in transport.get_extra_info("peercert")["subjectAltName"]


@pytest.mark.asyncio_wrong("the connection ends before the alert has left")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("by", [None, "strangers"], ids=["none", "wrong authority"])
@pytest.mark.parametrize("kind", ["accepted", "served"])
async def test_a_bad_client_certificate(loop, serve, by, version, kind):
    near = server_context(clients="theirs")
    if version == 2:
        version_2(near)
    if kind == "served":
        served = await serve(ssl=near)
        other, made = served.connect(), served.made
        accepting = None
    else:
        sock, other = tcp_pair()
        made = Factory()
        accepting = asyncio.ensure_future(loop.connect_accepted_socket(made, sock, ssl=near))
    far = Far(other, with_certificate(by), server_side=False)
    with other:
        with pytest.raises(ssl.SSLError) as caught:  # in TLS 1.3 the client is done before the server looks
            await far.handshake()
            await far.do(far.ssl.read, 1)
        assert "ALERT" in caught.value.reason
        if accepting is not None:
            with pytest.raises(ssl.SSLError):
                await accepting
        await settle()
    assert made.made[0].log == []


@pytest.mark.asyncio_wrong("the connection ends before the alert has left")
@pytest.mark.parametrize("version", [2, 3])
async def test_the_peer_hears_why_its_certificate_is_refused(loop, version):
    sock, other = tcp_pair()
    server = server_context("elsewhere.test")
    far = Far(other, version_2(server) if version == 2 else server, server_side=True)
    with other:
        results = await asyncio.gather(
            loop.create_connection(Recorder, sock=sock, ssl=client_context(), server_hostname="localhost"),
            far.handshake(),
            return_exceptions=True,
        )
    assert isinstance(results[0], ssl.SSLCertVerificationError)
    assert isinstance(results[1], ssl.SSLError)
    assert "ALERT_BAD_CERTIFICATE" in results[1].reason


async def test_an_unknown_authority(loop, serve):
    served = await serve(ssl=server_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        await loop.create_connection(
            Recorder, *served.address, ssl=client_context("strangers"), server_hostname="localhost"
        )


@pytest.mark.parametrize("version", [2, 3])
async def test_a_session_is_resumed(secure, version):
    near, far = server_context(), client_context()
    if version == 2:
        version_2(near)
    transport, _, first = await secure(server=True, near=near, far=far)
    transport.write(b"data, behind the session ticket")
    await first.read(100)
    assert not first.ssl.session_reused
    session = first.ssl.session
    await first.goodbye()
    again = Factory()
    sock, other = tcp_pair()
    second = Far(other, far, server_side=False, session=session)
    loop = asyncio.get_running_loop()
    with other:
        (transport, protocol), _ = await asyncio.gather(
            loop.connect_accepted_socket(again, sock, ssl=near), second.handshake()
        )
        assert second.ssl.session_reused
        assert transport.get_extra_info("ssl_object").session_reused
        transport.close()
        assert (await second.read_all(), second.end) == (b"", "close_notify")
        await second.goodbye()
        await protocol.lost()


@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
@pytest.mark.parametrize("how", ["FIN", "RST", "garbage", "silence", "half a record"])
async def test_the_peer_does_not_shake_hands(loop, server, how):
    sock, other = tcp_pair()
    made = Factory()
    options = {"ssl_handshake_timeout": 0.05} if how in ("silence", "half a record") else {}
    if server:
        connecting = loop.connect_accepted_socket(made, sock, ssl=server_context(), **options)
    else:
        connecting = loop.create_connection(
            made, sock=sock, ssl=client_context(), server_hostname="localhost", **options
        )
    connecting = asyncio.ensure_future(connecting)
    await settle()
    if how == "FIN":
        other.close()
    elif how == "RST":
        reset(other)
    elif how == "garbage":
        other.sendall(b"GET / HTTP/1.0\r\n\r\n")
    elif how == "half a record":
        other.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
    with pytest.raises(OSError) as caught:
        await connecting
    expected = {"garbage": ssl.SSLError, "FIN": ConnectionResetError, "RST": ConnectionResetError}
    assert isinstance(caught.value, expected.get(how, ConnectionAbortedError))
    assert made.made[0].log == []
    other.close()


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.0\r\n\r\n", bytes(100_000), b"\x16\x03\x01\xff\xff" + bytes(70_000)]
)
async def test_garbage_to_a_server(loop, serve, garbage):
    served = await serve(ssl=server_context())
    client = served.connect()
    client.sendall(garbage)
    client.setblocking(False)
    answer = b""
    try:
        while piece := await loop.sock_recv(client, 1000):
            answer += piece
    except ConnectionResetError:
        pass
    assert not answer or answer[0] == ALERT
    assert served.made.made[0].log == []


async def test_a_failure_on_a_server_is_told_in_debug_mode(loop, serve, errors):
    loop.set_debug(True)
    served = await serve(ssl=server_context())
    client = served.connect()
    client.sendall(b"nonsense")
    while not errors:
        await settle()
    assert isinstance(errors[0]["exception"], ssl.SSLError)
    assert errors[0]["message"] == "Error on transport creation for incoming connection"


@pytest.mark.parametrize("rounds", range(8))
@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
async def test_a_handshake_cancelled_after_any_number_of_turns(loop, rounds, server):
    sock, other = tcp_pair()
    made = Factory()
    if server:
        far = Far(other, client_context(), server_side=False)
        connecting = asyncio.ensure_future(loop.connect_accepted_socket(made, sock, ssl=server_context()))
    else:
        far = Far(other, server_context(), server_side=True)
        connecting = asyncio.ensure_future(
            loop.create_connection(made, sock=sock, ssl=client_context(), server_hostname="localhost")
        )
    shaking = asyncio.ensure_future(far.handshake())
    for _ in range(rounds):
        await asyncio.sleep(0)
    if not connecting.cancel():
        connecting.result()[0].abort()
    if rounds == 0:
        sock.close()  # nobody has taken it
    await asyncio.gather(connecting, shaking, return_exceptions=True)
    other.close()
    await settle()
    for protocol in made.made:
        log = protocol.log
        assert not log or (log[0], log.count("lost"), log[-1]) == ("made", 1, "lost"), log


@pytest.mark.asyncio_wrong("the exception, its traceback and a frame hold each other")
async def test_a_failed_handshake_leaves_no_cycles(loop):
    gc.collect()
    gc.disable()
    try:
        sock, other = tcp_pair()
        made = Factory()
        other.send(b"nonsense")
        with contextlib.suppress(ssl.SSLError):
            await loop.create_connection(made, sock=sock, ssl=client_context(), server_hostname="localhost")
        other.close()
        await settle()
        known = weakref.ref(made.made.pop())
        assert known() is None
    finally:
        gc.enable()


async def test_a_context_that_does_not_fit_a_client(loop):
    sock, other = tcp_pair()
    with sock, other:
        with pytest.raises(ssl.SSLError):
            await loop.create_connection(Recorder, sock=sock, ssl=server_context(), server_hostname="localhost")
        assert (sock.fileno() < 0) == (sys.version_info >= (3, 14))


@pytest.mark.asyncio_wrong("nothing is reported, and the client stays connected")
async def test_a_context_that_does_not_fit_a_server(loop, serve, errors):
    served = await serve(ssl=client_context())
    served.connect()
    while not errors:
        await settle()
    assert isinstance(errors[0]["exception"], (ssl.SSLError, ValueError))  # the latter from Python 3.14 on
