"""What became of one test, and how is that told?  The record that workers send, reports count and JSON files keep."""

from __future__ import annotations

import re
from dataclasses import dataclass

# passed, skipped: as the suite's own framework says.  failed: an assertion.  error: any other exception.  timeout: the
# worker was ended because of this test.  crashed: the worker died during it.  missing: it was asked for but never ran.
STATUSES = ("passed", "failed", "error", "skipped", "timeout", "crashed", "missing")


@dataclass
class Outcome:
    test: str
    status: str
    exception: str = ""  # name of the exception's type
    message: str = ""
    where: str = ""  # file:line of the innermost frame that belongs to the suite
    trace: str = ""  # bounded
    seconds: float = 0.0
    loops: int = 0  # how many event loops of the kind under test it made

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def failed(self) -> bool:
        return self.status not in ("passed", "skipped")

    @property
    def text(self) -> str:
        """One line: why it did not pass."""
        if self.status == "skipped":
            return f"skipped: {self.message}"
        first = next((line for line in self.message.splitlines() if line.strip()), "")
        if self.exception:
            return f"{self.exception}: {first}" if first else self.exception
        return f"{self.status}: {first}" if first else self.status

    @property
    def group(self) -> str:
        """The text without what differs from run to run and from object to object, to group equal failures by."""
        text = re.sub(r"0x[0-9a-f]+", "0x…", self.text)
        text = re.sub(r"\bfd[ =]\d+|\bport[ =]\d+", lambda match: match[0].rstrip("0123456789") + "…", text)
        return text if len(text) <= 160 else text[:159] + "…"
