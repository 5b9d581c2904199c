"""One element: the named bridges, their domains, and what an element may be given as."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises, assert_same, f32, f64, is_nan
from fucina.conformance.suite.casts import (
    FLOAT_DTYPES,
    INTEGERS,
    SCALARS,
    bits_of,
    exact_value,
    expected,
    round_to,
    scalar_form,
    two_roundings,
)
from fucina.conformance.suite.hostile import Posing
from fucina.spec import DType
from fucina.spec.errors import DTypeMismatch, InvalidDType, InvalidInteger, Overflow

BLOCKS = tuple(dtype for dtype in DType if dtype not in SCALARS)
NO_FLOATS = (DType.bool, *INTEGERS, *BLOCKS)
# elements that travel as ints
RAW = tuple(dtype for dtype in SCALARS if dtype not in (DType.bool, DType.f16, DType.f32, DType.f64))
NAMED = {
    DType.bf16: ("bf16_to_f32", "f32_to_bf16"),
    DType.f8_e4m3: ("f8e4m3_to_f32", "f32_to_f8e4m3"),
    DType.f8_e5m2: ("f8e5m2_to_f32", "f32_to_f8e5m2"),
}


def _name(dtype: DType) -> str:
    return dtype.name


@clause("BRIDGE-SCALAR-1", "BRIDGE-BF16-1", "BRIDGE-E4M3-1", "BRIDGE-E5M2-1", "BRIDGE-F16-1", "BRIDGE-DECODE-1")
@pytest.mark.parametrize("dtype", FLOAT_DTYPES, ids=_name)
def test_to_f32_and_to_f64(impl: Any, dtype: DType) -> None:
    inputs = vectors.load("dtype_cast_scalar")[f"in_{dtype.name}"]
    for function, wide in ((impl.dtype.to_f32, DType.f32), (impl.dtype.to_f64, DType.f64)):
        got = [bits_of(wide, function(dtype, scalar_form(dtype, b))) for b in inputs.tolist()]
        answers = np.array([two_roundings(dtype, wide, b) for b in inputs.tolist()], dtype=PATTERN[wide])
        what = f"to_{wide.name}({dtype.name})"
        assert_bits(np.array(got, PATTERN[wide]), answers, nan="any", dtype=wide, what=what, clause="BRIDGE-SCALAR-1")


@clause("BRIDGE-SCALAR-1", "BRIDGE-BF16-2", "BRIDGE-E4M3-2", "BRIDGE-E5M2-2", "BRIDGE-F16-2", "BRIDGE-ROUND-1")
@pytest.mark.parametrize("dtype", FLOAT_DTYPES, ids=_name)
def test_from_f32(impl: Any, dtype: DType) -> None:
    inputs = vectors.load("dtype_cast_scalar")["in_f32"]
    got = [bits_of(dtype, impl.dtype.from_f32(dtype, f32(b))) for b in inputs.tolist()]
    answers = np.array([two_roundings(DType.f32, dtype, b) for b in inputs.tolist()], dtype=PATTERN[dtype])
    what = f"from_f32({dtype.name})"
    assert_bits(np.array(got, PATTERN[dtype]), answers, nan="any", dtype=dtype, what=what, clause="BRIDGE-SCALAR-1")


@clause("BRIDGE-SCALAR-2", "BRIDGE-FLOAT-1")
@pytest.mark.parametrize("dtype", [DType.f16, DType.bf16, DType.f8_e4m3, DType.f8_e5m2], ids=_name)
def test_from_f64_and_cast_float_on_frozen_values(impl: Any, dtype: DType) -> None:
    table = vectors.load("dtype_f16_f64")
    inputs = table["f64_input" if dtype is DType.f16 else "f64_input2"][::5]
    direct = [bits_of(dtype, impl.dtype.from_f64(dtype, f64(b))) for b in inputs.tolist()]
    frozen = table[f"f64_to_{dtype.name}_fromF64"][::5]
    assert_bits(np.array(direct, PATTERN[dtype]), frozen, nan="any", dtype=dtype, clause="BRIDGE-SCALAR-2")
    twice = [bits_of(dtype, impl.dtype.cast_float(DType.f64, dtype, f64(b))) for b in inputs.tolist()]
    frozen = table[f"f64_to_{dtype.name}_castFloat"][::5]
    assert_bits(np.array(twice, PATTERN[dtype]), frozen, nan="any", dtype=dtype, clause="BRIDGE-FLOAT-1")


@clause("BRIDGE-SCALAR-2", "BRIDGE-SCALAR-1")
def test_from_f64_to_the_wide_formats(impl: Any) -> None:
    inputs = vectors.load("dtype_f16_f64")["f64_input"][::9]
    frozen = vectors.load("dtype_f16_f64")["f64_to_f32"][::9]
    got = [bits_of(DType.f32, impl.dtype.from_f64(DType.f32, f64(b))) for b in inputs.tolist()]
    assert_bits(np.array(got, np.uint32), frozen, nan="any", dtype=DType.f32, clause="BRIDGE-SCALAR-2")
    same = [bits_of(DType.f64, impl.dtype.from_f64(DType.f64, f64(b))) for b in inputs.tolist()]
    assert_bits(np.array(same, np.uint64), inputs, nan="any", dtype=DType.f64, clause="BRIDGE-SCALAR-2")


@clause("BRIDGE-SCALAR-1", "BRIDGE-BF16-1", "BRIDGE-BF16-2", "BRIDGE-E4M3-1", "BRIDGE-E4M3-2", "BRIDGE-E5M2-1")
@pytest.mark.parametrize("dtype", NAMED, ids=_name)
def test_named_bridges(impl: Any, dtype: DType) -> None:
    decode, encode = (getattr(impl.dtype, name) for name in NAMED[dtype])
    inputs = vectors.load("dtype_cast_scalar")
    for b in inputs[f"in_{dtype.name}"].tolist():
        got, general = decode(b), impl.dtype.to_f32(dtype, b)
        if general == general:
            assert_same(got, general, what=f"{NAMED[dtype][0]}({b:#x})", clause="BRIDGE-SCALAR-1")
        else:
            assert got != got, f"BRIDGE-SCALAR-1: {NAMED[dtype][0]}({b:#x}) is {got!r}"
            assert np.signbit(got) == bool(b >> (8 * PATTERN[dtype].itemsize - 1)), f"NUM-NAN-1: sign of {b:#x}"
    for b in inputs["in_f32"].tolist():
        got = encode(f32(b))
        assert_same(
            got, impl.dtype.from_f32(dtype, f32(b)), what=f"{NAMED[dtype][1]} of {b:#x}", clause="BRIDGE-SCALAR-1"
        )


@clause("BRIDGE-SCALAR-1", "BRIDGE-FLOAT-1", "ERR-TYPE-1", "ERR-MSG-1")
@pytest.mark.parametrize("dtype", NO_FLOATS, ids=_name)
def test_bridges_are_for_floats(impl: Any, dtype: DType) -> None:
    part, shows = impl.dtype, (dtype.name,)
    for name in ("to_f32", "to_f64", "from_f32", "from_f64"):
        call = getattr(part, name)
        assert_raises(InvalidDType, "BRIDGE-SCALAR-1", partial(call, dtype, 1), shows=shows, what=name)
    assert_raises(InvalidDType, "BRIDGE-FLOAT-1", lambda: part.cast_float(dtype, DType.f32, 1), shows=shows)
    assert_raises(InvalidDType, "BRIDGE-FLOAT-1", lambda: part.cast_float(DType.f32, dtype, 1.0), shows=shows)


@clause("BRIDGE-SCALAR-3", "BRIDGE-BITS-1", "ERR-TYPE-1", "ERR-MSG-1")
@pytest.mark.parametrize("dtype", BLOCKS, ids=_name)
def test_blocks_are_not_cast(impl: Any, dtype: DType) -> None:
    part, shows = impl.dtype, (dtype.name,)
    array = np.zeros(4, dtype=np.float32)
    for name, id_ in (("cast_scalar", "BRIDGE-SCALAR-3"), ("cast_bits", "BRIDGE-BITS-1")):
        call = getattr(part, name)
        assert_raises(InvalidDType, id_, partial(call, dtype, DType.f32, 0), shows=shows, what=name)
        assert_raises(InvalidDType, id_, partial(call, DType.u8, dtype, 0), shows=shows, what=name)
    ids = ("BRIDGE-ARRAY-1", "BRIDGE-SCALAR-3", "BRIDGE-CONVERT-1")
    assert_raises(InvalidDType, ids, lambda: part.cast_array(DType.f32, dtype, array), shows=shows)
    assert_raises(InvalidDType, ids, lambda: part.cast_array(dtype, DType.f32, array), shows=shows)
    assert_raises(InvalidDType, ids, lambda: part.convert(array, dtype), shows=shows)


@clause("BRIDGE-SCALAR-3", "BRIDGE-BOOL-2", "BRIDGE-SCALAR-4", "DTYPE-STORAGE-1")
@pytest.mark.parametrize("into", SCALARS, ids=_name)
def test_bool_is_zero_or_one(impl: Any, into: DType) -> None:
    for value in (False, True, np.False_, np.True_):
        got = impl.dtype.cast_scalar(DType.bool, into, value)
        constant = impl.dtype.one(into) if value else impl.dtype.zero(into)
        assert_same(got, constant, what=f"{value!r} -> {into.name}", clause="BRIDGE-BOOL-2")


class _Index:
    """What may stand for an index, but is no number."""

    def __index__(self) -> int:
        return 1


@clause("BRIDGE-SCALAR-4", "ERR-MSG-1")
@pytest.mark.parametrize("source", SCALARS, ids=_name)
def test_values_that_are_no_elements(impl: Any, source: DType) -> None:
    wrong: list[Any] = [None, "1", b"1", 1j, [1], np.array([1, 2]), object()]
    if source is DType.bool:
        wrong += [0, 1, 1.0, np.int8(1)]
    elif source in (DType.f16, DType.f32, DType.f64):
        wrong += [True, np.True_, Fraction(1, 2)]
    else:
        wrong += [True, np.True_, 1.0, np.float32(1), Fraction(1), _Index(), np.array(1)]
    wrong += [np.timedelta64(1), np.timedelta64(1, "s"), Posing(int), Posing(float), Posing(bool)]
    calls = {
        "cast_scalar": lambda v: impl.dtype.cast_scalar(source, DType.f32, v),
        "is_truthy": lambda v: impl.dtype.is_truthy(source, v),
        "to_accumulator": lambda v: impl.dtype.to_accumulator(source, v),
    }
    if source in FLOAT_DTYPES:
        calls["to_f32"] = lambda v: impl.dtype.to_f32(source, v)
        calls["to_f64"] = lambda v: impl.dtype.to_f64(source, v)
        calls["cast_float"] = lambda v: impl.dtype.cast_float(source, DType.f64, v)
    for name, call in calls.items():
        for value in wrong:
            what = f"{name} of a {source.name}: {value!r}"
            assert_raises(DTypeMismatch, "BRIDGE-SCALAR-4", partial(call, value), what=what)


@clause("BRIDGE-SCALAR-4", "ERR-MSG-1")
@pytest.mark.parametrize(
    "source", [d for d in SCALARS if d not in (DType.bool, DType.f16, DType.f32, DType.f64)], ids=_name
)
def test_integers_out_of_range(impl: Any, source: DType) -> None:
    width = 8 * PATTERN[source].itemsize
    signed = source.name.startswith("i")
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    for value in (low - 1, high + 1, 1 << 80, -(1 << 80)):
        for name in ("cast_scalar", "is_truthy"):
            arguments = (source, DType.f32, value) if name == "cast_scalar" else (source, value)
            call = partial(getattr(impl.dtype, name), *arguments)
            assert_raises(Overflow, "BRIDGE-SCALAR-4", call, shows=(value,), what=f"{name} of {source.name} {value}")
    for value in (low, high):
        for kind in (int, np.int64 if signed else np.uint64):
            got = impl.dtype.cast_scalar(source, DType.i64, kind(value))
            pattern = value & ((1 << width) - 1)
            assert_same(got, _signed(expected(source, DType.i64, pattern)), what=f"{kind.__name__}({value})")


def _signed(pattern: int) -> int:
    return pattern - (1 << 64) if pattern >> 63 else pattern


@clause("BRIDGE-SCALAR-4", "NUM-PARAM-1")
@pytest.mark.parametrize("source", [DType.f16, DType.f32], ids=_name)
def test_floats_are_rounded_once_on_entry(impl: Any, source: DType) -> None:
    double = 1 + 2.0**-11 + 2.0**-40  # to f16: once gives 0x3c01, through f32 0x3c00
    small = (1e-8, 2.0**-25, 2.0**-25 * 1.001, 1e-50)
    for value in (0.1, -0.1, double, -double, 65519.999, 65520.0, 1e300, -1e300, *small):
        entered = float(exact_value(source, round_to(source, Fraction(value))))
        got = impl.dtype.cast_scalar(source, DType.f64, value)
        assert_same(got, entered, what=f"{value!r} as {source.name}", clause="BRIDGE-SCALAR-4")
    kinds: tuple[Any, ...] = (np.float16(0.1), np.float32(0.1), np.float64(0.1), np.int16(-7), np.uint8(7))
    tie = (1 << 60) + (1 << 36) + 1  # by way of f64, which drops the last bit
    for given in (*kinds, 7, 1 << 24 | 1, tie, 10**400):
        wide = float("inf") if isinstance(given, int) and given.bit_length() > 1024 else float(given)
        entered = float(exact_value(source, round_to(source, Fraction(wide) if np.isfinite(wide) else wide)))
        got = impl.dtype.cast_scalar(source, DType.f64, given)
        assert_same(got, entered, what=f"{given!r:.20} as {source.name}", clause="BRIDGE-SCALAR-4")


@clause("BRIDGE-SCALAR-4")
def test_f64_takes_every_real_number(impl: Any) -> None:
    for value, bits in ((np.float32(0.1), 0x3FB99999A0000000), (3, 0x4008 << 48), ((1 << 53) + 1, 0x4340 << 48)):
        got = impl.dtype.cast_scalar(DType.f64, DType.f64, value)
        assert_bits(np.array([got]), np.array([bits], np.uint64), what=f"{value!r}", clause="BRIDGE-SCALAR-4")
    assert impl.dtype.cast_scalar(DType.f64, DType.f64, -(10**400)) == float("-inf")


@clause("BRIDGE-BITS-1", "ERR-MSG-1")
@pytest.mark.parametrize("source", SCALARS, ids=_name)
def test_patterns_that_do_not_exist(impl: Any, source: DType) -> None:
    width = 1 if source is DType.bool else 8 * PATTERN[source].itemsize
    for bits in (-1, 1 << width, 1 << 100):
        call = partial(impl.dtype.cast_bits, source, DType.f32, bits)
        assert_raises(Overflow, "BRIDGE-BITS-1", call, what=f"{source.name}, bits={bits}")
    wrong: tuple[Any, ...] = (None, 1.0, "1", True, np.float32(1))
    for given in wrong:
        call = partial(impl.dtype.cast_bits, source, DType.f32, given)
        assert_raises(InvalidInteger, "BRIDGE-BITS-1", call, what=f"{source.name}, bits={given!r}")
    top = (1 << width) - 1
    for into in SCALARS:
        answer = expected(source, into, top)
        assert_same(impl.dtype.cast_bits(source, into, top), answer, what=f"{source.name} -> {into.name}")
        assert_same(impl.dtype.cast_bits(source, into, np.uint64(top)), answer, clause="BRIDGE-BITS-1")


@clause("BRIDGE-FLOAT-1", "BRIDGE-SCALAR-3", "NUM-NAN-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=_name)
def test_equal_dtypes_leave_the_bits(impl: Any, dtype: DType) -> None:
    inputs = vectors.load("dtype_cast_scalar")[f"in_{dtype.name}"]
    got = np.array([impl.dtype.cast_bits(dtype, dtype, b) for b in inputs.tolist()], dtype=PATTERN[dtype])
    assert_bits(got, inputs, dtype=dtype, what=f"{dtype.name} -> {dtype.name}", clause="BRIDGE-SCALAR-3")
    numbers = inputs[~is_nan(inputs, dtype)]
    for b in numbers.tolist():
        value = scalar_form(dtype, b)
        assert_same(impl.dtype.cast_scalar(dtype, dtype, value), value, what=f"{b:#x}", clause="BRIDGE-SCALAR-3")
