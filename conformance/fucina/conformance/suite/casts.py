"""Casting patterns through an implementation, and exact arithmetic to know what should come out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.compare import FLOATS, PATTERN, is_nan
from fucina.spec import GEOMETRY, DType

__all__ = [
    "FLOAT_DTYPES",
    "INTEGERS",
    "SCALARS",
    "STORAGE",
    "VALUE_TYPES",
    "bits_of",
    "cast",
    "exact_value",
    "expected",
    "nan_bits",
    "number_of",
    "round_to",
    "scalar_form",
    "two_roundings",
]

Bits = npt.NDArray[Any]

SCALARS = tuple(PATTERN)
FLOAT_DTYPES = tuple(FLOATS)
INTEGERS = (DType.u8, DType.u16, DType.i8, DType.i16, DType.i32, DType.i64)
STORAGE: dict[DType, np.dtype[Any]] = {dtype: np.dtype(GEOMETRY[dtype].format) for dtype in SCALARS}
VALUE_TYPES = {DType.bf16: "Bf16", DType.f8_e4m3: "F8E4M3", DType.f8_e5m2: "F8E5M2"}
"""The types of elements that are no numbers of Python, by their names in an implementation."""


def cast(impl: Any, source: DType, target: DType, patterns: Bits, **modes: bool) -> Bits:
    """Run ``cast_array`` on patterns and return patterns; the answer must be an array in storage form."""
    array = np.ascontiguousarray(patterns, dtype=PATTERN[source]).view(STORAGE[source])
    got = impl.dtype.cast_array(source, target, array, **modes)
    assert isinstance(got, np.ndarray), f"cast_array returned {type(got).__name__}"
    assert got.dtype == STORAGE[target], f"BRIDGE-ARRAY-1: {target!r} came as {got.dtype}"
    assert got.shape == array.shape, f"BRIDGE-ARRAY-1: shape {got.shape} from {array.shape}"
    return got.view(PATTERN[target])


def scalar_form(dtype: DType, pattern: int) -> bool | int | float:
    """Return the element with this pattern as the Python value that the interface speaks (clause DTYPE-STORAGE-1)."""
    value: bool | int | float = np.array([pattern], dtype=PATTERN[dtype]).view(STORAGE[dtype])[0].item()
    return value


def bits_of(dtype: DType, value: bool | int | float) -> int:
    """Return the pattern of an element in scalar form; it must already be one."""
    kind = {"b": bool, "f": float}.get(STORAGE[dtype].kind, int)
    assert type(value) is kind, f"DTYPE-STORAGE-1: an element of {dtype!r} is {kind.__name__}, got {value!r}"
    pattern = np.array([value], dtype=STORAGE[dtype]).view(PATTERN[dtype])
    return int(pattern[0])


def exact_value(dtype: DType, pattern: int) -> Fraction | float:
    """Return the exact value behind a float pattern; infinities, NaN and zeros (for their sign) as floats."""
    exponent, fraction = FLOATS[dtype]
    negative = bool(pattern >> (exponent + fraction))
    field, tail = (pattern >> fraction) & ((1 << exponent) - 1), pattern & ((1 << fraction) - 1)
    if is_nan(np.array([pattern], dtype=PATTERN[dtype]), dtype)[0]:
        return float("nan")
    if field == (1 << exponent) - 1 and dtype is not DType.f8_e4m3:
        return float("-inf") if negative else float("inf")
    bias = (1 << (exponent - 1)) - 1
    significand = tail + (1 << fraction if field else 0)
    if not significand:
        return -0.0 if negative else 0.0
    value = Fraction(significand) * Fraction(2) ** (max(field, 1) - bias - fraction)
    return -value if negative else value


def round_to(dtype: DType, value: Fraction | float, *, saturate: bool = False) -> int:
    """Round a number that is not NaN to a float format, to nearest-even, in rational arithmetic; return the pattern."""
    exponent, fraction = FLOATS[dtype]
    sign = 1 << (exponent + fraction)
    overflow = 0x7F if dtype is DType.f8_e4m3 else ((1 << exponent) - 1) << fraction
    largest = 0x7E if dtype is DType.f8_e4m3 else overflow - 1
    top = largest if saturate else overflow
    if isinstance(value, float):
        negative = str(value).startswith("-")
        return (0 if value == 0 else top) | (sign if negative else 0)
    magnitude = abs(value)
    power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** power:
        power -= 1
    least = 2 - (1 << (exponent - 1))  # exponent of the smallest normal number
    power = max(power, least)
    steps = round(magnitude / Fraction(2) ** (power - fraction))  # Fraction rounds half to even
    pattern = ((power - least) << fraction) + steps
    return (top if pattern > largest else pattern) | (sign if value < 0 else 0)


def nan_bits(source: DType, target: DType, pattern: int) -> int:
    """Return what a NaN becomes in a float format (clauses NUM-NAN-1, BRIDGE-BF16-3, F16-3, E4M3-3, E5M2-3).

    The sign and the leading payload bits stay and the quiet bit is set; the exception is bf16 -> f32, a plain shift.
    """
    if source is target:
        return pattern
    exponent, fraction = FLOATS[source]
    sign = pattern >> (exponent + fraction)
    payload = (pattern & ((1 << fraction) - 1)) << (52 - fraction)
    if source in (DType.f8_e4m3, DType.f8_e5m2):
        payload = 0
    if (source, target) != (DType.bf16, DType.f32):
        payload |= 1 << 51
    exponent, fraction = FLOATS[target]
    if target is DType.f8_e4m3:
        return sign << 7 | 0x7F
    if target is DType.f8_e5m2:
        return sign << 7 | 0x7E
    return sign << (exponent + fraction) | ((1 << exponent) - 1) << fraction | payload >> (52 - fraction)


def two_roundings(source: DType, target: DType, pattern: int, *, saturate: bool = False, single: bool = False) -> int:
    """Return the exact answer of a float-to-float cast (clauses BRIDGE-FLOAT-1, BRIDGE-SAT-1, BRIDGE-SINGLE-1)."""
    value = exact_value(source, pattern)
    if value != value:
        return nan_bits(source, target, pattern)
    if source is target:
        return pattern
    saturate = saturate and target not in (DType.f32, DType.f64)
    if target is DType.f64 or single:
        return round_to(target, value, saturate=saturate)
    return round_to(target, exact_value(DType.f32, round_to(DType.f32, value)), saturate=saturate)


def expected(source: DType, target: DType, pattern: int, *, saturate: bool = False, single: bool = False) -> int:
    """Return the exact answer of any of the 169 casts (clauses BRIDGE-SCALAR-3, BRIDGE-SAT-1, BRIDGE-SINGLE-1)."""
    if source is target:
        return pattern
    if source in FLOATS and target in FLOATS:
        return two_roundings(source, target, pattern, saturate=saturate, single=single)
    value = exact_value(source, pattern) if source in FLOATS else Fraction(number_of(source, pattern))
    if target is DType.bool:
        return int(value != 0)  # NaN too
    mask = (1 << 8 * PATTERN[target].itemsize) - 1
    if target not in FLOATS:
        if source not in FLOATS:
            return int(value) & mask
        low, high = (-(mask + 1) // 2, mask // 2) if STORAGE[target].kind == "i" else (0, mask)
        if isinstance(value, float):  # NaN, an infinity or a zero
            return (0 if value != value or value == 0 else high if value > 0 else low) & mask
        return min(max(int(value), low), high) & mask  # int() drops the fraction
    if not value:
        return 0
    narrow = target not in (DType.f32, DType.f64)
    if not single:
        for stop in (DType.f64, DType.f32) if target not in (DType.f16, DType.f32, DType.f64) else (DType.f64,):
            value = exact_value(stop, round_to(stop, value))
    return round_to(target, value, saturate=saturate and narrow)


def number_of(dtype: DType, pattern: int) -> int:
    """Return the integer behind the pattern of a bool or an integer."""
    width = 8 * PATTERN[dtype].itemsize
    return pattern - (1 << width) if STORAGE[dtype].kind == "i" and pattern >> (width - 1) else pattern
