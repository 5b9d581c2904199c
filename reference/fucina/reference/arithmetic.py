"""Arithmetic on patterns: what one element and another make, and what a sequence of elements adds up to.

Everything is an unsigned int here, as in :mod:`fucina.reference.bridges`; the layers above turn memory into patterns
and back.  Which dtype computes in which stands in :mod:`fucina.reference.policy`: each function here widens its
operands to that dtype, does one operation in soft floats or in integers, and narrows once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias, TypeVar

from fucina.reference.bridges import FLOATS, caster, convert, integer_range, integer_value
from fucina.reference.formats import decode
from fucina.reference.policy import compute_dtype, output_dtype
from fucina.reference.softfloat import Soft32, Soft64, SoftFloat
from fucina.spec.types import DType, FloatOp

__all__ = ["BLOCK", "LANES", "Binary", "Unary", "folded", "pointwise", "scaling", "total", "widened"]

Unary: TypeAlias = Callable[[int], int]
Binary: TypeAlias = Callable[[int, int], int]
Number = TypeVar("Number", bound=SoftFloat)

SOFT: dict[DType, type[SoftFloat]] = {DType.f32: Soft32, DType.f64: Soft64}
OPERATIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
WORD = (1 << 64) - 1

LANES = 32
"""How many sums run side by side in a block of a reduction (clause CONTEXT-SUM-1)."""

BLOCK = 8192
"""How many elements a block of a reduction has (clause CONTEXT-SUM-1)."""


# -- two elements


@cache
def pointwise(name: str, dtype: DType) -> Binary:
    """Return the function that adds, subtracts, multiplies or divides two elements.

    Parameters
    ----------
    name : {"add", "sub", "mul", "div"}
        The operation.
    dtype : DType
        A float dtype other than the f8, or an integer dtype.

    Returns
    -------
    callable
        From two patterns to one.  A divisor of an integer dtype must not be 0.

    Notes
    -----
    Clauses: CONTEXT-ARITH-1, CONTEXT-ARITH-2
    """
    if dtype not in FLOATS:
        return _integer_operation(name, dtype)
    fmt, operation = FLOATS[dtype], OPERATIONS[name]
    # f16 computes in f16; an f32 has more than twice its bits, so that rounding to f32 in between changes nothing
    wide = SOFT[DType.f64 if compute_dtype(FloatOp.pointwise, dtype) is DType.f64 else DType.f32]

    def apply(a: int, b: int) -> int:
        result = operation(wide.from_number(decode(fmt, a)), wide.from_number(decode(fmt, b)))
        return convert(wide.format, fmt, result.bits)

    return apply


def _integer_operation(name: str, dtype: DType) -> Binary:
    """Return the operation of an integer dtype, modulo 2 to its width.

    Notes
    -----
    Clauses: CONTEXT-ARITH-2
    """
    low, high = integer_range(dtype)
    mask = high - low
    operation = _truncated if name == "div" else OPERATIONS[name]
    return lambda a, b: operation(integer_value(dtype, a), integer_value(dtype, b)) & mask


def _truncated(a: int, b: int) -> int:
    """Return the quotient rounded toward zero."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


# -- an element and a number


def widened(dtype: DType, wide: type[Number], operation: Callable[[Number], Number]) -> Unary:
    """Return a function of one element that is computed in a wider dtype, with one rounding back.

    Parameters
    ----------
    dtype : DType
        A float dtype other than the f8.
    wide : type
        Soft32, or Soft64 where ``dtype`` is f64.
    operation : callable
        From a number of it to a number of it.

    Returns
    -------
    callable
        From a pattern to a pattern.

    Notes
    -----
    Clauses: POLICY-SCALAR-1
    """
    fmt = FLOATS[dtype]
    return lambda a: convert(wide.format, fmt, operation(wide.from_number(decode(fmt, a))).bits)


def scaling(dtype: DType, factor: SoftFloat) -> Unary:
    """Return the function that multiplies an element by a number.

    Parameters
    ----------
    dtype : DType
        A float dtype other than the f8.
    factor : Soft32 or Soft64
        The number: Soft64 where ``dtype`` is f64.

    Returns
    -------
    callable
        From a pattern to a pattern.

    Notes
    -----
    Clauses: CONTEXT-SCALE-1
    """
    return widened(dtype, type(factor), lambda x: x * factor)


# -- many elements


def total(dtype: DType, patterns: Sequence[int]) -> int:
    """Return the sum of elements, as a pattern of the dtype that a reduction of ``dtype`` returns.

    Parameters
    ----------
    dtype : DType
        A scalar dtype other than the f8.
    patterns : sequence of int
        At least one element.

    Returns
    -------
    int
        A pattern of f32, f64 or i64.

    Notes
    -----
    Clauses: CONTEXT-SUM-1, CONTEXT-SUM-2
    """
    wide = output_dtype(FloatOp.reduction, dtype)
    if wide is DType.i64:
        return sum(integer_value(dtype, pattern) for pattern in patterns) & WORD
    widen, soft = caster(dtype, wide), SOFT[wide]
    return folded([soft.from_bits(widen(pattern)) for pattern in patterns]).bits


def folded(values: Sequence[Number]) -> Number:
    """Return the sum of numbers by the tree that only their count decides.

    Notes
    -----
    Clauses: CONTEXT-SUM-1
    """
    if len(values) > BLOCK:
        return folded([folded(values[start : start + BLOCK]) for start in range(0, len(values), BLOCK)])

    # each lane starts at +0 and takes every 32nd element in turn
    lanes = [type(values[0]).integer(0)] * LANES
    for i, value in enumerate(values):
        lanes[i % LANES] += value

    # then the upper half of the lanes is added to the lower, until one is left
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]
