"""KqueueSelector: what is different with kqueue, and must not be seen from outside."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket

import pytest

import epoque
from epoque.kernel.masks import EXCLUSIVE, HANGUP, NEVER, READ, WRITE
from tests.conftest import open_descriptors
from tests.loops import exit_code, forked
from tests.units import kqueues
from tests.units.real import close, quiet, turn, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")
interpreted = pytest.mark.skipif(epoque.compiled, reason="compiled, the system call cannot be looked at")


@pytest.fixture
def make(monkeypatch, stack):
    kqueues.provide(monkeypatch)
    from epoque.selector.kqueue import KqueueSelector

    def make():
        selector = KqueueSelector()
        stack.callback(selector.close)
        return selector

    return make


@pytest.fixture
def selector(make):
    return make()


@pytest.fixture
def calls(monkeypatch):
    """The changes of each call of kevent(2), in order."""
    made = []
    original = select.kqueue.control

    def control(self, changes, room, timeout=None):
        made.append([(change.filter, change.flags) for change in changes or ()])
        return original(self, changes, room, timeout)

    monkeypatch.setattr(select.kqueue, "control", control)
    return made


def told(source):
    """What a source was told altogether, whether by one event or two."""
    mask = 0
    for call in source.calls:
        mask |= call
    source.calls.clear()
    return mask


def fill(sock):
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(65536))


def test_what_is_writable_is_reported_while_it_is_wanted(selector, pair):
    left, right = pair()
    source = watched(selector, left, WRITE)
    turn(selector)
    assert told(source) == WRITE
    source.want(READ | WRITE)
    selector.update(source)
    right.send(b"x")
    turn(selector)
    assert told(source) == READ | WRITE
    source.want(READ)
    selector.update(source)
    turn(selector)
    assert told(source) == READ


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("interest", [READ, WRITE, READ | WRITE])
def test_an_end_is_told_to_whoever_wants_anything(selector, pair, interest, owned):
    left, right = pair()
    source = watched(selector, left, READ)
    if owned:
        source.own()
    source.want(interest)
    selector.update(source)
    right.close()
    turn(selector)
    assert told(source) & (HANGUP | interest) == HANGUP | interest


@interpreted
def test_changes_of_an_owned_source_go_with_the_wait(selector, pair, calls):
    left, _ = pair()
    source = watched(selector, left)
    source.own()
    calls.clear()
    source.want(READ | WRITE)
    selector.update(source)
    assert calls == []
    turn(selector)
    enable, add = (select.KQ_FILTER_READ, select.KQ_EV_ENABLE), (select.KQ_FILTER_WRITE, select.KQ_EV_ADD)
    assert calls == [[enable, add]]
    assert told(source) == WRITE


@interpreted
def test_a_change_there_and_back_is_none(selector, pair, calls):
    left, _ = pair()
    source = watched(selector, left)
    source.own()
    calls.clear()
    for interest in (READ | WRITE, READ):
        source.want(interest)
        selector.update(source)
    turn(selector)
    assert not [flags for changes in calls for _, flags in changes if flags != select.KQ_EV_ENABLE]
    turn(selector)
    assert calls[-1] == []


@interpreted
def test_in_the_steady_state_there_is_one_call_per_turn(selector, pair, calls):
    left, right = pair()
    source = watched(selector, left)
    calls.clear()
    for _ in range(3):
        right.send(b"x")
        turn(selector, NEVER)
        left.recv(1)
    assert calls == [[]] * 3
    assert source.calls == [READ] * 3


@pytest.mark.parametrize(("before", "after"), [(READ, READ | WRITE), (READ | WRITE, READ), (WRITE, READ)])
def test_a_changed_source_that_is_removed_before_the_wait_leaves_nothing(selector, pair, before, after):
    left, right = pair()
    source = watched(selector, left, before)
    source.own()
    source.want(after)
    selector.update(source)
    selector.remove(source)
    right.send(b"x")
    assert quiet(selector)
    assert source.calls == []


def test_the_next_owner_of_a_number_does_not_get_the_changes_of_the_last_one(selector, pair):
    left, _ = pair()
    source = watched(selector, left)
    source.own()
    source.want(READ | WRITE)
    selector.update(source)
    new_left, _ = pair()
    os.dup2(new_left.fileno(), left.fileno())
    new = watched(selector, left)
    assert source.lost
    assert quiet(selector)
    assert (source.calls, new.calls) == ([], [])


def test_an_owned_source_whose_number_stands_for_another_file_is_lost_at_its_next_change(selector, pair):
    left, _ = pair()
    source = watched(selector, left)
    source.own()
    other, right = pair()
    os.dup2(other.fileno(), left.fileno())
    source.want(READ | WRITE)
    selector.update(source)
    right.send(b"x")
    for _ in range(3):
        turn(selector)
    assert source.lost
    assert source.calls == []
    assert selector.find(left.fileno()) is None
    assert quiet(selector)


def test_a_source_whose_number_was_closed_is_lost_at_its_next_change(selector, pair):
    left, _ = pair()
    source = watched(selector, left)
    source.own()
    left.close()
    source.want(READ | WRITE)
    selector.update(source)
    for _ in range(2):
        turn(selector)
    assert source.lost
    assert quiet(selector)


def test_a_second_source_for_an_open_descriptor_takes_it_over(selector, pair):
    left, right = pair()
    first = watched(selector, left, READ | WRITE)
    second = watched(selector, left)
    for _ in range(2):  # the first one's other knote is a ghost, which brings a new queue
        turn(selector)
    assert quiet(selector)
    right.send(b"x")
    turn(selector, NEVER)
    assert (first.lost, first.calls, second.calls) == (True, [], [READ])


def test_a_duplicate_does_not_keep_a_closed_descriptor_watched(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    with socket.socket(fileno=os.dup(left.fileno())):
        left.close()
        right.send(b"x")
        for _ in range(2):
            turn(selector)
        assert source.calls == []


def test_a_paused_direction_does_not_spin_and_the_other_goes_on(selector, pair):
    left, right = pair()
    source = watched(selector, left, READ | WRITE)
    right.send(b"x")
    source.want(WRITE)
    turn(selector)
    assert told(source) == WRITE
    fill(left)
    turn(selector)
    assert quiet(selector)
    right.recv(10_000_000)
    turn(selector, NEVER)
    assert told(source) & WRITE


@pytest.mark.parametrize("ending", ["close", "shutdown"])
def test_a_paused_source_whose_peer_has_ended_does_not_spin(selector, pair, ending):
    left, right = pair()
    source = watched(selector, left)
    source.want(0)
    right.send(b"x")
    right.shutdown(socket.SHUT_WR) if ending == "shutdown" else right.close()
    turn(selector, NEVER)
    assert quiet(selector)
    assert source.calls == []
    source.want(READ)
    selector.update(source)
    turn(selector)
    assert source.calls == [READ | HANGUP]


def test_a_writer_that_waits_for_the_end_of_its_reader_only_is_told_of_nothing_else(selector, stack):
    reader, writer = os.pipe()
    stack.callback(close, writer)
    os.set_blocking(writer, False)
    source = watched(selector, writer, HANGUP)
    for _ in range(2):  # the pipe can be written, once
        turn(selector)
    assert quiet(selector)
    os.write(writer, b"x")
    os.read(reader, 1)
    turn(selector)
    assert quiet(selector)
    assert source.calls == []
    os.close(reader)
    turn(selector, NEVER)
    assert told(source) & HANGUP


def test_a_writer_that_waits_for_room_goes_back_to_waiting_for_the_end(selector, stack):
    reader, writer = os.pipe()
    stack.callback(close, reader)
    stack.callback(close, writer)
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(65536))
    source = watched(selector, writer, HANGUP)
    source.own()
    source.want(HANGUP | WRITE)
    selector.update(source)
    turn(selector)
    assert source.calls == []
    os.read(reader, 1_000_000)
    for _ in range(2):  # level-triggered
        turn(selector, NEVER)
        assert told(source) == WRITE
    source.want(HANGUP)
    selector.update(source)
    turn(selector)
    turn(selector)
    assert quiet(selector)
    assert source.calls == []


def test_a_pipe_without_reader_tells_who_waits_for_that(selector, stack):
    reader, writer = os.pipe()
    stack.callback(close, writer)
    os.close(reader)
    source = watched(selector, writer, HANGUP)
    for _ in range(2):
        turn(selector)
    assert told(source) & HANGUP


def test_a_listener_that_processes_share_is_watched_as_any_other(selector, stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    source = watched(selector, listener, READ, EXCLUSIVE)
    stack.enter_context(socket.create_connection(listener.getsockname()))
    turn(selector, NEVER)
    assert source.calls == [READ]


@interpreted
def test_a_regular_file_is_readable_up_to_its_end(selector, tmp_path):
    (tmp_path / "file").write_bytes(b"xy")
    with open(tmp_path / "file", "rb", buffering=0) as file:
        source = watched(selector, file)
        turn(selector)
        file.read(1)
        turn(selector)
        assert source.calls == [READ] * 2
        file.read(1)
        assert quiet(selector)


def test_more_descriptors_are_ready_than_a_batch_holds(selector, bell):
    sources = [watched(selector, bell(1)) for _ in range(300)]
    for delivered in (256, 300):  # a batch that was full doubles the next one
        before = sum(len(source.calls) for source in sources)
        turn(selector, NEVER)
        assert sum(len(source.calls) for source in sources) - before == delivered
    assert all(source.calls for source in sources)


def test_a_device_that_cannot_be_watched_is_refused_as_epoll_does(selector):
    with open(os.devnull, "rb") as device:
        with pytest.raises(PermissionError):
            watched(selector, device)
        assert selector.find(device.fileno()) is None
    assert quiet(selector)


def test_what_cannot_be_written_is_refused_and_still_read(selector, make):
    """Another queue can be watched to read only."""
    other = make()
    source = watched(selector, other.fileno())
    source.want(READ | WRITE)
    if epoque.compiled:  # epoll, underneath, has nothing against it
        return
    with pytest.raises(OSError) as caught:
        selector.update(source)
    assert caught.value.errno == errno.EOPNOTSUPP
    assert quiet(selector)
    assert not source.lost


def test_the_child_of_a_fork_has_a_queue_of_its_own(selector, pair):
    left, right = pair()
    source = watched(selector, left)

    def child():
        selector._forked()
        turn(selector)  # without an edit before
        source.want(READ | WRITE)
        selector.update(source)
        turn(selector)
        assert told(source) == WRITE
        selector.remove(source)
        selector.close()

    assert exit_code(forked(child)) == 0
    right.send(b"x")
    turn(selector, NEVER)
    assert source.calls == [READ]


def test_in_the_child_of_a_fork_the_number_may_be_anybody_s(selector):
    fd = selector.fileno()

    def child():
        selector._forked()
        reader, _ = os.pipe()
        if reader != fd:
            os.dup2(reader, fd)
        selector.close()
        os.fstat(fd)

    assert exit_code(forked(child)) == 0


def test_close_gives_the_descriptors_back(make, pair):
    before = open_descriptors()
    selector = make()
    assert len(open_descriptors()) > len(before)
    source = watched(selector, pair()[0], READ | WRITE)
    selector.close()
    selector.close()
    assert selector.fileno() == -1
    selector.remove(source)
    assert len(open_descriptors()) == len(before) + 2


def test_out_of_descriptors_a_child_waits_for_some(selector, pair):
    left, _ = pair()

    def child():
        import resource

        selector._forked()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        for _ in range(2):
            with pytest.raises(OSError) as caught:
                watched(selector, left)
            assert caught.value.errno == errno.EMFILE
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        source = watched(selector, left, WRITE)
        turn(selector)
        assert source.calls == [WRITE]

    assert exit_code(forked(child)) == 0
