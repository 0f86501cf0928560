"""Selector: which source does an event belong to, and does it still want it? Registration, and changes in a batch."""

from __future__ import annotations

import errno

import pytest

from epoque.kernel.masks import EDGE, HANGUP, LEVEL, POLL, READ, WRITE
from epoque.selector.fake import FakeSelector, RecordingSource
from tests.loops import checked_script
from tests.units.scripted import armed, batch, generation, interest, operations, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")


@pytest.fixture
def selector():
    selector = FakeSelector()
    yield selector
    selector.close()


# --- registration


def test_an_event_goes_to_the_source_of_its_descriptor_with_its_whole_mask(selector):
    first, second, third = watched(selector, 3), watched(selector, 4, READ | WRITE), watched(selector, 900)
    batch(selector, (900, READ), (4, READ | WRITE | HANGUP))
    assert (first.calls, second.calls, third.calls) == ([], [READ | WRITE | HANGUP], [READ])


def test_events_are_delivered_in_the_order_of_the_batch(selector):
    order = []
    for fd in range(3, 9):
        watched(selector, fd, action=lambda mask, fd=fd: order.append(fd))
    batch(selector, *((fd, READ) for fd in (7, 3, 8, 5)))
    assert order == [7, 3, 8, 5]


def test_find_gives_the_source_or_none(selector):
    source = watched(selector, 5)
    assert selector.find(5) is source
    assert [selector.find(fd) for fd in (-1, 0, 4, 6, 1_000_000)] == [None] * 5
    selector.remove(source)
    assert selector.find(5) is None


def test_the_kernel_is_told_interest_and_generation(selector):
    source = watched(selector, 3, READ | WRITE)
    assert selector.kernel == {3: (generation(source), READ | WRITE)}
    assert generation(source) != 0


def test_every_registration_has_a_generation_of_its_own(selector):
    seen = set()
    for _ in range(10):
        first, second = watched(selector, 3), watched(selector, 4)
        seen |= {generation(first), generation(second)}
        selector.remove(first)
        selector.remove(second)
        assert generation(first) == generation(second) == 0
    assert len(seen) == 20


def test_a_source_that_wants_nothing_is_added_without_a_system_call(selector):
    source = watched(selector, 3, 0)
    assert (selector.log, selector.find(3)) == ([], source)
    source.want(WRITE)
    selector.update(source)
    assert selector.log == [("add", 3)]


def test_update_tells_the_kernel_differences_only(selector):
    source = watched(selector, 3, READ)
    for wanted in (READ, READ | WRITE, READ | WRITE, WRITE, 0, 0, READ):
        source.want(wanted)
        selector.update(source)
    assert operations(selector) == ["add", "modify", "modify", "remove", "add"]
    assert armed(source) == READ


def test_remove_leaves_alone_what_is_not_registered(selector):
    source = watched(selector, 3)
    stranger = RecordingSource(3, READ)
    selector.remove(stranger)
    selector.remove(RecordingSource(77, READ))
    assert selector.find(3) is source
    selector.remove(source)
    selector.remove(source)
    assert operations(selector) == ["add", "remove"]


def test_removing_what_the_kernel_does_not_watch_is_not_told_to_it(selector):
    source = watched(selector, 3)
    source.want(0)
    selector.update(source)
    selector.remove(source)
    assert operations(selector) == ["add", "remove"]


@pytest.mark.parametrize("number", [errno.EBADF, errno.EPERM, errno.ENOSPC, errno.ENOMEM])
def test_a_refused_add_leaves_nothing(selector, number):
    bystander = watched(selector, 8)
    selector.refuse(3, number)
    source = RecordingSource(3, READ)
    with pytest.raises(OSError) as caught:
        selector.add(source)
    assert caught.value.errno == number
    assert (selector.find(3), generation(source), armed(source)) == (None, 0, 0)
    assert list(selector.kernel) == [8]
    selector.refuse(3, None)
    selector.add(source)
    batch(selector, (3, READ), (8, READ))
    assert (source.calls, bystander.calls) == ([READ], [READ])


def test_a_descriptor_below_zero_is_refused_and_disturbs_nobody():
    # In a process of its own: compiled, an index below zero would be memory that is not the table's.
    printed = checked_script("""
        from epoque.selector.fake import FakeSelector, RecordingSource
        selector, source = FakeSelector(), RecordingSource(3, 1)
        selector.add(source)
        try:
            selector.add(RecordingSource(-1, 1))
        except OSError as exc:
            print(exc.errno, source.lost, selector.find(3) is source)
        """)
    assert printed.split() == [str(errno.EBADF), "False", "True"]


# --- changes within a batch


def test_an_event_of_an_earlier_registration_is_not_delivered(selector):
    old = watched(selector, 3)
    stale = generation(old)
    selector.remove(old)
    new = watched(selector, 3)
    batch(selector, (3, stale, READ))
    assert (old.calls, new.calls) == ([], [])


def test_a_number_reused_within_the_batch_does_not_get_its_predecessors_event(selector):
    new = []

    def reuse(mask):
        selector.remove(old)
        new.append(watched(selector, 4))

    watched(selector, 3, action=reuse)
    old = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert (old.calls, new[0].calls) == ([], [])
    batch(selector, (4, READ))
    assert (old.calls, new[0].calls) == ([], [READ])
    assert "reopen" not in operations(selector)


def test_a_source_removed_and_added_again_within_the_batch_waits_for_a_new_event(selector):
    def again(mask):
        selector.remove(other)
        selector.add(other)

    watched(selector, 3, action=again)
    other = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert other.calls == []
    batch(selector, (4, READ))
    assert other.calls == [READ]


def test_a_source_removed_by_an_earlier_callback_is_not_called(selector):
    watched(selector, 3, action=lambda mask: selector.remove(other))
    other = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert other.calls == []
    assert "reopen" not in operations(selector)


def test_a_source_replaced_by_an_earlier_callback_is_lost_and_not_called(selector):
    new = []
    watched(selector, 3, action=lambda mask: new.append(watched(selector, 4)))
    old = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert (old.calls, old.lost, new[0].calls) == ([], True, [])
    assert "reopen" not in operations(selector)


def test_a_source_paused_by_an_earlier_callback_is_disarmed_instead_of_called(selector):
    watched(selector, 3, action=lambda mask: other.want(0))
    other = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert other.calls == []
    assert list(selector.kernel) == [3]
    other.want(READ)
    selector.update(other)
    batch(selector, (4, READ))
    assert other.calls == [READ]


def test_an_event_for_the_direction_that_is_paused_disarms_that_direction_only(selector):
    source = watched(selector, 3, READ | WRITE)
    source.want(WRITE)
    batch(selector, (3, READ))
    assert source.calls == []
    assert selector.kernel[3][1] == WRITE
    batch(selector, (3, WRITE))
    assert source.calls == [WRITE]


def test_what_is_told_though_it_is_not_wanted_is_asked_for_anew_when_it_is(selector):
    source = watched(selector, 3, READ | WRITE)
    source.want(WRITE)
    batch(selector, (3, READ | WRITE))
    assert (source.calls, selector.kernel[3][1]) == ([READ | WRITE], WRITE)
    source.want(READ | WRITE)
    selector.update(source)
    assert operations(selector) == ["add", "modify", "modify"]


def test_a_source_resumed_by_an_earlier_callback_gets_its_event(selector):
    watched(selector, 3, action=lambda mask: other.want(READ))
    other = watched(selector, 4)
    other.want(0)
    batch(selector, (3, READ), (4, READ))
    assert other.calls == [READ]


def test_pausing_and_resuming_while_nothing_happens_costs_no_operation(selector):
    source = watched(selector, 3)
    for _ in range(5):
        source.want(0)
        source.want(READ)
        selector.update(source)
    batch(selector, (3, READ))
    assert (operations(selector), source.calls) == (["add"], [READ])


def test_a_hangup_that_nobody_wants_is_unregistered_until_somebody_does(selector):
    source = watched(selector, 3)
    source.want(0)
    batch(selector, (3, READ | WRITE | HANGUP))
    assert (source.calls, selector.kernel) == ([], {})
    source.want(WRITE)
    selector.update(source)
    batch(selector, (3, READ | WRITE | HANGUP))
    assert source.calls == [READ | WRITE | HANGUP]
    assert operations(selector) == ["add", "remove", "add"]


def test_a_batch_may_add_sources_with_far_higher_numbers(selector):
    added = []
    watched(selector, 3, action=lambda mask: added.extend(watched(selector, fd) for fd in (500, 50, 5)))
    last = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert last.calls == [READ]
    batch(selector, (5, READ), (500, READ))
    assert [source.calls for source in added] == [[READ], [], [READ]]


def test_the_deadline_is_handed_on(selector):
    for deadline in (POLL, 1, 0x7FFF_FFFF_FFFF_FFFF):
        selector.wait(deadline)
    assert selector.waits == [POLL, 1, 0x7FFF_FFFF_FFFF_FFFF]


def test_interest_is_the_sources_own(selector):
    source = watched(selector, 3)
    source.want(WRITE)
    assert (interest(source), armed(source)) == (WRITE, READ)


# --- what is told once


def test_again_has_the_kernel_look_at_an_edge_triggered_source_only(selector):
    level, edge = watched(selector, 3), watched(selector, 4, mode=EDGE)
    selector.again(level)
    selector.again(edge)
    assert selector.log == [("add", 3), ("add", 4), ("modify", 4)]
    edge.want(0)
    selector.again(edge)
    selector.again(edge)
    assert (operations(selector)[3:], list(selector.kernel)) == (["remove"], [3])


def test_again_is_nothing_to_a_source_that_is_not_registered(selector):
    source = watched(selector, 3, mode=EDGE)
    selector.remove(source)
    selector.again(source)
    assert operations(selector) == ["add", "remove"]


def test_what_is_asked_for_again_in_a_child_is_told_by_its_own_instance(selector):
    source = watched(selector, 3, mode=EDGE)
    selector._forked()
    source.want(READ | WRITE)
    selector.again(source)
    assert operations(selector) == ["add"]
    selector.update(source)
    assert (operations(selector), selector.kernel[3][1]) == (["add", "reopen", "add", "modify"], READ | WRITE)


# --- exceptions


@pytest.mark.parametrize(("mode", "expected"), [(LEVEL, ["add"]), (EDGE, ["add", "modify"])])
def test_an_edge_triggered_source_that_an_exception_leaves_is_told_again(selector, mode, expected):
    watched(selector, 3, mode=mode, action=lambda mask: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        batch(selector, (3, READ))
    assert operations(selector) == expected


def test_what_an_exception_leaves_in_a_child_is_not_told_to_its_parents_instance(selector):
    def fork(mask):
        selector._forked()
        raise SystemExit

    watched(selector, 3, mode=EDGE, action=fork)
    with pytest.raises(SystemExit):
        batch(selector, (3, READ))
    assert operations(selector) == ["add"]


def test_an_exception_that_leaves_after_the_source_is_gone_is_not_followed_by_an_operation(selector):
    def fail(mask):
        selector.remove(source)
        raise KeyboardInterrupt

    source = watched(selector, 3, mode=EDGE, action=fail)
    with pytest.raises(KeyboardInterrupt):
        batch(selector, (3, READ))
    assert operations(selector) == ["add", "remove"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_an_exception_leaves_of_a_batch_is_delivered_by_the_next_dispatch(selector, kind):
    def fail(mask):
        raise kind

    first, failing, last = watched(selector, 3), watched(selector, 4, action=fail), watched(selector, 5)
    with pytest.raises(kind):
        batch(selector, (3, READ), (4, READ), (5, READ))
    assert (first.calls, failing.calls, last.calls) == ([READ], [READ], [])
    selector.script([(3, None, READ)])
    selector.wait(POLL)  # fetches nothing: something is left
    assert selector.waits == [POLL]
    selector.dispatch()
    assert (first.calls, failing.calls, last.calls) == ([READ], [READ], [READ])
    selector.wait(POLL)
    selector.dispatch()
    assert first.calls == [READ, READ]


def test_an_exception_of_the_last_callback_leaves_nothing(selector):
    watched(selector, 3, action=lambda mask: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        batch(selector, (3, READ))
    selector.dispatch()
    selector.wait(POLL)
    assert len(selector.waits) == 2


def test_changes_made_before_an_exception_count_for_what_is_left(selector):
    def fail(mask):
        selector.remove(removed)
        paused.want(0)
        raise KeyboardInterrupt

    watched(selector, 3, action=fail)
    removed, paused = watched(selector, 4), watched(selector, 5)
    with pytest.raises(KeyboardInterrupt):
        batch(selector, (3, READ), (4, READ), (5, READ))
    selector.dispatch()
    assert (removed.calls, paused.calls) == ([], [])
    assert "reopen" not in operations(selector)
