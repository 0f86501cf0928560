"""What does it cost to send a file?"""

from __future__ import annotations

from dataclasses import dataclass

from bench.rows.row import Setting
from bench.rows.served import Served

KIB = 1024


@dataclass(frozen=True, kw_only=True)
class File(Served):
    """A server that is given a file of so many bytes, made before it starts."""

    size: int

    def measure(self, setting: Setting, loop: str) -> dict[str, float]:
        self.make(setting)
        return super().measure(setting, loop)

    def syscalls(self, setting: Setting, loop: str) -> dict[str, float] | None:
        self.make(setting)
        return super().syscalls(setting, loop)

    def make(self, setting: Setting) -> None:
        directory = setting.scratch / "files"
        directory.mkdir(exist_ok=True)
        file = directory / str(self.size)
        if not file.exists():
            file.write_bytes(b"x" * self.size)
        self.options.update(directory=str(directory), file=str(file))


def sendfile(name: str, size: int) -> File:
    return File(
        name=f"files/{name}",
        what=f"loop.sendfile of {size // KIB:,} KiB, 8 connections",
        server="files.sendfile",
        load=("exchange", "kind=fixed", f"answer={size}"),
        message=64,
        connections=8,
        size=size,
    )


def static(name: str, size: int) -> File:
    return File(
        name=f"files/{name}",
        what=f"aiohttp's static route, a file of {size // KIB:,} KiB, 8 connections",
        server="web.aiohttp",
        load=("exchange", "kind=http", f"path=/static/{size}"),
        connections=8,
        size=size,
    )


ROWS = (
    sendfile("sendfile_16KiB", 16 * KIB),
    sendfile("sendfile_1MiB", KIB * KIB),
    sendfile("sendfile_16MiB", 16 * KIB * KIB),
    static("aiohttp_static_16KiB", 16 * KIB),
    static("aiohttp_static_1MiB", KIB * KIB),
)
