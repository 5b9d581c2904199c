"""Faults that people reported in public, floating-point environment, as far as bridges and streams are concerned."""

from __future__ import annotations

import array
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.fills import FILLS, Fill, by_name
from fucina.conformance.suite.pace import Note, scaled
from fucina.conformance.suite.teams import threads
from fucina.spec import DType


@clause("NUM-ENV-2")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_case_o_f04_rounding_mode_of_the_caller(impl: Any, fill: Fill) -> None:
    fpenv.needed()
    expected = fill(impl, 21, 90)
    values = np.linspace(-500, 500, 90)
    narrow = {
        d: impl.dtype.cast_array(DType.f64, d, values) for d in (DType.bf16, DType.f16, DType.f8_e4m3, DType.f8_e5m2)
    }
    for mode in ("upward", "downward", "toward zero"):
        out = fill.empty(90)
        try:
            with fpenv.environment(mode):
                fill.into(impl, 21, out)
                got = {d: impl.dtype.cast_array(DType.f64, d, values) for d in narrow}
        except fpenv.refusals(impl):
            continue
        assert_bits(out, expected, what=f"O-F04, {fill}, {mode}")
        for dtype, answer in narrow.items():
            assert_bits(got[dtype], answer, what=f"O-F04, f64 -> {dtype.name}, {mode}")


@clause("NUM-ENV-3")
def test_case_o_f05_a_signalling_nan_raises_no_flag(impl: Any) -> None:
    fpenv.needed()
    codes = np.full(70, 0x7F800001, np.uint32).view(np.float32)
    half, double = (
        np.full(70, 0x7C01, np.uint16).view(np.float16),
        np.full(70, 0x7FF0 << 48 | 1, np.uint64).view(np.float64),
    )
    parameter, out, plain = double[0].item(), np.zeros(70, np.float32), array.array("f", bytes(4 * 70))
    work: dict[str, Callable[[], Any]] = {
        "f32 -> bf16": lambda: impl.dtype.cast_array(DType.f32, DType.bf16, codes),
        "f32 -> f16": lambda: impl.dtype.cast_array(DType.f32, DType.f16, codes),
        "f32 -> f64": lambda: impl.dtype.cast_array(DType.f32, DType.f64, codes),
        "f32 -> f8_e4m3": lambda: impl.dtype.cast_array(DType.f32, DType.f8_e4m3, codes),
        "f32 -> i32": lambda: impl.dtype.cast_array(DType.f32, DType.i32, codes),
        "f32 -> bool": lambda: impl.dtype.cast_array(DType.f32, DType.bool, codes),
        "f16 -> f32": lambda: impl.dtype.cast_array(DType.f16, DType.f32, half),
        "f64 -> f32": lambda: impl.dtype.cast_array(DType.f64, DType.f32, double),
        "cast_bits": lambda: impl.dtype.cast_bits(DType.f32, DType.bool, 0x7F800001),
        "is_truthy": lambda: impl.dtype.is_truthy(DType.bf16, 0x7F81),
        "a scale": lambda: impl.rng.gaussian_fill(1, out, parameter),
        "a scale, out no ndarray": lambda: impl.rng.gaussian_fill(1, plain, parameter),
        "a mean, out no ndarray": lambda: impl.rng.normal_fill_at(1, 0, plain, parameter, 1.0),
    }
    for name, call in work.items():
        with fpenv.environment("nearest"):
            call()
            after = fpenv.snapshot()
        assert after.flags == 0, f"O-F05: {name} raised {after.flags:#x}"


@clause("NUM-ENV-2", "RNG-CHUNK-1")
@pytest.mark.parametrize("name", ["gaussian_fill_at", "uniform_fill_at"])
def test_case_o_f06_the_mode_is_set_on_one_thread_only(impl: Any, name: str, record_property: Note) -> None:
    # subnormal results, computed by threads of which only one flushes, and by a team that may help any of them
    fpenv.needed()
    fill, part = by_name(name), scaled(impl, record_property, 70_002, 100, "values of each thread")
    values = (2.0**-140,) if name == "gaussian_fill_at" else (0.0, 2.0**-130)
    expected = fill(impl, 2, 4 * part, *values)
    out = fill.empty(4 * part)
    team = threads(impl, 3) if "team" in impl.capabilities else nullcontext()
    with team, ThreadPoolExecutor(3) as pool:
        starts = (part, 2 * part, 3 * part)
        others = [pool.submit(fill.into, impl, 2, out[s : s + part], *values, first=s) for s in starts]
        try:
            with fpenv.environment("flush to zero"):
                fill.into(impl, 2, out[:part], *values)
        except fpenv.refusals(impl):
            out[:part] = expected[:part]
        for other in others:
            other.result()
    assert_bits(out, expected, what=f"O-F06, {name}")
    assert np.count_nonzero((out != 0) & (np.abs(out) < 2.0**-126)) > part, "the results must be subnormal"


_IMPORTED = """
import importlib, sys
from fucina.conformance.suite import environment as fpenv
with fpenv.environment(sys.argv[2]):
    before = fpenv.snapshot().control
    impl = importlib.import_module(sys.argv[1])
    imported = fpenv.snapshot().control
from fucina.conformance.suite.work import calls, refused
at_first = fpenv.snapshot().control
for name, call in calls(impl).items():
    call()
for name, call in refused(impl).items():
    try:
        call()
    except Exception:
        pass
print(before == imported, at_first == fpenv.snapshot().control, 5e-324 * float(len(sys.argv) - 2) != 0)
"""


@clause("NUM-ENV-3")
@pytest.mark.parametrize("mode", ["nearest", "upward", "flush to zero"])
def test_case_o_f02_importing_changes_nothing(target: Any, mode: str) -> None:
    # in a process of its own, where it is imported for the first time
    fpenv.needed()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORTED, target.module_name, mode],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert ran.stdout == "True True True\n", f"O-F02, {mode}: {ran.stdout}{ran.stderr.strip()[-300:]}"
