"""Which modules are compiled, and how; everything else about the package stands in pyproject.toml.

Environment: EPOQUE_PURE=1 builds no extension modules; EPOQUE_OPT="-O0" replaces the optimisation flags;
EPOQUE_PGO=1 compiles twice: what tools/train.py does with the first build tells GCC how to lay out the second.
EPOQUE_ANNOTATE=1 writes Cython's annotated HTML beside the generated C in build/c.
EPOQUE_KQUEUE_LIB=/path/to/libkqueue.so builds on Linux what is built elsewhere, over a library that supplies kqueue;
its <sys/event.h> is sought in EPOQUE_KQUEUE_INCLUDE (/usr/include/kqueue).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

# Modules of epoque that have a .pxd header. Those in kernel/ are compiled from their .pyx twin.
COMPILED = [
    "kernel.clock",
    "kernel.fifo",
    "kernel.freelist",
    "kernel.heap",
    "kernel.interp",
    "kernel.epoll",
    "kernel.kqueue",
    "kernel.sockets",
    "kernel.pipes",
    "kernel.datagrams",
    "kernel.events",
    "kernel.signals",
    "kernel.tls",
    "selector.source",
    "selector.selector",
    "selector.epoll",
    "selector.kqueue",
    "selector.fake",
    "core.handle",
    "core.timers",
    "core.wakeup",
    "core.ready",
    "core.watch",
    "core.bell",
    "core.signals",
    "core.scheduler",
    "core.reactor",
    "transports.flow",
    "transports.sendqueue",
    "transports.base",
    "transports.writer",
    "transports.stream",
    "transports.listener",
    "transports.tlsconnection",
    "transports.tls",
    "transports.pipe",
    "transports.datagramqueue",
    "transports.datagram",
]

EPOLL = ("kernel.epoll", "selector.epoll")  # Linux only
KQUEUE = ("kernel.kqueue", "selector.kqueue")  # macOS and the BSDs, or with EPOQUE_KQUEUE_LIB
BSD = ("darwin", "freebsd", "netbsd", "openbsd")

TRAINING = Path("tools/train.py")

DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the headers give the types; annotations are for readers and mypy
    "auto_pickle": False,  # nothing here can be pickled; without it pickle and copy say so
    "boundscheck": False,
    "initializedcheck": False,
    # A field of an object made without __init__ is None; using it must be an exception, not a crash. The modules that a
    # turn runs through switch this off (a tenth of a turn) and check once, at their entrances.
    "nonecheck": True,
    "wraparound": False,
}

HINT = """
epoque's extension modules could not be built: {error}
Compiling needs a C compiler and Python's header files (Debian: gcc python3-dev; macOS: xcode-select --install).
To install the interpreted form of epoque instead, set EPOQUE_PURE=1 in the environment and install again.
"""


def pure() -> bool:
    """Is this a build without extension modules, because asked for or because the platform cannot have them?"""
    asked = os.environ.get("EPOQUE_PURE", "0") not in ("", "0")
    return asked or sys.implementation.name != "cpython" or not sys.platform.startswith(("linux", *BSD))


def source(module: str) -> str:
    suffix = ".pyx" if module.startswith("kernel.") else ".py"
    return "src/epoque/" + module.replace(".", "/") + suffix


def modules() -> list[str]:
    """Those of COMPILED that this system has a use for."""
    absent: tuple[str, ...] = EPOLL if sys.platform.startswith(BSD) else KQUEUE
    if os.environ.get("EPOQUE_KQUEUE_LIB"):
        absent = ()
    return [name for name in COMPILED if name not in absent]


def extensions() -> list[Extension]:
    # -g0: with debug information the extension modules are several times larger.
    options: dict[str, Any] = {
        "include_dirs": ["src/epoque/kernel"],
        "extra_compile_args": shlex.split(os.environ.get("EPOQUE_OPT", "-O2 -g0")),
    }
    if library := os.environ.get("EPOQUE_KQUEUE_LIB"):
        options["define_macros"] = [("EPOQUE_PORTABLE", "1")]
        options["include_dirs"].append(os.environ.get("EPOQUE_KQUEUE_INCLUDE", "/usr/include/kqueue"))
        options["extra_objects"] = [library]
        options["runtime_library_dirs"] = [str(Path(library).resolve().parent)]
    return [Extension("epoque." + name, [source(name)], **options) for name in modules()]


class CleanBuild(build):
    """A wheel must not inherit what earlier builds left in build/: removed modules, unoptimised extensions."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class Settings:
    """Remembers with which settings a directory was filled; tells whether they have changed since."""

    def __init__(self, directory: str, settings: object) -> None:
        self.file = Path(directory, "settings")
        self.text = hashlib.sha256(repr(settings).encode()).hexdigest()

    def __enter__(self) -> bool:
        changed = not self.file.exists() or self.file.read_text() != self.text
        if changed:
            self.file.unlink(missing_ok=True)
        return changed

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(self.text)


class BuildExtensions(build_ext):
    """Translates with Cython outside the source tree, uses all cores, and explains a failure."""

    def finalize_options(self) -> None:
        super().finalize_options()
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        self.parallel = self.parallel or len(cores)

    def build_extensions(self) -> None:
        try:
            self.translate()
            profiled = os.environ.get("EPOQUE_PGO", "0") not in ("", "0")
            texts = [path.read_text() for path in sorted(Path("src").rglob("*.h"))]
            if profiled:  # a profile is good for exactly the code that it was made with
                texts += [Path(source).read_text() for ext in self.extensions for source in ext.sources]
                texts.append(TRAINING.read_text())
            options = [(ext.extra_compile_args, ext.extra_objects) for ext in self.extensions]
            with Settings(self.build_temp, [options, texts, profiled]) as changed:
                self.force = self.force or changed
                if profiled:
                    self.use_profile(changed)
                super().build_extensions()
        except Exception as error:
            raise SystemExit(HINT.format(error=error or type(error).__name__)) from error

    def use_profile(self, changed: bool) -> None:
        """Let the compiler optimise by a profile, made anew if anything has changed (GCC's manual, -fprofile-use)."""
        profile = Path(self.build_temp, "profile").resolve()
        if changed:
            shutil.rmtree(profile, ignore_errors=True)
            self.make_profile(profile)
        for ext in self.extensions:
            # Partial training: what the training program does not reach is optimised as usual, not for size.
            ext.extra_compile_args += [f"-fprofile-use={profile}", "-fprofile-partial-training", "-fprofile-correction"]
            ext.extra_compile_args += ["-Wno-missing-profile", "-Wno-maybe-uninitialized"]

    def make_profile(self, directory: Path) -> None:
        compiler = subprocess.run([*self.compiler.compiler_so[:1], "-v"], capture_output=True, text=True, check=True)
        if "gcc version" not in compiler.stderr:
            raise RuntimeError("EPOQUE_PGO needs GCC")
        # Objects keep their names, by which the compiler finds the profile of each again.
        package, inplace, final = directory / "package", self.inplace, self.build_lib
        shutil.copytree("src", package, ignore=shutil.ignore_patterns("*.so"))
        count = f"-fprofile-generate={directory}"
        self.inplace, self.build_lib = False, str(package)
        for ext in self.extensions:
            ext.extra_compile_args.append(count)
            ext.extra_link_args.append(count)
        super().build_extensions()
        environment = {**os.environ, "PYTHONPATH": str(package), "EPOQUE_PURE": "0"}
        subprocess.run([sys.executable, TRAINING], env=environment, timeout=300, check=True)
        for ext in self.extensions:
            ext.extra_compile_args.remove(count)
            ext.extra_link_args.remove(count)
        self.inplace, self.build_lib = inplace, final

    def translate(self) -> None:
        from Cython import __version__ as cython
        from Cython.Build import cythonize

        annotate = "EPOQUE_ANNOTATE" in os.environ
        # Cython 3.3.1 overlooks "from package cimport module" when it asks what a header's change affects
        # (its pattern wants a line start in mid-line), so any change of a header translates everything again.
        headers = [(str(path), path.read_text()) for path in sorted(Path("src").rglob("*.pxd"))]
        with Settings("build/c", [cython, DIRECTIVES, annotate, headers]) as changed:
            translated = cythonize(
                self.extensions,
                build_dir="build/c",
                nthreads=self.parallel,
                force=self.force or changed,
                annotate=annotate,
                compiler_directives=DIRECTIVES,
            )
        for ext, c in zip(self.extensions, translated, strict=True):
            ext.sources = c.sources


if __name__ == "__main__":
    setup(
        ext_modules=[] if pure() else extensions(),
        cmdclass={"build": CleanBuild, "build_ext": BuildExtensions},
    )
