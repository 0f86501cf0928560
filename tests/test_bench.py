"""Does the suite in bench/ count, compare and report right? Whether it measures, ``python -m bench --quick`` tries."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from rich.console import Console

from bench import baseline, floors, report, scenarios, stats, syscalls
from bench.cli import broken, parse
from bench.results import About, Document, Results
from tests.loops import ROOT

pytestmark = pytest.mark.epoque_only("tests the suite, not a loop; once is enough")

PYTHON = "CPython 3.13.0 (main)"


def results(**medians: float) -> Results:
    """One row, measured in five rounds of slowly rising load, with these figures for the loops."""
    made = Results(
        PYTHON, {"aiohttp": "3.14"}, {loop: {"version": "1"} for loop in medians}, {"micro/chain": About("what", "ns")}
    )
    for loop, value in medians.items():
        for round_ in range(5):
            made.add("micro/chain", loop, round_, {"value": value * (1 + round_ / 100), "user": 1.0})
    return made


def document(*all_results: Results) -> Document:
    run = {"date": "today", "rounds": 5, "seconds": 0.25, "quick": False, "took": 1}
    return Document({"machine": "one"}, run, list(all_results))


def test_rows_are_named_after_their_scenario_and_only_once():
    rows = scenarios.select([])
    assert len({row.name for row in rows}) == len(rows)
    for scenario in scenarios.SCENARIOS:
        found = scenarios.rows(scenario)
        assert found
        assert all(name.startswith(f"{scenario}/") for name in found)


def test_floors_are_about_rows_that_exist():
    assert {floor.row for floor in floors.FLOORS} <= {row.name for row in scenarios.select([])}


def test_rows_are_chosen_by_scenario_name_or_pattern():
    assert [row.name for row in scenarios.select(["micro/chain", "signals", "udp/echo*"])] == [
        "micro/chain",
        "udp/echo",
        "udp/echo_1KiB",
        "signals/latency",
    ]
    with pytest.raises(ValueError, match="nonsense"):
        scenarios.select(["micro", "nonsense"])


@pytest.mark.parametrize("arguments", [["nonsense"], ["--loops", "nonsense"], ["--baseline", "/nonexistent"]])
def test_a_wrong_name_is_an_error_of_usage(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        parse(arguments)
    assert exit_.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


def test_what_is_written_is_read(tmp_path: Path):
    before = results(asyncio=1000.0, epoque=200.0)
    before.calls["micro/chain", "epoque"] = {"total": 2.0}
    before.failures["micro/chain", "uvloop"] = "crashed"
    document(before).write(tmp_path / "run.json")
    after = Document.read(tmp_path / "run.json").results[0]
    assert vars(after) == vars(before)


def test_another_file_is_no_run(tmp_path: Path):
    (tmp_path / "other.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match="not a run"):
        Document.read(tmp_path / "other.json")


def test_ours_are_no_peers():
    found = results(asyncio=1000.0, uvloop=500.0, rloop=400.0, epoque=200.0)
    assert found.best_peer("micro/chain") == "rloop"


def test_what_fails_on_ours_is_a_fault_and_on_a_peer_is_not():
    found = results(asyncio=1000.0, epoque=200.0)
    found.loops["rloop"] = {"error": "not installed"}
    found.failures["micro/chain", "uvloop"] = "crashed"
    assert broken(found) == []
    found.failures["micro/chain", "epoque"] = "crashed"
    assert broken(found) == ["micro/chain, epoque: crashed"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the suite measures on Linux only")
def test_each_interpreter_that_is_named_gets_a_table_of_its_own(tmp_path: Path):
    venv.create(tmp_path / "other", symlinks=True)  # has Python, and no epoque
    other = tmp_path / "other/bin/python"
    arguments = ["micro/chain", "--quick", "--loops", "asyncio,epoque"]
    arguments += ["--python", sys.executable, "--python", str(other), "--json", str(tmp_path / "run.json")]
    # The report, which comes next, needs numpy; the rest of this suite does without.
    code = "import sys; from bench import cli; found = cli.parse(sys.argv[1:]); cli.measure(found).write(found.json)"
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, env=environment, timeout=120, check=True)
    tables = Document.read(tmp_path / "run.json").results
    assert [table.python.rpartition("(")[2] for table in tables] == [f"{sys.executable})", f"{other})"]
    for table in tables:
        assert table.median("micro/chain", "asyncio") > 0
    assert "error" in tables[1].loops["epoque"]
    assert [fault.partition(":")[0] for fault in broken(tables[1])] == ["epoque"]


def test_percentiles():
    found = stats.percentiles([float(value) for value in range(100, 0, -1)])
    assert found == {"value": 50.5, "p50": 50.0, "p90": 90.0, "p99": 99.0, "p100": 100.0}


def test_the_summary_of_strace_is_understood():
    lines = {
        " 50.00    0.000450           3       128        28 recvfrom": ("recvfrom", "128"),
        " 50.00    0.000450           3       100           sendto": ("sendto", "100"),
    }
    for line, (name, calls) in lines.items():
        match = syscalls.LINE.match(line)
        assert match is not None
        assert (match["name"], match["calls"]) == (name, calls)
    assert syscalls.LINE.match("% time     seconds  usecs/call     calls    errors syscall") is None


class TestComparing:
    """What needs the bootstrap, and so numpy."""

    @pytest.fixture(autouse=True)
    def _numpy(self):
        pytest.importorskip("numpy", reason="numpy comes with the extra `bench`")

    def test_a_ratio_of_rounds_that_move_together_is_sure(self):
        found = results(uvloop=500.0, epoque=200.0).ratio("micro/chain", "epoque", "uvloop")
        assert found is not None
        assert (found.value, found.low, found.high) == pytest.approx((0.4, 0.4, 0.4), abs=0.01)

    def test_a_machine_of_two_speeds_is_no_difference_between_loops(self):
        found = results(uvloop=500.0, epoque=500.0)
        for round_, speeds in enumerate([(1, 1), (1, 1), (1, 3), (3, 3), (3, 3)]):
            for loop, speed in zip(("uvloop", "epoque"), speeds, strict=True):
                found.add("micro/chain", loop, round_, {"value": 500.0 * speed})
        ratio = found.ratio("micro/chain", "epoque", "uvloop")
        assert ratio is not None
        assert ratio.value == 1.0

    def test_there_is_no_ratio_to_what_was_not_measured_or_is_zero(self):
        found = results(uvloop=0.0, epoque=200.0)
        assert found.ratio("micro/chain", "epoque", "uvloop") is None
        assert found.ratio("micro/chain", "epoque", "asyncio") is None

    def test_a_slower_machine_is_no_regression(self):
        changes = baseline.compare(
            document(results(asyncio=1000.0, epoque=200.0)), document(results(asyncio=3000.0, epoque=600.0))
        )
        assert [(change.loop, change.regression, change.improvement) for change in changes] == [
            ("epoque", False, False)
        ]

    @pytest.mark.parametrize(("now", "regression", "improvement"), [(300.0, True, False), (100.0, False, True)])
    def test_a_change_against_the_clock_loop_is_found(self, now, regression, improvement):
        earlier, later = (document(results(asyncio=1000.0, epoque=value)) for value in (200.0, now))
        (change,) = baseline.compare(earlier, later)
        assert (change.regression, change.improvement) == (regression, improvement)

    def test_the_report_shows_figures_failures_and_floors(self):
        found = results(asyncio=1000.0, uvloop=500.0, epoque=200.0)
        found.failures["micro/chain", "asyncio"] = "segmentation fault"
        out = io.StringIO()
        report.show(Console(file=out, width=160), document(found))
        text = out.getvalue()
        assert "204 ns" in text
        assert "≤ 0.35 × uvloop MISSED" in text
        assert "micro/chain, asyncio: segmentation fault" in text
