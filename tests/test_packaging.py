"""Do the sdist, the wheels and a build without a compiler hold what they should?"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import zipfile
from pathlib import Path

import pytest

from tests.loops import ROOT

pytestmark = pytest.mark.epoque_only("looks at epoque's own package")

SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
compiler = shutil.which(shlex.split(sysconfig.get_config_var("CC") or "none")[0])
gcc = compiler is not None and "gcc version" in subprocess.run([compiler, "-v"], capture_output=True, text=True).stderr
needs_compiler = pytest.mark.skipif(
    compiler is None or sys.implementation.name != "cpython", reason="compiles extension modules"
)


def call(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments, to the end and without EPOQUE_PURE unless `env` has it."""
    ours = ("EPOQUE_PURE", "EPOQUE_OPT", "EPOQUE_PGO")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**inherited, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )


def checked(*command: str | Path, cwd: Path, **env: str) -> str:
    done = call(*command, cwd=cwd, **env)
    assert done.returncode == 0, done.stdout
    return done.stdout


def sources(*suffixes: str) -> set[str]:
    package = ROOT / "src"
    return {str(path.relative_to(package)) for path in package.rglob("*") if path.suffix in suffixes}


def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist made from a copy of this tree in which earlier builds have left their traces."""
    tree = tmp_path_factory.mktemp("sdist") / "tree"
    shutil.copytree(
        ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build", "*.so", "__pycache__", "*cache")
    )
    for left_over in ("build/lib/epoque/gone.py", "src/epoque/core/gone.c", f"src/epoque/core/gone{SUFFIX}"):
        (tree / left_over).parent.mkdir(parents=True, exist_ok=True)
        (tree / left_over).touch()
    checked("setup.py", "-q", "sdist", cwd=tree, EPOQUE_PURE="1")
    (archive,) = (tree / "dist").iterdir()
    return archive


def test_sdist_has_what_a_build_and_its_tests_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {f"src/{name}" for name in sources(".py", ".pyx", ".pxd", ".typed")}
    assert names >= {"setup.py", "pyproject.toml", "README.md", "LICENSE", "Makefile"}
    assert names >= {"tests/test_packaging.py", "tools/train.py"}
    assert not [name for name in names if re.search(r"^src/.*\.c$|\.(so|pyc)$|__pycache__", name)]


def test_pure_wheel_from_sdist(sdist: Path, tmp_path: Path) -> None:
    options = ("--no-build-isolation", "--no-deps", "--no-index", "-q", "-w", tmp_path)
    checked("-m", "pip", "wheel", *options, sdist, cwd=tmp_path, EPOQUE_PURE="1")
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel_names(wheel) == sources(".py", ".pyi", ".pxd", ".typed")


@pytest.mark.skipif("EPOQUE_TEST_WHEEL" not in os.environ, reason="takes minutes: set EPOQUE_TEST_WHEEL=1")
@pytest.mark.skipif("EPOQUE_PURE" in os.environ, reason="once is enough: the compiled run does it")
@pytest.mark.timeout(900)
@needs_compiler
def test_compiled_wheel_from_sdist(sdist: Path, tmp_path: Path) -> None:
    """As a user gets it: build requirements from an index, then an installation that runs in both modes."""
    checked("-m", "pip", "wheel", "--no-deps", "-q", "-w", tmp_path, sdist, cwd=tmp_path, EPOQUE_PGO=str(int(gcc)))
    (wheel,) = tmp_path.glob("*.whl")
    compiled: list[str] = runpy.run_path(str(ROOT / "setup.py"))["modules"]()
    extensions = {f"epoque/{name.replace('.', '/')}{SUFFIX}" for name in compiled}
    assert wheel_names(wheel) == sources(".py", ".pyi", ".pxd", ".typed") | extensions

    checked("-m", "venv", tmp_path / "venv", cwd=tmp_path)
    checked("-m", "pip", f"--python={tmp_path / 'venv'}", "install", "-q", "--no-index", wheel, cwd=tmp_path)
    code = "import asyncio, epoque; print(epoque.compiled, epoque.run(asyncio.sleep(0, 'ran')))"
    for pure, printed in (("0", "True ran"), ("1", "False ran")):
        command = [tmp_path / "venv/bin/python", "-W", "error", "-c", code]
        done = subprocess.run(command, env={"EPOQUE_PURE": pure}, cwd=tmp_path, capture_output=True, check=True)
        assert done.stdout.decode().strip() == printed


def test_import_is_silent() -> None:
    assert checked("-W", "error", "-X", "dev", "-c", "import epoque", cwd=ROOT) == ""


def test_pure_takes_every_module_from_its_source() -> None:
    files = sorted(sources(".py") - {"epoque/__main__.py"})
    names = [file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in files]
    code = f"""
        import importlib, epoque
        assert epoque.compiled is False
        for name in {names}:
            print(importlib.import_module(name).__file__)
        """
    printed = checked("-c", textwrap.dedent(code), cwd=ROOT, EPOQUE_PURE="1").split()
    assert printed == [str(ROOT / "src" / file) for file in files]


# --- setup.py by itself


def test_platforms_without_extension_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    pure = runpy.run_path(str(ROOT / "setup.py"))["pure"]
    monkeypatch.setattr(sys.implementation, "name", "cpython")
    for value, expected in ((None, False), ("", False), ("0", False), ("1", True)):
        monkeypatch.delenv("EPOQUE_PURE", raising=False)
        if value is not None:
            monkeypatch.setenv("EPOQUE_PURE", value)
        assert pure() is expected
    monkeypatch.delenv("EPOQUE_PURE")
    for platform, expected in (("darwin", False), ("freebsd14", False), ("win32", True), ("sunos5", True)):
        monkeypatch.setattr(sys, "platform", platform)
        assert pure() is expected
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    assert pure()


def test_each_platform_gets_its_own_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = runpy.run_path(str(ROOT / "setup.py"))
    monkeypatch.delenv("EPOQUE_KQUEUE_LIB", raising=False)
    for platform, selector in (
        ("linux", "epoll"),
        ("darwin", "kqueue"),
        ("freebsd14", "kqueue"),
        ("netbsd10", "kqueue"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        names = {name for name in setup["modules"]() if "epoll" in name or "kqueue" in name}
        assert names == {f"kernel.{selector}", f"selector.{selector}"}
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("EPOQUE_KQUEUE_LIB", "/usr/lib/libkqueue.so")
    assert setup["modules"]() == setup["COMPILED"]
    assert all("/usr/lib/libkqueue.so" in extension.extra_objects for extension in setup["extensions"]())


def test_every_listed_module_is_an_extension_with_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    setup = runpy.run_path("setup.py")
    extensions = setup["extensions"]()
    assert [ext.name for ext in extensions] == [f"epoque.{name}" for name in setup["modules"]()]
    for ext in extensions:
        (source,) = ext.sources
        assert Path(source).is_file()
        assert source.endswith(".pyx") is ext.name.startswith("epoque.kernel.")


SMALL = {
    "src/epoque/__init__.py": "",
    "src/epoque/kernel/__init__.py": "",
    "src/epoque/kernel/numbers.py": "def double(x):\n    return 2 * x\n",
    "src/epoque/kernel/numbers.pxd": "cdef int double(int x) except -1\n",
    "src/epoque/kernel/numbers.pyx": "cdef int double(int x) except -1:\n    return 2 * x\n",
    "src/epoque/core/__init__.py": "",
    "src/epoque/core/sums.py": "from epoque.kernel import numbers\n\n\ndef four():\n    return numbers.double(2)\n",
    "src/epoque/core/sums.pxd": "from epoque.kernel cimport numbers\n",
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree with this setup.py, but two modules only."""
    setup = (ROOT / "setup.py").read_text()
    setup = re.sub(r"COMPILED = \[.*?\]", 'COMPILED = ["kernel.numbers", "core.sums"]', setup, flags=re.DOTALL)
    for name, text in {**SMALL, "setup.py": setup}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text(
        'project = { name = "small", version = "0" }\ntool.setuptools.package-dir = { "" = "src" }\n'
    )
    return tmp_path


@needs_compiler
@pytest.mark.parametrize("cc", ["/nonexistent/cc", "false"])
def test_a_failing_compiler_fails_the_build_and_says_what_to_do(small: Path, cc: str) -> None:
    done = call("setup.py", "build_ext", "--inplace", cwd=small, CC=cc)
    assert done.returncode != 0
    assert "C compiler" in done.stdout
    assert "set EPOQUE_PURE=1" in done.stdout
    assert not list(small.rglob("*.so"))


def test_a_pure_build_needs_no_compiler(small: Path) -> None:
    checked("setup.py", "-q", "build", cwd=small, CC="/nonexistent/cc", EPOQUE_PURE="1")
    assert not list(small.rglob("*.so"))


@needs_compiler
def test_modules_are_rebuilt_when_a_header_they_use_changes(small: Path) -> None:
    def build() -> str:
        output = checked("setup.py", "build_ext", "--inplace", cwd=small, EPOQUE_OPT="-O0")
        assert not list((small / "src").rglob("*.c"))
        return output

    def four() -> str:
        return checked("-c", "from epoque.core import sums; print(sums.four())", cwd=small / "src").strip()

    assert "Cythonizing src/epoque/core/sums.py" in build()
    assert four() == "4"
    assert "Cythonizing" not in build()
    for suffix in (".pxd", ".pyx"):
        path = small / "src/epoque/kernel/numbers"
        text = path.with_suffix(suffix).read_text()
        path.with_suffix(suffix).write_text(text.replace("int double(int x)", "object double(object x)"))
        path.with_suffix(suffix).write_text(path.with_suffix(suffix).read_text().replace(" except -1", ""))
    assert "Cythonizing src/epoque/core/sums.py" in build()
    assert four() == "4"


TRAINING = """
import sys
from epoque.core import sums
assert sums.__file__.endswith(".so") and sums.four() == 4
open("trained", "a").write("once ")
"""


@needs_compiler
@pytest.mark.skipif(not gcc, reason="the profile is GCC's")
def test_a_profile_is_made_before_it_is_used_and_once_for_each_state_of_the_code(small: Path) -> None:
    def build() -> str:
        checked("setup.py", "build_ext", "--inplace", cwd=small, EPOQUE_OPT="-O1", EPOQUE_PGO="1")
        return (small / "trained").read_text()

    (small / "tools").mkdir()
    (small / "tools/train.py").write_text(TRAINING)
    assert build() == "once "
    assert build() == "once "
    path = small / "src/epoque/core/sums.py"
    path.write_text(path.read_text().replace("double(2)", "double(1) + 2"))
    assert build() == "once once "
    code = "from epoque.core import sums; print(sums.__file__[-3:], sums.four())"
    assert checked("-c", code, cwd=small / "src").split() == [".so", "4"]
    counters = b"__gcov_"
    assert all(counters not in module.read_bytes() for module in (small / "src").rglob("*.so"))


@needs_compiler
def test_a_profile_of_another_compiler_is_refused(small: Path) -> None:
    cc = small / "cc"
    cc.write_text("#!/bin/sh\necho clang version 20 >&2\n")
    cc.chmod(0o755)
    (small / "tools").mkdir()
    (small / "tools/train.py").write_text(TRAINING)
    done = call("setup.py", "build_ext", "--inplace", cwd=small, CC=str(cc), EPOQUE_PGO="1")
    assert done.returncode != 0
    assert "EPOQUE_PGO needs GCC" in done.stdout
