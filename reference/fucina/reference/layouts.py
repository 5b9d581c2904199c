"""Layouts: strides, comparisons of shapes, one axis among others, broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fucina.reference.arguments import shown
from fucina.reference.sizes import Shape, axis_argument, counted, entries_of, rank_argument, sizes
from fucina.spec.errors import InvalidDataLength, InvalidShape, ShapeMismatch

__all__ = [
    "AxisGeometry",
    "array_from_slice",
    "broadcast_strides",
    "contiguous_strides",
    "contiguous_strides_into",
    "dispatch_rank",
    "is_contiguous",
    "is_exact_suffix_rank",
    "product_after_axis",
    "product_before_axis",
    "require_same_rank_shape",
    "require_same_shape",
    "row_major",
    "strides_argument",
    "validate_broadcast_rank",
    "without_axis",
]


# -- strides


def strides_argument(strides: object, clause: str) -> tuple[int, ...]:
    """Return strides, of whatever number.

    Notes
    -----
    Clauses: SHAPE-RULE-1, TENSOR-VIEW-3
    """
    return entries_of("strides", strides, clause)


def contiguous_strides(shape: Any) -> Shape:
    """Return the row-major strides.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        As :func:`element_count`.

    Notes
    -----
    Clauses: SHAPE-STRIDES-1
    """
    found = entries_of("shape", shape, "SHAPE-STRIDES-1")
    counted("shape", found, "SHAPE-STRIDES-1")
    return row_major(found)


def row_major(shape: tuple[int, ...]) -> Shape:
    """Return the row-major strides of a shape that has been checked.

    Notes
    -----
    Clauses: SHAPE-STRIDES-1
    """
    return tuple.__new__(Shape, (math.prod(shape[axis + 1 :]) for axis in range(len(shape))))


def contiguous_strides_into(shape: Any, out: list[int]) -> None:
    """Write the row-major strides into a list of the shape's rank.

    Raises
    ------
    InvalidDataLength
        If the list has another length.

    Notes
    -----
    Clauses: SHAPE-STRIDES-1
    """
    strides = contiguous_strides(shape)
    if not isinstance(out, list) or len(out) != len(strides):
        raise InvalidDataLength(f"out must be a list of {len(strides)}, got {shown(out)}", clause="SHAPE-STRIDES-1")
    out[:] = strides


def is_contiguous(shape: Any, strides: Any) -> bool:
    """Return whether strides are exactly the row-major ones, also on axes of size 1.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        If they are no shape and its strides.

    Notes
    -----
    Clauses: SHAPE-STRIDES-1
    """
    wanted = contiguous_strides(shape)
    found = strides_argument(strides, "SHAPE-STRIDES-1")
    if len(found) != len(wanted):
        raise InvalidShape(f"{len(wanted)} strides are required, got {len(found)}", clause="SHAPE-STRIDES-1")
    return found == wanted


# -- comparisons


def _shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, or a shape itself."""
    shape = getattr(value, "shape", value)
    return entries_of("shape", value if isinstance(value, tuple) else shape, "SHAPE-SAME-1")


def require_same_shape(a: Any, b: Any) -> None:
    """Raise unless two tensors, or shapes, have the same shape.

    Raises
    ------
    ShapeMismatch
        If they have not.

    Notes
    -----
    Clauses: SHAPE-SAME-1
    """
    one, other = _shape_of(a), _shape_of(b)
    if one != other:
        raise ShapeMismatch(f"the shapes must be equal, got {one} and {other}", clause="SHAPE-SAME-1")


def require_same_rank_shape(rank: int, a: Any, b: Any) -> tuple[int, ...]:
    """Return the shape that two tensors, or shapes, of a given rank have in common.

    Raises
    ------
    InvalidShape
        If one of them has another rank.
    ShapeMismatch
        If they have not the same shape.

    Notes
    -----
    Clauses: SHAPE-SAME-1
    """
    one, other = array_from_slice(rank, _shape_of(a)), array_from_slice(rank, _shape_of(b))
    require_same_shape(one, other)
    return one


def array_from_slice(rank: int, values: Any) -> tuple[int, ...]:
    """Return the entries as a tuple of a given length.

    Raises
    ------
    InvalidShape
        If there are more or fewer.

    Notes
    -----
    Clauses: SHAPE-SAME-1
    """
    wanted = rank_argument(rank, "SHAPE-SAME-1")
    found = entries_of("values", values, "SHAPE-SAME-1")
    if len(found) != wanted:
        raise InvalidShape(f"{wanted} entries are required, got {found}", clause="SHAPE-SAME-1")
    return found


def dispatch_rank(function: Callable[..., Any], rank: int, *args: Any) -> Any:
    """Call ``function(rank, *args)``.

    Raises
    ------
    InvalidShape
        If the rank is none.

    Notes
    -----
    Clauses: SHAPE-DISPATCH-1
    """
    return function(rank_argument(rank, "SHAPE-DISPATCH-1"), *args)


# -- one axis


class AxisGeometry(NamedTuple):
    """A shape around one axis.

    Parameters
    ----------
    outer : int
        The product of the sizes before the axis.
    axis_dim : int
        The size of the axis.
    inner : int
        The product of the sizes after the axis.

    Notes
    -----
    Clauses: SHAPE-AXIS-1
    """

    outer: int
    axis_dim: int
    inner: int

    @classmethod
    def of(cls, shape: Any, axis: int) -> AxisGeometry:
        """Return the geometry of a shape around an axis.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow, IndexOutOfBounds
            If it is no shape, or has no such axis.

        Notes
        -----
        Clauses: SHAPE-AXIS-1
        """
        found, i = _around(shape, axis)
        return cls(math.prod(found[:i]), found[i], math.prod(found[i + 1 :]))


def _around(shape: Any, axis: int) -> tuple[tuple[int, ...], int]:
    found = entries_of("shape", shape, "SHAPE-AXIS-1")
    counted("shape", found, "SHAPE-AXIS-1")
    return found, axis_argument(axis, len(found), "SHAPE-AXIS-1")


def without_axis(shape: Any, axis: int) -> tuple[int, ...]:
    """Return the sizes of the other axes; of a shape of rank 1 there are none.

    Notes
    -----
    Clauses: SHAPE-AXIS-1
    """
    found, i = _around(shape, axis)
    return found[:i] + found[i + 1 :]


def product_before_axis(shape: Any, axis: int) -> int:
    """Return the product of the sizes before an axis.

    Notes
    -----
    Clauses: SHAPE-AXIS-1
    """
    return AxisGeometry.of(shape, axis).outer


def product_after_axis(shape: Any, axis: int) -> int:
    """Return the product of the sizes after an axis.

    Notes
    -----
    Clauses: SHAPE-AXIS-1
    """
    return AxisGeometry.of(shape, axis).inner


# -- broadcasting


def broadcast_strides(
    source: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...], clause: str
) -> tuple[int, ...]:
    """Return the strides with which a source fills a target: right-aligned, 0 where it repeats.

    Raises
    ------
    ShapeMismatch
        If it does not fit.

    Notes
    -----
    Clauses: SHAPE-BROADCAST-1, TENSOR-VIEW-4
    """
    new = len(target) - len(source)
    if new < 0:
        raise ShapeMismatch(f"{source} has more axes than {target}", clause=clause)
    found = [0] * new
    for size, stride, wanted in zip(source, strides, target[new:], strict=True):
        if size not in (1, wanted):
            raise ShapeMismatch(f"{source} does not fit {target}: {size} is neither 1 nor {wanted}", clause=clause)
        found.append(stride if size == wanted else 0)
    return tuple(found)


def validate_broadcast_rank(source: Any, target: Any) -> None:
    """Raise unless a source can be repeated to a target.

    Raises
    ------
    ShapeMismatch
        If it cannot.

    Notes
    -----
    Clauses: SHAPE-BROADCAST-1
    """
    one, other = sizes("source", source, "SHAPE-BROADCAST-1"), sizes("target", target, "SHAPE-BROADCAST-1")
    broadcast_strides(one, one, other, "SHAPE-BROADCAST-1")


def is_exact_suffix_rank(source: Any, target: Any) -> bool:
    """Return whether a shape is exactly the last axes of another.

    Notes
    -----
    Clauses: SHAPE-BROADCAST-1
    """
    one, other = sizes("source", source, "SHAPE-BROADCAST-1"), sizes("target", target, "SHAPE-BROADCAST-1")
    return other[-len(one) :] == one
