"""Bridges: from the pattern of one scalar dtype to the pattern of another.

There are 13 scalar dtypes and 169 pairs, but only four ways across: float to float, integer to float, float to integer,
integer to integer (a bool is an integer that can only be 0 or 1).  Each is a few lines over the formats of
:mod:`fucina.reference.formats`, and :func:`caster` picks the way for a pair.  Everything is a pattern here, an unsigned
Python int; the modules above turn scalars and arrays into patterns and back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from fucina.reference.formats import BF16, E4M3, E5M2, F16, F32, F64, Format, Kind, Number, decode, encode
from fucina.spec.types import GEOMETRY, DType

__all__ = ["FLOATS", "INTEGERS", "caster", "convert", "from_f64", "integer_range", "integer_value"]

Caster: TypeAlias = Callable[[int], int]

FLOATS = {
    DType.f16: F16,
    DType.bf16: BF16,
    DType.f32: F32,
    DType.f64: F64,
    DType.f8_e4m3: E4M3,
    DType.f8_e5m2: E5M2,
}
"""The formats of the six float dtypes."""

INTEGERS = frozenset({DType.u8, DType.u16, DType.i8, DType.i16, DType.i32, DType.i64})
"""The integer dtypes; bool is none of them."""

SATURATING = frozenset({F16, BF16, E4M3, E5M2})
"""The targets on which ``saturate`` acts."""


# -- float to float


def convert(source: Format, target: Format, bits: int, saturate: bool = False) -> int:
    """Return a pattern of one format in another, rounded once.

    Parameters
    ----------
    source, target : Format
        The two formats; if they are one, the pattern is left alone.
    bits : int
        A pattern of ``source``.
    saturate : bool
        Whether overflow gives the largest finite value.

    Returns
    -------
    int
        A pattern of ``target``.

    Notes
    -----
    Clauses: NUM-NAN-1, BRIDGE-BF16-1, BRIDGE-F16-3, BRIDGE-E4M3-3, BRIDGE-E5M2-3
    """
    if source is target:
        return bits
    if source is BF16 and target is F32:
        return bits << 16  # a bf16 is the upper half of an f32; alone among conversions this one quiets no NaN
    return encode(target, decode(source, bits), saturate)


def from_f64(target: Format, bits: int, saturate: bool = False) -> int:
    """Return an f64 pattern in a format: directly in f16 and f32, through f32 in bf16 and f8.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-2
    """
    if target in (BF16, E4M3, E5M2):
        return convert(F32, target, convert(F64, F32, bits), saturate)
    return convert(F64, target, bits, saturate)


def _float_to_float(source: Format, target: Format, saturate: bool, single: bool) -> Caster:
    """Return the bridge between two float formats.

    The contract leads through f32 unless the target is f64.  That f32 is exact for every source but f64, so only there
    a second rounding can happen, and only there ``single`` changes anything.

    Notes
    -----
    Clauses: BRIDGE-FLOAT-1, BRIDGE-SINGLE-1
    """
    if source is F64 and target is not F32 and not single:
        return lambda bits: convert(F32, target, convert(F64, F32, bits), saturate)
    return lambda bits: convert(source, target, bits, saturate)


# -- integers


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the largest value of an integer dtype, or of bool."""
    if dtype is DType.bool:
        return 0, 1
    width = 8 * GEOMETRY[dtype].byte_size
    if dtype in (DType.u8, DType.u16):
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def integer_value(dtype: DType, bits: int) -> int:
    """Return the value of a two's complement pattern of an integer dtype, or of bool."""
    return _signed(bits, *integer_range(dtype))


def _signed(bits: int, low: int, high: int) -> int:
    return bits if bits <= high else bits + 2 * low


def _integer_to_float(source: DType, target: Format, saturate: bool, single: bool) -> Caster:
    """Return the bridge from an integer dtype: through f64, or in one rounding.

    Notes
    -----
    Clauses: BRIDGE-INT-2, BRIDGE-SINGLE-1
    """
    low, high = integer_range(source)

    def cast(bits: int) -> int:
        value = _signed(bits, low, high)
        number = Number(Kind.FINITE, int(value < 0), abs(value))
        return encode(target, number, saturate) if single else from_f64(target, encode(F64, number), saturate)

    return cast


def _float_to_integer(source: Format, target: DType) -> Caster:
    """Return the bridge to an integer dtype: NaN is 0, the fraction is cut off, the ends of the range hold.

    Notes
    -----
    Clauses: BRIDGE-INT-3
    """
    low, high = integer_range(target)
    mask = high - low  # all ones, as wide as the integer

    def cast(bits: int) -> int:
        kind, sign, m, e = decode(source, bits)
        if kind is Kind.NAN:
            return 0
        if kind is Kind.INFINITE or m.bit_length() + e > 64:
            return (low if sign else high) & mask
        size = m << e if e >= 0 else m >> -e
        return max(low, min(high, -size if sign else size)) & mask

    return cast


def _integer_to_integer(source: DType, target: DType) -> Caster:
    """Return the bridge between integer dtypes: modulo 2 to the width of the target.

    Notes
    -----
    Clauses: BRIDGE-INT-1, BRIDGE-BOOL-2
    """
    low, high = integer_range(source)
    target_low, target_high = integer_range(target)
    mask = target_high - target_low  # all ones, as wide as the target
    return lambda bits: _signed(bits, low, high) & mask


# -- bool


def _to_bool(source: DType) -> Caster:
    """Return the bridge to bool: whether a number is not zero; a float is zero whatever its sign bit.

    Notes
    -----
    Clauses: BRIDGE-BOOL-1
    """
    if source in FLOATS:
        magnitude = (1 << FLOATS[source].sign_shift) - 1
        return lambda bits: int(bits & magnitude != 0)
    return lambda bits: int(bits != 0)


# -- any pair


@cache
def caster(source: DType, target: DType, saturate: bool = False, single_rounding: bool = False) -> Caster:
    """Return the function from a pattern of one scalar dtype to the pattern of another.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes.
    saturate, single_rounding : bool
        The two switches; without effect where their clauses say so.

    Returns
    -------
    callable
        From int to int.

    Notes
    -----
    Clauses: BRIDGE-SCALAR-3, BRIDGE-SAT-1, BRIDGE-SINGLE-1
    """
    if source is target:
        return lambda bits: bits
    if target is DType.bool:
        return _to_bool(source)
    if source in FLOATS and target in FLOATS:
        to = FLOATS[target]
        return _float_to_float(FLOATS[source], to, saturate and to in SATURATING, single_rounding)
    if target in FLOATS:
        to = FLOATS[target]
        return _integer_to_float(source, to, saturate and to in SATURATING, single_rounding)
    if source in FLOATS:
        return _float_to_integer(FLOATS[source], target)
    return _integer_to_integer(source, target)
