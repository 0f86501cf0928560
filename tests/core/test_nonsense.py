"""Objects made or used in ways nobody should: exceptions at most, never a crash.

Each case runs in a process of its own, which must live to its end.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.loops import checked_script

PRELUDE = """
import contextlib, copy, gc, pickle
loop = new_loop()

def harmless(function, *args):
    with contextlib.suppress(Exception):
        return function(*args)

WRONG = [(), *((None,) * count for count in range(1, 6)), (0, print, (), loop), (print, (), loop)]

def use(obj):
    for name in dir(obj):
        if name in ("__class__", "run_forever"):
            continue
        value = harmless(getattr, obj, name)
        for args in ((), (None,), (None, None), (1, 2, 3), ("a", "b", "c", "d")):
            if callable(value) and not name.startswith("__"):
                result = harmless(value, *args)
                if asyncio.iscoroutine(result):
                    result.close()
    for function in (repr, hash, str, bool, lambda obj: obj == obj, lambda obj: obj < obj, copy.copy, pickle.dumps):
        harmless(function, obj)
"""

CASES = {
    "a loop never initialised": """
        bare = type(loop).__new__(type(loop))
        use(bare)
        harmless(bare.run_forever)
    """,
    "a loop whose subclass forgets to initialise it": """
        class Forgetful(type(loop)):
            def __init__(self):
                pass

        bare = Forgetful()
        use(bare)
        harmless(bare.run_forever)
    """,
    "a loop initialised twice": """
        harmless(loop.__init__)
        harmless(run, loop, asyncio.sleep(0))
    """,
    "a loop initialised again while it runs": """
        loop.call_soon(harmless, loop.__init__)
        loop.call_soon(loop.stop)
        loop.call_later(0.1, loop.stop)
        harmless(loop.run_forever)
    """,
    "a copied loop": """
        twin = harmless(copy.copy, loop)
        if twin is not None:
            harmless(twin.call_soon, int)
            harmless(run, twin, asyncio.sleep(0))
            harmless(twin.close)
    """,
    "copied handles": """
        for handle in (loop.call_soon(int), loop.call_later(0, int)):
            twin = harmless(copy.copy, handle)
            if twin is not None:
                use(twin)
                harmless(twin._run)
        harmless(run, loop, asyncio.sleep(0))
    """,
    "handles never initialised": """
        for handle in (loop.call_soon(int), loop.call_later(0, int)):
            bare = harmless(type(handle).__new__, type(handle))
            if bare is not None:
                use(bare)
                harmless(bare._run)
                harmless(bare.cancel)
    """,
    "handles made by hand": """
        for handle in (loop.call_soon(int), loop.call_later(0, int)):
            for args in WRONG:
                made = harmless(type(handle), *args)
                if made is not None:
                    use(made)
                    harmless(made._run)
    """,
    "a handle of another loop cancelled": """
        other = new_loop()
        timers = [other.call_later(i, int) for i in range(10)]
        other.close()
        for timer in timers:
            timer.cancel()
            timer.cancel()
            use(timer)
    """,
    "handles run by hand": """
        ran = []
        for handle in (loop.call_soon(ran.append, 1), loop.call_later(0, ran.append, 1)):
            harmless(handle._run)
            handle.cancel()
            harmless(handle._run)
        harmless(run, loop, asyncio.sleep(0.01))
    """,
    "a handle initialised again": """
        for handle in (loop.call_soon(int), loop.call_later(0, int), loop.call_later(3600, int)):
            for args in WRONG:
                harmless(handle.__init__, *args)
        harmless(run, loop, asyncio.sleep(0.01))
        harmless(handle.cancel)
    """,
    "every public method of a loop called with nonsense": """
        use(loop)
        use(loop)
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_nonsense_is_survived(case):
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(CASES[case]) + "\ngc.collect()\nprint('survived')\nos._exit(0)\n"
    assert checked_script(code, env={"PYTHONWARNINGS": "ignore"}).endswith("survived\n")


@pytest.mark.epoque_only("walks through epoque's own classes")
@pytest.mark.parametrize("initialised", [False, True], ids=["never initialised", "made of None"])
def test_no_class_of_epoque_crashes_on_nonsense(initialised):
    code = (
        PRELUDE
        + """
import epoque, importlib, pkgutil

def give_up(*_):
    raise RuntimeError("blocked")

def harmless(function, *args):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)  # some of what is called would wait for ever
        try:
            return function(*args)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Exception:
        return None

signal.signal(signal.SIGALRM, give_up)
print_to = os.dup(1)
for info in pkgutil.walk_packages(epoque.__path__, "epoque."):
    if info.name.endswith("__main__"):
        continue
    module = importlib.import_module(info.name)
    for name, kind in sorted(vars(module).items()):
        if not isinstance(kind, type) or kind.__module__ != info.name:
            continue
        os.write(print_to, f"{info.name}.{name}\\n".encode())
        if sys.argv[1] == "True":
            objects = [harmless(kind, *[None] * count) for count in range(8)]
        else:
            objects = [harmless(kind.__new__, kind)]
        for obj in objects:
            if obj is not None:
                use(obj)
        del objects
        gc.collect()
os.write(print_to, b"survived\\n")
os._exit(0)
"""
    )
    assert checked_script(code, str(initialised), env={"PYTHONWARNINGS": "ignore"}).endswith("survived\n")
