"""Operands: which tensors an operation takes, and where its result goes."""

from __future__ import annotations

import math

import numpy as np

from fucina.reference.arguments import shown
from fucina.reference.layouts import broadcast_strides
from fucina.reference.sizes import counted
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import DTypeMismatch, InvalidDType, OverlappingMemory, ShapeMismatch
from fucina.spec.types import DType

__all__ = ["common_shape", "destination", "operands", "patterns", "require_dtype", "same_dtype", "store"]


def operands(clause: str, **values: object) -> tuple[RawTensor, ...]:
    """Return arguments that must be raw tensors; that one was deinited is said before anything else.

    Raises
    ------
    UseAfterDeinit, UseAfterScope
        If a tensor has ended.
    DTypeMismatch
        If an argument is no raw tensor.

    Notes
    -----
    Clauses: CONTEXT-OP-1
    """
    found = []
    for value in values.values():
        if isinstance(value, RawTensor):
            value.live()
            found.append(value)
    for name, value in values.items():
        if not isinstance(value, RawTensor):
            raise DTypeMismatch(f"{name} must be a raw tensor, got {shown(value)}", clause=clause)
    return tuple(found)


def same_dtype(a: RawTensor, b: RawTensor, clause: str) -> DType:
    """Return the dtype that two tensors have in common.

    Raises
    ------
    DTypeMismatch
        If they have none.

    Notes
    -----
    Clauses: CONTEXT-OP-1
    """
    if a.dtype is not b.dtype:
        raise DTypeMismatch(
            f"operands must be of one dtype, got {a.dtype.name} and {b.dtype.name}; cast makes one of the other",
            clause=clause,
        )
    return a.dtype


def require_dtype(what: str, dtype: DType, allowed: frozenset[DType], clause: str) -> None:
    """Refuse a dtype on which an operation is not defined.

    Raises
    ------
    InvalidDType
        If it is none of the allowed ones.

    Notes
    -----
    Clauses: CONTEXT-OP-1
    """
    if dtype not in allowed:
        raise InvalidDType(f"{what} is not defined for {dtype!r}", clause=clause)


def common_shape(a: tuple[int, ...], b: tuple[int, ...], clause: str) -> tuple[int, ...]:
    """Return the shape that two shapes broadcast to, aligned at their last axes.

    Raises
    ------
    ShapeMismatch
        If two sizes differ and none is 1.
    Overflow
        If the number of elements is 2^64 or more.

    Notes
    -----
    Clauses: CONTEXT-OP-1
    """
    rank = max(len(a), len(b))
    first, second = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (a, b))
    shape = tuple(m if n == 1 else n for m, n in zip(first, second, strict=True))
    for source in (a, b):
        broadcast_strides(source, source, shape, clause)
    counted("shape", shape, clause)
    return shape


def patterns(x: RawTensor, shape: tuple[int, ...] | None = None) -> list[int]:
    """Return the elements of a tensor of a scalar dtype in row-major order, repeated to a shape."""
    elements = x.elements()
    found: list[int] = np.broadcast_to(elements, shape or elements.shape).reshape(-1).tolist()
    return found


def store(x: RawTensor, results: list[int]) -> None:
    """Write all elements of a contiguous tensor."""
    elements = x.elements()
    elements.reshape(-1)[:] = np.array(results, dtype=elements.dtype)


def destination(out: RawTensor, dtype: DType, shape: tuple[int, ...], sources: tuple[RawTensor, ...]) -> RawTensor:
    """Return a tensor that a result can be written to.

    Parameters
    ----------
    out : RawTensor
        The tensor.
    dtype : DType
        The result's dtype.
    shape : tuple of int
        Its shape.
    sources : tuple of RawTensor
        What it is computed of.

    Raises
    ------
    DTypeMismatch, ShapeMismatch
        If it is of another dtype or shape.
    ReadOnlyStorage
        If its storage is read-only.
    UnsupportedView
        If it is not contiguous.
    OverlappingMemory
        If it shares memory with an operand without being exactly that operand.

    Notes
    -----
    Clauses: CONTEXT-OP-2
    """
    clause = "CONTEXT-OP-2"
    if out.dtype is not dtype:
        raise DTypeMismatch(f"out must be of {dtype.name}, got {out.dtype.name}", clause=clause)
    if out.shape != shape:
        raise ShapeMismatch(f"out must be of shape {tuple(shape)}, got {tuple(out.shape)}", clause=clause)
    out.require_writable()
    out.require_contiguous("out", clause)
    first, end = out.span()
    for source in sources:
        same = source.span() == (first, end) and source.is_contiguous() and math.prod(source.shape) == math.prod(shape)
        begin, stop = source.span()
        if not same and begin < end and first < stop:
            raise OverlappingMemory(
                f"out shares memory with an operand, {source!r}, and is not that operand", clause=clause
            )
    return out
