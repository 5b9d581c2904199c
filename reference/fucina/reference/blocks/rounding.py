"""What the encoders share: four roundings, sums in order, scans, the guarded reciprocal.

The four roundings are never interchangeable; each encoder names the one it uses.  All arithmetic is on
:class:`~fucina.reference.softfloat.Soft32`, so every written operation is one f32 operation, rounded once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fucina.reference.formats import F16, F32, Kind, decode, encode
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "BEYOND",
    "FMAX",
    "INFINITY",
    "NAN_F16",
    "NAN_F32",
    "ONE",
    "ZERO",
    "away",
    "chop",
    "clamp",
    "even",
    "f16",
    "inverse",
    "peak",
    "products",
    "soft",
    "total",
    "value_range",
    "whole",
    "wide",
]

ZERO, ONE = Soft32.integer(0), Soft32.integer(1)
INFINITY = Soft32.from_bits(0x7F800000)
FMAX = Soft32.from_bits(F32.largest)
"""The largest finite f32."""

NAN_F32 = 0x7FC00000
NAN_F16 = 0xFE00
"""The bits of a scale field whose value is NaN: the sign of such a NaN differs between processors, so one is fixed."""

BEYOND = 1 << 130
"""Stands for an infinity among integers: above every f32."""

EVEN_BIAS = Soft32.integer(12582912)  # 1.5 * 2^23: adding it leaves no place for a fraction


def soft(patterns: Sequence[int]) -> list[Soft32]:
    """Return f32 patterns as numbers."""
    return [Soft32.from_bits(bits) for bits in patterns]


@cache
def whole(k: int) -> Soft32:
    """Return a small integer as a number: codes and levels, which return all the time."""
    return Soft32.integer(k)


def clamp(k: int, low: int, high: int) -> int:
    """Return the integer of ``[low, high]`` nearest to k."""
    return low if k < low else min(k, high)


def products(levels: Iterable[int], scale: Soft32) -> list[int]:
    """Return the f32 patterns of integer levels times a scale.

    Decoders look their elements up in such a list: a block has few distinct values.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    return [(whole(level) * scale).bits for level in levels]


# -- the four roundings


def even(v: Soft32) -> int:
    """Return EVEN(v): the nearest integer, ties to even.

    Beyond ``|v| <= 4194303`` the bit formula itself is the rule: an infinity gives -4194304 and a NaN 0.

    Notes
    -----
    Clauses: BLOCK-ROUND-1
    """
    if v.kind is Kind.FINITE:
        m, e = v.m, v.e
        k = m << e if e >= 0 else (m + (1 << (-e - 1)) - 1 + (m >> -e & 1)) >> -e
        if -4194304 < k < 4194304:
            return k
    return ((v + EVEN_BIAS).bits & 0x7FFFFF) - 0x400000


def away(v: Soft32) -> int:
    """Return AWAY(v): the nearest integer, ties away from zero, decided on the exact v; an infinity is beyond all.

    Notes
    -----
    Clauses: BLOCK-ROUND-1
    """
    return _integer(v, 1)


def chop(v: Soft32) -> int:
    """Return CHOP(v): the integer part, toward zero; of a NaN 0.

    Notes
    -----
    Clauses: BLOCK-ROUND-1
    """
    return _integer(v, 0)


def _integer(v: Soft32, halves: int) -> int:
    """Return the magnitude of v plus some halves, cut to an integer, with the sign of v."""
    if v.kind is not Kind.FINITE:
        k = 0 if v.kind is Kind.NAN else BEYOND
    else:
        k = abs(v.m) << v.e if v.e >= 0 else (abs(v.m) + (halves << (-v.e - 1))) >> -v.e
    return -k if v.sign else k


def f16(v: Soft32) -> int:
    """Return F16(v): the nearest f16 pattern, ties to even, subnormals kept, infinity from 65520 on, every sign kept.

    Notes
    -----
    Clauses: BLOCK-ROUND-1, BRIDGE-F16-2
    """
    return NAN_F16 if v.kind is Kind.NAN else encode(F16, v.number)


def wide(bits: int) -> Soft32:
    """Return WIDE(bits): the number of an f16 pattern, exactly.

    Notes
    -----
    Clauses: BLOCK-ROUND-1, BRIDGE-F16-1
    """
    return Soft32(decode(F16, bits))


# -- sums and scans


def total(terms: Iterable[Soft32]) -> Soft32:
    """Return SUM: from +0, left to right, one f32 addition each.

    Notes
    -----
    Clauses: BLOCK-ENCODE-1
    """
    found = ZERO
    for term in terms:
        found += term
    return found


def peak(x: Iterable[Soft32]) -> tuple[Soft32, Soft32]:
    """Return PEAK: the largest magnitude and the first element that has it; of zeros +0, +0.

    Notes
    -----
    Clauses: BLOCK-SCAN-1
    """
    top = found = ZERO
    for v in x:
        if abs(v) > top:
            top, found = abs(v), v
    return top, found


def value_range(x: Sequence[Soft32]) -> tuple[Soft32, Soft32]:
    """Return RANGE: the least and the greatest element; of equal zeros the first one's sign stays.

    Notes
    -----
    Clauses: BLOCK-SCAN-1
    """
    low = high = x[0]
    for v in x:
        if v < low:
            low = v
        if v > high:
            high = v
    return low, high


def inverse(d: Soft32) -> Soft32:
    """Return INV(d): 1/d, where +0 stands for a quotient that is not finite, of zeros and NaNs too.

    Notes
    -----
    Clauses: BLOCK-SCAN-1
    """
    quotient = ONE / d
    return quotient if quotient.is_finite else ZERO


def largest(values: Iterable[Soft32]) -> Soft32:
    """Return the largest of several values, +0 at least; a NaN is passed over.

    Notes
    -----
    Clauses: BLOCK-SCAN-1
    """
    found = ZERO
    for v in values:
        if v > found:
            found = v
    return found
