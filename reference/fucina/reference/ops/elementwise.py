"""Elementwise operations: one result element from one element of each operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import factor_argument
from fucina.reference.arithmetic import pointwise, scaling
from fucina.reference.bridges import INTEGERS
from fucina.reference.in_place import ADDABLE, FLOAT_MATH
from fucina.reference.ops.operands import (
    common_shape,
    destination,
    operands,
    patterns,
    require_dtype,
    same_dtype,
    store,
)
from fucina.spec.errors import DivisionByZero

if TYPE_CHECKING:
    from fucina.reference.substrate import Runtime
    from fucina.reference.tensor import RawTensor
    from fucina.spec.interface import ScalarValue

__all__ = ["binary", "scale"]


def binary(rt: Runtime, name: str, a: Any, b: Any, out: Any) -> RawTensor:
    """Return the sum, difference, product or quotient of two tensors.

    Parameters
    ----------
    rt : Runtime
        Where the result comes from.
    name : {"add", "sub", "mul", "div"}
        The operation.
    a, b : RawTensor
        The operands, of one dtype and of shapes that broadcast.
    out : RawTensor or None
        Where the result goes, if not into a new tensor.

    Returns
    -------
    RawTensor
        ``out``, or a new tensor.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, ShapeMismatch, Overflow
        If the operands do not go together.
    DTypeMismatch, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
        If the result does not go into ``out``.
    DivisionByZero
        If an integer would be divided by zero; nothing is written then.
    OutOfMemory
        If there is no memory for the result.

    Notes
    -----
    Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2
    """
    clause = "CONTEXT-OP-1"
    given = {"a": a, "b": b} | ({} if out is None else {"out": out})
    a, b, *into = operands(clause, **given)
    dtype = same_dtype(a, b, clause)
    require_dtype(name, dtype, ADDABLE, clause)
    shape = common_shape(a.shape, b.shape, clause)
    target = destination(into[0], dtype, shape, (a, b)) if into else None
    if name == "div" and dtype in INTEGERS and not b.elements().all():
        raise DivisionByZero(f"b has a zero, and integers were to be divided by it: {b!r}", clause="CONTEXT-ARITH-2")

    result = rt.new(dtype, shape) if target is None else target
    operation = pointwise(name, dtype)
    results = [operation(*pair) for pair in zip(patterns(a, shape), patterns(b, shape), strict=True)]
    if target is not None:
        target.live().open_for_writing()
    store(result, results)
    return result


def scale(rt: Runtime, x: Any, scalar_value: ScalarValue, out: Any) -> RawTensor:
    """Return a tensor times a number.

    Parameters
    ----------
    rt : Runtime
        Where the result comes from.
    x : RawTensor
        Of f16, bf16, f32 or f64.
    scalar_value : float or int
        Rounded to f32; for f64 to f64.
    out : RawTensor or None
        Where the result goes, if not into a new tensor.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
        If the arguments do not go together.
    DTypeMismatch, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
        If the result does not go into ``out``.
    OutOfMemory
        If there is no memory for the result.

    Notes
    -----
    Clauses: CONTEXT-SCALE-1, CONTEXT-OP-2
    """
    clause = "CONTEXT-SCALE-1"
    given = {"x": x} | ({} if out is None else {"out": out})
    x, *into = operands(clause, **given)
    require_dtype("scale", x.dtype, FLOAT_MATH, clause)
    operation = scaling(x.dtype, factor_argument("scalar_value", scalar_value, x.dtype))
    target = destination(into[0], x.dtype, x.shape, (x,)) if into else None

    result = rt.new(x.dtype, x.shape) if target is None else target
    results = [operation(bits) for bits in patterns(x)]
    if target is not None:
        target.live().open_for_writing()
    store(result, results)
    return result
