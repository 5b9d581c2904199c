"""Truthiness, and the way of an element into its accumulator and back."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises, assert_same, is_nan
from fucina.conformance.suite.casts import FLOAT_DTYPES, INTEGERS, SCALARS, bits_of, scalar_form
from fucina.spec import DType
from fucina.spec.errors import DTypeMismatch, InvalidDType, Overflow

BLOCKS = (DType.q4_0, DType.q6_k, DType.nvfp4)


def _accumulator(dtype: DType) -> DType | None:
    """Return the DType of the accumulator; ``None`` for u64, which is no DType."""
    if dtype in FLOAT_DTYPES:
        return DType.f64 if dtype is DType.f64 else DType.f32
    return DType.i64 if dtype.name.startswith("i") else None


def _accumulator_bits(dtype: DType, value: object) -> int:
    held = _accumulator(dtype)
    if held is None:
        assert type(value) is int, f"DTYPE-ACC-2: an accumulator of {dtype!r} is an int, got {value!r}"
        return value
    return bits_of(held, value)  # type: ignore[arg-type] # bits_of checks it


@clause("BRIDGE-TRUTHY-1", "BRIDGE-BOOL-1", "RNG-CONTRACT-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_truthiness(impl: Any, dtype: DType) -> None:
    table = vectors.load("dtype_truthy_accumulator")
    for pattern, frozen in zip(table[f"in_{dtype.name}"].tolist(), table[f"truthy_{dtype.name}"].tolist(), strict=True):
        value = scalar_form(dtype, pattern)
        what = f"{dtype.name} {pattern:#x}"
        assert_same(impl.dtype.is_truthy(dtype, value), bool(frozen), what=what, clause="BRIDGE-TRUTHY-1")
        assert_same(impl.dtype.cast_scalar(dtype, DType.bool, value), bool(frozen), what=what, clause="BRIDGE-BOOL-1")
        assert_same(impl.dtype.cast_bits(dtype, DType.bool, pattern), frozen, what=what, clause="BRIDGE-BOOL-1")


@clause("DTYPE-ACC-2", "RNG-CONTRACT-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_into_the_accumulator(impl: Any, dtype: DType) -> None:
    table = vectors.load("dtype_truthy_accumulator")
    inputs, frozen = table[f"in_{dtype.name}"], table[f"toacc_{dtype.name}"]
    got = [_accumulator_bits(dtype, impl.dtype.to_accumulator(dtype, scalar_form(dtype, b))) for b in inputs.tolist()]
    held = _accumulator(dtype)
    rule = "any" if held in FLOAT_DTYPES else "exact"
    assert_bits(np.array(got, frozen.dtype), frozen, nan=rule, dtype=held, what=dtype.name, clause="DTYPE-ACC-2")


@clause("DTYPE-ACC-3", "RNG-CONTRACT-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_out_of_the_accumulator(impl: Any, dtype: DType) -> None:
    table = vectors.load("dtype_truthy_accumulator")
    inputs, frozen = table[f"acc_in_{dtype.name}"], table[f"fromacc_{dtype.name}"]
    held = _accumulator(dtype)
    values = inputs.tolist() if held is None else [scalar_form(held, b) for b in inputs.tolist()]
    got = [bits_of(dtype, impl.dtype.from_accumulator(dtype, value)) for value in values]
    rule = "any" if dtype in FLOAT_DTYPES else "exact"
    assert_bits(np.array(got, frozen.dtype), frozen, nan=rule, dtype=dtype, what=dtype.name, clause="DTYPE-ACC-3")


@clause("DTYPE-ACC-2", "DTYPE-ACC-3")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_there_and_back(impl: Any, dtype: DType) -> None:
    inputs = vectors.load("dtype_truthy_accumulator")[f"in_{dtype.name}"]
    inputs = inputs[~is_nan(inputs, dtype)]
    back = [
        bits_of(dtype, impl.dtype.from_accumulator(dtype, impl.dtype.to_accumulator(dtype, scalar_form(dtype, b))))
        for b in inputs.tolist()
    ]
    assert_bits(np.array(back, PATTERN[dtype]), inputs, dtype=dtype, what=dtype.name, clause="DTYPE-ACC-3")


@clause("DTYPE-ACC-3", "ERR-MSG-1")
@pytest.mark.parametrize("dtype", [DType.bool, *INTEGERS], ids=lambda d: d.name)
def test_an_integer_that_does_not_fit(impl: Any, dtype: DType) -> None:
    width = 8 * PATTERN[dtype].itemsize
    signed = dtype.name.startswith("i")
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if dtype is DType.bool:  # any number of the accumulator is a truth value
        low, high = 0, (1 << 64) - 1
    for value in (low - 1, high + 1, -(1 << 70), 1 << 70):
        call = partial(impl.dtype.from_accumulator, dtype, value)
        assert_raises(Overflow, "DTYPE-ACC-3", call, shows=(value,), what=f"{value}")
    for value in (low, high):
        got = impl.dtype.from_accumulator(dtype, value)
        assert_same(got, bool(value) if dtype is DType.bool else value, clause="DTYPE-ACC-3")
    wrong: tuple[Any, ...] = (1.0, "1", None, True)
    for given in wrong:
        call = partial(impl.dtype.from_accumulator, dtype, given)
        assert_raises(DTypeMismatch, ("DTYPE-ACC-3", "BRIDGE-SCALAR-4"), call, what=f"{given!r}")


@clause("DTYPE-ACC-2", "DTYPE-ACC-3", "BRIDGE-TRUTHY-1", "ERR-TYPE-1")
@pytest.mark.parametrize("dtype", BLOCKS, ids=lambda d: d.name)
def test_blocks_have_none(impl: Any, dtype: DType) -> None:
    part, shows = impl.dtype, (dtype.name,)
    assert_raises(InvalidDType, "DTYPE-ACC-2", lambda: part.to_accumulator(dtype, 1), shows=shows)
    assert_raises(InvalidDType, "DTYPE-ACC-3", lambda: part.from_accumulator(dtype, 1), shows=shows)
    assert_raises(InvalidDType, "BRIDGE-TRUTHY-1", lambda: part.is_truthy(dtype, 1), shows=shows)
