"""Movement: copies, conversions, and parts of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import scalar_dtype
from fucina.reference.bridges import caster
from fucina.reference.handles import require_scalar_dtype
from fucina.reference.ops.operands import operands, patterns, store
from fucina.reference.sizes import axis_argument, index_argument, length_argument, storage_shape
from fucina.spec.errors import EmptySelection, IndexOutOfBounds, InvalidDType
from fucina.spec.runtime import LayoutClass
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from fucina.reference.substrate import Runtime
    from fucina.reference.tensor import RawTensor

__all__ = ["cast", "classify", "materialize", "narrow_axis"]


def classify(x: Any) -> LayoutClass:
    """Return how the elements of a tensor lie.

    Notes
    -----
    Clauses: CONTEXT-CLASSIFY-1
    """
    (x,) = operands("CONTEXT-CLASSIFY-1", x=x)
    shape = storage_shape(x.dtype, x.shape)
    if all(size == 1 for size in x.shape):
        return LayoutClass.scalar
    if x.is_contiguous():
        return LayoutClass.contiguous

    # drop the axes that repeat; is the rest row-major?
    first = next((axis for axis, step in enumerate(x.strides) if step), len(shape))
    wanted = 1
    for size, step in zip(reversed(shape[first:]), reversed(x.strides[first:]), strict=True):
        if step != wanted:
            return LayoutClass.arbitrary
        wanted *= size
    return LayoutClass.tail_broadcast if first else LayoutClass.arbitrary


def materialize(rt: Runtime, x: Any) -> RawTensor:
    """Return a contiguous copy with pooled storage.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch
        If x is no tensor.
    UnsupportedView
        If it is of blocks and not contiguous.
    OutOfMemory
        If there is no memory.

    Notes
    -----
    Clauses: CONTEXT-COPY-1
    """
    (x,) = operands("CONTEXT-COPY-1", x=x)
    if GEOMETRY[x.dtype].kind is DTypeKind.block_quantized:
        x.require_contiguous("a copy of blocks", "TENSOR-BLOCK-2")
    result = rt.new(x.dtype, x.shape)
    result.elements()[...] = x.elements()
    return result


def cast(rt: Runtime, x: Any, dtype: DType) -> RawTensor:
    """Return a tensor with every element converted to another scalar dtype.

    Parameters
    ----------
    rt : Runtime
        Where the result comes from.
    x : RawTensor
        Of a scalar dtype.
    dtype : DType
        A scalar dtype.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch
        If x is no tensor.
    InvalidDType
        If one of the two dtypes is a block, or none.
    OutOfMemory
        If there is no memory.

    Notes
    -----
    Clauses: CONTEXT-CAST-1
    """
    (x,) = operands("CONTEXT-CAST-1", x=x)
    target = scalar_dtype(dtype, "CONTEXT-CAST-1")
    require_scalar_dtype(x.dtype, "cast", "CONTEXT-CAST-1")
    result = rt.new(target, x.shape)
    convert = caster(x.dtype, target)
    store(result, [convert(bits) for bits in patterns(x)])
    return result


def narrow_axis(x: Any, axis: int, start: int, length: int) -> RawTensor:
    """Return a view of the indices ``start`` to ``start + length - 1`` of one axis.

    Raises
    ------
    UseAfterDeinit, UseAfterScope, DTypeMismatch
        If x is no tensor.
    InvalidInteger, IndexOutOfBounds, InvalidDataLength, Overflow
        If axis, start or length is no such number.
    InvalidDType
        If x is of blocks, and the axis is the one along which they lie.
    EmptySelection
        If the length is 0.
    IndexOutOfBounds
        If the range ends behind the axis.
    UnsupportedView
        If x is of blocks, and the view is not all of it.

    Notes
    -----
    Clauses: CONTEXT-NARROW-1
    """
    clause = "CONTEXT-NARROW-1"
    (x,) = operands(clause, x=x)
    at = axis_argument(axis, len(x.shape), clause)
    first = index_argument("start", start, clause)
    count = length_argument("length", length, clause)
    if GEOMETRY[x.dtype].kind is DTypeKind.block_quantized and at == len(x.shape) - 1:
        raise InvalidDType(f"blocks of {x.dtype.name} lie along the last axis and stay whole", clause=clause)
    if count == 0:
        raise EmptySelection(f"length must be at least 1, got {count}", clause=clause)
    if first + count > x.shape[at]:
        raise IndexOutOfBounds(
            f"[{first}, {first + count}) is not within [0, {x.shape[at]}) of axis {at}", clause=clause
        )
    shape = (*x.shape[:at], count, *x.shape[at + 1 :])
    narrowed: RawTensor = x.view_with_strides_offset(shape, x.strides, first * x.strides[at])
    return narrowed
