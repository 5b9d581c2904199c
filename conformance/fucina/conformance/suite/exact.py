"""Arithmetic of the facade, exact: rationals and integers, one rounding for each operation that a clause writes down.

A *value* is a Python float that the format holds exactly, so that zeros keep their sign; an operation makes the exact
number of its operands and rounds it once to the format that is named.  No operation of a processor rounds here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.compare import FLOATS, PATTERN
from fucina.conformance.suite.casts import INTEGERS, STORAGE
from fucina.spec import DType

__all__ = [
    "Values",
    "add",
    "chain",
    "decode",
    "div",
    "encode",
    "fma",
    "greater",
    "inverse_root",
    "mul",
    "negative",
    "root",
    "rounded",
    "sub",
    "tree",
    "wrapped",
]

Values = npt.NDArray[Any]
"""Values of a tensor: f64 of whatever format, or Python integers."""

BLOCK, LANES = 8192, 32


# -- one rounding


def rounded(dtype: DType, number: Fraction | float) -> float:
    """Round a number to the nearest value of a float format, ties to even; a zero that it becomes keeps its sign."""
    if isinstance(number, float):
        if number == 0 or not math.isfinite(number):
            return number
        number = Fraction(number)
    exponent, fraction = FLOATS[dtype]
    top, least = 1 << (exponent - 1), 2 - (1 << (exponent - 1))
    above, below = abs(number.numerator), number.denominator
    power = above.bit_length() - below.bit_length()
    if _shifted(above, -power) < _shifted(below, power):
        power -= 1
    unit = max(power, least) - fraction  # 2 ** unit is the distance of neighbours there
    steps, rest = divmod(_shifted(above, -unit), _shifted(below, unit))
    twice = 2 * rest - _shifted(below, unit)
    if twice > 0 or (twice == 0 and steps & 1):
        steps += 1
    sign = -1.0 if number < 0 else 1.0
    if steps.bit_length() + unit > top:
        return sign * math.inf
    return sign * math.ldexp(steps, unit)


def _shifted(value: int, by: int) -> int:
    """Return a value times two to a power where that is positive, else the value."""
    return value << by if by > 0 else value


# -- operations, each rounded once


def add(dtype: DType, a: float, b: float) -> float:
    """Return a + b."""
    if not (math.isfinite(a) and math.isfinite(b)) or (a == 0 and b == 0):
        return a + b  # two zeros: -0 of two -0, else +0
    exact = Fraction(a) + Fraction(b)
    return rounded(dtype, exact) if exact else 0.0


def sub(dtype: DType, a: float, b: float) -> float:
    """Return a - b."""
    return add(dtype, a, -b)


def mul(dtype: DType, a: float, b: float) -> float:
    """Return a * b."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or b == 0:
        return a * b
    return rounded(dtype, Fraction(a) * Fraction(b))


def div(dtype: DType, a: float, b: float) -> float:
    """Return a / b."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0:
        return a / b
    return rounded(dtype, Fraction(a) / Fraction(b))


def fma(dtype: DType, a: float, b: float, c: float) -> float:
    """Return a * b + c, rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or b == 0:
        return add(dtype, a * b, c)
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return rounded(dtype, exact) if exact else 0.0


def root(dtype: DType, v: float) -> float:
    """Return the square root of v."""
    if not v > 0 or math.isinf(v):
        return v if v == 0 or v == math.inf else math.nan
    return _rooted(dtype, Fraction(v))


def inverse_root(dtype: DType, v: float) -> float:
    """Return the correctly rounded 1 / sqrt(v)."""
    if v == 0:
        return math.copysign(math.inf, v)
    if not v > 0 or math.isinf(v):
        return 0.0 if v == math.inf else math.nan
    return _rooted(dtype, 1 / Fraction(v))


def _rooted(dtype: DType, square: Fraction) -> float:
    """Round the root of a positive number: many digits of it, and one more that says whether there are others."""
    digits = 128 + square.denominator.bit_length()
    scaled = (square.numerator << 2 * digits) // square.denominator
    whole = math.isqrt(scaled)
    exact = whole * whole * square.denominator == square.numerator << 2 * digits
    return rounded(dtype, Fraction(2 * whole + (not exact), 1 << (digits + 1)))


def greater(v: float, w: float) -> float:
    """Return max(v, w): +0 rather than -0, NaN where either is."""
    if v != v or w != w:
        return math.nan
    if v == w == 0:
        return 0.0 if math.copysign(1.0, v) != math.copysign(1.0, w) else v
    return max(v, w)


def negative(dtype: DType, v: float) -> float:
    """Return -1 * v."""
    return mul(dtype, -1.0, v)


# -- many


def tree(dtype: DType, values: Sequence[float]) -> float:
    """Add values as CONTEXT-SUM-1 says."""
    if len(values) > BLOCK:
        return tree(dtype, [tree(dtype, values[at : at + BLOCK]) for at in range(0, len(values), BLOCK)])
    lanes = [0.0] * LANES
    for lane in range(LANES):
        for value in values[lane::LANES]:
            lanes[lane] = add(dtype, lanes[lane], value)
    for half in (16, 8, 4, 2, 1):
        for i in range(half):
            lanes[i] = add(dtype, lanes[i], lanes[i + half])
    return lanes[0]


def chain(dtype: DType, left: Sequence[float], right: Sequence[float]) -> float:
    """Multiply and add as POLICY-DOT-1 says."""
    acc = 0.0
    for a, b in zip(left, right, strict=True):
        acc = fma(dtype, a, b, acc)
    return acc


def wrapped(name: str, dtype: DType, a: int, b: int) -> int:
    """Return the integer that an operation of CONTEXT-ARITH-2 gives."""
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if name == "div" else 0
    exact = {"add": a + b, "sub": a - b, "mul": a * b, "div": quotient}[name]
    width = 8 * PATTERN[dtype].itemsize
    low = -(1 << (width - 1)) if STORAGE[dtype].kind == "i" else 0
    return (exact - low) % (1 << width) + low


# -- patterns


def decode(dtype: DType, patterns: Any) -> Values:
    """Return the values behind patterns: f64 for floats, Python integers for integers and bools."""
    found = np.asarray(patterns, PATTERN[dtype])
    with np.errstate(invalid="ignore"):  # a signalling NaN
        if dtype is DType.bf16:
            return np.asarray(found.astype(np.uint32) << 16, np.uint32).view(np.float32).astype(np.float64)
        values = found.view(STORAGE[dtype])
        return values.astype(object) if dtype in (*INTEGERS, DType.bool) else values.astype(np.float64)


def encode(dtype: DType, values: Any) -> Values:
    """Return the patterns of values that the format holds."""
    array = np.asarray(values)
    with np.errstate(invalid="ignore"):
        if dtype is DType.bf16:
            return np.asarray(array.astype(np.float32).view(np.uint32) >> 16, np.uint16)
        return array.astype(STORAGE[dtype]).view(PATTERN[dtype])
