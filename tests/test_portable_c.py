"""Does the C of the kernel modules fit the systems that nobody has at hand?

Translated by Cython, it is compiled against what tests/headers says of each system: struct kevent and its constants,
and what macOS lacks. The objects are looked into: a function that a system has not must not be called there.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.loops import ROOT, on_kqueue

pytest.importorskip("setuptools")  # brings distutils back, which cythonize() imports
cythonize = pytest.importorskip("Cython.Build").cythonize
compiler = shlex.split(sysconfig.get_config_var("CC") or "none")
pytestmark = [
    pytest.mark.epoque_only("looks at epoque's own sources"),
    pytest.mark.skipif("EPOQUE_PURE" in os.environ or on_kqueue, reason="once is enough: the compiled run does it"),
    pytest.mark.skipif(
        not shutil.which(compiler[0]) or not shutil.which("nm") or sys.implementation.name != "cpython",
        reason="compiles C",
    ),
    pytest.mark.skipif(
        "multiarch" in Path(sysconfig.get_path("include"), "pyconfig.h").read_text(),
        reason="Debian's header files of Python know no other system",
    ),
]

LINUX_ONLY = {"epoll_create1", "epoll_ctl", "eventfd", "eventfd_write", "signalfd", "timerfd_create"}
SYSTEMS = {
    "freebsd": ([], LINUX_ONLY),
    "netbsd": ([], LINUX_ONLY),
    "netbsd9": ([], LINUX_ONLY),
    "openbsd": ([], LINUX_ONLY),
    "macos": (["-D__APPLE__"], LINUX_ONLY | {"accept4", "pipe2", "recvmmsg", "sendmmsg"}),
}
MODULES = {
    "kqueue": {"kqueue", "kevent"},
    "signals": {"kqueue", "kevent"},
    "events": {"pipe"},
    "sockets": {"accept", "setsockopt"},
    "datagrams": {"recvmsg", "sendmsg"},
    "clock": set(),
    "tls": set(),
    "pipes": {"read", "write", "writev"},
}


@functools.cache
def translated(directory: Path) -> dict[str, Path]:
    sources = [f"src/epoque/kernel/{name}.pyx" for name in MODULES]
    options = {"language_level": 3, "annotation_typing": False}
    found = cythonize(sources, build_dir=str(directory), compiler_directives=options, quiet=True)
    return {Path(extension.sources[0]).stem: Path(extension.sources[0]) for extension in found}


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_kernel_modules_compile_for(
    system: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    macros, absent = SYSTEMS[system]
    directory = tmp_path_factory.getbasetemp() / "portable"
    for name, source in translated(directory).items():
        target = directory / f"{name}.{system}.o"
        flags = ["-c", "-O0", "-fPIC", "-U__linux__", "-Werror", "-Wall", "-Wno-unused-function", *macros]
        include = [f"-I{ROOT / 'tests/headers' / system}", f"-isystem{sysconfig.get_path('include')}"]
        command = [*compiler, *flags, *include, str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        listing = subprocess.run(["nm", "-u", str(target)], capture_output=True, text=True, timeout=60, check=True)
        called = {line.split()[-1].partition("@")[0] for line in listing.stdout.splitlines() if line.strip()}
        assert not called & absent, name
        if system == "macos":
            assert called >= MODULES[name], name
