"""FlowControl: when must a protocol stop writing, and when may it go on? One call per crossing of a water mark."""

from __future__ import annotations

import contextvars
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from epoque.transports.flow import FlowControl

pytestmark = pytest.mark.epoque_only("looks at epoque's own flow control")

KIB = 1024
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Loop:
    def __init__(self):
        self.contexts = []

    def call_exception_handler(self, context):
        self.contexts.append(context)


class Protocol:
    """Writes down what it is told; then does what the test wants."""

    def __init__(self, action=None):
        self.calls = []
        self.seen = []
        self.action = action

    def pause_writing(self):
        self.told("pause")

    def resume_writing(self):
        self.told("resume")

    def told(self, what):
        self.calls.append(what)
        self.seen.append(variable.get())
        if self.action is not None:
            self.action()


class Connection:
    """A flow control with everything that it is called with."""

    def __init__(self, high=100, low=20, action=None):
        self.flow = FlowControl()
        self.flow.set_limits(high, low)
        self.transport = object()
        self.protocol = Protocol(action)
        self.loop = Loop()
        self.context = contextvars.Context()

    def filled(self, size):
        self.flow.filled(size, self.transport, self.protocol, self.loop)

    def drained(self, size):
        self.flow.drained(size, self.transport, self.protocol, self.loop, self.context)

    @property
    def calls(self):
        return self.protocol.calls


def marks(flow):
    """The water marks, found by trying: the largest size that does not pause, and the largest that resumes."""
    loop, context = Loop(), contextvars.Context()

    def pauses(size):
        protocol = Protocol()
        flow.filled(size, None, protocol, loop)
        return protocol.calls == ["pause"]

    def resumes(size):
        protocol = Protocol()
        flow.drained(size, None, protocol, loop, context)
        return protocol.calls == ["resume"]

    def search(last, first_not):
        while first_not - last > 1:
            middle = (last + first_not) // 2
            pausing = pauses(middle)
            if pausing:
                assert resumes(0)
            last, first_not = (last, middle) if pausing else (middle, first_not)
        return last

    high = search(-1, 1 << 62)
    low, above = -1, 1 << 62
    while above - low > 1:
        middle = (low + above) // 2
        assert pauses(1 << 62)
        if resumes(middle):
            low = middle
        else:
            above = middle
            assert resumes(0)
    return high, low


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [
        (None, None, (64 * KIB, 16 * KIB)),
        (100, None, (100, 25)),
        (3, None, (3, 0)),
        (None, 100, (400, 100)),
        (None, 0, (0, 0)),
        (0, None, (0, 0)),
        (0, 0, (0, 0)),
        (100, 0, (100, 0)),
        (100, 100, (100, 100)),
        (100, 99, (100, 99)),
        (True, False, (1, 0)),
        (10.5, 2.5, (10, 2)),
        (Fraction(21, 2), None, (10, 2)),
        (Decimal(10), Decimal(2), (10, 2)),
        (2**40, 2**20, (2**40, 2**20)),
    ],
)
def test_limits_are_what_was_set_and_one_follows_from_the_other(high, low, expected):
    flow = FlowControl()
    flow.set_limits(high, low)
    assert marks(flow) == expected


def test_the_limits_at_first_are_asyncios():
    assert marks(FlowControl()) == (64 * KIB, 16 * KIB)


@pytest.mark.parametrize("high", [2**63, 2**200, 10**400, math.inf], ids=["2**63", "2**200", "10**400", "inf"])
def test_a_limit_beyond_all_sizes_never_pauses(high):
    connection = Connection(high, 0)
    connection.filled(2**62)
    assert connection.calls == []


@pytest.mark.parametrize(
    ("high", "low", "message"),
    [
        (-1, None, "high (-1) must be >= low (-1) must be >= 0"),
        (None, -1, "high (-4) must be >= low (-1) must be >= 0"),
        (10, 11, "high (10) must be >= low (11) must be >= 0"),
        (0, 1, "high (0) must be >= low (1) must be >= 0"),
        (10, -1, "high (10) must be >= low (-1) must be >= 0"),
        (math.nan, 1, "high (nan) must be >= low (1) must be >= 0"),
        (10, math.nan, "high (10) must be >= low (nan) must be >= 0"),
        (math.inf, None, "high (inf) must be >= low (nan) must be >= 0"),
    ],
)
def test_limits_out_of_order_are_refused_and_change_nothing(high, low, message):
    flow = FlowControl()
    flow.set_limits(100, 20)
    with pytest.raises(ValueError) as caught:
        flow.set_limits(high, low)
    assert str(caught.value) == message
    assert marks(flow) == (100, 20)


@pytest.mark.parametrize(("high", "low"), [("10", None), (None, b"1"), ("b", "a"), (10, "1"), ([], None), (1j, 0)])
def test_limits_that_are_no_numbers_are_refused_and_change_nothing(high, low):
    flow = FlowControl()
    flow.set_limits(100, 20)
    with pytest.raises(TypeError):
        flow.set_limits(high, low)
    assert marks(flow) == (100, 20)


def test_every_crossing_is_told_once():
    connection = Connection(100, 20)
    for size in (0, 100, 99):
        connection.filled(size)
    assert connection.calls == []
    for size in (101, 500, 101):
        connection.filled(size)
    assert connection.calls == ["pause"]
    for size in (100, 21, 21):
        connection.drained(size)
    connection.filled(1000)
    assert connection.calls == ["pause"]
    for size in (20, 20, 0):
        connection.drained(size)
    assert connection.calls == ["pause", "resume"]
    connection.filled(101)
    connection.drained(0)
    assert connection.calls == ["pause", "resume"] * 2


def test_draining_what_was_never_full_tells_nothing():
    connection = Connection()
    connection.drained(50)
    connection.drained(0)
    assert connection.calls == []


def test_with_marks_of_zero_every_byte_pauses_and_only_none_resumes():
    connection = Connection(0, 0)
    connection.filled(0)
    connection.filled(1)
    connection.drained(1)
    assert connection.calls == ["pause"]
    connection.drained(0)
    assert connection.calls == ["pause", "resume"]


def test_limits_changed_while_paused_count_from_then_on():
    connection = Connection(100, 20)
    connection.filled(101)
    connection.flow.set_limits(1000, 500)
    connection.drained(501)
    assert connection.calls == ["pause"]
    connection.drained(500)
    assert connection.calls == ["pause", "resume"]


def test_a_protocol_that_writes_on_when_told_to_pause_is_not_told_again():
    connection = Connection(100, 20, lambda: connection.filled(500))
    connection.filled(101)
    assert connection.calls == ["pause"]


def test_a_protocol_that_writes_too_much_when_told_to_resume_is_paused_again():
    connection = Connection(100, 20)
    connection.filled(101)
    connection.protocol.action = lambda: connection.filled(101)
    connection.drained(0)
    assert connection.calls == ["pause", "resume", "pause"]
    connection.drained(21)
    assert connection.calls == ["pause", "resume", "pause"]


def test_pausing_happens_in_the_writers_context_and_resuming_in_the_connections():
    connection = Connection()
    connection.context.run(variable.set, "connection")
    writer = contextvars.copy_context()
    writer.run(variable.set, "writer")
    writer.run(connection.filled, 101)
    writer.run(connection.drained, 0)
    assert connection.protocol.seen == ["writer", "connection"]


class Failure(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, Failure, GeneratorExit])
def test_what_a_protocol_raises_is_reported_and_the_crossing_counts(kind):
    raised = []

    def fail():
        raised.append(kind("no"))
        raise raised[-1]

    connection = Connection(100, 20, fail)
    connection.filled(101)
    connection.filled(102)
    connection.drained(0)
    connection.drained(0)
    assert connection.calls == ["pause", "resume"]
    assert connection.loop.contexts == [
        {
            "message": f"protocol.{name}() failed",
            "exception": exception,
            "transport": connection.transport,
            "protocol": connection.protocol,
        }
        for name, exception in zip(("pause_writing", "resume_writing"), raised, strict=True)
    ]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_goes_through_and_the_crossing_counts(kind):
    def fail():
        raise kind

    connection = Connection(100, 20, fail)
    with pytest.raises(kind):
        connection.filled(101)
    connection.filled(102)
    with pytest.raises(kind):
        connection.drained(0)
    connection.drained(0)
    assert connection.calls == ["pause", "resume"]
    assert connection.loop.contexts == []


def test_a_protocol_without_the_methods_is_reported_as_well():
    connection = Connection()
    connection.protocol = object()
    connection.filled(101)
    connection.drained(0)
    assert [type(context["exception"]) for context in connection.loop.contexts] == [AttributeError] * 2
