"""Is what pytest says of another project's tests told as it is, and does the loop under test run them?"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from compat import comparison, runner
from compat.outcome import Outcome

pytestmark = pytest.mark.epoque_only("tests the runner; once is enough")

SUITE = """
    import asyncio
    import pytest

    @pytest.fixture
    def broken():
        raise ValueError("set-up")

    @pytest.fixture
    def broken_end():
        yield
        raise ValueError("end")

    @pytest.fixture(scope="module")
    def loop():
        loop = asyncio.new_event_loop()
        yield loop
        loop.close()

    def test_runs_a_loop():
        asyncio.run(asyncio.sleep(0))

    def test_makes_a_loop(loop): pass

    def test_shares_a_loop(loop):
        loop.run_until_complete(asyncio.sleep(0))

    def test_uses_no_loop(): pass

    def test_fails(): assert 1 == 2

    def test_raises(): raise OSError("no")

    def test_skips(): pytest.skip("no reason")

    @pytest.mark.xfail
    def test_fails_as_expected(): assert 1 == 2

    def test_has_no_set_up(broken): pass

    def test_has_a_bad_end(broken_end): pass

    @pytest.mark.parametrize("word", ["a b", "[*]"])
    def test_is_named(word): pass
"""
STATUSES = {
    "test_runs_a_loop": "passed",
    "test_makes_a_loop": "passed",
    "test_shares_a_loop": "passed",
    "test_uses_no_loop": "passed",
    "test_fails": "failed",
    "test_raises": "error",
    "test_skips": "skipped",
    "test_fails_as_expected": "passed",
    "test_has_no_set_up": "error",
    "test_has_a_bad_end": "error",
    "test_is_named[a b]": "passed",
    "test_is_named[[*]]": "passed",
}


@pytest.fixture
def program(tmp_path: Path) -> runner.Program:
    (tmp_path / "test_it.py").write_text(textwrap.dedent(SUITE))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\nfilterwarnings = error\n")
    return runner.Program("compat.workers.project", arguments=("test_it.py", "-pno:asyncio"), folder=tmp_path)


@pytest.mark.parametrize("loop", ["asyncio", "epoque"])
def test_each_test_has_its_outcome(program: runner.Program, loop: str) -> None:
    settings = runner.Settings(loop)
    names = runner.collect(program, settings)
    assert names == [f"test_it.py::{name}" for name in STATUSES]
    results = runner.run(program, [names], settings)
    outcomes = {test.partition("::")[2]: outcome for test, outcome in results.outcomes.items()}
    assert {test: outcome.status for test, outcome in outcomes.items()} == STATUSES
    assert {test for test, outcome in outcomes.items() if outcome.loops} == {
        "test_runs_a_loop",
        "test_makes_a_loop",
        "test_shares_a_loop",
    }
    assert outcomes["test_fails"].where.startswith("test_it.py:")
    assert results.about.startswith(loop)


def test_a_module_that_cannot_be_imported_is_said_to_be_that(program: runner.Program) -> None:
    assert program.folder is not None
    (program.folder / "test_it.py").write_text("import no_such_module")
    with pytest.raises(runner.NoTests, match="no_such_module"):
        runner.collect(program, runner.Settings("asyncio"))


def test_only_what_asyncio_fails_as_well_is_flaky() -> None:
    outcome = Outcome("a", "failed")
    assert comparison.Difference("a", outcome, "", 5, {"asyncio": 1, "epoque": 5}).flaky
    assert not comparison.Difference("a", outcome, "", 5, {"asyncio": 0, "epoque": 1}).flaky
    assert not comparison.Difference("a", outcome, "").flaky
