"""Fixtures of the tests of ``fucina.fast``."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import DType

Call = Callable[[Any], object]

FILLS: dict[str, tuple[DType, Call]] = {
    "gaussian_fill": (DType.f32, lambda out: fast.rng.gaussian_fill(7, out, 0.5)),
    "gaussian_fill_at": (DType.f32, lambda out: fast.rng.gaussian_fill_at(7, 3, out, 0.5)),
    "gaussian_fill_at_fast": (DType.f32, lambda out: fast.rng.gaussian_fill_at_fast(7, 3, out, 0.5)),
    "uniform_fill": (DType.f32, lambda out: fast.rng.uniform_fill(7, out, -1.0, 2.0)),
    "uniform_fill_at": (DType.f32, lambda out: fast.rng.uniform_fill_at(7, 3, out, -1.0, 2.0)),
    "kaiming_uniform_fill": (DType.f32, lambda out: fast.rng.kaiming_uniform_fill(7, out, 23)),
    "kaiming_uniform_fill_at": (DType.f32, lambda out: fast.rng.kaiming_uniform_fill_at(7, 3, out, 23)),
    "normal_fill": (DType.f32, lambda out: fast.rng.normal_fill(7, out, 0.1, 2.0)),
    "normal_fill_at": (DType.f32, lambda out: fast.rng.normal_fill_at(7, 3, out, 0.1, 2.0)),
    "gumbel_fill": (DType.f32, lambda out: fast.rng.gumbel_fill(7, out)),
    "gumbel_fill_at": (DType.f32, lambda out: fast.rng.gumbel_fill_at(7, 3, out)),
    "randint_fill": (DType.i64, lambda out: fast.rng.randint_fill(7, out, -5, 5)),
    "randint_fill_at": (DType.i64, lambda out: fast.rng.randint_fill_at(7, 3, out, -5, 5)),
    "randperm_fill": (DType.i64, lambda out: fast.rng.randperm_fill(7, out)),
    "dropout_mask": (DType.bool, lambda out: fast.rng.dropout_mask(7, 3, out, 0.25)),
}
"""Every fill with plain arguments: the dtype of ``out``, and the call."""


@pytest.fixture(params=FILLS)
def fill(request: pytest.FixtureRequest) -> tuple[DType, Call]:
    return FILLS[request.param]


@pytest.fixture(scope="session")
def control_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.machine() != "x86_64":
        pytest.skip("the control register is read by x86-64 instructions")
    library = tmp_path_factory.mktemp("control") / "control.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need the C compiler that built the library"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name("control.c"))],
        check=True,
    )
    return library


@pytest.fixture(scope="session")
def tree() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture
def noise() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return f32 values of all classes: 5000 patterns spread over the whole range, NaNs and subnormals among them."""
    patterns = (np.arange(5000, dtype=np.uint64) * 858_993 + 12_345).astype(np.uint32)
    patterns[:8] = [0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001]
    return patterns.view(np.float32)
