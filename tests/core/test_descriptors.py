"""The life of watched descriptors: closed behind the loop's back, reused, changed from callbacks of the same batch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import weakref

import pytest

from tests.core.idle import SPIN, cpu_share
from tests.loops import checked_script, run, turn


@pytest.fixture
def sockets(loop):
    """Makes pairs of connected sockets that are closed, and no longer watched, at the end."""
    made = []

    def pair():
        both = socket.socketpair()
        for sock in both:
            sock.setblocking(False)
        made.extend(both)
        return both

    run(loop, asyncio.sleep(0.001))  # the loop's own descriptors have their numbers
    yield pair
    for sock in made:
        if sock.fileno() >= 0:
            loop.remove_reader(sock)
            loop.remove_writer(sock)
            sock.close()


def replaced(old, new):
    """Close `old` and give its number to `new`."""
    number = old.fileno()
    old.close()
    os.dup2(new.fileno(), number)
    new.close()
    sock = socket.socket(fileno=number)
    sock.setblocking(False)
    return sock


def test_an_idle_loop_uses_no_cpu(loop, sockets):
    left, _ = sockets()
    loop.add_reader(left, print)
    assert run(loop, cpu_share()) < SPIN


@pytest.mark.parametrize("how", ["in a callback", "between runs"])
def test_a_socket_closed_while_it_is_watched_does_no_harm(loop, sockets, how):
    left, right = sockets()
    calls = []
    number = left.fileno()
    loop.add_reader(left, calls.append, 1)
    loop.add_writer(right, lambda: loop.remove_writer(right))
    if how == "in a callback":
        loop.call_soon(left.close)
    else:
        turn(loop)
        left.close()
    assert run(loop, cpu_share()) < SPIN
    assert calls == []
    assert loop.remove_reader(number) is True
    assert loop.remove_reader(number) is False


def test_a_socket_that_closes_itself_in_its_callback_without_removal_does_no_harm(loop, sockets):
    left, right = sockets()
    number, calls = left.fileno(), []
    loop.add_reader(left, lambda: (calls.append(1), left.close()))
    right.send(b"x")
    assert run(loop, cpu_share()) < SPIN
    assert calls == [1]
    assert loop.remove_reader(number) is True


def test_a_closed_socket_can_be_removed_by_the_object_it_was_added_with(loop, sockets):
    left, _ = sockets()
    loop.add_reader(left, print)
    left.close()
    assert loop.remove_reader(left) is True


@pytest.mark.asyncio_wrong("epoll goes on to report the closed number and the loop spins")
def test_a_socket_closed_while_a_duplicate_lives_is_noticed(loop, sockets):
    left, right = sockets()
    number, calls = left.fileno(), []
    duplicate = left.dup()
    loop.add_reader(left, calls.append, 1)
    right.send(b"x")
    left.close()
    with duplicate:
        assert run(loop, cpu_share()) < SPIN
        assert len(calls) < 100
    loop.remove_reader(number)


@pytest.mark.asyncio_wrong("epoll goes on to report the closed number and the loop spins")
def test_a_socket_removed_after_its_close_while_a_duplicate_lives_is_silent(loop, sockets):
    left, right = sockets()
    number = left.fileno()
    duplicate = left.dup()
    loop.add_reader(left, pytest.fail, "called after the removal")
    right.send(b"x")
    left.close()
    with duplicate:
        assert loop.remove_reader(number) is True
        assert run(loop, cpu_share()) < SPIN


@pytest.mark.asyncio_wrong("it takes the new socket for the old one: epoll_ctl fails with ENOENT")
def test_a_number_reused_without_removal_can_be_watched_anew(loop, sockets):
    left, right = sockets()
    fresh, fresh_peer = sockets()
    got = []
    loop.add_reader(left, pytest.fail, "the callback of the old socket")
    heir = replaced(left, fresh)
    with heir:
        loop.add_reader(heir, lambda: got.append(heir.recv(10)))
        turn(loop)
        assert got == []
        fresh_peer.send(b"new")
        turn(loop)
        assert got == [b"new"]
        assert loop.remove_reader(heir) is True


def test_a_number_reused_and_not_watched_is_left_alone(loop, sockets):
    left, right = sockets()
    fresh, fresh_peer = sockets()
    loop.add_reader(left, pytest.fail, "the callback of the old socket")
    with replaced(left, fresh) as heir:
        fresh_peer.send(b"x")
        assert run(loop, cpu_share(0.05)) < SPIN
        assert heir.recv(10) == b"x"
        assert loop.remove_reader(heir) is True


def test_a_removed_reader_with_data_unread_keeps_no_loop_busy(loop, sockets):
    left, right = sockets()
    loop.add_reader(left, pytest.fail, "called after the removal")
    loop.remove_reader(left)
    right.send(b"x")
    assert run(loop, cpu_share()) < SPIN
    got = []
    loop.add_reader(left, lambda: got.append(left.recv(10)))
    turn(loop)
    assert got == [b"x"]


def test_a_removed_reader_closed_while_a_duplicate_lives_keeps_no_loop_busy(loop, sockets):
    left, right = sockets()
    loop.add_reader(left, pytest.fail, "called after the removal")
    loop.remove_reader(left)
    with left.dup():
        left.close()
        right.send(b"x")
        assert run(loop, cpu_share()) < SPIN


@pytest.mark.parametrize("duplicated", [False, True])
def test_the_number_of_a_removed_reader_can_be_watched_anew(loop, sockets, duplicated):
    left, right = sockets()
    heirs = [sockets() for _ in range(5)]
    with left.dup() if duplicated else contextlib.nullcontext():
        for fresh, fresh_peer in heirs:
            loop.add_reader(left, pytest.fail, "the callback of a former socket")
            loop.remove_reader(left)
            left = replaced(left, fresh)
            if duplicated:
                right.send(b"of no interest")
            got = []
            loop.add_reader(left, lambda left=left, got=got: got.append(left.recv(10)))
            turn(loop)
            fresh_peer.send(b"new")
            for _ in range(3):
                turn(loop)
            assert b"".join(filter(None, got)) == b"new"
            assert loop.remove_reader(left) is True
    left.close()


def test_a_removed_reader_keeps_no_file_object(loop, sockets):
    class File:
        fileno = sockets()[0].fileno

    fileobj = File()
    loop.add_reader(fileobj, print)
    loop.remove_reader(fileobj)
    known = weakref.ref(fileobj)
    del fileobj
    assert known() is None


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_two_ready_callbacks_that_remove_each_other_run_once_in_all(loop, sockets, role):
    add, remove = getattr(loop, f"add_{role}"), getattr(loop, f"remove_{role}")
    (a, a_peer), (b, b_peer) = sockets(), sockets()
    ran = []
    add(a, lambda: (ran.append("a"), remove(a), remove(b)))
    add(b, lambda: (ran.append("b"), remove(a), remove(b)))
    a_peer.send(b"x")
    b_peer.send(b"x")
    for _ in range(3):
        turn(loop)
    assert len(ran) == 1


def test_a_reader_removes_the_writer_of_its_own_descriptor_and_the_other_way_round(loop, sockets):
    left, right = sockets()
    ran = []
    right.send(b"x")
    loop.add_reader(left, lambda: (ran.append("reader"), loop.remove_writer(left), loop.remove_reader(left)))
    loop.add_writer(left, lambda: (ran.append("writer"), loop.remove_reader(left), loop.remove_writer(left)))
    for _ in range(3):
        turn(loop)
    assert len(ran) == 1


def test_a_callback_replaced_in_its_batch_does_not_run_but_its_successor(loop, sockets):
    (a, a_peer), (b, b_peer) = sockets(), sockets()
    ran = []

    def on_ready(me, other):
        ran.append("old")
        loop.remove_reader(me)
        loop.add_reader(other, lambda: (ran.append("new"), loop.remove_reader(other)))

    loop.add_reader(a, on_ready, a, b)
    loop.add_reader(b, on_ready, b, a)
    a_peer.send(b"x")
    b_peer.send(b"x")
    for _ in range(4):
        turn(loop)
    assert ran == ["old", "new"]


@pytest.mark.parametrize(
    "removed",
    [True, pytest.param(False, marks=pytest.mark.asyncio_wrong("epoll_ctl fails with ENOENT for the new socket"))],
    ids=["removed", "only closed"],
)
def test_an_event_at_hand_is_not_given_to_the_new_owner_of_the_number(loop, sockets, removed):
    (a, a_peer), (b, b_peer) = sockets(), sockets()
    fresh, fresh_peer = sockets()
    ran, got, heirs = [], [], []

    def on_ready(me, victim):
        ran.append(me)
        if len(ran) > 1:
            return
        loop.remove_reader(me)
        if removed:
            loop.remove_reader(victim)
        heir = replaced(victim, fresh)
        heirs.append(heir)
        loop.add_reader(heir, lambda: got.append(heir.recv(10)))

    loop.add_reader(a, on_ready, a, b)
    loop.add_reader(b, on_ready, b, a)
    a_peer.send(b"old")
    b_peer.send(b"old")
    for _ in range(3):
        turn(loop)
    assert len(ran) == 1
    assert got == []
    fresh_peer.send(b"new")
    turn(loop)
    assert got == [b"new"]
    assert loop.remove_reader(heirs[0]) is True
    heirs[0].close()


def test_a_batch_in_which_each_callback_closes_another_socket_is_got_through(loop, sockets):
    pairs = [sockets() for _ in range(40)]
    ran = []

    def on_ready(number):
        ran.append(number)
        loop.remove_reader(pairs[number][0])
        victim = pairs[-1 - number][0]
        if victim.fileno() >= 0:
            loop.remove_reader(victim)
            victim.close()

    for number, (left, right) in enumerate(pairs):
        loop.add_reader(left, on_ready, number)
        right.send(b"x")
    for _ in range(3):
        turn(loop)
    assert len(ran) == len(set(ran)) == 20


def test_sockets_added_by_a_callback_of_the_batch_are_served_in_a_later_turn(loop, sockets):
    left, right = sockets()
    right.send(b"x")
    served = []

    def on_ready():
        loop.remove_reader(left)
        for _ in range(50):
            fresh, peer = sockets()
            peer.send(b"x")
            loop.add_reader(fresh, lambda fresh=fresh: (served.append(1), loop.remove_reader(fresh)))

    loop.add_reader(left, on_ready)
    for _ in range(3):
        turn(loop)
    assert len(served) == 50


def test_an_error_state_of_a_removed_descriptor_costs_nothing(loop, sockets):
    """A hang-up is reported by epoll whether it is asked for or not."""
    left, right = sockets()
    loop.add_reader(left, print)
    loop.add_writer(left, print)
    loop.remove_reader(left)
    loop.remove_writer(left)
    right.close()
    assert run(loop, cpu_share()) < SPIN


def test_adding_and_removing_a_thousand_times_leaves_nothing(loop, sockets):
    left, right = sockets()
    right.send(b"x")
    ran = []
    for _ in range(1_000):
        loop.add_reader(left, ran.append, 1)
        loop.add_writer(left, ran.append, 1)
        assert loop.remove_reader(left)
        assert loop.remove_writer(left)
    turn(loop)
    assert ran == []


@pytest.mark.parametrize("closed", [(0,), (1, 2), (0, 1, 2)])
def test_a_loop_works_in_a_process_started_without_standard_descriptors(tmp_path, closed):
    code = """
        loop = new_loop()

        async def main():
            left, right = socket.socketpair()
            left.setblocking(False)
            readable = loop.create_future()
            loop.add_reader(left, lambda: (loop.remove_reader(left), readable.set_result(left.recv(10))))
            loop.call_later(0.001, right.send, b"data")
            loop.add_signal_handler(signal.SIGUSR1, signalled.set)
            assert await readable == b"data"
            os.kill(os.getpid(), signal.SIGUSR1)
            await signalled.wait()
            assert await loop.run_in_executor(None, pow, 2, 3) == 8
            left.close()
            right.close()

        signalled = asyncio.Event()
        run(loop, main())
        loop.close()
        with open(sys.argv[1], "w") as file:
            file.write("done")
    """
    report = tmp_path / "report"

    def close():
        for fd in closed:
            os.close(fd)

    checked_script(code, str(report), preexec_fn=close)
    assert report.read_text() == "done"
