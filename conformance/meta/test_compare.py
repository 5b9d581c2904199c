"""A helper that cannot fail is worthless: each assertion of ``compare`` must see a difference of one bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fucina.conformance.compare import (
    FLOATS,
    PATTERN,
    Mismatch,
    as_patterns,
    assert_bits,
    assert_raises,
    assert_same,
    f32,
    f32_bits,
    f64,
    f64_bits,
    is_nan,
    sentinel,
    value_of,
)
from fucina.spec import DType
from fucina.spec.errors import InvalidBounds, Overflow

FORMATS = list(FLOATS)


def _ones(dtype: DType, n: int = 9) -> Any:
    bits = {DType.f16: 0x3C00, DType.bf16: 0x3F80, DType.f32: 0x3F800000, DType.f64: 0x3FF << 52}
    return np.full(n, bits.get(dtype, 0x38), PATTERN[dtype])


def test_equal_patterns_pass() -> None:
    for dtype in PATTERN:
        codes = np.arange(40, dtype=PATTERN[dtype])
        assert_bits(codes, codes.copy(), dtype=dtype)
        assert_bits(codes, codes.copy())
    assert_bits(np.empty(0, np.float32), np.empty(0, np.uint32))
    assert_bits(np.array([[1.5]]), np.array([[1.5]]))
    assert_bits(np.array([np.nan]), np.array([np.nan]))


@pytest.mark.parametrize("dtype", list(PATTERN), ids=lambda d: d.name)
def test_every_single_bit_is_seen(dtype: DType) -> None:
    expected = np.zeros(7, PATTERN[dtype])
    for bit in range(8 * PATTERN[dtype].itemsize):
        got = expected.copy()
        got[5] = 1 << bit
        for rule in ("exact", "any"):
            with pytest.raises(Mismatch) as caught:
                assert_bits(got, expected, nan=rule, dtype=dtype)
            assert (caught.value.index, caught.value.got, caught.value.expected) == (5, 1 << bit, 0)
            assert caught.value.count == 1


def test_the_first_bad_index_the_count_and_the_worst() -> None:
    expected = _ones(DType.f32, 20)
    got = expected.copy()
    got[[3, 11, 12]] += np.array([1, 40, 2], np.uint32)
    with pytest.raises(Mismatch, match=r"RNG-X-1: thing: index 3: got 0x3f800001") as caught:
        assert_bits(got, expected, dtype=DType.f32, what="thing", clause="RNG-X-1")
    error = caught.value
    assert (error.index, error.count, error.worst) == (3, 3, 40)
    assert "3 of 20 differ" in str(error)
    assert "(1.0)" in str(error)


def test_long_arrays_are_judged_like_short_ones() -> None:
    for dtype in (DType.f32, DType.i32, DType.u8):
        expected = np.zeros(10_000, PATTERN[dtype])
        got = expected.copy()
        got[:] = 1 << (8 * PATTERN[dtype].itemsize - 1)
        got[4_321] = 7
        with pytest.raises(Mismatch) as long:
            assert_bits(got, expected, dtype=dtype)
        with pytest.raises(Mismatch) as short:
            assert_bits(got[:100], expected[:100], dtype=dtype)
        if dtype is DType.f32:  # -0 is the neighbour of +0; 7 steps is the worst
            assert (long.value.worst, short.value.worst) == (7, 1)
        else:
            assert long.value.worst == short.value.worst > 100


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_nan_classes(dtype: DType) -> None:
    width = 8 * PATTERN[dtype].itemsize
    sign = 1 << (width - 1)
    quiet, negative = np.array([sign - 1], PATTERN[dtype]), np.array([2 * sign - 1], PATTERN[dtype])
    assert is_nan(quiet, dtype)[0]
    with pytest.raises(Mismatch):
        assert_bits(quiet, negative, dtype=dtype)
    assert_bits(quiet, negative, nan="any", dtype=dtype)
    for number in (0, sign, sign - 1 - (1 << FLOATS[dtype][1])):
        other = np.array([number], PATTERN[dtype])
        for a, b in ((quiet, other), (other, quiet)):
            with pytest.raises(Mismatch) as caught:
                assert_bits(a, b, nan="any", dtype=dtype)
            assert caught.value.worst == math.inf


def test_any_nan_does_not_hide_other_differences() -> None:
    got, expected = np.array([np.nan, 1.0, 2.0]), np.array([-np.nan, 1.0, 2.5])
    with pytest.raises(Mismatch) as caught:
        assert_bits(got, expected, nan="any")
    assert (caught.value.index, caught.value.count) == (2, 1)


def test_any_nan_needs_a_format() -> None:
    with pytest.raises(ValueError, match="float format"):
        assert_bits(np.zeros(3, np.uint32), np.zeros(3, np.uint32), nan="any")


def test_infinities_are_no_nan() -> None:
    for dtype in FORMATS:
        exponent, fraction = FLOATS[dtype]
        code = np.array([((1 << exponent) - 1) << fraction], PATTERN[dtype])
        assert not is_nan(code, dtype)[0], f"{dtype!r}: the first code of the top exponent is no NaN"
    assert not is_nan(np.array([0x7E], np.uint8), DType.f8_e4m3)[0]
    assert not is_nan(np.array([0xFF], np.uint8), DType.u8)[0]


def test_wrong_length_shape_width_and_kind() -> None:
    four = np.zeros(4, np.float32)
    for got in (four[:3], four.reshape(2, 2), four.astype(np.float64), four.astype(np.uint8), [0.0] * 4, None):
        with pytest.raises(Mismatch):
            assert_bits(got, four)
    with pytest.raises(Mismatch):
        assert_bits(four, np.zeros(4, np.uint32), dtype=DType.f64)
    with pytest.raises(Mismatch):
        as_patterns(np.zeros(3, ">f4" if np.little_endian else "<f4"))
    with pytest.raises(Mismatch):
        as_patterns(np.zeros(3, "S4"))


def test_zeros_have_signs() -> None:
    with pytest.raises(Mismatch) as caught:
        assert_bits(np.array([-0.0]), np.array([0.0]))
    assert caught.value.worst == 1
    with pytest.raises(Mismatch):
        assert_same(-0.0, 0.0)


def test_indices_of_tables() -> None:
    got = np.zeros((3, 4), np.float32)
    got[2, 1] = 1
    with pytest.raises(Mismatch, match=r"index \(2, 1\)") as caught:
        assert_bits(got, np.zeros((3, 4), np.float32))
    assert caught.value.index == (2, 1)


def test_same_looks_at_the_type() -> None:
    assert_same(1, 1)
    assert_same(1.5, 1.5)
    assert_same(math.nan, math.nan)
    for got, expected in (
        (1, True),
        (True, 1),
        (1.0, 1),
        (np.float32(1), 1.0),
        (1, 2),
        ("a", "b"),
        (0.1, 0.1 + 2**-56),
    ):
        with pytest.raises(Mismatch):
            assert_same(got, expected)


def test_values_in_messages() -> None:
    assert value_of(0x7E, DType.f8_e4m3) == "448.0"
    assert value_of(0xFF, DType.f8_e4m3) == "-nan"
    assert value_of(0x7C, DType.f8_e5m2) == "inf"
    assert value_of(0x80000001, DType.f32) == repr(-(2.0**-149))
    assert value_of(0xFF, DType.i8) == "-1"
    assert value_of(0xFF, None) == "255"
    assert (f32(0x3F800001), f32_bits(1e39), f64(0x7FF << 52), f64_bits(-0.0)) == (
        1 + 2.0**-23,
        0x7F800000,
        math.inf,
        1 << 63,
    )


def _fails(error: Exception) -> Any:
    def call() -> None:
        raise error

    return call


def test_raises_wants_the_kind() -> None:
    error = InvalidBounds("got p=2", clause="RNG-A-1")
    assert assert_raises(InvalidBounds, "RNG-A-1", _fails(error), shows=("p", 2)) is error
    assert assert_raises((Overflow, InvalidBounds), ("RNG-B-1", "RNG-A-1"), _fails(error)) is error
    assert assert_raises(ValueError, None, _fails(error)) is error
    with pytest.raises(AssertionError, match="expected Overflow, got InvalidBounds"):
        assert_raises(Overflow, "RNG-A-1", _fails(error))
    with pytest.raises(AssertionError, match="returned 7"):
        assert_raises(Overflow, "RNG-A-1", lambda: 7)


def test_raises_wants_the_clause_and_the_value() -> None:
    error = InvalidBounds("got p=2", clause="RNG-A-1")
    for clause, shows in (("RNG-B-1", ()), ("RNG-A", ()), ("RNG-A-1", (3,)), (("RNG-B-1", "RNG-C-1"), ())):
        with pytest.raises(AssertionError, match="must"):
            assert_raises(InvalidBounds, clause, _fails(error), shows=shows)
    with pytest.raises(AssertionError, match="must start"):  # the text alone is not enough: the attribute counts too
        assert_raises(ValueError, "RNG-A-1", _fails(ValueError("RNG-A-1: text")))


def test_raises_wants_the_output_untouched() -> None:
    out = sentinel(4, np.float32)
    assert (out.view(np.uint8) == 0xAA).all()
    assert out.dtype == np.float32

    def writes() -> None:
        out[3] = 0
        raise Overflow("too late", clause="RNG-A-1")

    with pytest.raises(AssertionError, match="was written"):
        assert_raises(Overflow, "RNG-A-1", writes, out=out)
    assert_raises(Overflow, "RNG-A-1", _fails(Overflow("in time", clause="RNG-A-1")), out=out)


def test_raises_lets_interrupts_through() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assert_raises(ValueError, None, interrupt)
