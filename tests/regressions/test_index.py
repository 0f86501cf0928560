"""Does every test exist that the README of this directory names, and does it name every test of this directory?"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent


def names_of_tests(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))


def test_the_index_names_tests_that_exist_and_all_of_this_directory():
    named = set(re.findall(r"`([\w/]*test_\w+\.py)::(test_\w+)`", (HERE / "README.md").read_text()))
    known = {}
    for file, name in sorted(named):
        path = HERE / file if "/" not in file else HERE.parent / file
        known.setdefault(file, names_of_tests(path))
        assert name in known[file], f"{file}::{name}"
    for path in HERE.glob("test_*.py"):
        if path.name != Path(__file__).name:
            assert names_of_tests(path) == {name for file, name in named if file == path.name}, path.name
