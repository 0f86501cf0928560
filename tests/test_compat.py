"""Does every test of a compat suite get its one outcome when a worker hangs, dies or fails?"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from compat import lists, runner, suites

pytestmark = pytest.mark.epoque_only("tests the runner; once is enough")

UNRULY = '''
    """A worker whose tests do what their names say."""
    import faulthandler, json, os, signal, sys, time

    faulthandler.enable()
    fd = int(sys.argv[2])
    os.set_inheritable(fd, False)

    def send(**event):
        os.write(fd, json.dumps(event).encode() + b"\\n")

    send(event="hello", about="unruly")
    for name in json.load(sys.stdin):
        send(event="start", test=name)
        if name == "hang":
            time.sleep(600)
        elif name == "hang deaf":
            signal.signal(signal.SIGABRT, signal.SIG_IGN)
            time.sleep(600)
        elif name == "leave a child":
            if os.fork() == 0:
                time.sleep(600)
        elif name == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "flood":
            os.write(1, b"x" * 3_000_000)
        send(event="stop", test=name, status="failed" if name == "fail" else "passed", loops=os.getpid())
        if name == "die after":
            os._exit(3)
    send(event="bye")
'''


@pytest.fixture
def unruly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "unruly.py").write_text(textwrap.dedent(UNRULY))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "unruly"


def run(module: str, *tests: str) -> runner.Results:
    return runner.run(runner.Program(module), [list(tests)], runner.Settings("asyncio", timeout=2))


def statuses(results: runner.Results) -> dict[str, str]:
    return {test: outcome.status for test, outcome in results.outcomes.items()}


def test_a_hang_is_one_outcome_and_shows_where_it_stood(unruly: str) -> None:
    results = run(unruly, "one", "hang", "two")
    assert statuses(results) == {"one": "passed", "hang": "timeout", "two": "passed"}
    assert "unruly.py" in results.outcomes["hang"].trace


def test_a_worker_that_ignores_the_abort_is_killed(unruly: str) -> None:
    assert statuses(run(unruly, "hang deaf", "two")) == {"hang deaf": "timeout", "two": "passed"}


def test_a_crash_is_one_outcome(unruly: str) -> None:
    results = run(unruly, "one", "kill", "two")
    assert statuses(results) == {"one": "passed", "kill": "crashed", "two": "passed"}
    assert "SIGKILL" in results.outcomes["kill"].message


def test_a_death_between_tests_costs_no_test(unruly: str) -> None:
    results = run(unruly, "die after", "two")
    assert statuses(results) == {"die after": "passed", "two": "passed"}
    assert "exit code 3" in results.notes[0]


def test_the_test_after_a_failed_one_runs_in_another_process(unruly: str) -> None:
    results = run(unruly, "one", "fail", "two")
    process = {test: outcome.loops for test, outcome in results.outcomes.items()}
    assert process["one"] == process["fail"] != process["two"]


def test_output_and_leftover_children_hold_nothing_up(unruly: str) -> None:
    assert statuses(run(unruly, "flood", "leave a child")) == {"flood": "passed", "leave a child": "passed"}


def test_a_worker_that_cannot_start_fails_its_tests_with_what_it_said(unruly: str) -> None:
    results = run("no_such_worker", "one", "two")
    assert statuses(results) == {"one": "crashed", "two": "crashed"}
    assert "no_such_worker" in results.outcomes["one"].trace


def test_a_listed_text_restricts_the_entry() -> None:
    entry = lists.Entry("module.*", "in sendfile()", "later")
    assert entry.matches("module.Class.test", "NotImplementedError: in sendfile()")
    assert not entry.matches("module.Class.test", "AssertionError: 1 != 2")
    assert not entry.matches("other.Class.test", "NotImplementedError: in sendfile()")


def test_brackets_of_a_node_id_stand_for_themselves() -> None:
    entry = lists.Entry("tests/test_a.py::test_b[*-loop]", "", "later")
    assert entry.matches("tests/test_a.py::test_b[one-loop]")
    assert not entry.matches("tests/test_a.py::test_bo")


def test_groups_run_side_by_side(unruly: str) -> None:
    """Each group has its own worker, and what hangs in one holds up no other."""
    settings = runner.Settings("asyncio", timeout=2, jobs=2)
    results = runner.run(runner.Program(unruly), [["hang"], ["one"], ["two"], ["three"]], settings)
    assert statuses(results) == {"hang": "timeout", "one": "passed", "two": "passed", "three": "passed"}


@pytest.mark.parametrize("suite", suites.NAMES)
@pytest.mark.parametrize("kind", ["left_out", "known"])
def test_every_line_of_the_lists_has_a_reason(kind: str, suite: str) -> None:
    entries = lists.read(kind, suite)
    assert all(entry.test and entry.reason for entry in entries)
    assert len({(entry.test, entry.text) for entry in entries}) == len(entries)
