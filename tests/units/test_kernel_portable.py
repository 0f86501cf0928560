"""The kernel modules on a system without what only Linux has; the interpreted forms, which can be deprived of it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from pathlib import Path

import pytest

from tests import kqueue_model
from tests.conftest import open_descriptors
from tests.loops import exit_code, forked
from tests.units.twins import twin

pytestmark = pytest.mark.epoque_only("looks at epoque's own kernel modules")


@pytest.fixture
def kqueue(monkeypatch):
    """`select` with kqueue."""
    for name, value in kqueue_model.NAMES.items():
        monkeypatch.setattr(select, name, value, raising=False)
    return kqueue_model.kqueue


@pytest.fixture(params=["pidfd", "kqueue"])
def children(request, kqueue):
    module = twin("children", "interpreted")
    module._pidfd_open = os.pidfd_open if request.param == "pidfd" else None
    module._kqueue = kqueue
    return module


@contextlib.contextmanager
def child(code=0):
    """A process that ends when told to, or when it is killed: its number, and what tells it."""
    reader, writer = os.pipe()

    def wait():
        os.close(writer)
        os.read(reader, 1)
        os._exit(code)

    pid = forked(wait)
    os.close(reader)

    def end():
        os.write(writer, b"x")

    yield pid, end
    os.close(writer)


def readable(fd, timeout=0.0):
    return bool(select.select([fd], [], [], timeout)[0])


def test_a_sentinel_is_readable_once_its_process_has_ended(children):
    with child() as (pid, end):
        sentinel = children.watch(pid)
        assert not readable(sentinel)
        end()
        assert readable(sentinel, 10)
        assert exit_code(pid) == 0
        sentinel.close()


@pytest.mark.parametrize(("ending", "code"), [(None, 5), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_sentinel_knows_the_status_of_a_process_that_somebody_has_reaped(children, ending, code):
    with child(5) as (pid, end):
        sentinel = children.watch(pid)
        sentinel.send(ending) if ending else end()
        assert exit_code(pid) == code
        assert readable(sentinel, 10)
        status = sentinel.status()
        assert status is None or os.waitstatus_to_exitcode(status) == code
        assert status is not None or isinstance(sentinel, children._Pidfd)  # Linux before 6.15
        sentinel.close()


def test_no_signal_is_sent_after_the_end(children, monkeypatch):
    with child() as (pid, end):
        sentinel = children.watch(pid)
        end()
        assert exit_code(pid) == 0
        monkeypatch.setattr(os, "kill", lambda *args: pytest.fail("it was sent to the number"))
        with pytest.raises(ProcessLookupError):
            sentinel.send(signal.SIGTERM)
        sentinel.close()


def test_a_process_that_is_not_there_cannot_be_watched(children):
    pid = forked(lambda: None)
    exit_code(pid)
    before = open_descriptors()
    with pytest.raises(ProcessLookupError):
        children.watch(pid)
    assert open_descriptors() == before


def test_where_there_is_neither_no_process_is_watched(children):
    children._pidfd_open = children._kqueue = None
    assert children.watch(os.getpid()) is None


def test_signals_end_a_wait_and_go_the_usual_way(kqueue):
    """No signal is held back, so none has to be given back."""
    module = twin("signals", "interpreted")
    module.events = twin("events", "interpreted")
    module._kqueue = kqueue
    came = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    signals, queue = module.SignalSet(), kqueue()
    try:
        signals.assign([signal.SIGUSR2])
        fd = signals.fd
        signals.assign([signal.SIGUSR1])
        assert signals.fd == fd
        queue.control([select.kevent(fd)], 0, 0)
        signals.block()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
        pid = os.getpid()
        stat = Path(f"/proc/{pid}/stat")

        def send():
            while stat.read_text().rpartition(")")[2].split()[0] != "S":
                pass
            os.kill(pid, signal.SIGUSR1)

        sender = forked(send)
        assert [event.ident for event in queue.control(None, 1, 10)] == [fd]
        signals.restore()
        assert signals.drain() == []
        assert queue.control(None, 1, 0) == []
        assert came == [signal.SIGUSR1]
        assert exit_code(sender) == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
        signals.close()
        queue.close()
    assert signals.fd == -1
