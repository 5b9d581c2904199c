"""Shapes: the arithmetic that every layer shares; ``internal.shape_mod``."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from fucina.fast._shown import shown, tuple_shown
from fucina.fast._sizes import (
    Shape,
    axis_of,
    count_of,
    element_count,
    entries,
    product,
    rank_of,
    row_major,
    storage_element_count,
)
from fucina.spec.errors import InvalidDataLength, InvalidShape, ShapeMismatch
from fucina.spec.runtime import MAX_RANK

__all__ = [
    "AxisGeometry",
    "Shape",
    "array_from_slice",
    "contiguous_strides",
    "contiguous_strides_into",
    "dispatch_rank",
    "element_count",
    "is_contiguous",
    "is_exact_suffix_rank",
    "max_rank",
    "product",
    "product_after_axis",
    "product_before_axis",
    "require_same_rank_shape",
    "require_same_shape",
    "storage_element_count",
    "validate_broadcast_rank",
    "without_axis",
]

max_rank = MAX_RANK
"""The largest rank of a shape (clause SHAPE-RULE-1)."""


def _counted(shape: Any, clause: str) -> tuple[int, ...]:
    found = entries("shape", shape, clause)
    count_of("shape", found, clause)
    return found


def contiguous_strides(shape: Any) -> Shape:
    """Return the row-major strides.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        As :func:`element_count`.

    Clauses: SHAPE-STRIDES-1
    """
    return tuple.__new__(Shape, row_major(_counted(shape, "SHAPE-STRIDES-1")))


def contiguous_strides_into(shape: Any, out: list[int]) -> None:
    """Write the row-major strides into a list of as many entries.

    Raises
    ------
    InvalidDataLength
        No list, or one of another length.

    Clauses: SHAPE-STRIDES-1
    """
    strides = contiguous_strides(shape)
    if not isinstance(out, list) or len(out) != len(strides):
        held = f"a list of {len(out)}" if isinstance(out, list) else shown(out)
        raise InvalidDataLength(f"out must be a list of {len(strides)} entries, got {held}", clause="SHAPE-STRIDES-1")
    out[:] = strides


def is_contiguous(shape: Any, strides: Any) -> bool:
    """Return whether strides are exactly the row-major ones, also on axes of size 1.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        No shape and its strides.

    Clauses: SHAPE-STRIDES-1
    """
    wanted = contiguous_strides(shape)
    found = entries("strides", strides, "SHAPE-STRIDES-1")
    if len(found) != len(wanted):
        raise InvalidShape(f"strides must have {len(wanted)} entries, got {len(found)}", clause="SHAPE-STRIDES-1")
    return found == wanted


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    return entries(name, value if isinstance(value, tuple) else getattr(value, "shape", value), "SHAPE-SAME-1")


def require_same_shape(a: Any, b: Any) -> None:
    """Raise ShapeMismatch unless two tensors, or shapes, have the same shape.

    Clauses: SHAPE-SAME-1
    """
    one, other = _shape_of("a", a), _shape_of("b", b)
    if one != other:
        raise ShapeMismatch(
            f"shapes must be equal, got {tuple_shown(one)} and {tuple_shown(other)}", clause="SHAPE-SAME-1"
        )


def array_from_slice(rank: int, values: Any) -> tuple[int, ...]:
    """Return the entries as a tuple of ``rank`` entries; InvalidShape for another number.

    Clauses: SHAPE-SAME-1
    """
    wanted = rank_of(rank, "SHAPE-SAME-1")
    found = entries("values", values, "SHAPE-SAME-1")
    if len(found) != wanted:
        raise InvalidShape(f"values must have {wanted} entries, got {tuple_shown(found)}", clause="SHAPE-SAME-1")
    return found


def require_same_rank_shape(rank: int, a: Any, b: Any) -> tuple[int, ...]:
    """Return the common shape of two tensors, or shapes, of a given rank.

    Raises
    ------
    InvalidShape, ShapeMismatch
        Another rank of ``a``, then of ``b``; then shapes that differ.

    Clauses: SHAPE-SAME-1
    """
    one, other = array_from_slice(rank, _shape_of("a", a)), array_from_slice(rank, _shape_of("b", b))
    require_same_shape(one, other)
    return one


def dispatch_rank(function: Callable[..., Any], rank: int, *args: Any) -> Any:
    """Return ``function(rank, *args)``; InvalidShape for a rank outside 1 to 8.

    Clauses: SHAPE-DISPATCH-1
    """
    return function(rank_of(rank, "SHAPE-DISPATCH-1"), *args)


class AxisGeometry(NamedTuple):
    """A shape around one axis: the product of the sizes before it, its size, the product of those after it.

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
            No shape, or no such axis.

        Clauses: SHAPE-AXIS-1
        """
        found, place = _around(shape, axis)
        return cls(prod(found[:place]), found[place], prod(found[place + 1 :]))


def _around(shape: Any, axis: Any) -> tuple[tuple[int, ...], int]:
    found = _counted(shape, "SHAPE-AXIS-1")
    return found, axis_of(axis, len(found), "SHAPE-AXIS-1")


def without_axis(shape: Any, axis: int) -> tuple[int, ...]:
    """Return the sizes of the other axes; of rank 1 there are none.

    Clauses: SHAPE-AXIS-1
    """
    found, place = _around(shape, axis)
    return found[:place] + found[place + 1 :]


def product_before_axis(shape: Any, axis: int) -> int:
    """Return the product of the sizes before an axis.

    Clauses: SHAPE-AXIS-1
    """
    return AxisGeometry.of(shape, axis).outer


def product_after_axis(shape: Any, axis: int) -> int:
    """Return the product of the sizes after an axis.

    Clauses: SHAPE-AXIS-1
    """
    return AxisGeometry.of(shape, axis).inner


def broadcast_strides(
    source: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...], clause: str
) -> tuple[int, ...]:
    """Return the strides with which a source fills a target: aligned at the right, 0 where it repeats.

    Raises
    ------
    ShapeMismatch
        It does not fit.

    Clauses: SHAPE-BROADCAST-1, TENSOR-VIEW-4
    """
    lead = len(target) - len(source)
    if lead < 0:
        raise ShapeMismatch(
            f"a shape of {len(source)} axes cannot be repeated to {len(target)}: {tuple_shown(source)} to "
            f"{tuple_shown(target)}",
            clause=clause,
        )
    for axis, size in enumerate(source):
        if size not in (1, target[lead + axis]):
            raise ShapeMismatch(
                f"{tuple_shown(source)} cannot be repeated to {tuple_shown(target)}: its size {size} must be 1 or "
                f"{target[lead + axis]}",
                clause=clause,
            )
    kept = (
        stride if size == target[lead + axis] else 0
        for axis, (size, stride) in enumerate(zip(source, strides, strict=True))
    )
    return (0,) * lead + tuple(kept)


def validate_broadcast_rank(source: Any, target: Any) -> None:
    """Raise ShapeMismatch unless the source can be repeated to the target.

    Clauses: SHAPE-BROADCAST-1
    """
    one, other = Shape.init(source), Shape.init(target)
    broadcast_strides(one, one, other, "SHAPE-BROADCAST-1")


def is_exact_suffix_rank(source: Any, target: Any) -> bool:
    """Return whether the source is exactly the last axes of the target.

    Clauses: SHAPE-BROADCAST-1
    """
    one, other = Shape.init(source), Shape.init(target)
    return len(one) <= len(other) and other[len(other) - len(one) :] == one
