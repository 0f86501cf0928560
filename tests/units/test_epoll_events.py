"""EpollSelector on the real kernel: level-triggered events, in batches of any size."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest

from epoque.kernel.masks import EDGE, EXCLUSIVE, HANGUP, LEVEL, NEVER, READ, URGENT, WRITE
from epoque.selector.epoll import EpollSelector
from tests.units.real import EPOLLEXCLUSIVE, close, kernel, quiet, turn, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")


@pytest.fixture
def selector():
    selector = EpollSelector()
    yield selector
    selector.close()


def test_what_is_readable_is_reported_until_it_is_read(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    turn(selector)
    assert source.calls == []
    right.send(b"xy")
    for count in (1, 2, 3):
        turn(selector, NEVER)
        assert source.calls == [READ] * count
    left.recv(1)
    turn(selector)
    assert source.calls == [READ] * 4
    left.recv(1)
    turn(selector)
    assert source.calls == [READ] * 4


@pytest.mark.parametrize(("mode", "mask"), [(LEVEL, READ), (EDGE, READ | URGENT)])
def test_an_edge_triggered_source_is_told_of_urgent_data(selector, mode, mask):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as peer, listener.accept()[0] as near:
            source = watched(selector, near, READ, mode)
            peer.send(b"x")
            peer.send(b"!", socket.MSG_OOB)
            turn(selector, NEVER)
            assert source.calls[-1] == mask


def test_what_is_writable_is_reported_while_it_is_wanted(selector, pair):
    left, right = pair()
    source = watched(selector, left, WRITE)
    turn(selector)
    source.want(READ | WRITE)
    selector.update(source)
    right.send(b"x")
    turn(selector)
    source.want(READ)
    selector.update(source)
    turn(selector)
    assert source.calls == [WRITE, READ | WRITE, READ]


def test_the_end_of_the_stream_is_readable_and_a_hangup(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    right.send(b"last")
    right.shutdown(socket.SHUT_WR)
    turn(selector)
    left.recv(10)
    turn(selector)
    assert source.calls == [READ | HANGUP] * 2


@pytest.mark.parametrize("interest", [READ, WRITE, READ | WRITE])
def test_a_broken_connection_is_told_to_whoever_wants_anything(selector, pair, interest):
    left, right = pair()
    source = watched(selector, left, interest)
    right.close()
    turn(selector)
    assert source.calls == [READ | WRITE | HANGUP]


def test_a_pipe_whose_reader_is_gone_is_told_to_its_writer(selector, stack):
    reader, writer = os.pipe()
    stack.callback(close, writer)
    os.close(reader)
    source = watched(selector, writer, WRITE)
    turn(selector)
    assert source.calls == [READ | WRITE | HANGUP]


def test_a_paused_source_whose_peer_is_gone_does_not_spin(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    source.want(0)
    right.send(b"x")
    right.close()
    turn(selector, NEVER)  # the event that disarms it
    assert left.fileno() not in kernel(selector)
    assert quiet(selector)
    assert source.calls == []
    source.want(READ)
    selector.update(source)
    turn(selector)
    assert source.calls == [READ | WRITE | HANGUP]


def test_a_paused_direction_does_not_spin_and_the_other_goes_on(selector, pair):
    left, right = pair()
    source = watched(selector, left, READ | WRITE)
    right.send(b"x")
    source.want(WRITE)
    turn(selector)
    assert source.calls == [READ | WRITE]
    while True:  # fill it, until only the unread byte could make events
        try:
            left.send(bytes(65536))
        except BlockingIOError:
            break
    turn(selector)
    assert quiet(selector)
    assert source.calls == [READ | WRITE]


def test_an_edge_source_is_told_once_per_ring_and_never_read(selector, bell):
    fd = bell()
    source = watched(selector, fd, READ, EDGE)
    turn(selector)
    for count in (1, 2, 3):
        os.eventfd_write(fd, 1)
        turn(selector, NEVER)
        turn(selector)
        assert source.calls == [READ] * count
    os.eventfd_write(fd, 1)
    os.eventfd_write(fd, 1)
    turn(selector)
    turn(selector)
    assert len(source.calls) == 4


def test_an_exclusive_source_is_registered_as_such_however_its_interest_changes(selector, stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    source = watched(selector, listener, READ, EXCLUSIVE)
    for wanted in (READ, READ | WRITE, WRITE, 0, READ):
        source.want(wanted)
        selector.update(source)
        assert (listener.fileno() in kernel(selector)) == bool(wanted)
        assert not wanted or kernel(selector)[listener.fileno()] & EPOLLEXCLUSIVE
    stack.enter_context(socket.create_connection(listener.getsockname()))
    turn(selector, NEVER)
    assert source.calls == [READ]


def test_a_listener_shared_by_two_selectors_gets_every_connection_accepted(selector, stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    listener.setblocking(False)
    other = EpollSelector()
    stack.callback(other.close)
    accepted = []

    def accept(mask):
        with contextlib.suppress(BlockingIOError):
            accepted.append(stack.enter_context(listener.accept()[0]))

    for each in (selector, other):
        watched(each, listener, READ, EXCLUSIVE, accept)
    for count in range(1, 6):
        stack.enter_context(socket.create_connection(listener.getsockname()))
        while len(accepted) < count:
            turn(selector)
            turn(other)
    assert len(accepted) == 5


def test_more_descriptors_are_ready_than_a_batch_holds(selector, bell, stack):
    ready = bell(1)
    sources = []
    for _ in range(700):
        fd = os.dup(ready)
        stack.callback(close, fd)
        sources.append(watched(selector, fd))
    for delivered in (256, 256, 256, 256):
        before = sum(len(source.calls) for source in sources)
        turn(selector, NEVER)
        assert sum(len(source.calls) for source in sources) - before == delivered
    assert all(source.calls for source in sources)


def test_nobody_starves_when_all_are_always_ready(selector, bell, stack):
    ready = bell(1)
    sources = []
    for _ in range(300):
        fd = os.dup(ready)
        stack.callback(close, fd)
        sources.append(watched(selector, fd))
    turn(selector)
    turn(selector)
    assert all(source.calls for source in sources)


def test_what_an_exception_leaves_is_not_fetched_over(selector, pair):
    def fail(mask):
        raise KeyboardInterrupt

    sources = []
    for _ in range(3):
        left, right = pair()
        sources.append(watched(selector, left, action=fail))
        right.send(b"x")
    for count in (1, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            turn(selector, NEVER)
        assert [source.calls for source in sources].count([READ]) == count
