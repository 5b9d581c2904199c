"""``cast_array`` over all 169 pairs: the frozen casts, exact NaN bits, and the three forms of one conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_bits, is_nan
from fucina.conformance.suite.casts import (
    FLOAT_DTYPES,
    INTEGERS,
    SCALARS,
    STORAGE,
    bits_of,
    cast,
    expected,
    nan_bits,
    scalar_form,
)
from fucina.spec import DType

PAIRS = [(source, into) for source in SCALARS for into in SCALARS]
PAIR_IDS = [f"{source.name}-{into.name}" for source, into in PAIRS]
FLOAT_PAIRS = [(s, t) for s in FLOAT_DTYPES for t in FLOAT_DTYPES]
FLOAT_PAIR_IDS = [f"{source.name}-{into.name}" for source, into in FLOAT_PAIRS]


@clause(
    "BRIDGE-SCALAR-3",
    "BRIDGE-ARRAY-1",
    "BRIDGE-INT-1",
    "BRIDGE-INT-2",
    "BRIDGE-INT-3",
    "BRIDGE-BOOL-1",
    "BRIDGE-BOOL-2",
    "BRIDGE-FLOAT-1",
    "BRIDGE-DECODE-1",
    "BRIDGE-ROUND-1",
    "RNG-CONTRACT-1",
)
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=PAIR_IDS)
def test_frozen_casts(impl: Any, source: DType, into: DType) -> None:
    table = vectors.load("dtype_cast_scalar")
    inputs, frozen = table[f"in_{source.name}"], table[f"{source.name}__to__{into.name}"]
    got = cast(impl, source, into, inputs)
    rule = "any" if into in FLOAT_DTYPES else "exact"  # the file's rule; exact NaN bits below
    what = f"{source.name} -> {into.name}"
    assert_bits(got, frozen, nan=rule, dtype=into, what=what, clause="BRIDGE-SCALAR-3")
    # one by one, and in long arrays where every element meets several lanes
    scalar = np.array([impl.dtype.cast_bits(source, into, b) for b in inputs.tolist()], dtype=PATTERN[into])
    assert_bits(scalar, got, dtype=into, what=f"{what}, cast_bits against cast_array", clause="BRIDGE-ARRAY-1")
    long = np.resize(inputs, 3 * inputs.size + 7)
    assert_bits(
        cast(impl, source, into, long),
        np.resize(got, long.size),
        dtype=into,
        what=f"{what}, three times in a row",
        clause="BRIDGE-ARRAY-4",
    )


@clause("BRIDGE-SCALAR-3", "BRIDGE-ARRAY-1", "BRIDGE-SAT-1", "BRIDGE-SINGLE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=PAIR_IDS)
def test_exact_arithmetic_with_every_switch(impl: Any, source: DType, into: DType) -> None:
    inputs = vectors.load("dtype_cast_scalar")[f"in_{source.name}"]
    for saturate in (False, True):
        for single in (False, True):
            got = cast(impl, source, into, inputs, saturate=saturate, single_rounding=single)
            answers = [expected(source, into, b, saturate=saturate, single=single) for b in inputs.tolist()]
            assert_bits(
                got,
                np.array(answers, dtype=PATTERN[into]),
                dtype=into,
                what=f"{source.name} -> {into.name}, saturate={saturate}, single_rounding={single}",
                clause="BRIDGE-SINGLE-1" if single else "BRIDGE-SAT-1" if saturate else "BRIDGE-ARRAY-1",
            )


def _nans(dtype: DType) -> np.ndarray[Any, Any]:
    """Return NaNs of a format: every one of a small format, a spread of payloads of a large one."""
    if PATTERN[dtype].itemsize <= 2:
        every = np.arange(1 << 8 * PATTERN[dtype].itemsize, dtype=np.uint64).astype(PATTERN[dtype])
        return every[is_nan(every, dtype)]
    fraction = 23 if dtype is DType.f32 else 52
    top = (0xFF << 23) if dtype is DType.f32 else (0x7FF << 52)
    payloads = {1, 2, 3, (1 << fraction) - 1, 1 << (fraction - 1)}
    payloads |= {1 << k for k in range(fraction)} | {(1 << fraction) - (1 << k) for k in range(fraction)}
    payloads |= {(0x9E3779B97F4A7C15 * k) % (1 << fraction) | 1 for k in range(200)}
    codes = [top | p for p in sorted(payloads)]
    sign = 1 << (8 * PATTERN[dtype].itemsize - 1)
    return np.array([c | s for c in codes for s in (0, sign)], dtype=PATTERN[dtype])


@clause(
    "NUM-NAN-1",
    "BRIDGE-BF16-1",
    "BRIDGE-BF16-3",
    "BRIDGE-F16-3",
    "BRIDGE-E4M3-3",
    "BRIDGE-E5M2-3",
    "BRIDGE-BITS-1",
    "BRIDGE-SAT-1",
)
@pytest.mark.parametrize(("source", "into"), FLOAT_PAIRS, ids=FLOAT_PAIR_IDS)
def test_nan_bits(impl: Any, source: DType, into: DType) -> None:
    inputs = _nans(source)
    answers = np.array([nan_bits(source, into, b) for b in inputs.tolist()], dtype=PATTERN[into])
    assert is_nan(answers, into).all()
    for switches in ({}, {"saturate": True}, {"single_rounding": True}):
        got = cast(impl, source, into, inputs, **switches)
        assert_bits(got, answers, dtype=into, what=f"{source.name} -> {into.name} {switches}", clause="NUM-NAN-1")
    few = inputs[:: max(1, inputs.size // 64)].tolist()
    got = np.array([impl.dtype.cast_bits(source, into, b) for b in few], dtype=PATTERN[into])
    answers = np.array([nan_bits(source, into, b) for b in few], dtype=PATTERN[into])
    assert_bits(got, answers, dtype=into, what=f"cast_bits {source.name} -> {into.name}", clause="BRIDGE-BITS-1")


@clause("BRIDGE-INT-3", "BRIDGE-BOOL-1", "BRIDGE-TRUTHY-1")
@pytest.mark.parametrize("source", FLOAT_DTYPES, ids=lambda d: d.name)
def test_nan_to_integer_and_bool(impl: Any, source: DType) -> None:
    inputs = _nans(source)
    for into in INTEGERS:
        got = cast(impl, source, into, inputs)
        assert_bits(got, np.zeros_like(got), what=f"NaN -> {into.name}", clause="BRIDGE-INT-3")
    got = cast(impl, source, DType.bool, inputs)
    assert_bits(got, np.ones_like(got), what="NaN -> bool", clause="BRIDGE-BOOL-1")


@clause("BRIDGE-SCALAR-3", "BRIDGE-BITS-1", "BRIDGE-FLOAT-1", "DTYPE-STORAGE-1")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=PAIR_IDS)
def test_scalar_form_agrees_with_patterns(impl: Any, source: DType, into: DType) -> None:
    inputs = vectors.load("dtype_cast_scalar")[f"in_{source.name}"]
    both_floats = source in FLOAT_DTYPES and into in FLOAT_DTYPES
    got, also, through = [], [], []
    for pattern in inputs.tolist():
        value = scalar_form(source, pattern)
        got.append(bits_of(into, impl.dtype.cast_scalar(source, into, value)))
        if both_floats:
            also.append(bits_of(into, impl.dtype.cast_float(source, into, value)))
        through.append(impl.dtype.cast_bits(source, into, pattern))
    answers = np.array(through, dtype=PATTERN[into])
    # a Python float carries no signalling NaN, so NaNs of the IEEE formats are compared as a class here
    rule = "any" if into in FLOAT_DTYPES else "exact"
    what = f"{source.name} -> {into.name}"
    got_bits = np.array(got, dtype=PATTERN[into])
    assert_bits(got_bits, answers, nan=rule, dtype=into, what=f"cast_scalar {what}", clause="BRIDGE-SCALAR-3")
    if into in FLOAT_DTYPES and source in FLOAT_DTYPES:
        sign = PATTERN[into].type(1 << (8 * PATTERN[into].itemsize - 1))
        assert_bits(got_bits & sign, answers & sign, what=f"cast_scalar {what}, signs", clause="NUM-NAN-1")
        floats = np.array(also, dtype=PATTERN[into])
        assert_bits(floats, got_bits, nan="any", dtype=into, what=f"cast_float {what}", clause="BRIDGE-FLOAT-1")


@clause("BRIDGE-ARRAY-1", "BRIDGE-ARRAY-3")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=PAIR_IDS)
def test_shapes_and_out(impl: Any, source: DType, into: DType) -> None:
    inputs = np.resize(vectors.load("dtype_cast_scalar")[f"in_{source.name}"], 24).view(STORAGE[source])
    flat = impl.dtype.cast_array(source, into, inputs)
    patterns = flat.view(PATTERN[into])
    assert flat.flags.c_contiguous
    for shape in ((24,), (4, 6), (2, 3, 4), (1, 24), (24, 1, 1)):
        got = impl.dtype.cast_array(source, into, inputs.reshape(shape))
        assert got.shape == shape, f"BRIDGE-ARRAY-1: shape {got.shape} from {shape}"
        assert_bits(got.view(PATTERN[into]).reshape(-1), patterns, clause="BRIDGE-ARRAY-1")
        out = np.empty(shape[::-1], dtype=STORAGE[into])
        answer = impl.dtype.cast_array(source, into, inputs.reshape(shape), out=out)
        assert answer is out, "BRIDGE-ARRAY-1: an ndarray given as out is returned itself"
        assert_bits(out.reshape(-1).view(PATTERN[into]), patterns, what=f"out of {shape}", clause="BRIDGE-ARRAY-1")
    scalar = impl.dtype.cast_array(source, into, inputs[5].reshape(()))
    assert scalar.shape == (), "BRIDGE-ARRAY-1: no axes"
    assert_bits(scalar.reshape(1).view(PATTERN[into]), patterns[5:6], clause="BRIDGE-ARRAY-1")
    for shape in ((0,), (3, 0), (0, 2)):
        got = impl.dtype.cast_array(source, into, np.empty(shape, dtype=STORAGE[source]))
        assert got.shape == shape, f"BRIDGE-ARRAY-1: shape {got.shape} from {shape}"
        assert got.dtype == STORAGE[into]
    raw = np.zeros(16, np.uint8)
    misaligned = np.ndarray((0,), STORAGE[into], raw, (1 - raw.ctypes.data) % 8)
    assert impl.dtype.cast_array(source, into, inputs[:0], out=misaligned) is misaligned


@clause("BRIDGE-ARRAY-4", "BRIDGE-ARRAY-2", "BRIDGE-ARRAY-3")
@pytest.mark.parametrize(("source", "into"), PAIRS, ids=PAIR_IDS)
def test_length_alignment_and_neighbours(impl: Any, source: DType, into: DType) -> None:
    size = STORAGE[source].itemsize
    inputs = np.resize(vectors.load("dtype_cast_scalar")[f"in_{source.name}"], 96)
    whole = cast(impl, source, into, inputs)
    raw = np.zeros(inputs.nbytes + 64, dtype=np.uint8)
    for n, byte in (
        (0, 0),
        (1, 1),
        (3, 0),
        (7, 3),
        (8, 0),
        (9, 1),
        (15, 7),
        (17, 0),
        (31, 5),
        (33, 2),
        (65, 0),
        (96, 1),
    ):
        unaligned = raw[byte : byte + n * size].view(STORAGE[source])
        unaligned.view(PATTERN[source])[...] = inputs[:n]
        unaligned.setflags(write=False)
        around = np.full((n + 8) * STORAGE[into].itemsize, 0xAA, dtype=np.uint8)
        out = around.view(STORAGE[into])[3 : 3 + n]
        impl.dtype.cast_array(source, into, unaligned, out=out)
        what = f"{source.name} -> {into.name}, n={n}, {byte} bytes off"
        assert_bits(out.view(PATTERN[into]), whole[:n], dtype=into, what=what, clause="BRIDGE-ARRAY-4")
        out.view(np.uint8)[...] = 0xAA
        assert (around == 0xAA).all(), f"BRIDGE-ARRAY-3: {what}: a neighbour of out was written"
