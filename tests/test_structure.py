"""Do the layers, the headers and the list of compiled modules agree with the code?

Each check is a function from a tree to its complaints. It is run on this repository, and on small trees with one fault
each, which it must find.
"""

from __future__ import annotations

import graphlib
import importlib
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.loops import ROOT
from tests.structure import LEVEL, Class, Function, Header, Source, Tree, parse_header, parse_import, python_imports

pytestmark = pytest.mark.epoque_only("looks at epoque's own sources")

LIMIT = 500  # lines of a source file
LONGER: dict[str, str] = {  # path -> why this file may be longer
    "src/epoque/transports/tlsconnection.py": "one machine of five states, no part of which stands alone",
}


# --- the checks


def imports(tree: Tree) -> dict[str, set[str]]:
    """Which modules of the package each of them imports or cimports."""
    graph: dict[str, set[str]] = {}
    for name, path in tree.modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found = python_imports(tree.python[name].tree, package)
        for suffix in (".pxd", ".pyx"):
            if (file := path.with_suffix(suffix)).exists():
                for line in file.read_text().splitlines():
                    found += parse_import(line.partition("#")[0].strip())
        graph[name] = {tree.resolve(*origin) for origin in found} - {"", name}
    return graph


def check_layers(tree: Tree) -> Iterator[str]:
    def level(module: str) -> int:
        return LEVEL[(module.split(".")[1:] or ["__init__"])[0]]

    graph = imports(tree)
    for module, imported in graph.items():
        for other in sorted(imported):
            if level(other) > level(module):
                yield f"{module} imports {other}, which is a higher layer"
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield f"import cycle: {' <- '.join(error.args[1])}"


def check_compiled_list(tree: Tree) -> Iterator[str]:
    listed, with_header = set(tree.compiled), set(tree.headers)
    for name in sorted(listed - with_header):
        yield f"{name} is in COMPILED and has no .pxd"
    for name in sorted(with_header - listed):
        yield f"{name} has a .pxd and is not in COMPILED"
    for name in sorted(with_header - set(tree.modules)):
        yield f"{name} has a .pxd and no .py"
    twins = {name for name in with_header if name.startswith("epoque.kernel.")}
    for name in sorted(twins ^ set(tree.twins)):
        yield f"{name}: a module has a .pyx if, and only if, it is one of kernel/ with a header"
    for path in sorted(tree.package.rglob("*.so")):
        if tree.name(path.with_name(path.name.partition(".")[0])) not in listed:
            yield f"{path.name} is left over from a module that is not compiled any more: make clean"


def compare(where: str, declared: Function, defined: Function | None) -> Iterator[str]:
    if defined is None:
        yield f"{where} is declared and not defined"
        return
    if declared.params != defined.params:
        yield f"{where}: parameters {declared.params} declared, {defined.params} defined"
    if declared.optional != defined.optional:
        yield f"{where}: optional are {sorted(declared.optional)} declared, {sorted(defined.optional)} defined"
    for name in sorted(declared.locals - defined.locals):
        yield f"{where}: local {name} is typed and never assigned"


def check_functions(tree: Tree) -> Iterator[str]:
    """Functions and methods of a header stand in the .py file as well, and take the same parameters."""
    for module, header in tree.headers.items():
        source = tree.python[module]
        for name, function in header.functions.items():
            if module in tree.twins and name.startswith("_"):
                continue  # what compiled twins share among themselves
            if name not in source.names:  # one given a name by assignment has a signature that we cannot see
                yield from compare(f"{module}.{name}", function, source.functions.get(name))
        for name, cls in header.classes.items():
            defined = source.classes.get(name)
            if not defined:
                if name not in source.names:  # as above: a class of another library under the name of its twin
                    yield f"{module}.{name} is declared and not defined"
                continue
            for method, function in cls.methods.items():
                yield from compare(f"{module}.{name}.{method}", function, defined.methods.get(method))
        for name in sorted(header.names - source.names):
            yield f"{module}.{name} is declared and never assigned"


def check_fields(tree: Tree) -> Iterator[str]:
    """Fields of a header are what __init__ assigns and what the methods use; kernel/ has fields of C types."""
    for module, header in tree.headers.items():
        for name, cls in header.classes.items():
            where, defined = f"{module}.{name}", tree.python[module].classes.get(name)
            if not defined:
                continue
            kernel = module in tree.twins
            fields = {field for field in cls.fields if not (kernel and field.startswith("_"))}
            for field in sorted(fields - {"__weakref__", "__dict__"} - defined.initialised):
                yield f"{where}: field {field} is not assigned in __init__"
            if kernel:
                continue
            inherited = set().union(*(base.fields for base in tree.ancestors(module, cls)))
            for field in sorted(defined.assigned.keys() - cls.fields - inherited):
                yield f"{where}: {defined.assigned[field]} assigns {field}, which the header does not declare"
            if defined.slots is not None and defined.slots != cls.fields:
                yield f"{where}: __slots__ and header differ in {sorted(defined.slots ^ cls.fields)}"


def check_inheritance(tree: Tree) -> Iterator[str]:
    """Classes have the same base in header and code. What overrides a C method takes the same parameters."""
    for module, header in tree.headers.items():
        for name, cls in header.classes.items():
            where, defined = f"{module}.{name}", tree.python[module].classes.get(name)
            if not defined:
                continue
            if cls.base.rpartition(".")[2] != defined.base.rpartition(".")[2]:
                yield f"{where}: base {cls.base or 'none'} declared, {defined.base or 'none'} defined"
            virtual = {name: method for base in tree.ancestors(module, cls) for name, method in base.methods.items()}
            for method in sorted(virtual.keys() & defined.methods.keys()):
                inherited = Function("cdef", virtual[method].params, virtual[method].optional)
                yield from compare(f"{where}.{method} (an override)", inherited, defined.methods[method])


def check_twins(tree: Tree) -> Iterator[str]:
    """The two forms of a kernel module offer the same names, with the same parameters."""

    def public(source: Source | Header | Class) -> dict[str, Function]:
        functions = source.methods if isinstance(source, Class) else source.functions
        return {name: function for name, function in functions.items() if not name.startswith("_")}

    for module, twin in tree.twins.items():
        source, header = tree.python[module], tree.headers.get(module, Header())
        pairs: list[tuple[str, Source | Class, Header | Class]] = [(module, source, twin)]
        classes = source.classes.keys() | source.names & twin.classes.keys()
        for name in sorted(n for n in classes ^ twin.classes.keys() if not n.startswith("_")):
            yield f"{module}.{name} is a class of one twin only"
        for name in sorted(source.classes.keys() & twin.classes.keys()):
            pairs.append((f"{module}.{name}", source.classes[name], twin.classes[name]))
        for where, python, cython in pairs:
            assigned = source.names if python is source else set()
            compiled = public(cython)
            if python is source:
                compiled |= {name: function for name, function in public(header).items() if function.inline}
            for name in sorted((public(python).keys() ^ compiled.keys()) - assigned):
                yield f"{where}.{name} is a function of one twin only"
            for name in sorted(public(python).keys() & compiled.keys()):
                if public(python)[name].params != compiled[name].params:
                    yield f"{where}.{name}: the twins differ in their parameters"
        for name in sorted(public(twin).keys() - header.functions.keys()):
            if twin.functions[name].kind == "cdef":
                yield f"{module}.{name} is a C function that no header declares"


def check_kernel_use(tree: Tree) -> Iterator[str]:
    """C functions of the kernel are called through a cimport; what is not compiled cannot call them at all."""
    for module, source in tree.python.items():
        if module.startswith("epoque.kernel"):
            continue
        package = module.rpartition(".")[0]
        used = {tree.resolve(*origin) for origin in python_imports(source.tree, package)} & tree.headers.keys()
        if header := tree.headers.get(module):
            for other in sorted(used - {tree.resolve(*origin) for origin in header.imports}):
                yield f"{module} imports {other}, and its header does not cimport it"
            continue
        text = tree.modules[module].read_text()
        for other in sorted(used):
            for name, function in tree.headers[other].functions.items():
                if function.kind == "cdef" and re.search(rf"\b{other.rpartition('.')[2]}\.{name}\(", text):
                    yield f"{module} is not compiled and calls the C function {other}.{name}"


def check_plain_python(tree: Tree) -> Iterator[str]:
    """The .py files know nothing of Cython: types and decorators stand in the headers."""
    for module, path in tree.modules.items():
        if re.search(r"^\s*(import cython|from cython\b|@cython\.)", path.read_text(), re.MULTILINE):
            yield f"{module} uses Cython's module"


def check_length(tree: Tree, longer: dict[str, str] = LONGER) -> Iterator[str]:
    paths = [tree.root / "setup.py"]
    for directory in ("src", "tests", "bench", "compat", "examples"):
        paths += sorted((tree.root / directory).rglob("*"))
    for path in paths:
        name = path.relative_to(tree.root).as_posix()
        if path.suffix in (".py", ".pyx", ".pxd") and path.is_file():
            lines = len(path.read_text().splitlines())
            if (lines > LIMIT) != (name in longer):
                yield f"{name} has {lines} lines: at most {LIMIT}, or in LONGER with a reason"


Check = Callable[[Tree], Iterator[str]]
CHECKS: list[Check] = [
    check_layers,
    check_compiled_list,
    check_functions,
    check_fields,
    check_inheritance,
    check_twins,
    check_kernel_use,
    check_plain_python,
    check_length,
]


@pytest.fixture(scope="module")
def repository() -> Tree:
    return Tree(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_repository(repository: Tree, check: Check) -> None:
    complaints = list(check(repository))
    assert not complaints, "\n".join(complaints)


def test_modules_come_from_where_they_should(repository: Tree) -> None:
    import epoque

    pure = os.environ.get("EPOQUE_PURE", "0") not in ("", "0") or sys.implementation.name != "cpython"
    assert epoque.compiled is not pure, "make build compiles the extension modules"
    for name in runpy.run_path(str(ROOT / "setup.py"))["modules"]():
        file = importlib.import_module(f"epoque.{name}").__file__ or ""
        assert file.endswith(".py" if pure else tuple(EXTENSION_SUFFIXES)), name


# --- the checks themselves, on trees with one fault each

SOUND = {
    "setup.py": 'COMPILED = ["kernel.io", "selector.table", "core.ring"]\n',
    "src/epoque/__init__.py": "from epoque.loop import Loop\n",
    "src/epoque/loop.py": "from epoque.core.ring import Ring\n\n\nclass Loop(Ring):\n    pass\n",
    "src/epoque/kernel/__init__.py": "",
    "src/epoque/kernel/io.py": """
        LIMIT = 4

        class Reader:
            def __init__(self, size):
                self.fd = -1

            def read(self, fd):
                return None

        def ring(fd, count=1):
            return 0
        """,
    "src/epoque/kernel/io.pxd": """
        from libc.stdint cimport uint32_t

        cdef extern from "<sys/io.h>" nogil:
            struct event:
                int flags

        cdef enum:
            LIMIT = 4

        cdef class Reader:
            cdef event _events[16], *_next
            cdef int fd  # of the (open) file

            cdef object read(self, int fd)

        cdef int ring(int fd, unsigned long count=*) except -1
        """,
    "src/epoque/kernel/io.pyx": '''
        """Twin."""
        cdef extern from *:
            """
            #define X 1
            """
            int X

        cdef class Reader:
            def __cinit__(self, int size):
                self.fd = -1

            cdef object read(self, int fd):
                cdef int n = 0
                return None

        cdef int ring(int fd, unsigned long count=1) except -1:
            return 0
        ''',
    "src/epoque/selector/__init__.py": "",
    "src/epoque/selector/table.py": """
        class Table:
            __slots__ = ("count", "rows")

            def __init__(self, rows, *, count=0):
                self.rows = rows
                self.count = count

            def find(self, fd, default=None):
                row = self.rows.get(fd)
                return row or default

            def grow(self):
                self.count += 1
        """,
    "src/epoque/selector/table.pxd": """
        cimport cython

        cdef class Table:
            cdef dict[int, object] rows
            cdef Py_ssize_t count

            @cython.locals(
                row=tuple,
            )
            cdef tuple find(self, int fd, object default=*)
            cpdef (int, int) grow(self)
        """,
    "src/epoque/core/__init__.py": "",
    "src/epoque/core/ring.py": """
        from typing import TYPE_CHECKING

        from epoque.kernel import io
        from epoque.selector.table import Table

        if TYPE_CHECKING:
            from epoque.loop import Loop

        class Ring(Table):
            __slots__ = ("__weakref__", "loop")

            def __init__(self, loop):
                super().__init__({})
                self.loop = loop

            def find(self, fd, default=None):
                self.count = io.ring(fd)
        """,
    "src/epoque/core/ring.pxd": """
        from epoque.kernel cimport io
        from epoque.selector.table cimport Table

        cdef class Ring(Table):
            cdef object loop
            cdef object __weakref__
        """,
}

FAULTS: list[tuple[Check, str, str, str, str]] = [  # check, file, text, its replacement, part of the complaint
    (check_layers, "selector/table.py", "class Table", "import epoque.core.ring\n\nclass Table", "a higher layer"),
    (check_layers, "selector/table.py", "class Table", "from ..core import ring\n\nclass Table", "a higher layer"),
    (check_layers, "selector/table.pxd", "cimport cython", "from epoque.core cimport ring", "a higher layer"),
    (check_layers, "kernel/io.pyx", "cdef int n = 0", "from epoque import loop", "a higher layer"),
    (check_layers, "loop.py", "class Loop", "from . import __version__\n\nclass Loop", "cycle"),
    (check_compiled_list, "core/extra.pxd", "", "", "epoque.core.extra has a .pxd and is not in COMPILED"),
    (check_compiled_list, "core/extra.pxd", "", "", "epoque.core.extra has a .pxd and no .py"),
    (check_compiled_list, "../../setup.py", '"core.ring"', '"core.gone"', "core.gone is in COMPILED and has no .pxd"),
    (check_compiled_list, "core/ring.pyx", "", "", "a module has a .pyx if, and only if"),
    (check_compiled_list, "core/old.cpython-313-x86_64-linux-gnu.so", "", "", "left over"),
    (check_functions, "kernel/io.py", "def ring", "def rang", "ring is declared and not defined"),
    (check_functions, "kernel/io.py", "def ring(fd", "def ring(descriptor", "parameters ['fd', 'count'] declared"),
    (check_functions, "kernel/io.py", "count=1", "count", "optional are ['count'] declared, [] defined"),
    (check_functions, "kernel/io.py", "LIMIT = 4", "", "LIMIT is declared and never assigned"),
    (check_functions, "selector/table.py", "class Table", "class Chart", "Table is declared and not defined"),
    (check_functions, "selector/table.py", "def grow", "def shrink", "grow is declared and not defined"),
    (check_functions, "selector/table.py", "row = ", "found = ", "local row is typed and never assigned"),
    (check_fields, "kernel/io.py", "self.fd = -1", "pass", "field fd is not assigned in __init__"),
    (check_fields, "selector/table.py", "self.count = count", "pass", "field count is not assigned in __init__"),
    (check_fields, "core/ring.py", "self.count =", "self.total =", "find assigns total, which the header does not"),
    (check_fields, "core/ring.py", '"loop")', ")", "__slots__ and header differ in ['loop']"),
    (check_inheritance, "core/ring.py", "find(self, fd,", "find(self, x,", "parameters ['self', 'fd', 'default'] dec"),
    (check_inheritance, "core/ring.py", "Ring(Table)", "Ring", "base Table declared, none defined"),
    (check_twins, "kernel/io.pyx", "cdef int ring(", "cdef int _ring(", "ring is a function of one twin only"),
    (check_twins, "kernel/io.pyx", "read(self, int fd)", "read(self, int n)", "differ in their parameters"),
    (check_twins, "kernel/io.pyx", "class Reader", "class Writer", "Writer is a class of one twin only"),
    (check_twins, "kernel/io.pxd", "cdef int ring(", "cdef int other(", "a C function that no header declares"),
    (check_kernel_use, "core/ring.pxd", "from epoque.kernel cimport io", "", "does not cimport it"),
    (
        check_kernel_use,
        "loop.py",
        "class Loop",
        "from epoque.kernel import io\nio.ring(1)\n\nclass Loop",
        "not compiled",
    ),
    (check_plain_python, "core/ring.py", "class Ring", "import cython\n\n\nclass Ring", "uses Cython's module"),
    (check_plain_python, "core/ring.py", "class Ring", "@cython.final\nclass Ring", "uses Cython's module"),
    (check_length, "loop.py", "    pass", "    pass\n" * LIMIT, "loop.py has 505 lines"),
]


def plant(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"^ {8}", "", text, flags=re.MULTILINE))
    return Tree(root)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_sound_tree_passes(tmp_path: Path, check: Check) -> None:
    assert list(check(plant(tmp_path, SOUND))) == []


@pytest.mark.parametrize(("check", "file", "old", "new", "complaint"), FAULTS)
def test_a_fault_is_found(tmp_path: Path, check: Check, file: str, old: str, new: str, complaint: str) -> None:
    name = os.path.normpath(f"src/epoque/{file}")
    text = SOUND.get(name, "")
    assert old in text
    tree = plant(tmp_path, SOUND | {name: text.replace(old, new)})
    assert complaint in "\n".join(check(tree))


def test_a_file_that_became_short_leaves_the_list_of_long_ones(tmp_path: Path) -> None:
    complaints = list(check_length(plant(tmp_path, SOUND), {"setup.py": "was long"}))
    assert complaints == ["setup.py has 1 lines: at most 500, or in LONGER with a reason"]


@pytest.mark.parametrize("line", ["cdef:", "cdef int (*callback)(int) = x", "int x", "DEF X = 1"])
def test_what_a_header_reader_does_not_know_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        parse_header(f"{line}\n")
