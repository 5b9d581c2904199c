"""What holds for every pattern: exact arithmetic, monotonicity, sign symmetry, saturation, the order of roundings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import FLOATS, PATTERN, Mismatch, assert_bits, assert_same, is_nan
from fucina.conformance.strategies import chunks, dtype_pairs, pattern_arrays, patterns
from fucina.conformance.suite.casts import FLOAT_DTYPES, INTEGERS, SCALARS, STORAGE, cast, expected, number_of
from fucina.spec import DType

NARROW = (DType.f16, DType.bf16, DType.f8_e4m3, DType.f8_e5m2)


def _top(dtype: DType) -> Any:
    return PATTERN[dtype].type(1 << (8 * PATTERN[dtype].itemsize - 1))


@clause("BRIDGE-ARRAY-1", "BRIDGE-SCALAR-3", "BRIDGE-SAT-1", "BRIDGE-SINGLE-1", "NUM-NAN-1")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
@given(data=st.data(), into=st.sampled_from(SCALARS), saturate=st.booleans(), single=st.booleans())
def test_exact_arithmetic(
    impl: Any, source: DType, data: st.DataObject, into: DType, saturate: bool, single: bool
) -> None:
    inputs = data.draw(pattern_arrays(source))
    answers = [expected(source, into, b, saturate=saturate, single=single) for b in inputs.tolist()]
    got = cast(impl, source, into, inputs, saturate=saturate, single_rounding=single)
    what = f"{source.name} -> {into.name}, saturate={saturate}, single_rounding={single}"
    assert_bits(got, np.array(answers, PATTERN[into]), dtype=into, what=what, clause="BRIDGE-ARRAY-1")


@clause("BRIDGE-BITS-1", "BRIDGE-SCALAR-3", "NUM-NAN-1")
@given(pair=dtype_pairs(), data=st.data())
def test_cast_bits_is_exact_arithmetic(impl: Any, pair: tuple[DType, DType], data: st.DataObject) -> None:
    source, into = pair
    pattern = data.draw(patterns(source))
    got = impl.dtype.cast_bits(source, into, pattern)
    answer = expected(source, into, pattern)
    assert_bits(
        np.array([got], PATTERN[into]),
        np.array([answer], PATTERN[into]),
        dtype=into,
        what=f"cast_bits({source!r}, {into!r}, {pattern:#x})",
        clause="BRIDGE-BITS-1",
    )


@clause("BRIDGE-ARRAY-4")
@given(pair=dtype_pairs(), data=st.data())
def test_any_decomposition(impl: Any, pair: tuple[DType, DType], data: st.DataObject) -> None:
    source, into = pair
    inputs = data.draw(pattern_arrays(source, 140))
    whole = cast(impl, source, into, inputs)
    parts = np.zeros_like(whole)
    for start, stop in data.draw(chunks(inputs.size)):
        piece = np.frombuffer(b"\x00" + inputs[start:stop].tobytes(), np.uint8)[1:].view(STORAGE[source])  # unaligned
        impl.dtype.cast_array(source, into, piece, out=parts[start:stop].view(STORAGE[into]))
    assert_bits(parts, whole, dtype=into, what=f"{source.name} -> {into.name}", clause="BRIDGE-ARRAY-4")


@clause("BRIDGE-DECODE-1", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("dtype", FLOAT_DTYPES, ids=lambda d: d.name)
@given(data=st.data())
def test_round_trip_through_wider_floats(impl: Any, dtype: DType, data: st.DataObject) -> None:
    inputs = data.draw(pattern_arrays(dtype))
    inputs = inputs[~is_nan(inputs, dtype)]
    for wide in (DType.f64,) if dtype is DType.f64 else (DType.f32, DType.f64):
        back = cast(impl, wide, dtype, cast(impl, dtype, wide, inputs))
        assert_bits(back, inputs, dtype=dtype, what=f"{dtype.name} -> {wide.name} -> back", clause="BRIDGE-DECODE-1")


@clause("BRIDGE-ROUND-1", "BRIDGE-FLOAT-1", "BRIDGE-SAT-1", "BRIDGE-SINGLE-1")
@pytest.mark.parametrize("into", FLOAT_DTYPES, ids=lambda d: d.name)
@given(data=st.data(), source=st.sampled_from(FLOAT_DTYPES), saturate=st.booleans(), single=st.booleans())
def test_monotonic(impl: Any, into: DType, data: st.DataObject, source: DType, saturate: bool, single: bool) -> None:
    inputs = data.draw(pattern_arrays(source)) & ~_top(source)
    inputs = np.sort(inputs[~is_nan(inputs, source)])  # magnitudes in the order of their values
    got = cast(impl, source, into, inputs, saturate=saturate, single_rounding=single)
    # the NaN code of e4m3 stands above its largest value, as an infinity does elsewhere
    falls = np.flatnonzero(got[1:] < got[:-1])
    if falls.size:
        i = int(falls[0])
        raise Mismatch(
            f"BRIDGE-ROUND-1: {source.name} {inputs[i]:#x} <= {inputs[i + 1]:#x}, but {got[i]:#x} > {got[i + 1]:#x}",
            index=i,
            got=int(got[i + 1]),
            expected=int(got[i]),
            count=falls.size,
        )


@clause("BRIDGE-ROUND-1", "NUM-NAN-1", "BRIDGE-SAT-1", "BRIDGE-SINGLE-1")
@pytest.mark.parametrize("source", FLOAT_DTYPES, ids=lambda d: d.name)
@given(data=st.data(), into=st.sampled_from(FLOAT_DTYPES), saturate=st.booleans(), single=st.booleans())
def test_sign_symmetry(
    impl: Any, source: DType, data: st.DataObject, into: DType, saturate: bool, single: bool
) -> None:
    inputs = data.draw(pattern_arrays(source))
    got = cast(impl, source, into, inputs, saturate=saturate, single_rounding=single)
    mirrored = cast(impl, source, into, inputs ^ _top(source), saturate=saturate, single_rounding=single)
    what = f"-x, {source.name} -> {into.name}"
    assert_bits(mirrored ^ _top(into), got, dtype=into, what=what, clause="BRIDGE-ROUND-1")


@clause("BRIDGE-SAT-1")
@pytest.mark.parametrize("into", NARROW, ids=lambda d: d.name)
@given(data=st.data(), source=st.sampled_from((*FLOAT_DTYPES, *INTEGERS)))
def test_saturation_changes_overflow_only(impl: Any, into: DType, data: st.DataObject, source: DType) -> None:
    inputs = data.draw(pattern_arrays(source))
    plain = cast(impl, source, into, inputs)
    clamped = cast(impl, source, into, inputs, saturate=True)
    if source is into:
        assert_bits(clamped, plain, dtype=into, clause="BRIDGE-SAT-1")
        return
    exponent, fraction = FLOATS[into]
    overflow = 0x7F if into is DType.f8_e4m3 else ((1 << exponent) - 1) << fraction
    over = (plain & ~_top(into)) == overflow
    over &= ~is_nan(inputs, source)
    largest = (plain & _top(into)) | PATTERN[into].type(overflow - 1)
    what = f"{source.name} -> {into.name}, saturate=True"
    assert_bits(clamped, np.where(over, largest, plain), dtype=into, what=what, clause="BRIDGE-SAT-1")


@clause("BRIDGE-FLOAT-1", "BRIDGE-SINGLE-1", "BRIDGE-SCALAR-2")
@pytest.mark.parametrize("into", NARROW, ids=lambda d: d.name)
@given(data=st.data())
def test_two_roundings_are_two_casts(impl: Any, into: DType, data: st.DataObject) -> None:
    inputs = data.draw(pattern_arrays(DType.f64))
    middle = cast(impl, DType.f64, DType.f32, inputs)
    what = f"f64 -> f32 -> {into.name}"
    assert_bits(
        cast(impl, DType.f64, into, inputs),
        cast(impl, DType.f32, into, middle),
        dtype=into,
        what=what,
        clause="BRIDGE-FLOAT-1",
    )
    # from an f32 there is only one rounding to make
    assert_bits(
        cast(impl, DType.f32, into, middle, single_rounding=True),
        cast(impl, DType.f32, into, middle),
        dtype=into,
        what=f"f32 -> {into.name}, single_rounding=True",
        clause="BRIDGE-SINGLE-1",
    )


@clause("BRIDGE-INT-1")
@given(source=st.sampled_from(INTEGERS), into=st.sampled_from(INTEGERS), data=st.data(), back=st.sampled_from(INTEGERS))
def test_integers_wrap(impl: Any, source: DType, into: DType, data: st.DataObject, back: DType) -> None:
    inputs = data.draw(pattern_arrays(source))
    got = cast(impl, source, into, inputs)
    mask = (1 << 8 * PATTERN[into].itemsize) - 1
    answers = np.array([number_of(source, b) & mask for b in inputs.tolist()], PATTERN[into])
    assert_bits(got, answers, dtype=into, what=f"{source.name} -> {into.name}", clause="BRIDGE-INT-1")
    if PATTERN[back].itemsize <= PATTERN[into].itemsize:
        direct = cast(impl, source, back, inputs)
        assert_bits(
            cast(impl, into, back, got), direct, dtype=back, what="by way of a wider one", clause="BRIDGE-INT-1"
        )


@clause("BRIDGE-INT-3", "BRIDGE-INT-2")
@given(source=st.sampled_from(INTEGERS), data=st.data())
def test_integers_survive_f64(impl: Any, source: DType, data: st.DataObject) -> None:
    inputs = data.draw(pattern_arrays(source))
    if source is DType.i64:  # those with at most 53 bits
        inputs = (inputs.view(np.int64) >> np.int64(11)).view(np.uint64)
    back = cast(impl, DType.f64, source, cast(impl, source, DType.f64, inputs))
    assert_bits(back, inputs, dtype=source, what=f"{source.name} -> f64 -> back", clause="BRIDGE-INT-3")


@clause("BRIDGE-TRUTHY-1", "BRIDGE-BOOL-1", "BRIDGE-BOOL-2")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
@given(data=st.data())
def test_truth_is_not_zero(impl: Any, source: DType, data: st.DataObject) -> None:
    inputs = data.draw(pattern_arrays(source))
    magnitude = inputs & ~_top(source) if source in FLOATS else inputs
    got = cast(impl, source, DType.bool, inputs)
    assert_bits(got, (magnitude != 0).view(np.uint8), what=f"{source.name} -> bool", clause="BRIDGE-BOOL-1")
    ones = cast(impl, DType.bool, source, got)
    one = impl.dtype.cast_bits(DType.bool, source, 1)
    assert_bits(ones, np.where(got == 1, PATTERN[source].type(one), PATTERN[source].type(0)), clause="BRIDGE-BOOL-2")
    if inputs.size:
        assert_same(impl.dtype.cast_bits(source, DType.bool, int(inputs[0])), int(got[0]), clause="BRIDGE-BITS-1")
