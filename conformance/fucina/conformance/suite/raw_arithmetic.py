"""What raw operations have to give, by exact arithmetic and by the rules written out."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.compare import PATTERN
from fucina.conformance.suite.casts import INTEGERS, STORAGE, exact_value, number_of, round_to
from fucina.spec import DType

__all__ = ["ARITHMETIC", "REAL", "accumulator", "pointwise", "quiet_nan", "scaled", "tensor_of", "total"]

Bits = npt.NDArray[Any]

REAL = (DType.f16, DType.bf16, DType.f32, DType.f64)
ARITHMETIC = (*REAL, *INTEGERS)

_EXACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def accumulator(dtype: DType) -> DType:
    """Return the dtype in which floats of a dtype are computed (POLICY-SCALAR-1, POLICY-DOT-1, CONTEXT-SUM-2)."""
    return DType.f64 if dtype is DType.f64 else DType.f32


def quiet_nan(dtype: DType) -> int:
    """Return a NaN of a dtype; which one is never compared."""
    return {DType.f16: 0x7E00, DType.bf16: 0x7FC0, DType.f32: 0x7FC00000, DType.f64: 0x7FF8 << 48}[dtype]


def _operation(name: str, a: Fraction | float, b: Fraction | float) -> Fraction | float:
    """Return the exact result, or a zero, an infinity or NaN as a float."""
    if name == "div" and b == 0:
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        return math.nan if a == 0 or a != a else sign * math.inf
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        result = _EXACT[name](a, b)
        return result if result else 0.0  # a zero that two numbers make is +0; one that a zero makes keeps its sign
    if name in ("add", "sub") and (isinstance(a, Fraction) or isinstance(b, Fraction)):
        other = b if isinstance(a, Fraction) else a
        if other == 0:
            return a if isinstance(a, Fraction) else (-b if name == "sub" else b)
    one, two = (math.copysign(1.0, v) if isinstance(v, Fraction) else v for v in (a, b))
    result = _EXACT[name](one, two)
    return float(result)


def _rounded(dtype: DType, value: Fraction | float) -> int:
    return quiet_nan(dtype) if value != value else round_to(dtype, value)


def _narrowed(dtype: DType, value: Fraction | float) -> int:
    """Round to the wide dtype, then to the dtype itself."""
    first = _rounded(accumulator(dtype), value)
    return first if dtype is accumulator(dtype) else _rounded(dtype, exact_value(accumulator(dtype), first))


def pointwise(name: str, dtype: DType, a: int, b: int) -> int:
    """Return the pattern that an operation on two patterns must give (CONTEXT-ARITH-1, CONTEXT-ARITH-2)."""
    if dtype in INTEGERS:
        x, y = number_of(dtype, a), number_of(dtype, b)
        found = math.trunc(Fraction(x, y)) if name == "div" else _EXACT[name](x, y)
        return int(found) & ((1 << 8 * PATTERN[dtype].itemsize) - 1)
    return _narrowed(dtype, _operation(name, exact_value(dtype, a), exact_value(dtype, b)))


def scaled(dtype: DType, a: int, factor: float) -> int:
    """Return the pattern of an element times a number (CONTEXT-SCALE-1)."""
    number = np.float64(factor).view(np.uint64)
    parameter = exact_value(DType.f64, int(number))
    parameter = exact_value(accumulator(dtype), _rounded(accumulator(dtype), parameter))
    return _narrowed(dtype, _operation("mul", exact_value(dtype, a), parameter))


def total(dtype: DType, patterns: Bits) -> Bits:
    """Return the sum of patterns by the tree of CONTEXT-SUM-1, as a pattern of the result, computed by numpy."""
    if dtype in INTEGERS or dtype is DType.bool:
        return np.array([sum(number_of(dtype, int(p)) for p in patterns) & ((1 << 64) - 1)], np.uint64)
    if dtype is DType.bf16:
        values = (patterns.astype(np.uint32) << 16).view(np.float32)
    else:
        values = patterns.view(STORAGE[dtype]).astype(STORAGE[accumulator(dtype)])
    with np.errstate(all="ignore"):
        found: Bits = np.array([_tree(values)]).view(PATTERN[accumulator(dtype)])
    return found


def _tree(values: npt.NDArray[Any]) -> Any:
    if values.size > 8192:
        return _tree(np.array([_tree(values[i : i + 8192]) for i in range(0, values.size, 8192)], values.dtype))
    lanes = np.zeros(32, values.dtype)
    for start in range(0, values.size, 32):
        part = values[start : start + 32]
        lanes[: part.size] += part
    for half in (16, 8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    return lanes[0]


def tensor_of(ctx: Any, dtype: DType, patterns: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Return a tensor that holds these patterns."""
    array = np.asarray(patterns, dtype=PATTERN[dtype]).reshape(-1).view(STORAGE[dtype])
    return ctx.from_storage_slice(shape or (array.size,), array, dtype)
