"""What do the sources of epoque say about each other? Readers of .py, .pyx and .pxd files, and checks upon them.

Every check takes a tree (a directory laid out like this repository) and returns its complaints as strings, so that
tests can hand it trees with faults. Headers are read with regular expressions; a line that fits none of them is an
error, not something to pass over.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LAYERS = (
    ("kernel",),
    ("selector",),
    ("core",),
    ("transports",),
    ("endpoints", "server"),
    ("loop", "policy", "__init__", "__main__"),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}


@dataclass
class Function:
    """A function or method as a header or a .py file has it."""

    kind: str  # def, cdef or cpdef
    params: list[str] = field(default_factory=list)
    optional: set[str] = field(default_factory=set)
    locals: set[str] = field(default_factory=set)  # in a header: those typed by @cython.locals; else: those assigned
    inline: bool = False  # defined where it is declared, in the header


@dataclass
class Class:
    base: str = ""
    fields: set[str] = field(default_factory=set)
    methods: dict[str, Function] = field(default_factory=dict)


@dataclass
class Header:
    """What a .pxd or .pyx file declares at its top level, bodies left out."""

    classes: dict[str, Class] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of variables and enum members
    imports: list[tuple[str, str]] = field(default_factory=list)  # (module, name), name empty for a plain import


# --- reading headers


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Indentation and text of each statement, without comments and triple-quoted strings."""
    text = re.sub(r'("""|\'\'\').*?\1', "''", text, flags=re.DOTALL)
    text = re.sub(r"#.*", "", text).replace("\\\n", " ")
    joined = ""
    for line in text.splitlines():
        joined = f"{joined} {line.strip()}" if joined else line.rstrip()
        if sum(map(joined.count, "([{")) > sum(map(joined.count, ")]}")):
            continue
        if joined.strip():
            yield len(joined) - len(joined.lstrip()), joined.strip()
        joined = ""


def _function(statement: str) -> tuple[str, Function] | None:
    kind, _, rest = statement.partition(" ")
    rest = re.sub(r"^\([^)]*\)", "tuple", rest.removeprefix("inline ").strip())  # a C tuple as the type of the result
    match = re.match(r"[^(=]*?(\w+)\s*\((.*)\)[^()]*$", rest)
    if kind not in ("def", "cdef", "cpdef") or not match or re.match(r"\s*\*\w+\s*\)", f"{match[2]})"):
        return None
    function = Function(kind, inline="inline " in statement.partition("(")[0])
    for param in filter(None, map(str.strip, re.sub(r"\[[^\]]*\]", "", match[2]).split(","))):
        declaration, default, _ = param.partition("=")
        name = re.sub(r"\b(not|or) None\b", "", declaration).split(":")[0].replace("*", " ").split()
        if name and name != ["/"]:
            function.params.append(name[-1])
            function.optional |= {name[-1]} if default else set()
    return match[1], function


def _variables(statement: str) -> list[str]:
    declaration = re.sub(r"\[[^\]]*\]|\s*=.*", "", statement.removeprefix("cdef "))
    if re.search(r"[()]", declaration):
        raise ValueError(f"not understood: {statement}")
    return [part.replace("*", " ").split()[-1] for part in declaration.split(",")]


def parse_import(statement: str) -> list[tuple[str, str]]:
    if match := re.match(r"from\s+(\S+)\s+c?import\s+\(?(.*?),?\s*\)?$", statement):
        return [(match[1], name.split()[0]) for name in match[2].split(",")]
    if match := re.match(r"c?import\s+(.*)$", statement):
        return [(name.split()[0], "") for name in match[1].split(",")]
    return []


def parse_header(text: str, *, bodies: bool = False) -> Header:
    """Read a .pxd or, with `bodies`, a .pyx file, where statements of bodies and of plain Python are passed over."""
    header = Header()
    block: tuple[int, str, Class | None] | None = None  # indentation, keyword and class of the block we are in
    typed: set[str] = set()
    for indent, statement in _logical_lines(text):
        if block and indent <= block[0]:
            block = None
        if block and block[1] == "enum":
            header.names |= {part.split("=")[0].strip() for part in statement.split(",")} - {"pass", ""}
        elif block and (block[1] == "other" or indent > block[0] + 4):
            continue
        elif statement.startswith("@"):
            typed |= set(re.findall(r"(\w+)\s*=", statement)) if "locals" in statement else set()
        elif match := re.match(r"(?:cdef\s+)?class\s+(\w+)\s*(?:\((.*?)\))?\s*(:|$)", statement):
            cls = header.classes.setdefault(match[1], Class())  # which a forward declaration may have made
            cls.base = (match[2] or "").strip() or cls.base
            block = indent, "class", cls
        elif re.match(r"(cdef|cpdef|ctypedef)\b.*\b(extern|enum|struct|union)\b.*:$", statement):
            block = indent, "enum" if re.match(r"c\w+\s+enum", statement) else "other", None
        elif found := _function(statement):
            owner = block[2].methods if block and block[2] else header.functions
            found[1].locals, typed = typed, set()
            owner[found[0]] = found[1]
            if statement.endswith(":") and not block:
                block = indent, "other", None
        elif imports := parse_import(statement):
            header.imports += imports
        elif statement.startswith("cdef "):
            (block[2].fields if block and block[2] else header.names).update(_variables(statement))
        elif not bodies and not re.match(r"ctypedef\b|pass$|''$", statement):
            raise ValueError(f"not understood: {statement}")
    return header


# --- reading .py files


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements, those under `if` and `try` included."""
    for node in body:
        yield node
        for name in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, (ast.If, ast.Try)):
                for child in getattr(node, name, []):
                    yield from _statements(child.body if isinstance(child, ast.ExceptHandler) else [child])


def _stored(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}


def _assigned(method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The attributes that a method assigns to its first parameter."""
    if not method.args.args:
        return set()
    first = method.args.args[0].arg
    return {
        node.attr
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
        if isinstance(node.value, ast.Name) and node.value.id == first
    }


def _python_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = positional[len(positional) - len(args.defaults) :]
    defaults += [arg for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default]
    params = [*positional, *filter(None, [args.vararg]), *args.kwonlyargs, *filter(None, [args.kwarg])]
    names = [arg.arg for arg in params]
    return Function("def", names, {arg.arg for arg in defaults}, _stored(node) | set(names))


# What assigns every field; the others are what a chain of __init__ would be, without the price of Python calls.
BEGINNING = ("__init__", "set_up", "prepare")


@dataclass
class PythonClass(Class):
    slots: set[str] | None = None
    initialised: set[str] = field(default_factory=set)  # attributes of self that its beginning assigns
    assigned: dict[str, str] = field(default_factory=dict)  # attribute of self -> a method that assigns it


@dataclass
class Source:
    """What a .py file defines at its top level."""

    tree: ast.Module
    classes: dict[str, PythonClass] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def _python_class(node: ast.ClassDef) -> PythonClass:
    found = PythonClass(base=ast.unparse(node.bases[0]) if node.bases else "")
    properties = set()
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = [ast.unparse(decorator) for decorator in item.decorator_list]
            properties |= {item.name} if any("setter" in name for name in decorators) else set()
            found.methods[item.name] = _python_function(item)
            if not {"staticmethod", "classmethod"} & set(decorators):
                found.assigned |= dict.fromkeys(_assigned(item), item.name)
            if item.name in BEGINNING:
                found.initialised |= _assigned(item)
        elif isinstance(item, ast.Assign) and _stored(item) == {"__slots__"}:
            slots = ast.literal_eval(item.value)
            found.slots = {slots} if isinstance(slots, str) else set(slots)
    found.assigned = {name: method for name, method in found.assigned.items() if name not in properties}
    return found


def parse_python(text: str) -> Source:
    source = Source(ast.parse(text))
    for node in _statements(source.tree.body):
        if isinstance(node, ast.ClassDef):
            source.classes[node.name] = _python_class(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            source.functions[node.name] = _python_function(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            source.names |= {alias.asname or alias.name for alias in node.names}
        elif not isinstance(node, (ast.If, ast.Try)):
            source.names |= _stored(node)
    return source


def python_imports(tree: ast.Module, package: str) -> list[tuple[str, str]]:
    """(module, name) of every import that can happen at run time, relative ones resolved against `package`."""
    found: list[tuple[str, str]] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            pending += node.orelse
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *filter(None, [node.module])])
            found += [(module, alias.name) for alias in node.names]
        else:
            pending += ast.iter_child_nodes(node)
    return found


# --- the tree


class Tree:
    """The package below ROOT/src/epoque and the list COMPILED of ROOT/setup.py."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "src" / "epoque"
        self.modules = {self.name(path): path for path in sorted(self.package.rglob("*.py"))}
        self.python = {name: parse_python(path.read_text()) for name, path in self.modules.items()}
        self.headers = self._declared("*.pxd")
        self.twins = self._declared("*.pyx")
        setup = ast.parse((root / "setup.py").read_text())
        values = [node.value for node in setup.body if isinstance(node, ast.Assign) and _stored(node) == {"COMPILED"}]
        self.compiled: list[str] = ["epoque." + name for name in ast.literal_eval(values[0])]

    def name(self, path: Path) -> str:
        parts = path.relative_to(self.package.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _declared(self, pattern: str) -> dict[str, Header]:
        paths = sorted(self.package.rglob(pattern))
        return {self.name(path): parse_header(path.read_text(), bodies=path.suffix == ".pyx") for path in paths}

    def resolve(self, module: str, name: str) -> str:
        """The module that `from module import name` loads, empty if it is not one of ours."""
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}"
        return module if module in self.modules else ""

    def base(self, module: str, cls: Class) -> tuple[str, Class] | None:
        """Module and header of a class's base, if that is declared in a header."""
        places = {name: origin for origin, name in self.headers[module].imports}
        origin, name = places.get(cls.base, module), cls.base
        if "." in name:  # module.Class
            prefix, _, name = name.rpartition(".")
            origin = f"{places.get(prefix, '')}.{prefix}"
        base = self.headers[origin].classes.get(name) if origin in self.headers else None
        return (origin, base) if base and base is not cls else None

    def ancestors(self, module: str, cls: Class) -> Iterator[Class]:
        found = self.base(module, cls)
        while found:
            yield found[1]
            found = self.base(*found)
