"""Both forms of a kernel module, side by side: what one answers, the other must answer too.

The functions of a compiled one are C functions; Cython exports those that a header declares as capsules, each named by
its signature, and ctypes can call them.
"""

from __future__ import annotations

import ctypes
import importlib.util
from types import ModuleType
from typing import Any

import epoque
from tests.loops import ROOT

FORMS = ["interpreted", "compiled"] if epoque.compiled else ["interpreted"]

_TYPES: dict[str, Any] = {
    "int": ctypes.c_int,
    "double": ctypes.c_double,
    "unsigned long": ctypes.c_ulong,
    "PY_LONG_LONG": ctypes.c_longlong,
    "unsigned PY_LONG_LONG": ctypes.c_ulonglong,
    "Py_ssize_t": ctypes.c_ssize_t,
    "PyObject *": ctypes.py_object,
}
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def twin(module: str, form: str) -> Any:
    """The module of that name in epoque.kernel, in one of FORMS."""
    return _Compiled(module) if form == "compiled" else _interpreted(module)


def _interpreted(module: str) -> ModuleType:
    """A copy of its own, so that a test may change it."""
    path = ROOT / "src" / "epoque" / "kernel" / f"{module}.py"
    spec = importlib.util.spec_from_file_location(f"interpreted_{module}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class _Compiled:
    """The functions of a compiled module, as attributes; of C functions those whose signature ctypes can express."""

    def __init__(self, module: str) -> None:
        self._module = importlib.import_module(f"epoque.kernel.{module}")
        self._capsules = self._module.__pyx_capi__

    def __getattr__(self, function: str) -> Any:
        if function not in self._capsules:
            return getattr(self._module, function)
        capsule = self._capsules[function]
        signature = _name(capsule)
        result, _, parameters = signature.decode().removesuffix(")").partition("(")
        types = [_TYPES[kind] for kind in parameters.split(", ") if kind != "void"]
        return ctypes.PYFUNCTYPE(_TYPES[result.strip()], *types)(_pointer(capsule, signature))
