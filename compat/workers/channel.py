"""How does a worker tell what it does?  One JSON object a line on a pipe, written before and after each test.

The line before a test is what lets the other side name the test in which a worker hung or died.
"""

from __future__ import annotations

import json
import os
import traceback
from typing import Any

LIMIT = 8000  # characters of one text field, so that no test can flood the pipe


class Channel:
    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)  # programs started by a test must not hold the pipe
        self._fd = fd
        self._pid = os.getpid()

    def send(self, event: str, **fields: Any) -> None:
        if os.getpid() != self._pid:
            return  # a child forked by a test that came back into the framework
        line = json.dumps({"event": event, **fields}) + "\n"
        data = line.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._fd, data) :]


def describe(error: BaseException, inside: str) -> dict[str, str]:
    """The fields of an Outcome that an exception gives; `inside` is the folder of the suite's own files."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(inside)] or list(frames)
    where = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""
    message = str(error) or (f"in {frames[-1].name}()" if frames else "")
    text = "".join(traceback.format_exception(error))
    return {
        "exception": type(error).__qualname__,
        "message": clip(message),
        "where": where,
        "trace": text if len(text) <= LIMIT else text[: LIMIT // 2] + "\n...\n" + text[-LIMIT // 2 :],
    }


def clip(text: str) -> str:
    return text if len(text) <= LIMIT else text[:LIMIT] + "..."
