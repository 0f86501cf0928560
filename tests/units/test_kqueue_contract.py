"""KqueueSelector does what EpollSelector does: the same tests, as far as they look at no epoll instance."""

from __future__ import annotations

import pytest

from tests.units import kqueues, test_epoll_descriptors, test_epoll_events, test_epoll_waits

pytestmark = pytest.mark.epoque_only("looks at epoque's own selector")

SHARED = {
    test_epoll_events: (
        "what_is_readable_is_reported_until_it_is_read",
        "the_end_of_the_stream_is_readable_and_a_hangup",
        "a_pipe_whose_reader_is_gone_is_told_to_its_writer",
        "an_edge_source_is_told_once_per_ring_and_never_read",
        "nobody_starves_when_all_are_always_ready",
        "what_an_exception_leaves_is_not_fetched_over",
    ),
    test_epoll_descriptors: (
        "a_closed_descriptor_is_refused_and_leaves_nothing",
        "a_descriptor_closed_and_forgotten_is_silent",
        "update_of_a_closed_descriptor_lets_go_of_it",
        "a_number_given_out_again_is_watched_for_its_new_owner",
        "verify_tells_a_number_with_another_file_from_one_without_change",
        "a_number_given_out_again_while_a_duplicate_of_the_old_file_lives_does_not_get_its_events",
        "a_ring_that_nobody_heard_is_heard_by_the_new_instance",
        "a_closed_selector_answers_with_an_exception",
    ),
    test_epoll_waits: (
        "a_wait_ends_no_earlier_than_its_deadline",
        "a_deadline_that_has_passed_ends_the_wait_at_once",
        "the_same_deadline_can_be_waited_for_again",
        "an_event_ends_the_wait_before_its_deadline",
        "a_deadline_that_moves_forward_is_kept",
        "a_deadline_that_moves_back_costs_at_most_one_empty_wait",
        "a_signal_handler_that_raises_ends_the_wait",
        "a_signal_handler_runs_during_the_wait",
    ),
}
for module, names in SHARED.items():
    globals().update({f"test_{name}": getattr(module, f"test_{name}") for name in names})

interrupt = test_epoll_waits.interrupt


@pytest.fixture
def selector(monkeypatch):
    kqueues.provide(monkeypatch)
    from epoque.selector.kqueue import KqueueSelector

    selector = KqueueSelector()
    yield selector
    selector.close()
