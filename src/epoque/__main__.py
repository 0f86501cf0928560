"""How does an asyncio program run on epoque without a change to it?

`python -m epoque SCRIPT` makes epoque the loop that asyncio creates and then does what `python SCRIPT` would: the same
`__main__` module, sys.argv and sys.path, exit status, reaction to ^C, and tracebacks without a frame of this file.
A program that looks at its own stack (traceback.print_stack) does see this file below itself.

Interpreters that the program starts are ordinary ones: children made by fork keep the loop, those of multiprocessing's
spawn and forkserver call epoque.install() themselves. --debug reaches both, being an environment variable.
"""

from __future__ import annotations

import argparse
import builtins
import io
import itertools
import linecache
import os
import pkgutil
import runpy
import sys
import textwrap
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any

import epoque


def _parse(args: list[str]) -> tuple[str, str, list[str]]:
    """Return how to find the program ("-m", "-c" or "" for a path), what names it, and its arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m epoque",
        usage="%(prog)s [--debug] [-m MODULE | SCRIPT | -c CODE] [args...]",
        description="Run an asyncio program on epoque's event loop, as python itself would run it.",
        epilog="SCRIPT may be a file, a directory or zip file with a __main__.py, or - for standard input. Without a "
        "program standard input is read too; if that is a terminal, asyncio's interactive prompt starts.",
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", help="asyncio's debug mode (sets PYTHONASYNCIODEBUG=1)")
    parser.add_argument("--version", action="version", version=f"epoque {epoque.__version__}")
    own = list(itertools.takewhile(lambda arg: arg[:2] == "--" != arg or arg == "-h", args))
    rest = args[len(own) :]
    ended = rest[:1] == ["--"]
    if ended:
        del rest[0]
    if parser.parse_args(own).debug:
        if sys.flags.ignore_environment:
            parser.error("--debug sets PYTHONASYNCIODEBUG, which python ignores under -E and -I: try python -X dev")
        os.environ["PYTHONASYNCIODEBUG"] = "1"
    if ended or not rest or rest[0] == "-" or not rest[0].startswith("-"):
        return "", "".join(rest[:1]), rest[1:]
    switch, target = rest[0][:2], rest[0][2:]
    if switch not in ("-m", "-c"):
        parser.error(f"unrecognized arguments: {rest[0]}")
    if target:
        return switch, target, rest[1:]
    if len(rest) < 2:
        parser.error(f"argument {switch}: expected one argument")
    return switch, rest[1], rest[2:]


def _new_main() -> dict[str, Any]:
    """Replace this file as `__main__` by a module like the one that Python starts with; its namespace."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    names = vars(main)
    names["__loader__"] = BuiltinImporter
    if "__annotations__" in globals():  # until 3.13
        names["__annotations__"] = {}
    names["__builtins__"] = builtins
    return names


def _set_path(entry: str | None) -> None:
    """Replace the current directory, which `-m epoque` put first, by the program's own entry of sys.path, if any."""
    if not sys.flags.safe_path and sys.path[0] == _directory():
        del sys.path[0]
    if entry is not None:
        sys.path.insert(0, entry)


def _directory() -> str:
    """Return the current directory, "" if it exists no more."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _load(main: dict[str, Any], path: str, source: bytes) -> CodeType | None:
    """Compile the file's source, or take the code as it is from a .pyc, and name the file in `__main__`."""
    main["__file__"] = path
    if "__cached__" in globals():  # until 3.14
        main["__cached__"] = None
    if path.endswith(".pyc"):
        main["__loader__"] = SourcelessFileLoader("__main__", path)
        return SourcelessFileLoader("__main__", path).get_code("__main__")
    if path != "<stdin>":
        main["__loader__"] = SourceFileLoader("__main__", path)
    return compile(source, path, "exec", dont_inherit=True)


def _show_source(code: CodeType, source: str) -> None:
    """Let tracebacks show the source lines of -c, as from 3.13 on; Python's later releases keep them by code object."""
    if hasattr(linecache, "_interactive_cache"):
        linecache._register_code(code, source, "<string>")  # type: ignore[attr-defined]
    elif sys.version_info >= (3, 13):
        linecache.cache["<string>"] = len(source), None, source.splitlines(keepends=True), "<string>"


def _run(switch: str, target: str, args: list[str]) -> None:
    """Run the program in `__main__`, in this frame or in runpy's."""
    main = _new_main()
    sys.argv[:] = [switch or target, *args]
    local = None if sys.flags.safe_path else ""
    if switch == "-m" or (target in ("", "-") and sys.stdin and sys.stdin.isatty()):
        # The one private name: run_module() copies the namespace, so that pickle and pdb would miss it.
        return runpy._run_module_as_main(target if switch else "asyncio")
    if switch == "-c":
        _set_path(local)
        if sys.version_info >= (3, 14):  # which lets -c be indented
            target = textwrap.dedent(target)
        code = compile(target, "<string>", "exec", dont_inherit=True)
        _show_source(code, target)
    elif target in ("", "-"):
        _set_path(local)
        code = _load(main, "<stdin>", sys.stdin.buffer.read() if sys.stdin else b"")
    else:
        path = os.path.join(_directory(), target)
        if pkgutil.get_importer(path):
            _set_path(path)
            return runpy._run_module_as_main("__main__", alter_argv=False)
        try:
            with io.open_code(path) as file:
                source = file.read()
        except OSError as error:
            program = sys.orig_argv[0]
            print(f"{program}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
            sys.exit(2)
        _set_path(None if sys.flags.safe_path else os.path.dirname(os.path.realpath(path)))
        code = _load(main, path, source)
    exec(code, main)


def _hide_launcher(error: BaseException) -> None:
    """Have the error, when it reaches the top, reported without the frames between the interpreter and the program."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    hook = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, _: TracebackType | None) -> None:
        sys.excepthook = hook
        sys.last_traceback = trace
        hook(kind, value.with_traceback(trace), trace)

    sys.excepthook = excepthook


if __name__ == "__main__":
    program = _parse(sys.argv[1:])
    epoque.install()
    try:
        _run(*program)
    except SystemExit:
        raise
    except BaseException as error:
        _hide_launcher(error)
        raise
