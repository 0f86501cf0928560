"""A suite of another project: its source distribution fetched by name, run by pytest in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from .. import environment
from ..runner import Program
from .suite import Suite

Service = Callable[[Path], AbstractContextManager[Mapping[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Project(Suite):
    title: str = ""
    worker: str = "compat.workers.project"
    group: Callable[[str], str] = lambda test: test.partition("::")[0]
    version: (
        str  # pinned: of the source distribution, and of the package that is installed from a wheel if there is one
    )
    package: str = ""  # its name on the package index, if it is not the suite's
    extras: str = ""  # such as "http2,socks"
    requirements: tuple[str, ...] = ()  # of the tests, beside pytest and the package
    unwanted: tuple[str, ...] = ()  # packages that come with it and are taken out again
    constraints: str = ""  # a file of the source distribution that pins requirements
    paths: tuple[str, ...] = ("tests",)  # where pytest looks for tests
    arguments: tuple[str, ...] = ()  # pytest's, instead of those in the project's own configuration
    plugins: tuple[str, ...] = ()  # modules of compat.workers that are plugins of pytest, for this suite only
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment
    hidden: tuple[str, ...] = ()  # folders of the source put aside, so that the installed package is imported instead
    debian: tuple[str, ...] = ()  # Debian packages that must be there: servers, libraries
    service: Service | None = None  # starts servers in an empty folder, gives variables that tell where they listen

    @property
    def distribution(self) -> str:
        return self.package or self.name

    @property
    def wanted(self) -> list[str]:
        """What the suite's environment is made of, in pip's terms."""
        extras = f"[{self.extras}]" if self.extras else ""
        return ["pytest", f"{self.distribution}{extras}=={self.version}", *self.requirements]

    def prepare(self, cache: Path) -> None:
        environment.prepare(self, cache)

    @contextmanager
    def program(self, cache: Path, loop: str) -> Iterator[Program]:
        place = environment.prepare(self, cache)
        extra = (str(environment.uvloop(place)),) if loop == "uvloop" else ()
        plugins = [f"-pcompat.workers.{name}" for name in self.plugins]
        with environment.scratch() as folder:
            with self.service(folder) if self.service else nullcontext({}) as told:
                yield Program(
                    self.worker,
                    python=str(place.python),
                    arguments=(" ".join(self.paths), *plugins, *self.arguments),
                    folder=place.source,
                    path=(*self.path(loop), *extra),
                    variables={**self.variables, **told},
                )
