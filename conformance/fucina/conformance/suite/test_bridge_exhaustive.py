"""Domains small enough to visit whole: every code of f16, bf16 and f8, every f16 into f8, the frozen encodes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_bits, is_nan
from fucina.conformance.suite.casts import (
    FLOAT_DTYPES,
    INTEGERS,
    SCALARS,
    cast,
    expected,
    nan_bits,
    round_to,
    two_roundings,
)
from fucina.spec import DType

F8 = (DType.f8_e4m3, DType.f8_e5m2)
SMALL = (DType.f16, DType.bf16, *F8)


def every(dtype: DType) -> np.ndarray[Any, Any]:
    """Return all codes of a dtype of one or two bytes."""
    return np.arange(1 << 8 * PATTERN[dtype].itemsize, dtype=np.uint32).astype(PATTERN[dtype])


@clause("BRIDGE-F16-1", "BRIDGE-F16-3", "BRIDGE-DECODE-1", "BRIDGE-FORMAT-1", "NUM-NAN-1")
def test_every_f16_decoded(impl: Any) -> None:
    table = vectors.load("dtype_f16_f64")
    codes = every(DType.f16)
    for into, key in ((DType.f32, "f16_to_f32"), (DType.f64, "f16_to_f64")):
        got = cast(impl, DType.f16, into, codes)
        assert_bits(got, table[key], nan="any", dtype=into, what=key, clause="BRIDGE-F16-1")
        answers = table[key].copy()
        nans = is_nan(codes, DType.f16)
        answers[nans] = [nan_bits(DType.f16, into, b) for b in codes[nans].tolist()]
        assert_bits(got, answers, dtype=into, what=f"{key}, exact NaN bits", clause="BRIDGE-F16-3")


@clause("BRIDGE-BF16-1", "BRIDGE-DECODE-1", "BRIDGE-FORMAT-1", "NUM-NAN-1")
def test_every_bf16_decoded(impl: Any) -> None:
    codes = every(DType.bf16)
    got = cast(impl, DType.bf16, DType.f32, codes)
    assert_bits(got, vectors.load("dtype_bf16")["bf16_to_f32"], dtype=DType.f32, clause="BRIDGE-BF16-1")
    assert_bits(got, codes.astype(np.uint32) << np.uint32(16), dtype=DType.f32, clause="BRIDGE-BF16-1")


@clause("BRIDGE-E4M3-1", "BRIDGE-E5M2-1", "BRIDGE-E4M3-3", "BRIDGE-E5M2-3", "BRIDGE-DECODE-1", "BRIDGE-FORMAT-1")
@pytest.mark.parametrize("dtype", F8, ids=lambda d: d.name)
def test_every_f8_decoded(impl: Any, dtype: DType) -> None:
    table, name = vectors.load("dtype_f8"), dtype.name.removeprefix("f8_")
    topic = name.upper()
    got = cast(impl, dtype, DType.f32, every(dtype))
    assert_bits(got, table[f"{name}_decode_f32"], dtype=DType.f32, what=f"{name} -> f32", clause=f"BRIDGE-{topic}-1")
    got = cast(impl, dtype, DType.f64, every(dtype))
    wide = table[f"{name}_decode_f64"]
    assert_bits(got, wide, nan="any", dtype=DType.f64, what=f"{name} -> f64", clause=f"BRIDGE-{topic}-1")
    nans = is_nan(got, DType.f64)
    sign = got[nans] & np.uint64(1 << 63)
    assert_bits(got[nans], sign | np.uint64(0x7FF8 << 48), dtype=DType.f64, clause=f"BRIDGE-{topic}-3")


@clause("BRIDGE-DECODE-1", "BRIDGE-ROUND-1", "BRIDGE-E4M3-2", "BRIDGE-E5M2-2", "BRIDGE-F16-2", "BRIDGE-BF16-2")
@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_every_code_survives_the_round_trip(impl: Any, dtype: DType) -> None:
    codes = every(dtype)
    codes = codes[~is_nan(codes, dtype)]
    narrow = cast(impl, dtype, DType.f32, codes)
    assert_bits(cast(impl, DType.f32, dtype, narrow), codes, dtype=dtype, what="by f32", clause="BRIDGE-ROUND-1")
    wide = cast(impl, dtype, DType.f64, codes)
    for switches in ({}, {"single_rounding": True}):
        back = cast(impl, DType.f64, dtype, wide, **switches)
        assert_bits(back, codes, dtype=dtype, what=f"by f64, {switches}", clause="BRIDGE-ROUND-1")
    finite = np.isfinite(wide.view(np.float64))
    back = cast(impl, DType.f32, dtype, narrow[finite], saturate=True)
    assert_bits(back, codes[finite], dtype=dtype, what="finite, saturate=True", clause="BRIDGE-ROUND-1")


@clause("BRIDGE-E4M3-2", "BRIDGE-E4M3-3", "BRIDGE-E5M2-2", "BRIDGE-E5M2-3", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("dtype", F8, ids=lambda d: d.name)
def test_every_f16_into_f8(impl: Any, dtype: DType) -> None:
    name = dtype.name.removeprefix("f8_")
    got = cast(impl, DType.f16, dtype, every(DType.f16))
    frozen = vectors.load("dtype_f8")[f"f16_encode_{name}"]
    assert_bits(got, frozen, dtype=dtype, what=f"f16 -> {name}", clause=f"BRIDGE-{name.upper()}-2")


@clause("BRIDGE-E4M3-2", "BRIDGE-E4M3-3", "BRIDGE-E5M2-2", "BRIDGE-E5M2-3", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("dtype", F8, ids=lambda d: d.name)
def test_frozen_f8_encodes(impl: Any, dtype: DType) -> None:
    table, name = vectors.load("dtype_f8"), dtype.name.removeprefix("f8_")
    got = cast(impl, DType.f32, dtype, table["encode_input_f32"])
    assert_bits(got, table[f"encode_{name}"], dtype=dtype, what=f"f32 -> {name}", clause=f"BRIDGE-{name.upper()}-2")


@clause("BRIDGE-BF16-2", "BRIDGE-BF16-3", "BRIDGE-ROUND-1", "NUM-NAN-1")
def test_frozen_bf16_encodes(impl: Any) -> None:
    table = vectors.load("dtype_bf16")
    got = cast(impl, DType.f32, DType.bf16, table["f32_input"])
    assert_bits(got, table["f32_to_bf16"], dtype=DType.bf16, what="f32 -> bf16", clause="BRIDGE-BF16-2")


@clause("BRIDGE-F16-2", "BRIDGE-ROUND-1")
def test_frozen_f16_encodes(impl: Any) -> None:
    table = vectors.load("dtype_f16_f64")
    got = cast(impl, DType.f32, DType.f16, table["f32_input"])
    assert_bits(got, table["f32_to_f16"], nan="any", dtype=DType.f16, what="f32 -> f16", clause="BRIDGE-F16-2")


@clause("BRIDGE-FLOAT-1", "BRIDGE-SCALAR-2", "BRIDGE-SINGLE-1", "BRIDGE-F16-2")
@pytest.mark.parametrize("into", [DType.f16, DType.f32, DType.bf16, *F8], ids=lambda d: d.name)
def test_frozen_f64_encodes(impl: Any, into: DType) -> None:
    table = vectors.load("dtype_f16_f64")
    inputs = table["f64_input" if into in (DType.f16, DType.f32) else "f64_input2"]
    key = f"f64_to_{into.name}"
    two = table[key if into is DType.f32 else f"{key}_castFloat"]
    got = cast(impl, DType.f64, into, inputs)
    assert_bits(got, two, nan="any", dtype=into, what=f"{key}, as cast_float", clause="BRIDGE-FLOAT-1")
    if into is DType.f16:  # here from_f64 is the single rounding
        one = cast(impl, DType.f64, into, inputs, single_rounding=True)
        frozen = table[f"{key}_fromF64"]
        assert_bits(one, frozen, nan="any", dtype=into, what=f"{key}, one rounding", clause="BRIDGE-SINGLE-1")
        assert np.count_nonzero(one != got) > 0, "the inputs must tell one rounding from two"


@clause("BRIDGE-SINGLE-1", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("into", [DType.bf16, *F8], ids=lambda d: d.name)
def test_one_rounding_from_f64(impl: Any, into: DType) -> None:
    # ties of the target, and the least step beside them: what a stop at f32 cannot see
    codes = every(into)[:: 1 if into in F8 else 97]
    codes = codes[~is_nan(codes, into) & ~is_nan(codes + PATTERN[into].type(1), into)]
    low, high = (cast(impl, into, DType.f64, c).view(np.float64) for c in (codes, codes + PATTERN[into].type(1)))
    usable = np.isfinite(low) & np.isfinite(high) & (np.signbit(low) == np.signbit(high))
    middle = ((low[usable] + high[usable]) / 2).view(np.uint64)
    inputs = np.concatenate([middle, middle + np.uint64(1), middle - np.uint64(1), middle + np.uint64(1 << 20)])
    answers = [two_roundings(DType.f64, into, b, single=True) for b in inputs.tolist()]
    got = cast(impl, DType.f64, into, inputs, single_rounding=True)
    assert_bits(got, np.array(answers, dtype=PATTERN[into]), dtype=into, clause="BRIDGE-SINGLE-1")
    plain = cast(impl, DType.f64, into, inputs)
    answers = [two_roundings(DType.f64, into, b) for b in inputs.tolist()]
    assert_bits(plain, np.array(answers, dtype=PATTERN[into]), dtype=into, clause="BRIDGE-FLOAT-1")
    assert np.count_nonzero(plain != got) > 0, "the inputs must tell one rounding from two"


@clause("BRIDGE-SCALAR-3", "BRIDGE-INT-1", "BRIDGE-INT-2", "BRIDGE-INT-3", "BRIDGE-BOOL-1", "BRIDGE-ARRAY-1")
@pytest.mark.parametrize("into", SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("source", [DType.bool, DType.u8, DType.i8, *F8], ids=lambda d: d.name)
def test_every_byte_into_everything(impl: Any, source: DType, into: DType) -> None:
    codes = every(source)[: 2 if source is DType.bool else None]
    answers = np.array([expected(source, into, b) for b in codes.tolist()], dtype=PATTERN[into])
    got = cast(impl, source, into, codes)
    assert_bits(got, answers, dtype=into, what=f"{source.name} -> {into.name}", clause="BRIDGE-ARRAY-1")


@clause("BRIDGE-INT-3", "BRIDGE-BOOL-1", "BRIDGE-TRUTHY-1")
@pytest.mark.parametrize("source", [DType.f16, DType.bf16], ids=lambda d: d.name)
def test_every_16_bit_float_into_integers(impl: Any, source: DType) -> None:
    codes = every(source)
    value = cast(impl, source, DType.f64, codes).view(np.float64)
    for into in INTEGERS:
        width = PATTERN[into].itemsize * 8
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if into.name[0] == "i" else (0, (1 << width) - 1)
        whole = np.trunc(np.where(np.isnan(value), 0, value))
        inside = np.where((whole >= low) & (whole < high + 1), whole, 0).astype(np.int64)
        answers = np.where(whole >= high + 1, high, np.where(whole < low, low, inside)).astype(np.int64)
        got = cast(impl, source, into, codes)
        assert_bits(got, answers.view(np.uint64).astype(PATTERN[into]), what=into.name, clause="BRIDGE-INT-3")
    got = cast(impl, source, DType.bool, codes)
    assert_bits(got, (value != 0).view(np.uint8), what="bool", clause="BRIDGE-BOOL-1")


@clause("BRIDGE-INT-2", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("into", FLOAT_DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("source", [DType.u16, DType.i16], ids=lambda d: d.name)
def test_every_16_bit_integer_into_floats(impl: Any, source: DType, into: DType) -> None:
    picked = every(source)[:: 3 if into is DType.f16 else 11]
    # no integer of 16 bits is rounded before it reaches its format
    values = (picked.view(np.int16) if source is DType.i16 else picked).tolist()
    answers = [round_to(into, Fraction(value)) if value else 0 for value in values]
    got = cast(impl, source, into, picked)
    assert_bits(got, np.array(answers, dtype=PATTERN[into]), dtype=into, clause="BRIDGE-INT-2")
