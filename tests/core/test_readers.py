"""add_reader, add_writer, remove_reader, remove_writer: arguments, errors, replacing, one descriptor in both roles."""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket

import pytest

from tests.loops import on_kqueue, run, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
BOTH = pytest.mark.parametrize("role", ["reader", "writer"])


def add(loop, role):
    return getattr(loop, f"add_{role}")


def remove(loop, role):
    return getattr(loop, f"remove_{role}")


@pytest.fixture
def pair(loop):
    """Two connected sockets; after the test the first of them is no longer watched."""
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        yield left, right
        if left.fileno() >= 0 and not loop.is_closed():
            loop.remove_reader(left)
            loop.remove_writer(left)


class HasFileno:
    def __init__(self, fd):
        self.fileno = lambda: fd


@BOTH
@pytest.mark.parametrize("form", ["socket", "number", "object"])
def test_a_ready_descriptor_calls_back_with_the_arguments(loop, pair, role, form):
    left, right = pair
    got = []
    right.send(b"x")
    watched = {"socket": left, "number": left.fileno(), "object": HasFileno(left.fileno())}[form]
    assert add(loop, role)(watched, lambda *args: (got.append(args), loop.stop()), 1, "two") is None
    loop.run_forever()
    assert got == [(1, "two")]
    assert remove(loop, role)(watched) is True


def test_a_reader_is_called_only_when_there_is_something_to_read(loop, pair):
    left, right = pair
    got = []
    loop.add_reader(left, lambda: (got.append(left.recv(10)), loop.stop()))
    turn(loop)
    assert got == []
    loop.call_later(0.001, right.send, b"later")
    loop.run_forever()
    assert got == [b"later"]


def test_a_writer_is_called_only_when_there_is_room(loop, pair):
    left, right = pair
    ran = []
    with pytest.raises(BlockingIOError):
        while True:
            left.send(b"x" * 65536)
    loop.add_writer(left, lambda: (ran.append(1), loop.stop()))
    turn(loop)
    assert ran == []

    def drain():
        with pytest.raises(BlockingIOError):
            while right.recv(1 << 20):
                pass

    loop.call_soon(drain)
    loop.run_forever()
    assert ran == [1]


@BOTH
def test_it_is_called_again_in_every_turn_while_the_descriptor_stays_ready(loop, pair, role):
    left, right = pair
    ran = []
    right.send(b"never read")
    add(loop, role)(left, ran.append, 1)
    for count in range(1, 5):
        turn(loop)
        assert len(ran) == count


@BOTH
def test_remove_says_whether_there_was_one(loop, pair, role):
    left, _ = pair
    assert remove(loop, role)(left) is False
    add(loop, role)(left, print)
    assert remove(loop, role)(left) is True
    assert remove(loop, role)(left) is False


def test_one_may_be_removed_and_the_other_role_stays(loop, pair):
    left, right = pair
    ran = []
    right.send(b"x")
    loop.add_reader(left, ran.append, "read")
    loop.add_writer(left, ran.append, "write")
    turn(loop)
    assert sorted(ran) == ["read", "write"]
    ran.clear()
    assert loop.remove_reader(left) is True
    turn(loop)
    assert ran == ["write"]
    ran.clear()
    loop.add_reader(left, ran.append, "read again")
    assert loop.remove_writer(left) is True
    turn(loop)
    assert ran == ["read again"]
    assert loop.remove_writer(left) is False
    assert loop.remove_reader(left) is True


@BOTH
def test_adding_again_replaces_the_callback(loop, pair, role):
    left, right = pair
    ran = []
    right.send(b"x")
    add(loop, role)(left, ran.append, "first")
    add(loop, role)(left, ran.append, "second")
    turn(loop)
    assert ran == ["second"]
    assert remove(loop, role)(left) is True
    assert remove(loop, role)(left) is False


@BOTH
def test_a_callback_removes_itself(loop, pair, role):
    left, right = pair
    ran = []
    right.send(b"x")
    add(loop, role)(left, lambda: ran.append(remove(loop, role)(left)))
    for _ in range(3):
        turn(loop)
    assert ran == [True]


@BOTH
def test_a_callback_replaces_itself(loop, pair, role):
    left, right = pair
    ran = []
    right.send(b"x")

    def first():
        ran.append("first")
        add(loop, role)(left, second)

    def second():
        ran.append("second")
        remove(loop, role)(left)

    add(loop, role)(left, first)
    for _ in range(4):
        turn(loop)
    assert ran == ["first", "second"]


@BOTH
def test_added_before_or_during_the_run_and_kept_between_runs(loop, pair, role):
    left, right = pair
    right.send(b"x")
    ran = []
    loop.call_soon(lambda: add(loop, role)(left, ran.append, 1))
    for _ in range(3):
        turn(loop)
    assert len(ran) >= 2


@BOTH
def test_the_callback_runs_in_the_context_of_its_adding(loop, pair, role):
    left, right = pair
    seen = []
    right.send(b"x")
    token = variable.set("of the adding")
    add(loop, role)(left, lambda: (seen.append(variable.get()), variable.set("changed"), loop.stop()))
    variable.reset(token)
    loop.run_forever()
    assert seen == ["of the adding"]
    assert variable.get() == "unset"


@BOTH
def test_a_callback_that_raises_is_reported_and_called_again(loop, pair, errors, role):
    left, right = pair
    right.send(b"x")
    add(loop, role)(left, lambda: 1 / 0)
    turn(loop)
    turn(loop)
    assert [type(context["exception"]) for context in errors] == [ZeroDivisionError] * 2
    assert isinstance(errors[0]["handle"], asyncio.Handle)


def test_the_end_of_a_stream_is_readable(loop, pair):
    left, right = pair
    right.close()
    got = []
    loop.add_reader(left, lambda: (got.append(left.recv(10)), loop.stop()))
    loop.run_forever()
    assert got == [b""]


def test_a_writer_hears_of_a_peer_that_is_gone(loop, pair):
    left, right = pair
    with pytest.raises(BlockingIOError):
        while True:
            left.send(b"x" * 65536)
    loop.call_soon(right.close)
    caught = []

    def on_writable():
        with pytest.raises((BrokenPipeError, ConnectionResetError)) as raised:
            left.send(b"x")
        caught.append(raised.value)
        loop.stop()

    loop.add_writer(left, on_writable)
    loop.run_forever()
    assert len(caught) == 1


def test_both_ends_of_a_pipe_hear_of_the_other_end_being_closed(loop):
    for role in ("reader", "writer"):
        read_end, write_end = os.pipe()
        mine, other = (read_end, write_end) if role == "reader" else (write_end, read_end)
        os.close(other)
        add(loop, role)(mine, loop.stop)
        loop.run_forever()
        assert remove(loop, role)(mine) is True
        os.close(mine)


def test_a_listening_socket_is_readable_when_a_client_comes(loop):
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        accepted = loop.create_future()
        loop.add_reader(listener, lambda: accepted.set_result(listener.accept()) or loop.remove_reader(listener))
        loop.call_soon(client.connect, listener.getsockname())
        sock, _ = run(loop, asyncio.wait_for(accepted, 5))
        sock.close()


@BOTH
@pytest.mark.skipif(on_kqueue, reason="kqueue watches regular files")
def test_a_regular_file_is_refused_at_once(loop, tmp_path, role):
    with open(tmp_path / "file", "w+") as file:
        with pytest.raises(PermissionError):
            add(loop, role)(file, print)
        assert remove(loop, role)(file) is False
        with pytest.raises(PermissionError):
            add(loop, role)(file, print)
    turn(loop)


@BOTH
@pytest.mark.parametrize("wrong", [None, "text", b"bytes", 1.5, object(), HasFileno(None), HasFileno("x"), [0]])
def test_what_has_no_descriptor_is_a_value_error(loop, role, wrong):
    for call in (lambda: add(loop, role)(wrong, print), lambda: remove(loop, role)(wrong)):
        with pytest.raises(ValueError):
            call()


@BOTH
@pytest.mark.parametrize("wrong", [-1, -(2**70), HasFileno(-1)])
def test_a_negative_descriptor_is_a_value_error(loop, role, wrong):
    for call in (lambda: add(loop, role)(wrong, print), lambda: remove(loop, role)(wrong)):
        with pytest.raises(ValueError):
            call()


@BOTH
def test_a_closed_socket_is_a_value_error(loop, role):
    sock = socket.socket()
    sock.close()
    with pytest.raises(ValueError):
        add(loop, role)(sock, print)
    with pytest.raises(ValueError):
        remove(loop, role)(sock)


@BOTH
def test_a_number_that_is_not_open_is_an_os_error_and_not_remembered(loop, role):
    number = os.open("/dev/null", os.O_RDONLY)
    os.close(number)
    with pytest.raises(OSError):
        add(loop, role)(number, print)
    assert remove(loop, role)(number) is False
    turn(loop)


@BOTH
@pytest.mark.parametrize("number", [2**31, 2**40, 2**70])
def test_a_number_too_large_for_a_descriptor_is_an_overflow_error(loop, role, number):
    with pytest.raises(OverflowError):
        add(loop, role)(number, print)
    assert remove(loop, role)(number) is False
    turn(loop)


@BOTH
def test_a_missing_callback_is_a_type_error(loop, pair, role):
    with pytest.raises(TypeError):
        add(loop, role)(pair[0])


@BOTH
def test_what_cannot_be_called_is_reported_when_the_descriptor_is_ready(loop, pair, errors, role):
    left, right = pair
    right.send(b"x")
    loop.set_debug(False)
    add(loop, role)(left, None)
    turn(loop)
    assert [type(context["exception"]) for context in errors] == [TypeError]


@BOTH
def test_close_forgets_what_was_watched(loop, pair, role):
    left, right = pair
    right.send(b"x")
    add(loop, role)(left, pytest.fail, "called after the close")
    loop.close()
    assert remove(loop, role)(left) is False
    assert left.fileno() >= 0


@BOTH
def test_the_descriptor_of_a_transport_is_refused(loop, role):
    async def main():
        left, right = socket.socketpair()
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=left)
        number = transport.get_extra_info("socket").fileno()
        for call in (lambda: add(loop, role)(number, print), lambda: remove(loop, role)(number)):
            with pytest.raises(RuntimeError, match="is used by transport"):
                call()
        transport.close()
        right.close()
        await asyncio.sleep(0)

    run(loop, main())
