"""Selector: descriptors closed behind its back, ghosts, forks, and the end."""

from __future__ import annotations

import errno

import pytest

from epoque.kernel.masks import READ, WRITE
from epoque.selector.fake import FakeSelector
from tests.units.scripted import armed, batch, generation, operations, watched

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")


@pytest.fixture
def selector():
    selector = FakeSelector()
    yield selector
    selector.close()


# --- descriptors closed behind our back


def test_adding_a_number_that_is_taken_evicts_the_source_that_had_it(selector):
    old = watched(selector, 3)
    new = watched(selector, 3)
    assert (old.lost, generation(old), armed(old)) == (True, 0, 0)
    batch(selector, (3, READ))
    assert (old.calls, new.calls, new.lost) == ([], [READ], False)
    selector.remove(old)
    assert selector.find(3) is new


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EBADF, errno.EPERM, errno.EINVAL, errno.ELOOP])
def test_update_of_another_file_under_the_number_lets_go_of_it(selector, number):
    source = watched(selector, 3)
    selector.refuse(3, number)
    source.want(READ | WRITE)
    selector.update(source)
    assert operations(selector) == ["add", "modify"]
    assert (source.lost, generation(source), selector.find(3)) == (True, 0, None)


def test_add_of_a_number_that_the_kernel_watches_already_modifies_it(selector):
    selector.refuse(3, errno.EEXIST)
    with pytest.raises(FileExistsError):
        watched(selector, 3)
    assert operations(selector) == ["add", "modify"]
    assert selector.find(3) is None


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EBADF, errno.EPERM, errno.EINVAL, errno.ELOOP])
def test_removing_or_pausing_a_closed_descriptor_is_fine(selector, number):
    removed, paused = watched(selector, 3), watched(selector, 4)
    selector.refuse(3, number)
    selector.refuse(4, number)
    selector.remove(removed)
    assert (selector.find(3), generation(removed)) == (None, 0)
    paused.want(0)
    selector.update(paused)
    assert (selector.find(4), armed(paused)) == (paused, 0)


def test_another_error_of_a_removal_is_raised_and_the_source_is_gone(selector):
    source = watched(selector, 3)
    selector.refuse(3, errno.EIO)
    with pytest.raises(OSError) as caught:
        selector.remove(source)
    assert caught.value.errno == errno.EIO
    assert selector.find(3) is None


def test_a_source_that_cannot_be_calmed_is_evicted(selector):
    source = watched(selector, 3, READ | WRITE)
    source.want(WRITE)
    selector.refuse(3, errno.EBADF)
    batch(selector, (3, READ))
    assert (source.lost, selector.find(3), generation(source)) == (True, None, 0)


def test_verify_asks_the_kernel_whether_the_file_is_still_the_one_that_was_armed(selector):
    source = watched(selector, 3)
    assert selector.verify(source)
    assert operations(selector) == ["add", "modify"]
    assert not source.lost


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EBADF])
def test_verify_lets_go_of_a_descriptor_that_is_another_file_or_none(selector, number):
    source = watched(selector, 3)
    selector.refuse(3, number)
    assert not selector.verify(source)
    assert (source.lost, selector.find(3), generation(source)) == (True, None, 0)


def test_verify_raises_other_errors_and_keeps_the_source(selector):
    source = watched(selector, 3)
    selector.refuse(3, errno.ENOMEM)
    with pytest.raises(OSError):
        selector.verify(source)
    assert (source.lost, selector.find(3)) == (False, source)


def test_verify_of_what_the_kernel_does_not_watch_asks_nobody(selector):
    source = watched(selector, 3, 0)
    assert selector.verify(source)
    assert selector.log == []


def test_verify_forgets_nothing_that_was_paused_and_not_told(selector):
    source = watched(selector, 3, READ | WRITE)
    source.want(READ)
    assert selector.verify(source)
    source.want(READ | WRITE)
    selector.update(source)
    assert selector.kernel[3][1] == READ | WRITE


# --- ghosts


def test_events_that_nothing_explains_lead_to_one_new_instance(selector):
    first, second = watched(selector, 3), watched(selector, 4, WRITE)
    before = {3: (generation(first), READ), 4: (generation(second), WRITE)}
    batch(selector, (9, 77, READ), (10, 78, READ), (100_000, 79, READ), (3, READ))
    assert operations(selector).count("reopen") == 1
    assert (selector.kernel, first.calls) == (before, [READ])
    batch(selector, (3, READ), (4, WRITE))
    assert (first.calls, second.calls) == ([READ, READ], [WRITE])
    assert operations(selector).count("reopen") == 1


def test_an_event_with_the_generation_of_no_registration_is_a_ghost(selector):
    source = watched(selector, 3)
    batch(selector, (3, generation(source) + 1, READ))
    assert (operations(selector), source.calls) == (["add", "modify", "reopen", "add"], [])


def test_a_removal_explains_the_events_of_its_own_batch_only(selector):
    source = watched(selector, 3)
    watched(selector, 4)
    stale = generation(source)
    selector.remove(source)
    batch(selector, (4, READ))
    assert "reopen" not in operations(selector)
    batch(selector, (3, stale, READ))
    assert operations(selector).count("reopen") == 1


def test_a_new_instance_is_told_what_is_wanted_now_and_lets_go_of_what_is_closed(selector):
    paused, wider, closed = watched(selector, 3), watched(selector, 4), watched(selector, 5)
    paused.want(0)
    wider.want(READ | WRITE)
    selector.refuse(5, errno.EBADF)
    batch(selector, (9, 77, READ))
    assert selector.kernel == {4: (generation(wider), READ | WRITE)}
    assert (paused.lost, wider.lost, closed.lost) == (False, False, True)
    assert (selector.find(3), selector.find(5)) == (paused, None)


# --- forks and the end


def test_after_a_fork_the_first_edit_opens_an_instance_of_its_own(selector):
    source, other = watched(selector, 3), watched(selector, 4)
    selector._forked()
    batch(selector, (3, READ))
    assert selector.verify(source)
    assert operations(selector) == ["add", "add"]
    assert source.calls == [READ]
    selector.remove(other)
    assert operations(selector)[2:] == ["reopen", "add", "add", "remove"]
    third = watched(selector, 5)
    assert operations(selector)[6:] == ["add"]
    batch(selector, (3, READ), (5, READ))
    assert (source.calls, third.calls) == ([READ, READ], [READ])


@pytest.mark.parametrize("edit", ["add", "update", "pause", "remove", "calm"])
def test_after_a_fork_no_edit_reaches_the_parents_instance(selector, edit):
    source = watched(selector, 3)
    selector._forked()
    if edit == "add":
        watched(selector, 4)
    elif edit == "update":
        source.want(READ | WRITE)
        selector.update(source)
    elif edit == "pause":
        source.want(0)
        selector.update(source)
    elif edit == "remove":
        selector.remove(source)
    else:
        source.want(0)
        batch(selector, (3, READ))
    assert operations(selector)[1] == "reopen"


def test_close_forgets_all_and_says_nothing_to_the_kernel(selector):
    source, other = watched(selector, 3), watched(selector, 400, READ | WRITE)
    selector.close()
    selector.close()
    assert (selector.find(3), selector.find(400)) == (None, None)
    assert source.state() == (READ, 0, 0)
    assert other.state() == (READ | WRITE, 0, 0)
    assert not source.lost
    selector.remove(source)
    assert operations(selector) == ["add", "add"]


def test_a_selector_closed_by_a_callback_delivers_no_more(selector):
    watched(selector, 3, action=lambda mask: selector.close())
    last = watched(selector, 4)
    batch(selector, (3, READ), (4, READ))
    assert (last.calls, operations(selector)) == ([], ["add", "add"])
