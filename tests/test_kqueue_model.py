"""The model of kqueue follows its rules; each test names the one that it is about (kqueue_model.py lists them)."""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests import kqueue_model
from tests.kqueue_model import (
    EV_ADD,
    EV_CLEAR,
    EV_DELETE,
    EV_DISABLE,
    EV_DISPATCH,
    EV_ENABLE,
    EV_EOF,
    EV_ERROR,
    EV_ONESHOT,
    EV_RECEIPT,
    FILTER_PROC,
    FILTER_READ,
    FILTER_SIGNAL,
    FILTER_WRITE,
    NOTE_EXIT,
    kevent,
    kqueue,
)
from tests.loops import exit_code, forked

pytestmark = pytest.mark.epoque_only("is about a test double of epoque's")


@pytest.fixture
def queue():
    queue = kqueue()
    yield queue
    queue.close()


@pytest.fixture
def pair():
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    yield ends
    for end in ends:
        end.close()


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:  # the test has
            pass


def change(queue, *changes):
    return queue.control([kevent(*fields) for fields in changes], 0, 0)


def fetch(queue, timeout=0.0):
    return queue.control(None, 100, timeout)


def seen(queue, timeout=0.0):
    return sorted((event.ident, event.filter, event.data, event.udata) for event in fetch(queue, timeout))


def refusal(queue, *fields):
    with pytest.raises(OSError) as caught:
        change(queue, fields)
    return caught.value.errno


def test_rule_1_one_knote_per_ident_and_filter(queue, pair):
    left, right = pair
    change(queue, (left, FILTER_READ, EV_ADD, 0, 0, 1), (left, FILTER_READ, EV_ADD, 0, 0, 2))
    right.send(b"abc")
    assert seen(queue) == [(left.fileno(), FILTER_READ, 3, 2)]
    change(queue, (left, FILTER_WRITE, EV_ADD, 0, 0, 3))
    assert [event[1::2] for event in seen(queue)] == [(FILTER_WRITE, 3), (FILTER_READ, 2)]


def test_rule_2_a_failure_is_an_event_if_there_is_room(queue, pair):
    left, right = pair
    right.send(b"x")
    changes = [kevent(left), kevent(right, FILTER_WRITE, EV_DELETE, 0, 0, 7)]
    (answer,) = queue.control(changes, 10, 0)
    assert (answer.ident, answer.flags, answer.data, answer.udata) == (right.fileno(), EV_ERROR, errno.ENOENT, 7)
    assert len(fetch(queue)) == 1  # the change before it was made
    with pytest.raises(FileNotFoundError):
        queue.control([changes[1], kevent(right)], 0, 0)
    assert len(fetch(queue)) == 1  # the one behind it was not


def test_rule_2_receipts_are_answers_to_each_change(queue, pair):
    left, right = pair
    right.send(b"x")
    answers = queue.control([kevent(left, FILTER_READ, EV_ADD | EV_RECEIPT), kevent(right, FILTER_READ, EV_DELETE)], 10)
    assert [(answer.flags, answer.data) for answer in answers] == [(EV_ERROR, 0), (EV_ERROR, errno.ENOENT)]


def test_rule_3_what_is_not_there(queue, pair):
    for flags in (EV_ENABLE, EV_DISABLE, EV_DELETE):
        assert refusal(queue, pair[0], FILTER_READ, flags) == errno.ENOENT
    fd = os.dup(0)
    os.close(fd)
    assert refusal(queue, fd, FILTER_READ, EV_ADD) == errno.EBADF


@pytest.mark.parametrize("flags", [0, EV_CLEAR])
def test_rule_4_a_closed_descriptor_is_forgotten_though_a_duplicate_lives(queue, pair, flags):
    left, right = pair
    change(queue, (left, FILTER_READ, EV_ADD | flags))
    with socket.socket(fileno=os.dup(left.fileno())):
        fd = left.detach()
        os.close(fd)
        right.send(b"x")
        assert fetch(queue, 0.01) == []
        other, far = socket.socketpair()
        with other, far:
            os.dup2(other.fileno(), fd)
            assert refusal(queue, fd, FILTER_READ, EV_ENABLE) == errno.ENOENT
            os.close(fd)


def test_rule_4_a_closed_descriptor_is_forgotten_though_its_number_is_taken_by_a_file_of_the_same_inode(queue, pair):
    left, right = pair
    other, far = socket.socketpair()
    fd = os.eventfd(0)  # all eventfds, epolls and pidfds are one inode
    change(queue, (left,), (fd,))
    with other, far, socket.socket(fileno=os.dup(left.fileno())):
        os.close(fd)
        os.dup2(other.fileno(), left.fileno())
        change(queue, (left,))  # makes a new epoll, which gets the number
        assert refusal(queue, fd, FILTER_READ, EV_DELETE) in (errno.EBADF, errno.ENOENT)
        right.send(b"x")
        assert fetch(queue) == []
        far.send(b"x")
        assert [event.ident for event in fetch(queue, 5)] == [left.fileno()]


def test_rule_5_level_clear_oneshot_and_dispatch(queue, pair):
    left, right = pair
    right.send(b"x")
    change(queue, (left,))
    assert [len(fetch(queue)) for _ in range(3)] == [1, 1, 1]
    change(queue, (left, FILTER_READ, EV_DELETE), (left, FILTER_READ, EV_ADD | EV_CLEAR))
    assert [len(fetch(queue)) for _ in range(3)] == [1, 0, 0]
    right.send(b"x")
    assert [len(fetch(queue)) for _ in range(2)] == [1, 0]
    change(queue, (left, FILTER_READ, EV_DELETE), (left, FILTER_READ, EV_ADD | EV_DISPATCH))
    assert [len(fetch(queue)) for _ in range(2)] == [1, 0]
    change(queue, (left, FILTER_READ, EV_ENABLE))
    assert [len(fetch(queue)) for _ in range(2)] == [1, 0]
    change(queue, (left, FILTER_READ, EV_DELETE), (left, FILTER_READ, EV_ADD | EV_ONESHOT))
    assert len(fetch(queue)) == 1
    assert refusal(queue, left, FILTER_READ, EV_ENABLE) == errno.ENOENT


def test_rule_5_what_is_disabled_is_not_told(queue, pair):
    left, right = pair
    right.send(b"x")
    change(queue, (left,), (left, FILTER_READ, EV_DISABLE))
    assert fetch(queue, 0.001) == []
    change(queue, (left, FILTER_READ, EV_ENABLE))
    assert len(fetch(queue)) == 1


def test_rule_6_a_change_asks_anew(queue, pair):
    left, right = pair
    right.send(b"x")
    change(queue, (left, FILTER_READ, EV_ADD | EV_CLEAR))
    assert len(fetch(queue)) == 1
    change(queue, (left, FILTER_READ, EV_ENABLE))
    assert len(fetch(queue)) == 1


def test_rule_7_the_end_comes_with_what_is_left(queue, pair):
    left, right = pair
    change(queue, (left,), (left, FILTER_WRITE))
    right.send(b"last")
    right.shutdown(socket.SHUT_WR)
    events = {event.filter: event for event in fetch(queue)}
    assert events[FILTER_READ].flags & EV_EOF
    assert events[FILTER_READ].data == 4
    assert not events[FILTER_WRITE].flags & EV_EOF
    right.close()
    assert all(event.flags & EV_EOF for event in fetch(queue))


def test_rule_7_an_error_is_in_fflags(queue):
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as near:
        change(queue, (near,))
        far = listener.accept()[0]
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        far.close()
        (event,) = fetch(queue, 5)
        assert event.flags & EV_EOF
        assert event.fflags == errno.ECONNRESET
        with pytest.raises(ConnectionResetError):
            near.recv(1)


def test_rule_7_a_pipe_whose_writer_or_reader_leaves(queue, pipe):
    reader, writer = pipe
    change(queue, (reader,), (writer, FILTER_WRITE, EV_ADD | EV_CLEAR))
    assert len(fetch(queue)) == 1
    os.close(reader)
    (event,) = fetch(queue, 5)
    assert (event.ident, event.flags & EV_EOF) == (writer, EV_EOF)


def test_rule_8_a_pipe_without_reader_cannot_be_watched_for_room(queue, pipe):
    os.close(pipe[0])
    assert refusal(queue, pipe[1], FILTER_WRITE, EV_ADD) == errno.EPIPE


def test_rule_9_regular_files(queue, tmp_path):
    with open(tmp_path / "file", "w+b", buffering=0) as file:
        change(queue, (file,), (file, FILTER_WRITE, EV_ADD | EV_ONESHOT))
        assert [event.filter for event in fetch(queue)] == [FILTER_WRITE]
        assert fetch(queue, 0.02) == []
        file.write(b"abc")
        assert fetch(queue) == []
        file.seek(1)
        (event,) = fetch(queue)
        assert (event.filter, event.data) == (FILTER_READ, 2)


@pytest.mark.parametrize(("macos", "code"), [(False, errno.ENODEV), (True, errno.EINVAL)])
def test_rule_10_devices_without_support(queue, monkeypatch, macos, code):
    monkeypatch.setattr(kqueue_model, "macos", macos)
    with open(os.devnull, "rb") as device:
        assert refusal(queue, device, FILTER_READ, EV_ADD) == code


def test_rule_11_a_queue_in_a_queue(queue, pair):
    left, right = pair
    inner = kqueue()
    change(inner, (left,))
    change(queue, (inner.fileno(),))
    assert fetch(queue) == []
    right.send(b"x")
    assert [event.ident for event in fetch(queue, 5)] == [inner.fileno()]
    left.recv(1)
    assert fetch(queue) == []
    assert refusal(queue, inner.fileno(), FILTER_WRITE, EV_ADD) == errno.EINVAL
    inner.close()


@pytest.fixture
def handled():
    """The signals that Python's handler of SIGUSR1 was called for."""
    came = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    yield came
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("nested", [False, True])
def test_rule_12_signals_are_counted_and_handled(queue, handled, nested):
    signals = kqueue() if nested else queue
    change(signals, (signal.SIGUSR1, FILTER_SIGNAL, EV_ADD, 0, 0, 5))
    if nested:
        change(queue, (signals.fileno(),))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    pid = os.getpid()
    stat = Path(f"/proc/{pid}/stat")

    def send():
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            pass
        os.kill(pid, signal.SIGUSR1)

    child = forked(send)
    events = fetch(queue, 10)
    assert exit_code(child) == 0
    if nested:
        assert [event.ident for event in events] == [signals.fileno()]
        events = fetch(signals)
    assert [(event.ident, event.data, event.udata) for event in events] == [(signal.SIGUSR1, 1, 5)]
    assert fetch(queue) == []
    assert handled == [signal.SIGUSR1]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    change(signals, (signal.SIGUSR1, FILTER_SIGNAL, EV_DELETE))
    signals.close()


@pytest.mark.parametrize("reaped", [False, True])
@pytest.mark.parametrize(("end", "status"), [(lambda: os._exit(3), 3 << 8), (lambda: os.kill(os.getpid(), 9), 9)])
def test_rule_13_the_exit_of_a_process(queue, end, status, reaped):
    reader, writer = os.pipe()
    pid = forked(lambda: (os.read(reader, 1), end()))
    change(queue, (pid, FILTER_PROC, EV_ADD, NOTE_EXIT))
    assert fetch(queue) == []
    os.write(writer, b"x")
    if reaped:
        os.waitpid(pid, 0)
    (event,) = fetch(queue, 10)
    assert (event.data, event.fflags, event.flags & EV_EOF) == (status, NOTE_EXIT, EV_EOF)
    assert fetch(queue) == []
    os.close(reader)
    os.close(writer)
    if not reaped:
        os.waitpid(pid, 0)
    assert refusal(queue, pid, FILTER_PROC, EV_ADD, NOTE_EXIT) == errno.ESRCH


@pytest.mark.parametrize("macos", [False, True])
def test_rule_13_a_process_that_has_ended(queue, monkeypatch, macos):
    monkeypatch.setattr(kqueue_model, "macos", macos)
    pid = forked(lambda: None)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if macos:
        assert refusal(queue, pid, FILTER_PROC, EV_ADD, NOTE_EXIT) == errno.ESRCH
    else:
        change(queue, (pid, FILTER_PROC, EV_ADD, NOTE_EXIT))
        assert [event.data for event in fetch(queue)] == [0]
    os.waitpid(pid, 0)


def test_rule_14_a_child_does_not_inherit_the_queue(queue, pair):
    def child():
        assert queue.closed

    assert exit_code(forked(child)) == 0
    change(queue, (pair[0],))


def test_a_wait_ends_at_its_timeout_and_not_before(queue):
    start = time.monotonic()
    assert fetch(queue, 0.01) == []
    assert time.monotonic() - start >= 0.01


def test_a_closed_queue_says_so(queue):
    queue.close()
    queue.close()
    for ask in (queue.fileno, lambda: fetch(queue)):
        with pytest.raises(ValueError):
            ask()
