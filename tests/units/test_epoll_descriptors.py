"""EpollSelector on the real kernel: descriptors that are not what they were, new instances, forks, and the end."""

from __future__ import annotations

import errno
import os
import socket
import time

import pytest

from epoque.kernel.masks import EDGE, EXCLUSIVE, NEVER, POLL, READ, WRITE
from epoque.selector.epoll import EpollSelector
from tests.conftest import open_descriptors
from tests.loops import checked_script, exit_code, forked
from tests.units.real import EPOLLEXCLUSIVE, FAR, kernel, quiet, turn, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")


@pytest.fixture
def selector():
    selector = EpollSelector()
    yield selector
    selector.close()


def test_a_regular_file_is_refused_and_leaves_nothing(selector, tmp_path):
    before = kernel(selector)
    with open(tmp_path / "file", "wb") as file:
        with pytest.raises(PermissionError):
            watched(selector, file)
        assert selector.find(file.fileno()) is None
    assert kernel(selector) == before


def test_a_closed_descriptor_is_refused_and_leaves_nothing(selector, pair):
    left, _ = pair()
    fd = left.detach()
    os.close(fd)
    with pytest.raises(OSError) as caught:
        watched(selector, fd)
    assert caught.value.errno == errno.EBADF
    assert selector.find(fd) is None


@pytest.mark.parametrize("fd", [100_000_000, 2**31 - 1])
def test_a_descriptor_far_above_all_that_are_open_costs_no_memory(fd):
    checked_script(f"""
        import resource
        from epoque.selector.epoll import EpollSelector
        from epoque.selector.fake import RecordingSource
        selector = EpollSelector()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
        try:
            selector.add(RecordingSource({fd}, 1))
        except OSError as exc:
            assert exc.errno == {errno.EBADF}
        else:
            raise AssertionError("was not refused")
        """)


def test_a_descriptor_closed_and_forgotten_is_silent(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    right.send(b"x")
    left.close()
    assert quiet(selector)
    selector.remove(source)
    assert source.calls == []


def test_update_of_a_closed_descriptor_lets_go_of_it(selector, pair):
    left, _ = pair()
    source = watched(selector, left)
    number = left.fileno()
    left.close()
    source.want(READ | WRITE)
    selector.update(source)
    assert source.lost
    assert selector.find(number) is None
    selector.remove(source)


def test_a_number_given_out_again_to_a_regular_file_is_let_go(selector, pair, tmp_path):
    left, _ = pair()
    source, other = watched(selector, left), watched(selector, pair()[0])
    number = left.fileno()
    with open(tmp_path / "file", "wb") as file, left.dup():
        left.close()
        os.dup2(file.fileno(), number)
        assert not selector.verify(source)
        assert source.lost
        assert not other.lost
        os.close(number)


def test_a_number_given_out_again_is_watched_for_its_new_owner(selector, pair):
    left, _ = pair()
    old = watched(selector, left)
    fd = left.detach()
    new_left, new_right = pair()
    os.dup2(new_left.fileno(), fd)
    new = watched(selector, fd)
    new_right.send(b"x")
    turn(selector)
    assert (old.lost, old.calls, new.calls) == (True, [], [READ])
    os.close(fd)


def test_update_lets_go_of_a_number_with_another_file(selector, pair):
    left, _ = pair()
    source = watched(selector, left)
    other, right = pair()
    os.dup2(other.fileno(), left.fileno())
    source.want(READ | WRITE)
    selector.update(source)
    right.send(b"x")
    turn(selector)
    assert (source.lost, source.calls) == (True, [])


def test_verify_tells_a_number_with_another_file_from_one_without_change(selector, pair):
    left, _ = pair()
    other, _ = pair()
    source = watched(selector, left)
    assert selector.verify(source)
    os.dup2(other.fileno(), left.fileno())
    assert not selector.verify(source)
    assert (source.lost, selector.find(left.fileno())) == (True, None)


def test_a_second_source_for_an_open_descriptor_takes_it_over(selector, pair):
    left, right = pair()
    first = watched(selector, left)
    second = watched(selector, left, READ | WRITE)
    right.send(b"x")
    turn(selector)
    assert (first.lost, first.calls, second.calls) == (True, [], [READ | WRITE])


def test_a_descriptor_closed_while_a_duplicate_lives_is_exorcised(selector, pair):
    left, right = pair()
    other, other_right = pair()
    source, bystander = watched(selector, left), watched(selector, other)
    with socket.socket(fileno=os.dup(left.fileno())):
        fd = left.detach()
        os.close(fd)
        selector.remove(source)
        right.send(b"x")
        turn(selector)
        assert fd not in kernel(selector)
        assert quiet(selector)
    other_right.send(b"x")
    turn(selector, NEVER)
    assert (source.calls, bystander.calls) == ([], [READ])


def test_a_number_given_out_again_while_a_duplicate_of_the_old_file_lives_does_not_get_its_events(selector, pair):
    left, right = pair()
    old = watched(selector, left)
    new_left, new_right = pair()
    with socket.socket(fileno=os.dup(left.fileno())):
        fd = left.detach()
        os.dup2(new_left.fileno(), fd)
        new = watched(selector, fd)
        right.send(b"x")
        for _ in range(3):  # it may take one event to find out
            turn(selector)
        assert quiet(selector)
        assert (old.calls, new.calls) == ([], [])
        new_right.send(b"x")
        turn(selector, NEVER)
        assert (old.calls, new.calls) == ([], [READ])
        os.close(fd)


def test_a_ghost_harms_nobody_while_there_is_no_descriptor_and_goes_once_there_is():
    checked_script("""
        import resource
        from epoque.kernel.masks import POLL, READ
        from epoque.selector.epoll import EpollSelector
        from epoque.selector.fake import RecordingSource
        selector, (left, right) = EpollSelector(), socket.socketpair()
        source, ready = RecordingSource(left.fileno(), READ), RecordingSource(os.eventfd(1), READ)
        selector.add(source)
        selector.add(ready)
        right.send(b"x")
        copy = left.dup()
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        left.close()
        selector.remove(source)
        try:
            while True:
                last = os.dup(0)
        except OSError:
            pass
        for _ in range(3):
            selector.wait(POLL)
            selector.dispatch()
        assert (source.calls, ready.calls) == ([], [READ] * 3)
        os.close(last)
        selector.wait(POLL)
        selector.dispatch()
        with open(f"/proc/self/fdinfo/{selector.fileno()}") as file:
            assert file.read().count("tfd:") == 1  # the ready one's
        """)


# --- a new instance, forks and the end


def test_a_new_instance_keeps_every_registration(selector, pair, bell, stack):
    left, right = pair()
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    rung = bell()
    reader, writer = watched(selector, left), watched(selector, right, WRITE)
    edge = watched(selector, rung, READ, EDGE)
    exclusive = watched(selector, listener, READ, EXCLUSIVE)
    idle = watched(selector, bell(1), 0)
    turn(selector, time.monotonic_ns() + FAR)  # the alarm is set, too
    assert writer.calls == [WRITE]
    flags, descriptors = kernel(selector), len(open_descriptors())
    selector._forked()
    new = watched(selector, bell())
    turn(selector, time.monotonic_ns() + FAR)
    assert writer.calls == [WRITE] * 2
    assert sorted([*flags.values(), flags[left.fileno()]]) == sorted(kernel(selector).values())
    assert kernel(selector)[listener.fileno()] & EPOLLEXCLUSIVE
    assert len(open_descriptors()) == descriptors + 1  # the bell just made
    right.send(b"x")
    os.eventfd_write(rung, 1)
    stack.enter_context(socket.create_connection(listener.getsockname()))
    turn(selector, NEVER)
    assert (reader.calls, writer.calls, edge.calls) == ([READ], [WRITE] * 3, [READ])
    assert (exclusive.calls, idle.calls, new.calls) == ([READ], [], [])
    writer.want(0)
    selector.update(writer)
    left.recv(1)
    selector.remove(exclusive)
    assert quiet(selector)


def test_a_ring_that_nobody_heard_is_heard_by_the_new_instance(selector, bell):
    fd = bell()
    source = watched(selector, fd, READ, EDGE)
    os.eventfd_write(fd, 1)
    selector._forked()
    watched(selector, bell())
    turn(selector)
    assert source.calls == [READ]


def test_the_child_of_a_fork_edits_an_instance_of_its_own(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    flags = kernel(selector)

    def child():
        selector._forked()
        source.want(READ | WRITE)
        selector.update(source)
        turn(selector, time.monotonic_ns() + FAR)
        assert source.calls == [WRITE]
        selector.remove(source)
        selector.close()

    assert exit_code(forked(child)) == 0
    assert kernel(selector) == flags
    right.send(b"x")
    turn(selector, NEVER)
    assert source.calls == [READ]


def test_the_child_of_a_fork_takes_no_event_from_its_parents_instance(selector, pair):
    left, right = pair()
    source = watched(selector, left, mode=EDGE)
    right.send(b"x")

    def child():
        selector._forked()
        turn(selector)
        assert source.calls == [READ]

    assert exit_code(forked(child)) == 0
    turn(selector)
    assert source.calls == [READ]


def test_the_child_of_a_fork_that_closes_the_selector_leaves_the_parents_alone(selector, pair):
    left, right = pair()
    source = watched(selector, left)
    flags = kernel(selector)

    def child():
        selector._forked()
        selector.close()

    assert exit_code(forked(child)) == 0
    assert kernel(selector) == flags
    right.send(b"x")
    turn(selector, NEVER)
    assert source.calls == [READ]


def test_out_of_descriptors_a_child_keeps_off_the_parents_instance_until_there_are_some(selector, pair):
    left, _ = pair()
    other, _ = pair()
    watched(selector, left)
    flags = kernel(selector)

    def child():
        import resource

        selector._forked()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        for _ in range(2):
            with pytest.raises(OSError) as caught:
                watched(selector, other)
            assert caught.value.errno == errno.EMFILE
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        source = watched(selector, other, WRITE)
        turn(selector)
        assert source.calls == [WRITE]

    assert exit_code(forked(child)) == 0
    assert kernel(selector) == flags


def test_close_gives_the_descriptors_back(pair):
    before = open_descriptors()
    selector = EpollSelector()
    assert len(open_descriptors()) > len(before)
    source = watched(selector, pair()[0], READ | WRITE)
    turn(selector, time.monotonic_ns() + FAR)
    selector.close()
    selector.close()
    assert selector.fileno() == -1
    selector.remove(source)
    assert len(open_descriptors()) == len(before) + 2


def test_a_selector_that_is_dropped_gives_its_descriptors_back():
    before = open_descriptors()
    turn(EpollSelector())
    assert open_descriptors() == before


def test_a_closed_selector_answers_with_an_exception(selector, pair):
    selector.close()
    left, _ = pair()
    for ask in (lambda: selector.wait(POLL), lambda: watched(selector, left)):
        with pytest.raises((OSError, ValueError)):
            ask()
    assert selector.find(left.fileno()) is None
