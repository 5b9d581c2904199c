"""Reductions: many elements to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.arithmetic import total
from fucina.reference.bridges import INTEGERS
from fucina.reference.in_place import FLOAT_MATH
from fucina.reference.layouts import without_axis
from fucina.reference.ops.operands import operands, patterns, require_dtype, store
from fucina.reference.policy import output_dtype
from fucina.reference.sizes import axis_argument
from fucina.spec.types import DType, FloatOp

if TYPE_CHECKING:
    from fucina.reference.substrate import Runtime
    from fucina.reference.tensor import RawTensor

__all__ = ["summed"]

SUMMABLE = FLOAT_MATH | INTEGERS | {DType.bool}


def summed(rt: Runtime, x: Any, axis: int | None) -> RawTensor:
    """Return the sum of all elements, or of those along an axis.

    Parameters
    ----------
    rt : Runtime
        Where the result comes from.
    x : RawTensor
        Of any scalar dtype but the f8.
    axis : int or None
        The axis that goes; None: all of them.

    Returns
    -------
    RawTensor
        Of the dtype that reductions return; of shape (1,) where no axis is left.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
        If x is no tensor that has a sum.
    InvalidInteger, IndexOutOfBounds
        If there is no such axis.
    OutOfMemory
        If there is no memory for the result.

    Notes
    -----
    Clauses: CONTEXT-SUM-1, CONTEXT-SUM-2
    """
    (x,) = operands("CONTEXT-SUM-1", x=x)
    if axis is not None:
        axis = axis_argument(axis, len(x.shape), "CONTEXT-SUM-1")
    require_dtype("sum", x.dtype, SUMMABLE, "CONTEXT-SUM-2")
    shape = (1,) if axis is None else without_axis(x.shape, axis) or (1,)
    result = rt.new(output_dtype(FloatOp.reduction, x.dtype), shape)
    if axis is None:
        store(result, [total(x.dtype, patterns(x))])
    else:
        rows = np.moveaxis(x.elements(), axis, -1).reshape(-1, x.shape[axis]).tolist()
        store(result, [total(x.dtype, row) for row in rows])
    return result
