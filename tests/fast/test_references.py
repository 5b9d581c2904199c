"""The hand-written entry module gives back every reference and every buffer it takes."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import DType

OUT = np.zeros(3000, np.float32)
SHORT = np.zeros(8, np.float32)
CODES = np.zeros(3000, np.uint16)
NAN = float("nan")
SEED = 2**63 + 12345

CALLS: dict[str, Callable[[], object]] = {
    "fill": lambda: fast.rng.gaussian_fill(SEED, SHORT, 1.0),
    "long fill": lambda: fast.rng.gaussian_fill(SEED, OUT, 1.0),
    "fill with keywords": lambda: fast.rng.gaussian_fill(seed=SEED, out=SHORT, scale=1.0),
    "refused bounds": lambda: fast.rng.uniform_fill(SEED, SHORT, NAN, 1.0),
    "refused seed": lambda: fast.rng.gumbel_fill(-SEED, SHORT),
    "refused out": lambda: fast.rng.gumbel_fill(SEED, CODES),
    "word": lambda: fast.rng.at(SEED, SEED),
    "refused word": lambda: fast.rng.at(SEED, -SEED),
    "cast": lambda: fast.dtype.cast_array(DType.f32, DType.bf16, OUT),
    "cast of two axes": lambda: fast.dtype.cast_array(DType.f32, DType.bf16, OUT.reshape(3, 1000)),
    "cast into": lambda: fast.dtype.cast_array(DType.f32, DType.bf16, OUT, out=CODES, saturate=True),
    "cast with odd keywords": lambda: fast.dtype.cast_array(source=DType.f32, target=DType.bf16, array=OUT, out=None),
    "refused cast": lambda: fast.dtype.cast_array(DType.f32, DType.bf16, SHORT, out=CODES),
    "overlapping cast": lambda: fast.dtype.cast_array(DType.u16, DType.bf16, CODES, out=CODES),
    "refused format": lambda: fast.dtype.cast_array(DType.f32, DType.bf16, CODES),
    "bits": lambda: fast.dtype.cast_bits(DType.f64, DType.f32, SEED),
    "scalar": lambda: fast.dtype.to_f64(DType.f64, 0.1),
}


@pytest.mark.parametrize("case", CALLS)
def test_references_come_back(case: str) -> None:
    call = CALLS[case]

    def run(times: int) -> None:
        for _ in range(times):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                call()

    watched: list[Any] = [OUT, SHORT, CODES, SEED, DType.f32, DType.bf16, np.dtype(np.uint16), np.ndarray, np.empty]
    run(10)  # what is made once is made now
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched] + [sys.getallocatedblocks()]
    run(2000)
    gc.collect()
    after = [sys.getrefcount(thing) for thing in watched] + [sys.getallocatedblocks()]
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 200


def test_buffers_are_released() -> None:
    memory = bytearray(4000)
    view = memoryview(memory).cast("f")
    fast.rng.gumbel_fill(1, view)
    fast.dtype.cast_array(DType.f32, DType.f16, view)
    refused: list[Callable[[], object]] = [
        lambda: fast.rng.uniform_fill(1, view, 1.0, 1.0),
        lambda: fast.rng.randint_fill(1, view, 0, 1),
    ]
    for wrong in refused:
        with pytest.raises((ValueError, TypeError)):
            wrong()
    gc.collect()
    view.release()
    memory.extend(b"free")  # refused while anybody still holds the buffer
