"""Tests of the formats: decoding, the one rounding, encoding, against numpy, ml_dtypes and exact fractions."""

from __future__ import annotations

import bisect
import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from fucina.reference.formats import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    Format,
    Kind,
    Number,
    decode,
    encode,
    float_of,
    pattern_of,
    round_to,
)

SMALL = [F16, BF16, E4M3, E5M2]


def value(number: Number) -> Fraction:
    size = Fraction(number.m << max(number.e, 0), 1 << max(-number.e, 0))
    return -size if number.sign else size


def neighbours(fmt: Format) -> list[int]:
    """f32 patterns at, and one step around, every value of a small format and every border between two."""
    finite = [value(decode(fmt, bits)) for bits in range(fmt.largest + 1)]
    beyond = 2 * finite[-1] - finite[-2]  # the step after the largest finite value
    borders = [(low + high) / 2 for low, high in zip(finite, [*finite[1:], beyond], strict=True)]
    patterns = set()
    for point in (*finite, *borders, beyond):
        bits = encode(F32, Number(Kind.FINITE, 0, point.numerator, 1 - point.denominator.bit_length()))
        patterns.update({bits, bits + 1, max(bits - 1, 0)})
    return sorted(patterns | {pattern | 1 << 31 for pattern in patterns})


@pytest.mark.parametrize("fmt", SMALL, ids=lambda fmt: fmt.name)
def test_every_code_survives_decoding_and_encoding(fmt: Format) -> None:
    for bits in range(1 << fmt.sign_shift + 1):
        number = decode(fmt, bits)
        if number.kind is not Kind.NAN:
            assert encode(fmt, number) == bits
        else:
            back = decode(fmt, encode(fmt, number))
            assert (back.kind, back.sign) == (Kind.NAN, number.sign)


@pytest.mark.parametrize(
    ("fmt", "peer"),
    [(F16, np.float16), (BF16, ml_dtypes.bfloat16), (E4M3, ml_dtypes.float8_e4m3fn), (E5M2, ml_dtypes.float8_e5m2)],
    ids=lambda x: getattr(x, "name", ""),
)
def test_decoding_agrees_with_the_peer(fmt: Format, peer: type[np.generic]) -> None:
    codes = np.arange(1 << fmt.sign_shift + 1, dtype=f"u{(fmt.sign_shift + 1) // 8}")
    with np.errstate(all="ignore"):
        expected = codes.view(peer).astype(np.float64)
    for bits, wanted in zip(codes.tolist(), expected.tolist(), strict=True):
        number = decode(fmt, bits)
        assert (number.kind is Kind.NAN) == (wanted != wanted)
        if number.kind is not Kind.NAN:
            assert encode(F64, number) == pattern_of(wanted)


@pytest.mark.parametrize("fmt", [E4M3, E5M2], ids=lambda fmt: fmt.name)
def test_encoding_finds_the_nearest_code_of_the_whole_table(fmt: Format) -> None:
    finite = [value(decode(fmt, bits)) for bits in range(fmt.largest + 1)]
    tie = finite[-1] + (finite[-1] - finite[-2]) / 2
    for pattern in neighbours(fmt):
        number = decode(F32, pattern)
        size = abs(value(number))
        if size > tie or (size == tie and fmt.largest & 1):
            expected = fmt.overflow
        else:
            above = bisect.bisect_left(finite, size)
            near = {max(above - 1, 0), min(above, fmt.largest)}
            expected = min(near, key=lambda bits: (abs(finite[bits] - size), bits & 1))
        assert encode(fmt, number) == expected | number.sign << fmt.sign_shift, hex(pattern)


@pytest.mark.parametrize(("fmt", "peer"), [(F16, np.float16), (BF16, ml_dtypes.bfloat16)], ids=["f16", "bf16"])
def test_encoding_agrees_with_the_peer_on_both_sides_of_every_border(fmt: Format, peer: type[np.generic]) -> None:
    patterns = neighbours(fmt) if fmt is F16 else neighbours(fmt)[::7]
    with np.errstate(all="ignore"):
        expected = np.array(patterns, np.uint32).view(np.float32).astype(peer).view(np.uint16).tolist()
    assert [encode(fmt, decode(F32, pattern)) for pattern in patterns] == expected


def test_f64_to_f32_agrees_with_the_hardware() -> None:
    dice = random.Random(1)
    patterns = [dice.getrandbits(64) for _ in range(2000)]
    for _ in range(4000):  # around the range of f32
        patterns.append(dice.getrandbits(1) << 63 | dice.randrange(860, 1160) << 52 | dice.getrandbits(52))
    patterns += [p & ~0x1FFFFFFF | 0x10000000 for p in patterns]  # ties
    with np.errstate(all="ignore"):
        expected = np.array(patterns, np.uint64).view(np.float64).astype(np.float32).view(np.uint32).tolist()
    for pattern, wanted in zip(patterns, expected, strict=True):
        number = decode(F64, pattern)
        if number.kind is not Kind.NAN:
            assert encode(F32, number) == wanted, hex(pattern)


def test_a_nan_keeps_sign_and_upper_payload_and_becomes_quiet() -> None:
    assert encode(F32, decode(F64, 0xFFF0000000000001)) == 0xFFC00000
    assert encode(F32, decode(F64, 0x7FF4DEADBEEF0000)) == 0x7FE6F56D | 0x00400000
    assert encode(F64, decode(F16, 0xFD00)) == 0xFFFC000000000000
    assert encode(BF16, decode(F32, 0x7F800001)) == 0x7FC0
    assert encode(E5M2, decode(F32, 0xFF812345)) == 0xFE
    assert {encode(F32, decode(E5M2, code)) for code in (0x7D, 0x7E, 0x7F)} == {0x7FC00000}


def test_saturation_leaves_nans_and_values_in_range_alone() -> None:
    assert encode(E4M3, decode(F32, 0x7F800000), saturate=True) == 0x7E
    assert encode(E5M2, decode(F32, 0xFF7FFFFF), saturate=True) == 0xFB
    assert encode(F16, decode(F32, 0x477FF000), saturate=True) == 0x7BFF
    assert encode(E4M3, decode(F32, 0x7FC00000), saturate=True) == 0x7F
    assert encode(E4M3, decode(F32, 0x43E80000), saturate=True) == 0x7E  # 464, a tie that stays below


def test_rounding_returns_one_form_of_each_value() -> None:
    dice = random.Random(2)
    for _ in range(5000):
        m, e = dice.getrandbits(dice.randrange(26, 90)), dice.randrange(-220, 60)
        rounded, exponent = round_to(F32, m, e)
        exact, got = Fraction(m) * Fraction(2) ** e, Fraction(rounded) * Fraction(2) ** exponent
        assert abs(got - exact) <= Fraction(2) ** exponent / 2
        if m.bit_length() > 24:
            assert rounded.bit_length() == 24 or exponent == F32.least


def test_patterns_of_python_floats_are_copies() -> None:
    for bits in (0, 1, 1 << 63, 0x3FF0000000000000, 0x7FF0000000000000, 0xFFF8000000000123, 0x000FFFFFFFFFFFFF):
        assert pattern_of(float_of(bits)) == bits
