"""Run every public bulk function, and scalar ones, in floating-point environments that a caller may have set.

``test_environment.py`` runs this in a process of its own: a trap that is not caught ends it.  Prints one JSON object.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DEFAULT = 0x1F80
MASKS, FLUSH_TO_ZERO, DENORMALS_ARE_ZERO, FLAGS = 0x1F80, 0x8000, 0x0040, 0x003F

control = ctypes.CDLL(sys.argv[1])
control.control_get.restype = ctypes.c_uint32
control.control_set.argtypes = [ctypes.c_uint32]
control.control_set.restype = None

Case = Callable[[], object]


class Indirect(np.ndarray[Any, Any]):
    """No plain array, so that a call with one goes through the Python layer and cffi."""


def environments() -> list[int]:
    """Return register values: each rounding mode, FTZ, DAZ, traps masked or not, flags raised or not; default first."""
    return [
        masks | rounding << 13 | flush | zero | flags
        for masks in (MASKS, 0)
        for flags in (0, FLAGS)
        for rounding in range(4)
        for flush in (0, FLUSH_TO_ZERO)
        for zero in (0, DENORMALS_ARE_ZERO)
    ]


def _result(made: object) -> bytes:
    if isinstance(made, str):
        return made.encode()
    if isinstance(made, float):
        return struct.pack("<d", made)
    return made.tobytes() if isinstance(made, np.ndarray) else repr(made).encode()


def fill_cases() -> dict[str, Case]:
    """Return every fill, short and long, both ways into the core, with parameters that an environment would move."""
    import fucina.fast as fast

    sys.path.insert(0, str(Path(__file__).parent))
    fills = importlib.import_module("conftest").FILLS

    def into(call: Callable[[Any], object], out: Any, view: Any) -> Case:
        def run() -> object:
            call(view)
            return out

        return run

    rng = fast.rng
    tiny, more = 3e-45, 1.3e-44
    calls: dict[str, tuple[Any, Callable[[Any], object]]] = dict(fills)
    f32 = fast.DType.f32
    calls["gaussian, subnormal scale"] = f32, lambda out: rng.gaussian_fill(1, out, tiny)
    calls["gaussian, inexact scale"] = f32, lambda out: rng.gaussian_fill(1, out, 0.1)
    calls["gaussian, numpy subnormal scale"] = f32, lambda out: rng.gaussian_fill(1, out, SUBNORMAL)
    calls["fast gaussian, subnormal scale"] = f32, lambda out: rng.gaussian_fill_at_fast(1, 1, out, tiny)
    calls["fast gaussian, inexact scale"] = f32, lambda out: rng.gaussian_fill_at_fast(1, 1, out, 0.1)
    calls["normal, subnormal"] = f32, lambda out: rng.normal_fill(1, out, tiny, more)
    calls["uniform, subnormal"] = f32, lambda out: rng.uniform_fill(1, out, tiny, more)
    calls["uniform, inexact"] = f32, lambda out: rng.uniform_fill(1, out, 0.1, 0.3)
    calls["dropout, inexact"] = fast.DType.bool, lambda out: rng.dropout_mask(1, 0, out, 0.1)
    calls["gaussian, f64 subnormal scale"] = f32, lambda out: rng.gaussian_fill(1, out, 5e-324)
    calls["gaussian, signalling scale"] = f32, lambda out: rng.gaussian_fill(1, out, SIGNALLING)
    calls["dropout, subnormal"] = fast.DType.bool, lambda out: rng.dropout_mask(1, 0, out, tiny)
    cases: dict[str, Case] = {}
    for name, (dtype, call) in calls.items():
        for length in (67, 3001):  # the longer one releases the GIL
            out: Any = np.zeros(length, fast.dtype.storage(dtype))
            cases[f"{name}, {length}"] = into(call, out, out)
            out = np.zeros(length, fast.dtype.storage(dtype))
            cases[f"{name}, {length}, by cffi"] = into(call, out, out.view(Indirect))
    return cases


def refused_cases() -> dict[str, Case]:
    """Return calls that raise; the result is the message."""
    import fucina.fast as fast

    out = np.zeros(5, np.float32)
    mask = np.zeros(5, np.bool_)
    rng = fast.rng

    def refused(call: Case) -> Case:
        def run() -> object:
            try:
                call()
            except (TypeError, ValueError, OverflowError) as error:
                return str(error)
            return "not refused"

        return run

    calls: dict[str, Case] = {
        "bounds": lambda: rng.uniform_fill(1, out, 0.3, 0.1),
        "subnormal bounds": lambda: rng.uniform_fill(1, out, 5e-324, 5e-324),
        "bounds that are NaN": lambda: rng.uniform_fill(1, out, SIGNALLING, 0.1),
        "bounds that overflow": lambda: rng.uniform_fill(1, out, 0.1, 1e300),
        "probability": lambda: rng.dropout_mask(1, 0, mask, 1.1),
        "probability that rounds to 1": lambda: rng.dropout_scale(1 - 2.0**-40),
        "seed": lambda: rng.gaussian_fill(-1, out, 0.1),
        "format": lambda: rng.gaussian_fill(1, mask, 0.1),
        "range": lambda: rng.gaussian_fill_at(1, 2**64 - 1, out, 0.1),
        "element": lambda: fast.dtype.cast_scalar(fast.DType.u8, fast.DType.f32, 256),
    }
    return {name: refused(call) for name, call in calls.items()}


SUBNORMAL: Any = np.array(5, np.uint32).view(np.float32)[()]


def cast_cases() -> dict[str, Case]:
    """Return every pair of casts under every switch, and the scalar bridges."""
    import fucina.fast as fast

    cases: dict[str, Case] = {}
    scalars = [d for d in fast.DType if fast.dtype.is_scalar(d)]
    words = np.array([fast.rng.at(1, i) for i in range(531)], np.uint64)

    def case(source: Any, target: Any, given: Any, **switches: Any) -> Case:
        return lambda: fast.dtype.cast_array(source, target, given, **switches)

    for source in scalars:
        stored = fast.dtype.storage(source)
        given: Any = (words & 1).astype(np.bool_) if stored.kind == "b" else words.view(stored)[:531].copy()
        if stored.kind == "f":
            given[:200] = given[:200].view(f"u{stored.itemsize}") >> (stored.itemsize * 2)  # small ones too
        for target in scalars:
            pair = f"{source.name} to {target.name}"
            cases[pair] = case(source, target, given)
            cases[f"{pair}, by cffi"] = case(source, target, given.view(Indirect))
            cases[f"{pair}, saturate"] = case(source, target, given, saturate=True)
            cases[f"{pair}, single rounding"] = case(source, target, given, single_rounding=True)
    d, t = fast.dtype, fast.DType
    subnormal_f64, inexact = 5e-324, 0.1
    cases |= {
        "to_f32 of a numpy subnormal": lambda: d.to_f32(t.f32, SUBNORMAL),
        "to_f32 of f64": lambda: d.to_f32(t.f64, inexact),
        "to_f32 of f16": lambda: d.to_f32(t.f16, inexact),
        "to_f64 of a subnormal": lambda: d.to_f64(t.f64, subnormal_f64),
        "to_f64 of a numpy subnormal": lambda: d.to_f64(t.f32, SUBNORMAL),
        "to_f64 of a subnormal f16": lambda: d.to_f64(t.f16, 1e-7),
        "to_f64 of bf16": lambda: d.to_f64(t.bf16, 3),
        "to_f64 of a long int": lambda: d.to_f64(t.f64, 2**70 + 12345),
        "to_f32 of a signalling NaN": lambda: d.to_f32(t.f64, SIGNALLING),
        "from_f32": lambda: d.from_f32(t.bf16, inexact),
        "from_f32 to f8": lambda: d.from_f32(t.f8_e4m3, inexact),
        "from_f64": lambda: d.from_f64(t.f16, inexact),
        "cast_float": lambda: d.cast_float(t.f64, t.f16, inexact),
        "cast_scalar": lambda: d.cast_scalar(t.i64, t.f32, 2**53 + 2**29 + 1),
        "is_truthy": lambda: d.is_truthy(t.f64, subnormal_f64),
        "to_accumulator": lambda: d.to_accumulator(t.f16, 1e-7),
        "from_accumulator": lambda: d.from_accumulator(t.f16, inexact),
        "dropout_scale": lambda: fast.rng.dropout_scale(inexact),
        "Bf16": lambda: fast.Bf16.from_f32(inexact).to_f32(),
    }
    return cases


SIGNALLING: Any = struct.unpack("<d", bytes.fromhex("010000000000f07f"))[0]


def observe(cases: dict[str, Case]) -> dict[str, object]:
    """Compare each case in each environment with the default one."""
    get, put = control.control_get, control.control_set
    moved, leaked, other = [], [], 0
    for name, run in cases.items():
        put(DEFAULT)
        expected = _result(run())
        for environment in environments():
            put(environment)
            made = run()
            after = get()
            put(DEFAULT)
            other += environment != DEFAULT
            if _result(made) != expected:
                moved.append(f"{name} in {environment:#06x}")
            if after != environment:
                leaked.append(f"{name}: {environment:#06x} became {after:#06x}")
    return {"cases": len(cases), "runs": other, "moved": moved, "leaked": leaked}


def witness() -> bool:
    """Return whether the environment does move what is not guarded: a numpy addition, rounded up."""
    one, least = np.ones(1, np.float32), np.full(1, 2.0**-40, np.float32)
    control.control_set(MASKS | 2 << 13)
    moved = one + least
    control.control_set(DEFAULT)
    return bool((moved > 1).all())


def imported(environment: int) -> list[int]:
    """Return the control bits before and after the import of the library."""
    control.control_set(environment)
    before = control.control_get()
    import fucina.fast  # noqa: F401 - its import is what is observed

    after = control.control_get()
    control.control_set(DEFAULT)
    return [before & ~FLAGS, after & ~FLAGS]


def main() -> None:
    """Run the part that the second argument names."""
    part = sys.argv[2]
    if part == "import":
        answer: object = imported(int(sys.argv[3], 0))
    else:
        makers = {"fills": fill_cases, "casts": cast_cases, "refused": refused_cases}
        answer = observe(makers[part]()) | {"witness": witness()}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
