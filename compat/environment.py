"""Where do a project's source and its environment come from?  Made in the cache once, by name and pinned version.

CACHE/NAME-VERSION/source         the unpacked source distribution
CACHE/NAME-VERSION/python3.13.0/  a virtual environment per interpreter, with the project and its requirements
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .suites.project import Project

LIMIT = 1200  # seconds for one command: building a package may take minutes
APT = threading.Lock()
STAMP = "compat.json"  # says what the environment was made of; written last


@dataclass(frozen=True)
class Place:
    source: Path
    python: Path


class Unavailable(Exception):
    """A suite cannot be fetched or its environment cannot be made here; says why."""


def default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "epoque-compat"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder; what servers leave in it is no reason to fail."""
    with tempfile.TemporaryDirectory(prefix="compat-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def prepare(project: Project, cache: Path) -> Place:
    """Give the source and the interpreter of a project, making them if they are missing or made of something else."""
    home = cache / f"{project.name}-{project.version}"
    home.mkdir(parents=True, exist_ok=True)
    place = Place(home / "source", _virtual(home) / "bin" / "python")
    made_of: dict[str, Any] = {"requirements": project.wanted, "constraints": project.constraints}
    if project.unwanted:
        made_of["unwanted"] = list(project.unwanted)
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with APT:
            _debian(project.debian)
        if _stamp(_virtual(home)) != made_of:
            _run(sys.executable, "-m", "venv", "--clear", _virtual(home))
        if _stamp(place.source) != {"hidden": list(project.hidden)}:
            _fetch(project, place)
        if _stamp(_virtual(home)) != made_of:
            pins = ["-c", place.source / project.constraints] if project.constraints else []
            _pip(place, "install", *pins, *project.wanted)
            if project.unwanted:
                _pip(place, "uninstall", "--yes", *project.unwanted)
            _write_stamp(_virtual(home), made_of)
    return place


def uvloop(place: Place) -> Path:
    """A folder with uvloop, outside the environment: suites take it as soon as they can import it."""
    folder = place.python.parents[1] / "uvloop"
    if not (folder / "uvloop").is_dir():
        _pip(place, "install", "--target", folder, "uvloop")
    return folder


def _virtual(home: Path) -> Path:
    return home / f"python{platform.python_version()}{sys.abiflags}"


def _fetch(project: Project, place: Place) -> None:
    """Unpack the source distribution; pip calls its build system once, to learn the project's name."""
    with scratch() as folder:
        name = f"{project.distribution}=={project.version}"
        _pip(place, "download", "--no-deps", "--no-binary", project.distribution, "--dest", folder, name)
        archive = next(folder.glob("*.tar.gz"))
        with tarfile.open(archive) as content:
            content.extractall(folder / "unpacked", filter="data")
        shutil.rmtree(place.source, ignore_errors=True)
        shutil.move(next((folder / "unpacked").iterdir()), place.source)
    for hidden in project.hidden:
        (place.source / hidden).rename(place.source / f"{hidden}.hidden")
    _write_stamp(place.source, {"hidden": list(project.hidden)})


def _debian(packages: tuple[str, ...]) -> None:
    """Install Debian packages that are missing, where that is possible."""
    missing = [name for name in packages if not _installed(name)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Unavailable(f"needs the Debian packages {' '.join(missing)}")
    variables = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    _run("apt-get", "update", "-qq", variables=variables)
    _run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *missing, variables=variables)


def _installed(name: str) -> bool:
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name]
    with contextlib.suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, text=True).stdout == "installed"
    return False


def _pip(place: Place, *arguments: str | Path) -> None:
    _run(place.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str | Path, variables: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT
    )
    if done.returncode:
        last = done.stdout.decode("utf-8", "replace").strip()[-2000:]
        raise Unavailable(f"`{' '.join(words)}` ended with exit code {done.returncode}:\n{last}")


def _stamp(folder: Path) -> Any:
    try:
        return json.loads((folder / STAMP).read_text())
    except (FileNotFoundError, ValueError):
        return None


def _write_stamp(folder: Path, content: Any) -> None:
    (folder / STAMP).write_text(json.dumps(content))
