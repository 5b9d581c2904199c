"""Faults that people reported in public about libraries of this field, dtype part; each test carries the case's id."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_same, f32_bits, f64_bits, is_nan
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite.casts import FLOAT_DTYPES, INTEGERS, STORAGE, cast, exact_value, scalar_form
from fucina.spec import DType

BF16, F16, F32, F64 = DType.bf16, DType.f16, DType.f32, DType.f64
E4M3, E5M2 = DType.f8_e4m3, DType.f8_e5m2
INF, NAN = float("inf"), float("nan")


def _check(
    impl: Any, source: DType, into: DType, inputs: list[int], outputs: list[int], what: str, **modes: bool
) -> None:
    """Compare one by one, in a short array, and in one long enough for the vector path."""
    given, expected = np.array(inputs, PATTERN[source]), np.array(outputs, PATTERN[into])
    if not modes:
        single = [impl.dtype.cast_bits(source, into, b) for b in inputs]
        assert_bits(np.array(single, PATTERN[into]), expected, dtype=into, what=f"{what}, scalar")
    for times in (1, 100):
        got = cast(impl, source, into, np.tile(given, times), **modes)
        assert_bits(got, np.tile(expected, times), dtype=into, what=f"{what}, {got.size} elements")
    for b, answer in zip(inputs, outputs, strict=True):
        got = cast(impl, source, into, np.full(67, b, PATTERN[source]), **modes)
        assert_bits(got, np.full(67, answer, PATTERN[into]), dtype=into, what=f"{what}, 67 times {b:#x}")


def _f32(*values: float) -> list[int]:
    return [f32_bits(v) for v in values]


@clause("BRIDGE-BF16-2", "BRIDGE-ROUND-1")
def test_case_o_d01_bf16_rounds_to_nearest_even(impl: Any) -> None:
    _check(impl, F32, BF16, [0x3E89CCD5, 0x3F808000, 0x3F818000], [0x3E8A, 0x3F80, 0x3F82], "O-D01")


@clause("BRIDGE-BF16-3", "NUM-NAN-1")
def test_case_o_d02_a_signalling_nan_stays_a_nan(impl: Any) -> None:
    inputs = [0x7F800001, 0xFF800001, 0x7FFFFFFF, 0x7F80FFFF]
    _check(impl, F32, BF16, inputs, [0x7FC0, 0xFFC0, 0x7FFF, 0x7FC0], "O-D02")
    codes = np.arange(0x7F800001, 0x80000000, 251, dtype=np.uint32)
    for sign in (0, 1 << 31):
        got = cast(impl, F32, BF16, codes | np.uint32(sign))
        assert is_nan(got, BF16).all(), "O-D02: a NaN became a number"
        assert ((got >> 15) == (sign >> 31)).all(), "O-D02: the sign of a NaN changed"


@clause("BRIDGE-BF16-2")
def test_case_o_d03_the_largest_f32_overflows_bf16(impl: Any) -> None:
    inputs, outputs = [0x7F7FFFFF, 0x7F7F7FFF, 0x7F7F8000], [0x7F80, 0x7F7F, 0x7F80]
    _check(impl, F32, BF16, inputs, outputs, "O-D03")
    _check(impl, F32, BF16, [b | 1 << 31 for b in inputs], [b | 0x8000 for b in outputs], "O-D03, negative")


D04 = ([448.0, 464.0, float(np.nextafter(np.float32(464), np.float32(INF))), 465.0, 480.0, 1000.0, -1000.0, INF, -INF],)


@clause("BRIDGE-E4M3-2", "BRIDGE-SAT-1")
def test_case_o_d04_where_e4m3_overflows(impl: Any) -> None:
    inputs = _f32(*D04[0])
    _check(impl, F32, E4M3, inputs, [0x7E, 0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0xFF, 0x7F, 0xFF], "O-D04")
    clamped = [0x7E] * 6 + [0xFE, 0x7E, 0xFE]
    _check(impl, F32, E4M3, inputs, clamped, "O-D04, saturate", saturate=True)
    _check(impl, F32, E4M3, [0x7FC00000, 0xFFC00000], [0x7F, 0xFF], "O-D04, NaN, saturate", saturate=True)


@clause("BRIDGE-E4M3-2", "BRIDGE-ROUND-1")
def test_case_o_d05_e4m3_is_never_off_by_one(impl: Any) -> None:
    _check(impl, F32, E4M3, [0x3FE815A5, *_f32(17.0, 19.0)], [0x3F, 0x58, 0x5A], "O-D05")
    # every finite f16: the nearest code by brute force over the decode table
    codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    codes = codes[(codes & 0x7C00) != 0x7C00]
    assert codes.size == 63_488
    values = np.abs(cast(impl, F16, F64, codes).view(np.float64))
    table = np.array([float(exact_value(E4M3, b)) for b in range(0x7F)] + [480.0])
    above = np.searchsorted(table, values).clip(1, 0x7F)
    low, high = table[above - 1], table[above]
    up = (values - low > high - values) | ((values - low == high - values) & (above % 2 == 0))
    nearest = np.where(values > 480, 0x7F, np.where(up, above, above - 1)).astype(np.uint8)
    expected = nearest | ((codes >> 8) & 0x80).astype(np.uint8)
    assert_bits(cast(impl, F16, E4M3, codes), expected, dtype=E4M3, what="O-D05, every finite f16")


@clause("BRIDGE-E5M2-2")
def test_case_o_d06_where_e5m2_overflows(impl: Any) -> None:
    below = float(np.nextafter(np.float32(61440), np.float32(0)))
    inputs = _f32(57344.0, 58000.0, below, 61440.0, 65504.0, INF, -INF)
    _check(impl, F32, E5M2, inputs, [0x7B, 0x7B, 0x7B, 0x7C, 0x7C, 0x7C, 0xFC], "O-D06")


@clause("BRIDGE-F16-2", "BRIDGE-DECODE-1")
def test_case_o_d07_f16_subnormals(impl: Any) -> None:
    inputs = _f32(2.0**-15, 2.0**-20, 2.0**-24, -(2.0**-24), 1023 * 2.0**-24)
    _check(impl, F32, F16, inputs, [0x0200, 0x0010, 0x0001, 0x8001, 0x03FF], "O-D07")
    codes = np.arange(1, 1024, dtype=np.uint16)
    for sign in (0, 0x8000):
        signed = codes | np.uint16(sign)
        back = cast(impl, F32, F16, cast(impl, F16, F32, signed))
        assert_bits(back, signed, dtype=F16, what="O-D07, every subnormal and back")


@clause("BRIDGE-INT-3")
@pytest.mark.parametrize("source", FLOAT_DTYPES, ids=lambda d: d.name)
def test_case_o_d08_infinities_and_nan_to_integers(impl: Any, source: DType) -> None:
    exponent = {F16: 0x7C00, BF16: 0x7F80, F32: 0x7F800000, F64: 0x7FF << 52, E5M2: 0x7C, E4M3: None}[source]
    sign = 1 << (8 * PATTERN[source].itemsize - 1)
    nan = sign - 1  # all ones below the sign is a NaN in every format
    for into in INTEGERS:
        width = 8 * PATTERN[into].itemsize
        signed = into.name.startswith("i")
        top, bottom = ((1 << (width - 1)) - 1, 1 << (width - 1)) if signed else ((1 << width) - 1, 0)
        inputs, outputs = [nan, nan | sign], [0, 0]
        if exponent is not None:
            inputs, outputs = [*inputs, exponent, exponent | sign], [*outputs, top, bottom]
        _check(impl, source, into, inputs, outputs, f"O-D08, {source.name} -> {into.name}")


@clause("BRIDGE-INT-3")
def test_case_o_d09_negative_floats_to_unsigned(impl: Any) -> None:
    values, outputs = [-2.0, -128.0, -0.9, 255.9, 256.0, 300.0], [0, 0, 0, 255, 255, 255]
    _check(impl, F32, DType.u8, _f32(*values), outputs, "O-D09")
    for value, answer in zip(values, outputs, strict=True):
        for n in (1, 1000):
            got = impl.dtype.cast_array(F32, DType.u8, np.full(n, value, np.float32))
            assert_bits(got, np.full(n, answer, np.uint8), what=f"O-D09, {n} times {value}")


@clause("BRIDGE-INT-3")
def test_case_o_d10_saturation_is_not_off_by_one(impl: Any) -> None:
    inputs = _f32(2147483520.0, 2147483648.0, 6167483520.0, -2147483648.0, -2147483904.0)
    outputs = [2147483520, 2147483647, 2147483647, 1 << 31, 1 << 31]
    _check(impl, F32, DType.i32, inputs, outputs, "O-D10")
    _check(impl, F32, DType.i64, _f32(9223372036854775808.0), [9223372036854775807], "O-D10, i64")


@clause("BRIDGE-BOOL-1", "BRIDGE-TRUTHY-1")
@pytest.mark.parametrize("source", FLOAT_DTYPES, ids=lambda d: d.name)
def test_case_o_d11_truth_is_not_truncation(impl: Any, source: DType) -> None:
    wanted = [(0.5, 1), (2.5, 1), (0.0, 0), (-0.0, 0), (-1.0, 1), (NAN, 1)]
    inputs = [impl.dtype.cast_bits(F64, source, f64_bits(v)) for v, _ in wanted]
    _check(impl, source, DType.bool, [*inputs, 1], [*(truth for _, truth in wanted), 1], f"O-D11, {source.name}")
    if PATTERN[source].itemsize <= 2:  # every code: both functions, one answer
        codes = np.arange(1 << 8 * PATTERN[source].itemsize, dtype=np.uint32).astype(PATTERN[source])
        bulk = cast(impl, source, DType.bool, codes)
        step = 1 if PATTERN[source].itemsize == 1 else 13
        for b in codes[::step].tolist():
            value = scalar_form(source, b)
            assert_same(impl.dtype.is_truthy(source, value), bool(bulk[b]), what=f"O-D11, {source.name} {b:#x}")
            assert_same(impl.dtype.cast_scalar(source, DType.bool, value), bool(bulk[b]), what=f"O-D11, {b:#x}")


@clause("BRIDGE-BOOL-1", "BRIDGE-TRUTHY-1")
def test_case_o_d12_negative_zero_is_false(impl: Any) -> None:
    for source, code in ((BF16, 0x8000), (E4M3, 0x80), (E5M2, 0x80), (F16, 0x8000)):
        _check(impl, source, DType.bool, [code], [0], f"O-D12, {source.name}")
        value = scalar_form(source, code)
        assert_same(impl.dtype.is_truthy(source, value), False, what=f"O-D12, {source.name}")
        got = impl.dtype.convert(np.full(3, code, PATTERN[source]).view(STORAGE[source]), DType.bool, source=source)
        assert not got.any(), f"O-D12, {source.name} by convert"


@clause("BRIDGE-F16-1", "BRIDGE-E4M3-1", "BRIDGE-E4M3-3", "BRIDGE-E5M2-1", "BRIDGE-E5M2-3")
def test_case_o_d13_the_top_exponent(impl: Any) -> None:
    _check(impl, F16, F32, [0x7C00, 0xFC00, 0x7E00], [0x7F800000, 0xFF800000, 0x7FC00000], "O-D13, f16")
    _check(impl, E4M3, F32, [0x7F, 0xFF], [0x7FC00000, 0xFFC00000], "O-D13, e4m3")
    outputs = [0x7F800000, 0xFF800000, *[0x7FC00000] * 3]
    _check(impl, E5M2, F32, [0x7C, 0xFC, 0x7D, 0x7E, 0x7F], outputs, "O-D13, e5m2")


@clause("BRIDGE-FLOAT-1", "BRIDGE-SINGLE-1", "BRIDGE-SCALAR-2")
def test_case_o_d14_the_order_of_roundings_is_stated(impl: Any) -> None:
    for into, value, twice, once in (
        (F16, 1 + 2.0**-11 + 2.0**-40, 0x3C00, 0x3C01),
        (BF16, 1 + 2.0**-8 + 2.0**-40, 0x3F80, 0x3F81),
        (E5M2, 1 + 2.0**-3 + 2.0**-40, 0x3C, 0x3D),
    ):
        _check(impl, F64, into, [f64_bits(value)], [twice], f"O-D14, {into.name}")
        _check(impl, F64, into, [f64_bits(value)], [once], f"O-D14, {into.name}, once", single_rounding=True)
    got = impl.dtype.from_f64(F16, 1 + 2.0**-11 + 2.0**-40)
    assert_same(got, 1 + 2.0**-10, what="O-D14, from_f64 to f16 rounds once")


@clause("NUM-NAN-1", "BRIDGE-F16-3", "BRIDGE-BF16-3")
def test_case_o_d15_a_payload_in_the_cut_bits(impl: Any) -> None:
    inputs = [0x7FF0000000080001, 0xFFF0000000000001]
    for into, outputs in (
        (F32, [0x7FC00000, 0xFFC00000]),
        (F16, [0x7E00, 0xFE00]),
        (BF16, [0x7FC0, 0xFFC0]),
        (E4M3, [0x7F, 0xFF]),
        (E5M2, [0x7E, 0xFE]),
    ):
        _check(impl, F64, into, inputs, outputs, f"O-D15, {into.name}")


@clause("BRIDGE-F16-2")
def test_case_o_d16_65520_is_infinite_in_f16(impl: Any) -> None:
    _check(
        impl,
        F32,
        F16,
        [f32_bits(65504.0), 0x477FEFFF, 0x477FF000, f32_bits(65536.0)],
        [0x7BFF, 0x7BFF, 0x7C00, 0x7C00],
        "O-D16",
    )


@clause("NUM-ENV-2", "BRIDGE-E4M3-2")
def test_case_o_d17_e4m3_under_every_rounding_mode(impl: Any) -> None:
    fpenv.needed()
    inputs = np.tile(np.array([1000.0, 464.0, 465.0, -1000.0], np.float32), 20)
    expected = np.tile(np.array([0x7F, 0x7E, 0x7F, 0xFF], np.uint8), 20)
    for mode in fpenv.MODES:
        try:
            with fpenv.environment(mode):
                got, one = impl.dtype.cast_array(F32, E4M3, inputs), impl.dtype.f32_to_f8e4m3(1000.0)
        except fpenv.refusals(impl):
            assert mode != "nearest"
            continue
        assert_bits(got, expected, dtype=E4M3, what=f"O-D17, {mode}")
        assert_same(one, 0x7F, what=f"O-D17, {mode}, scalar")


@clause("BRIDGE-E4M3-2", "BRIDGE-SAT-1")
def test_case_o_d18_e4m3_is_defined_by_itself(impl: Any) -> None:
    inputs = [*_f32(465.0, 1000.0, -1000.0, INF, -INF), 0x7FC00000]
    _check(impl, F32, E4M3, inputs, [0x7F, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F], "O-D18")
    _check(impl, F32, E4M3, inputs, [0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7F], "O-D18, saturate", saturate=True)
