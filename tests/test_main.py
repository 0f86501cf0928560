"""Does `python -m epoque PROGRAM` do what `python PROGRAM` does, on epoque's loop?

Most tests run one program both ways and compare exit status, standard output and standard error, byte for byte.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import zipapp
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.epoque_only("about epoque's own command line")

LAUNCHER = ["-m", "epoque"]

LOOK = """
import pickle, sys
class Thing:
    "Found again by pickle only if it can be imported from __main__."
names = [name for name in globals() if name not in ("pickle", "sys", "Thing")]
print(names)
print(__name__, __package__, __spec__ and __spec__.name, globals().get("__file__"), globals().get("__cached__"))
print(__loader__ if isinstance(__loader__, type) else type(__loader__), type(__builtins__), globals().get("__doc__"))
print(sys.argv, sys.path, sys.modules["__main__"].__dict__ is globals(), repr(sys.modules["__main__"])[:20])
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
"""

RAISES = """
def inner():
    return {}["key"]
def outer():
    try:
        inner()
    except KeyError:
        raise RuntimeError("chained")
outer()
"""

PROGRAMS = {
    "look.py": LOOK,
    "raises.py": RAISES,
    "group.py": "raise ExceptionGroup('both', [ValueError(1), TypeError(2)])",
    "syntax.py": "print('never')\nif True print(1)\n",
    "indent.py": "if True:\nprint(1)\n",
    "interrupted.py": "def wait():\n    raise KeyboardInterrupt\nwait()\n",
    "imports.py": "import raises\n",
    "hook.py": (
        "import sys, traceback\n"
        "sys.excepthook = lambda kind, value, trace: print(kind, traceback.format_exception(value), trace.tb_lineno)\n"
        "raise ValueError('seen by the hook')\n"
    ),
    "last.py": (
        "import atexit, sys, traceback\n"
        "first = sys.excepthook\n"
        "atexit.register(lambda: print(traceback.format_tb(sys.last_traceback), sys.excepthook is first))\n"
        "raise ValueError\n"
    ),
    "ending.py": (
        "import atexit, threading\n"
        "class Last:\n"
        "    def __del__(self): print('deleted', flush=True)\n"
        "kept = Last()\n"
        "atexit.register(print, 'atexit')\n"
        "gate = threading.Event()\n"
        "threading.Thread(target=lambda: (gate.wait(5), print('thread'))).start()\n"
        "print('main')\n"
        "gate.set()\n"
    ),
    "pack/__init__.py": "",
    "pack/__main__.py": LOOK,
    "pack/module.py": LOOK,
    "broken/__init__.py": RAISES,
    "broken/__main__.py": "",
    "bare/other.py": "",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "links").mkdir()
    (folder / "links" / "look.py").symlink_to("../look.py")
    zipapp.create_archive(folder / "pack", folder / "pack.pyz")
    (folder / "bad.pyc").write_bytes(b"not a compiled file")
    return folder


def start(*command: str, **options: Any) -> subprocess.Popen[bytes]:
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([sys.executable, *command], **options)


def outcome(*command: str, stdin: bytes = b"", **options: Any) -> tuple[int, str, str]:
    with start(*command, stdin=subprocess.PIPE, **options) as process:
        out, err = process.communicate(stdin, timeout=30)
    return process.returncode, out.decode(), err.decode()


def on_epoque(program: str, *options: str, **kwargs: Any) -> list[str]:
    """Run code with `-c`; the lines it printed."""
    code, out, err = outcome(*LAUNCHER, *options, "-c", textwrap.dedent(program), **kwargs)
    assert (code, err) == (0, "")
    return out.splitlines()


def like_python(*command: str, flags: tuple[str, ...] = (), **options: Any) -> tuple[int, str, str]:
    """Assert that the program does the same with and without the launcher; what it did."""
    plain = outcome(*flags, *command, **options)
    assert outcome(*flags, *LAUNCHER, *command, **options) == plain
    return plain


@pytest.mark.parametrize(
    "command",
    [
        ["look.py", "--debug", "-m", "x"],
        ["./look.py"],
        ["pack/../look.py"],
        ["links/look.py"],
        ["-m", "look", "-c", "--help"],
        ["-mlook"],
        ["-m", "pack", "a b"],
        ["-m", "pack.module"],
        ["pack", "-"],
        ["pack.pyz", "--version"],
        ["-c", LOOK, "-c", "x"],
        ["-c" + LOOK],
        ["--", "look.py"],
    ],
    ids=lambda command: command[0][:9].strip(),
)
def test_the_program_finds_its_main_module_arguments_and_path(programs: Path, command: list[str]) -> None:
    code, out, err = like_python(*command, cwd=programs)
    assert (code, err) == (0, "")
    assert out.endswith("True\n")


@pytest.mark.parametrize("command", [[], ["-"], ["-", "-m", "x"]])
def test_the_program_is_read_from_standard_input(programs: Path, command: list[str]) -> None:
    if command:
        assert like_python(*command, stdin=LOOK.encode(), cwd=programs)[0] == 0
    like_python(*command, stdin=RAISES.encode(), cwd=programs)


@pytest.mark.parametrize("command", [["look.py"], ["pack"], ["-c", LOOK], ["-m", "look"]], ids=lambda c: c[0])
@pytest.mark.parametrize("flag", ["-P", "-O"])
def test_flags_of_the_interpreter_hold(programs: Path, flag: str, command: list[str]) -> None:
    like_python(*command, flags=(flag,), cwd=programs)


def test_warning_options_and_development_mode_hold(programs: Path) -> None:
    show = "import sys, warnings; print(sys.flags, sys.warnoptions, sys._xoptions, len(warnings.filters))"
    like_python("-c", show, flags=("-W", "error", "-X", "dev", "-X", "utf8"), env={**os.environ, "PYTHONHASHSEED": "1"})
    warn = "import warnings\nwarnings.warn('as an error', DeprecationWarning)"
    assert like_python("-c", warn, flags=("-W", "error"))[0] == 1
    assert like_python("-c", warn)[2].count("DeprecationWarning: ") == 1  # shown by default, being in __main__


def test_a_compiled_file_runs(programs: Path) -> None:
    import py_compile

    py_compile.compile(str(programs / "look.py"), cfile=str(programs / "compiled.pyc"), doraise=True)
    assert like_python("compiled.pyc", "x", cwd=programs)[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        *(["raises.py"], ["-m", "raises"], ["-c", RAISES], ["group.py"], ["syntax.py"], ["indent.py"], ["imports.py"]),
        *(["-m", "imports"], ["-m", "syntax"], ["-c", "if True print(1)"], ["-m", "broken"], ["hook.py"], ["last.py"]),
        *(["-m", "nowhere"], ["-m", "pack.nowhere"], ["-m", ".pack"], ["-m", "bare"], ["bare"], ["nowhere.py"]),
    ],
    ids=lambda command: "".join(command)[:12].strip(),
)
def test_errors_are_reported_as_python_reports_them(programs: Path, command: list[str]) -> None:
    code, out, err = like_python(*command, cwd=programs)
    assert code in (1, 2)
    assert out or err


def test_a_broken_compiled_file_is_an_error(programs: Path) -> None:
    code, out, err = outcome(*LAUNCHER, "bad.pyc", cwd=programs)
    assert (code, out) == (1, "")
    assert "magic number" in err


@pytest.mark.parametrize(
    "value", ["", "None", "0", "3", "-1", "263", "True", "'a message'", "('a', 1)", "1.5", "KeyError('x')"]
)
def test_exit_status_of_sys_exit(value: str) -> None:
    like_python("-c", f"import sys\nsys.exit({value})")


def test_end_of_the_program_runs_in_python_s_order(programs: Path) -> None:
    code, out, err = like_python("ending.py", cwd=programs)
    assert (code, out.split(), err) == (0, ["main", "thread", "atexit", "deleted"], "")


@pytest.mark.parametrize("command", [["interrupted.py"], ["-m", "interrupted"]], ids=["script", "module"])
def test_keyboard_interrupt_ends_the_process_by_sigint(programs: Path, command: list[str]) -> None:
    code, _, err = like_python(*command, cwd=programs)
    assert code == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")


def test_interrupt_from_outside_cancels_the_main_task() -> None:
    program = """
        import asyncio
        async def main():
            print("ready", flush=True)
            try:
                await asyncio.sleep(60)
            finally:
                print("cleaned up", flush=True)
        asyncio.run(main())
    """
    with start(*LAUNCHER, "-c", textwrap.dedent(program)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert out == b"cleaned up\n"
    assert err.endswith(b"KeyboardInterrupt\n")
    assert b"-m epoque" not in err
    assert process.returncode == -signal.SIGINT


def test_traceback_through_the_loop_shows_no_frame_of_the_launcher() -> None:
    program = "import asyncio\nasync def main():\n    1 / 0\nasyncio.run(main())\n"
    code, out, err = outcome(*LAUNCHER, "-c", program)
    assert (code, out) == (1, "")
    assert re.match(r'Traceback \(most recent call last\):\n  File "<string>", line 4, in <module>\n', err)
    assert err.endswith("ZeroDivisionError: division by zero\n")
    assert "__main__.py" not in err
    assert "runpy" not in err


def test_the_working_directory_may_be_gone(programs: Path, tmp_path: Path) -> None:
    leave = f"import os, sys; os.rmdir({str(tmp_path)!r}); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    for command in (["-c", LOOK], [str(programs / "look.py")]):
        results = []
        for launcher in ([], LAUNCHER):
            tmp_path.mkdir(exist_ok=True)
            results.append(outcome("-c", leave, *launcher, *command, cwd=tmp_path))
        assert results[0] == results[1]
        assert results[0][0] == 0


def test_closed_standard_streams_do_not_matter(programs: Path) -> None:
    close = (
        "import os, sys; [os.close(fd) for fd in (0, 1, 2)]; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    write = f"open({str(programs / 'written')!r}, 'w').write('ran')"
    assert outcome("-c", close, *LAUNCHER, "-c", write) == (0, "", "")
    assert (programs / "written").read_text() == "ran"
    assert outcome("-c", close, *LAUNCHER) == (0, "", "")


@pytest.mark.parametrize("command", [["spawns.py"], ["-m", "spawns"]], ids=["script", "module"])
def test_multiprocessing_spawn_finds_what_the_program_defines(programs: Path, command: list[str]) -> None:
    (programs / "spawns.py").write_text(
        "import multiprocessing\n"
        "class Job:\n"
        "    def __call__(self): print(__name__, type(self).__module__, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=Job())\n"
        "    child.start(); child.join(20); print(child.exitcode)\n"
    )
    assert like_python(*command, cwd=programs) == (0, "__mp_main__ __mp_main__\n0\n", "")


def test_every_way_to_get_a_loop_gives_epoque_s() -> None:
    lines = on_epoque(
        """
        import asyncio, os, threading
        async def where(): return type(asyncio.get_running_loop()).__module__.partition(".")[0]
        def own_loop():
            loop = asyncio.new_event_loop()
            print(loop.run_until_complete(where()))
            loop.close()
        print(asyncio.run(where()))
        with asyncio.Runner() as runner:
            print(runner.run(where()))
        own_loop()
        thread = threading.Thread(target=own_loop)
        thread.start()
        thread.join()
        pid = os.fork()
        if not pid:
            own_loop()
        else:
            os.waitpid(pid, 0)
        """,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore::DeprecationWarning"},
    )
    assert lines == ["epoque"] * 5


def test_a_loop_that_the_program_chooses_itself_wins() -> None:
    lines = on_epoque(
        """
        import asyncio, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        class Mine(asyncio.SelectorEventLoop): pass
        async def where(): return type(asyncio.get_running_loop()).__name__
        with asyncio.Runner(loop_factory=Mine) as runner:
            print(runner.run(where()))
        class Policy(asyncio.DefaultEventLoopPolicy): _loop_factory = Mine
        asyncio.set_event_loop_policy(Policy())
        print(asyncio.run(where()))
        """
    )
    assert lines == ["Mine", "Mine"]


def test_debug_is_asyncio_s_debug_mode_here_and_in_children() -> None:
    program = """
        import asyncio, subprocess, sys
        async def debug(): return asyncio.get_running_loop().get_debug()
        print(asyncio.run(debug()), asyncio.run(debug(), debug=False), flush=True)
        subprocess.run([sys.executable, "-c", "import asyncio; print(asyncio.new_event_loop().get_debug())"])
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONASYNCIODEBUG"}
    assert on_epoque(program, env=env) == ["False False", "False"]
    assert on_epoque(program, "--debug", env=env) == ["True False", "True"]
    assert on_epoque(program, env={**env, "PYTHONASYNCIODEBUG": "1"}) == ["True False", "True"]


def test_debug_is_refused_where_python_ignores_its_environment() -> None:
    import epoque

    home = Path(epoque.__file__).parent.parent
    code, out, err = outcome("-E", *LAUNCHER, "--debug", "-c", "print('never')", cwd=home)
    assert (code, out) == (2, "")
    assert "-X dev" in err


@pytest.mark.parametrize("command", [["--bogus"], ["-q", "x"], ["-m"], ["-c"], ["--debug=1"]], ids=" ".join)
def test_usage_errors(command: list[str]) -> None:
    code, out, err = outcome(*LAUNCHER, *command)
    assert (code, out) == (2, "")
    assert err.startswith("usage: python -m epoque [--debug] [-m MODULE | SCRIPT | -c CODE] [args...]\n")


def test_help_and_version() -> None:
    import epoque

    code, out, _ = outcome(*LAUNCHER, "--help")
    assert code == 0
    assert "-m MODULE | SCRIPT | -c CODE" in out
    assert outcome(*LAUNCHER, "--version", "never.py") == (0, f"epoque {epoque.__version__}\n", "")


def test_without_a_program_a_terminal_gets_asyncio_s_prompt() -> None:
    mine, theirs = pty.openpty()
    env = {**os.environ, "PYTHON_BASIC_REPL": "1", "TERM": "dumb", "PYTHONSTARTUP": ""}
    try:
        with start(*LAUNCHER, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as process:
            os.close(theirs)
            os.write(
                mine, b"async def where(): return type(asyncio.get_running_loop()).__module__\n\nawait where()\n\x04"
            )
            out, _ = process.communicate(timeout=20)
    finally:
        os.close(mine)
    assert process.returncode == 0
    assert b"asyncio REPL" in out
    assert b"'epoque" in out
