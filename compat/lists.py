"""Which tests are left out or known to differ, and why?  Reads the lists in left_out/ and known/.

A line is `TEST  [TEXT]  REASON`.  TEST is a test's name or a pattern with `*`; the optional TEXT in brackets must occur
in the failure's text; the REASON is for people and must not be missing.  `#` starts a comment line.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINE = re.compile(r"(?P<test>\S+)\s+(?:\[(?P<text>[^\]]+)\]\s+)?(?P<reason>\S.*)")


@dataclass(frozen=True)
class Entry:
    test: str
    text: str
    reason: str

    def matches(self, test: str, text: str = "") -> bool:
        return like(test, self.test) and self.text in text


def like(name: str, pattern: str) -> bool:
    """Does the pattern describe the name?  `*` stands for anything; brackets, which node ids have, for themselves."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def read(kind: str, suite: str) -> list[Entry]:
    """The entries of `KIND/SUITE.txt` and of `KIND/SUITE-X.Y.txt` for the running interpreter's version X.Y."""
    entries = []
    for name in (f"{suite}.txt", f"{suite}-{sys.version_info[0]}.{sys.version_info[1]}.txt"):
        path = HERE / kind / name
        if path.exists():
            entries += [_entry(line, path, number) for number, line in _lines(path)]
    return entries


def find(entries: list[Entry], test: str, text: str = "") -> Entry | None:
    return next((entry for entry in entries if entry.matches(test, text)), None)


def _lines(path: Path) -> list[tuple[int, str]]:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _entry(line: str, path: Path, number: int) -> Entry:
    match = LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{path}:{number}: expected a test, an optional [text] and a reason")
    return Entry(match["test"], match["text"] or "", match["reason"])
