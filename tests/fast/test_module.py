"""The native module: its interface, what it links to, how it is entered."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fucina.fast
import fucina.fast.windows
from fucina.fast import _native
from fucina.fast._context_core import contexts as _contexts
from fucina.spec import interface
from fucina.spec.interface import Implementation, IsaControl, Sharing, Windows

_implementation: Implementation = fucina.fast
_levels: IsaControl = fucina.fast
_windows: Windows = fucina.fast.windows
_sharing: Sharing = fucina.fast.windows

# what a libm offers and the contract forbids to use (clause NUM-ELEM-1)
TRANSCENDENTAL = re.compile(
    r"^_*(exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|pow|cbrt|hypot|erf"
    r"|erfc|tgamma|lgamma|fma|cexp|clog)(f|l|f32|f64|_finite)*(@.*)?$"
)


def test_cdef_equals_header(tree: Path) -> None:
    header = (tree / "fast/csrc/fucina.h").read_text()
    section = header.split("/* cdef begin */\n")[1].split("/* cdef end */")[0]
    assert section == (tree / "fast/csrc/native.cdef.txt").read_text()


def test_stub_of_the_contexts_names_what_is_there(tree: Path) -> None:
    stub = ast.parse((tree / "fast/fucina/fast/_contexts.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    named |= {
        node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    named = {name for name in named if not name.startswith("_")}  # a Protocol is the stub's own
    assert named == {name for name in vars(_contexts) if not name.startswith("__")}


class Indirect(np.ndarray[Any, Any]):
    """No plain array, so that a call with one goes through the Python layer and cffi."""


def _cdef(tree: Path) -> tuple[dict[str, int], set[str]]:
    text = re.sub(r"/\*.*?\*/", "", (tree / "fast/csrc/native.cdef.txt").read_text(), flags=re.DOTALL)
    functions = {}
    for name, parameters in re.findall(r"\b(fc_\w+)\(([^)]*)\);", text):
        functions[name] = 0 if parameters.strip() in ("", "void") else parameters.count(",") + 1
    return functions, set(re.findall(r"\b(FC_\w+)\b", text))


def test_stub_covers_exactly_the_cdef(tree: Path) -> None:
    functions, constants = _cdef(tree)
    assert len(functions) > 20
    stub = ast.parse((tree / "fast/fucina/fast/_native.pyi").read_text())
    (lib,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "_Lib")
    declared = {node.name: len(node.args.args) - 1 for node in lib.body if isinstance(node, ast.FunctionDef)}
    assert declared == functions
    assert {
        node.target.id for node in lib.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    } == constants


def test_library_offers_exactly_the_cdef(tree: Path) -> None:
    functions, constants = _cdef(tree)
    assert set(dir(_native.lib)) == set(functions) | constants


def _nm(option: str) -> list[str]:
    tool = shutil.which("nm")
    assert tool, "the tests need nm, which comes with the compiler"
    done = subprocess.run([tool, "-D", option, str(_native.__file__)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_no_transcendental_is_linked() -> None:
    assert all(TRANSCENDENTAL.match(name) for name in ("sin", "cosf", "__log_finite", "exp@GLIBC_2.29", "pow"))
    assert not TRANSCENDENTAL.match("memcpy")
    names = [line.split()[-1] for line in _nm("--undefined-only")]
    assert any(name.startswith("memcpy") or name.startswith("Py") for name in names), "nm listed nothing"
    assert [name for name in names if TRANSCENDENTAL.match(name)] == []


def test_only_the_init_functions_are_exported() -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", _native.__file__], check=True, capture_output=True, text=True
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines() if line.split()[-2] in "TDBR"}
    assert exported == {"PyInit__native", "PyInit__entry", "PyInit__handles", "PyInit__contexts", "PyInit__nodes"}


def _parts() -> list[tuple[Any, Any]]:
    found = []
    for part, module in ((interface.DTypePart, fucina.fast.dtype), (interface.RngPart, fucina.fast.rng)):
        for name, method in vars(part).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                found.append((method, getattr(module, name)))
    return found


@pytest.mark.parametrize(("stated", "ours"), _parts(), ids=lambda f: f.__name__)
def test_signatures_are_the_stated_ones(stated: Any, ours: Any) -> None:
    def shape(function: Any, skip: int) -> list[tuple[object, ...]]:
        parameters = list(inspect.signature(function).parameters.values())[skip:]
        return [(p.name, p.kind, p.default) for p in parameters]

    assert shape(ours, 0) == shape(stated, 1)
    assert "Clauses: " in (inspect.getdoc(ours) or "")


@pytest.mark.parametrize("function", [fucina.fast.rng.at, fucina.fast.rng.gumbel_fill, fucina.fast.dtype.cast_array])
def test_functions_pickle_by_name(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def test_root() -> None:
    memory = {"storage", "tensor", "pool", "context", "scope", "team"}
    values = {"numbers", "dtype", "bridge", "block", "rng", "fpenv", "errors"}
    assert fucina.fast.capabilities == memory | values | {"facade", "policy", "autograd"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", fucina.fast.__version__)
    assert all(hasattr(fucina.fast, name) for name in fucina.fast.__all__)
    assert all(hasattr(fucina.fast.dtype, name) for name in fucina.fast.dtype.__all__)
    assert set(fucina.fast.rng.__all__) == {n for n in vars(interface.RngPart) if not n.startswith("_")}


def test_both_ways_into_the_core_give_the_same_bytes(fill: Any) -> None:
    dtype, call = fill
    stored = fucina.fast.dtype.storage(dtype)
    plain, through_python = np.zeros((3, 5), stored), np.zeros((3, 5), stored)
    call(plain)
    call(through_python.view(Indirect))
    assert plain.tobytes() == through_python.tobytes()
    assert plain.any()
