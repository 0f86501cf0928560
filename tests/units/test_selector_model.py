"""Selector, held to a model: whatever callbacks do to each other, an event reaches whoever still wants it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epoque.kernel.masks import HANGUP, READ, WRITE
from epoque.selector.fake import FakeSelector
from tests.units.scripted import armed, batch, operations, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")

DESCRIPTORS = st.integers(0, 4)
INTERESTS = st.sampled_from([0, READ, WRITE, READ | WRITE])
MASKS = st.sampled_from([READ, WRITE, READ | WRITE, READ | HANGUP, READ | WRITE | HANGUP])
STEPS = st.one_of(
    # Not 0: a source that wants nothing leaves the kernel with what it knew of the one it replaces.
    st.tuples(st.just("add"), DESCRIPTORS, st.sampled_from([READ, WRITE, READ | WRITE])),
    st.tuples(st.just("remove"), DESCRIPTORS, st.just(0)),
    st.tuples(st.just("want"), DESCRIPTORS, INTERESTS),
    st.tuples(st.just("tell"), DESCRIPTORS, INTERESTS),
)
BATCHES = st.lists(st.tuples(DESCRIPTORS, MASKS), max_size=5, unique_by=lambda event: event[0])


class Model:
    """What a selector ought to deliver: `registered` holds [token, interest], a new token per registration."""

    def __init__(self, reactions):
        self.registered = {}
        self.reactions = iter(reactions)
        self.tokens = 0
        self.calls = []

    def do(self, step, fd, wanted):
        if step == "add":
            self.tokens += 1
            self.registered[fd] = [self.tokens, wanted]
        elif step == "remove":
            self.registered.pop(fd, None)
        elif fd in self.registered:
            self.registered[fd][1] = wanted

    def deliver(self, events):
        tokens = {fd: self.registered[fd][0] for fd, _ in events}
        for fd, mask in events:
            token, wanted = self.registered.get(fd, (0, 0))
            if token == tokens[fd] and mask & wanted:
                self.calls.append((fd, mask))
                for step in next(self.reactions, ()):
                    self.do(*step)


class Driver:
    """Does to a selector what is done to the model; every callback takes the next steps."""

    def __init__(self, reactions):
        self.selector = FakeSelector()
        self.sources = {}
        self.reactions = iter(reactions)
        self.calls = []

    def do(self, step, fd, wanted):
        if step == "add":
            self.sources[fd] = watched(self.selector, fd, wanted, lambda mask: self.called(fd, mask))
        elif step == "remove":
            if fd in self.sources:
                self.selector.remove(self.sources.pop(fd))
        elif fd in self.sources:
            source = self.sources[fd]
            source.want(wanted)
            if step == "tell" or wanted & ~armed(source):
                self.selector.update(source)

    def called(self, fd, mask):
        self.calls.append((fd, mask))
        for step in next(self.reactions, ()):
            self.do(*step)


@settings(max_examples=150)
@given(
    st.lists(STEPS, min_size=4, max_size=8),
    st.lists(BATCHES, min_size=2, max_size=6),
    st.lists(st.lists(STEPS, max_size=3), min_size=6, max_size=15),
)
def test_whatever_the_callbacks_of_a_batch_do_each_event_reaches_who_still_wants_it(before, batches, reactions):
    driver, model = Driver(reactions), Model(reactions)
    for step in before:
        driver.do(*step)
        model.do(*step)
    for events in batches:
        events = [event for event in events if event[0] in driver.selector.kernel]
        batch(driver.selector, *events)
        model.deliver(events)
        assert driver.calls == model.calls
        assert driver.selector.kernel.keys() <= model.registered.keys()
        for fd, (_, wanted) in model.registered.items():
            assert not wanted & ~driver.selector.kernel.get(fd, (0, 0))[1]
    assert "reopen" not in operations(driver.selector)
