"""SignalSet, interpreted: signals held back during a wait, and read from a descriptor.

The compiled form shows Python nothing; the loop's own signal tests run it.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from tests.conftest import open_descriptors
from tests.units.twins import twin

pytestmark = [
    pytest.mark.epoque_only("looks at epoque's own kernel modules"),
    pytest.mark.skipif(sys.platform != "linux", reason="signalfd is Linux's"),
]


@pytest.fixture
def signals():
    module = twin("signals", "interpreted")
    module.events = twin("events", "interpreted")
    signals = module.SignalSet()
    yield signals
    signals.close()


@pytest.fixture
def caught():
    """The numbers for which Python's handlers of SIGUSR1 and SIGUSR2 ran."""
    numbers = []
    previous = {
        number: signal.signal(number, lambda number, frame: numbers.append(number))
        for number in (signal.SIGUSR1, signal.SIGUSR2)
    }
    yield numbers
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def mask():
    """The thread's mask is as it was."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    after = signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert after == before


def blocked():
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def readable(fd):
    return bool(select.select([fd], [], [], 0)[0])


def test_there_is_no_descriptor_before_the_first_assignment(signals):
    assert signals.fd == -1
    signals.close()
    assert signals.fd == -1


def test_signals_held_back_make_the_descriptor_readable_and_are_drained(signals, caught):
    signals.assign([signal.SIGUSR1, signal.SIGUSR2])
    signals.block()
    try:
        assert blocked() >= {signal.SIGUSR1, signal.SIGUSR2}
        assert not readable(signals.fd)
        assert signals.drain() == []
        signal.raise_signal(signal.SIGUSR2)
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)  # one that waits already
        assert readable(signals.fd)
        assert sorted(signals.drain()) == [signal.SIGUSR1, signal.SIGUSR2]
        assert not readable(signals.fd)
        assert signals.drain() == []
    finally:
        signals.restore()
    assert caught == []


def test_a_signal_that_was_not_drained_is_handled_when_the_mask_is_restored(signals, caught):
    signals.assign([signal.SIGUSR1])
    signals.block()
    signal.raise_signal(signal.SIGUSR1)
    assert caught == []
    signals.restore()
    assert caught == [signal.SIGUSR1]


def test_other_signals_come_as_always(signals, caught):
    signals.assign([signal.SIGUSR1])
    signals.block()
    try:
        signal.raise_signal(signal.SIGUSR2)
        assert caught == [signal.SIGUSR2]
        assert signals.drain() == []
    finally:
        signals.restore()


def test_restore_gives_back_the_mask_that_there_was(signals, caught):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        signals.assign([signal.SIGUSR1, signal.SIGUSR2])
        for _ in range(2):
            signals.block()
            signals.restore()
            assert blocked() == before | {signal.SIGUSR2}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_an_assignment_replaces_the_signals_and_keeps_the_descriptor(signals, caught):
    signals.assign([signal.SIGUSR1])
    fd = signals.fd
    signals.assign([signal.SIGUSR2])
    assert signals.fd == fd
    signals.block()
    try:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR2)
        assert (signals.drain(), caught) == ([signal.SIGUSR2], [signal.SIGUSR1])
    finally:
        signals.restore()


def test_real_time_signals_are_drained_one_by_one(signals):
    number = signal.SIGRTMIN + 1
    previous = signal.signal(number, lambda number, frame: None)
    try:
        signals.assign([number])
        signals.block()
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert signals.drain() == [number, number]
        signals.restore()
    finally:
        signal.signal(number, previous)


def test_an_empty_set_holds_nothing_back(signals, caught):
    signals.assign([])
    before = blocked()
    signals.block()
    assert blocked() == before
    signal.raise_signal(signal.SIGUSR1)
    assert caught == [signal.SIGUSR1]
    signals.restore()


def test_the_descriptor_is_not_inherited_and_does_not_block(signals):
    signals.assign([signal.SIGUSR1])
    assert not os.get_blocking(signals.fd)
    assert not os.get_inheritable(signals.fd)


def test_a_process_started_between_waits_has_nothing_blocked(signals):
    signals.assign([signal.SIGUSR1])
    signals.block()
    signals.restore()
    code = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == str(sorted(blocked()))


def test_close_gives_the_descriptor_back(signals):
    before = open_descriptors()
    signals.assign([signal.SIGUSR1])
    assert len(open_descriptors()) == len(before) + 1
    signals.close()
    signals.close()
    assert (open_descriptors(), signals.fd) == (before, -1)


def test_without_signalfd_nothing_is_held_back_in_a_descriptor():
    module = twin("signals", "interpreted")
    module.events = twin("events", "interpreted")
    module._libc = None
    signals = module.SignalSet()
    signals.assign([signal.SIGUSR1])
    assert signals.fd == -1
