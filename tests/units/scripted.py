"""Short ways to drive a `FakeSelector`, whose events come from a script, and to see what it did."""

from __future__ import annotations

from epoque.kernel.masks import LEVEL, POLL, READ
from epoque.selector.fake import RecordingSource


def watched(selector, fd, interest=READ, action=None, mode=LEVEL):
    source = RecordingSource(fd, interest, mode, action)
    selector.add(source)
    return source


def batch(selector, *events):
    """Fetch a batch and deliver it. An event is (fd, mask), or (fd, generation, mask)."""
    selector.script([(event[0], event[1] if len(event) == 3 else None, event[-1]) for event in events])
    selector.wait(POLL)
    selector.dispatch()


def interest(source):
    return source.state()[0]


def armed(source):
    return source.state()[1]


def generation(source):
    return source.state()[2]


def operations(selector):
    return [operation for operation, _ in selector.log]
