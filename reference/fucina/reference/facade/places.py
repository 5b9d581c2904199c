"""Places: which element of one tensor an element of another comes from.

Views, repetitions and reductions are all the same question.  The answers are lists of row-major indices, made with
integers only; what is done with the elements at these places is somebody else's business.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from fucina.reference.arithmetic import folded
from fucina.reference.facade.kinds import Tags
from fucina.reference.facade.values import Value
from fucina.reference.softfloat import SoftFloat
from fucina.spec.errors import InvalidShape, InvalidTag, ShapeMismatch
from fucina.spec.runtime import MAX_RANK

__all__ = [
    "Repetition",
    "aligned",
    "collected",
    "common_sizes",
    "lines",
    "numbered",
    "placed",
    "positions",
    "reduced",
    "repeated",
    "without",
]

Element = TypeVar("Element")
Number = TypeVar("Number", bound=SoftFloat)


def positions(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the row-major indices of a shape, as an array of that shape."""
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)


def numbered(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
    """Return the entries of an array in row-major order."""
    found: list[int] = array.reshape(-1).tolist()
    return found


def lines(shape: tuple[int, ...], axis: int) -> list[list[int]]:
    """Return where the elements along an axis are, for each index of the other axes in row-major order."""
    n = shape[axis]
    places = numbered(np.moveaxis(positions(shape), axis, -1))
    return [places[start : start + n] for start in range(0, len(places), n)]


def without(entries: Sequence[Element], axes: Collection[int]) -> tuple[Element, ...]:
    """Return the tags, or the sizes, of the other axes."""
    return tuple(entry for axis, entry in enumerate(entries) if axis not in axes)


class Repetition(NamedTuple):
    """How an operand was repeated to a result.

    Parameters
    ----------
    places : list of int
        For each element of the result, the operand's element that is there.
    size : int
        How many elements the operand has.
    summed : bool
        Whether there is an axis of the result along which the operand was repeated, or which it has not.

    Notes
    -----
    Clauses: POLICY-TAGS-1, AUTOGRAD-VJP-1
    """

    places: list[int]
    size: int
    summed: bool

    def spread(self, values: Sequence[Element]) -> list[Element]:
        """Return elements of the operand in the shape of the result."""
        return [values[place] for place in self.places]

    def gathered(self, g: Sequence[Number]) -> list[Number]:
        """Return ``R(g)``, in the shape of the operand.

        Notes
        -----
        Clauses: AUTOGRAD-VJP-1, CONTEXT-SUM-1
        """
        groups = collected(self.places, self.size, g)
        return [folded(group) if self.summed else group[0] for group in groups]


def collected(places: Sequence[int], size: int, values: Sequence[Element]) -> list[list[Element]]:
    """Return, for each of ``size`` places, the values that belong there, in their order."""
    groups: list[list[Element]] = [[] for _ in range(size)]
    for place, value in zip(places, values, strict=True):
        groups[place].append(value)
    return groups


def repeated(shape: tuple[int, ...], axes: Sequence[int | None], target: tuple[int, ...]) -> Repetition:
    """Return how an operand is repeated to a target.

    Parameters
    ----------
    shape : tuple of int
        The operand's sizes.
    axes : sequence of int or None
        For each axis of the target, the operand's axis that lies there; None where it has none.
    target : tuple of int
        The sizes of the target; each is the operand's, unless that is 1.
    """
    own = positions(shape)
    size = own.size
    present = [axis for axis in axes if axis is not None]
    own = own.transpose(present).reshape([1 if axis is None else shape[axis] for axis in axes])
    summed = any(axis is None or shape[axis] != n for axis, n in zip(axes, target, strict=True))
    return Repetition(numbered(np.broadcast_to(own, target)), size, summed)


def reduced(shape: tuple[int, ...], axes: Sequence[int]) -> Repetition:
    """Return how a sum along axes would be repeated to what was summed up."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    order = [kept.index(axis) if axis in kept else None for axis in range(len(shape))]
    return repeated(tuple(shape[axis] for axis in kept), order, shape)


def placed(x: Value, tags: Tags) -> list[int | None]:
    """Return which axis of an operand lies at each tag of a result; those without names lie at its last ones.

    Notes
    -----
    Clauses: POLICY-TAGS-1, FACADE-VIEW-3
    """
    if type(x).is_named:
        return [x.axis_tags.index(tag) if tag in x.axis_tags else None for tag in tags]
    return [None] * (len(tags) - x.rank) + list(range(x.rank))


def aligned(a: Value, b: Value) -> tuple[Tags, list[int | None], list[int | None]]:
    """Return the tags of the result of two operands, and which axes of each lie there.

    Raises
    ------
    InvalidTag, InvalidShape
        If one has names and the other numbers; if there are more than 8 axes.

    Notes
    -----
    Clauses: POLICY-TAGS-1
    """
    if a.rank and b.rank and type(a).is_named != type(b).is_named:
        raise InvalidTag(
            f"a tensor with tags does not go with one without, got {type(a)!r} and {type(b)!r}",
            clause="POLICY-TAGS-1",
        )
    if type(a).is_named or type(b).is_named:
        tags: Tags = (*a.axis_tags, *(tag for tag in b.axis_tags if tag not in a.axis_tags))
        if len(tags) > MAX_RANK:
            raise InvalidShape(f"a result has at most {MAX_RANK} axes, got {tags}", clause="POLICY-TAGS-1")
    else:
        tags = tuple(range(max(a.rank, b.rank)))
    return tags, placed(a, tags), placed(b, tags)


def common_sizes(
    a: tuple[int, ...], first: Sequence[int | None], b: tuple[int, ...], second: Sequence[int | None], tags: Tags
) -> tuple[int, ...]:
    """Return the sizes of the result of two operands.

    Raises
    ------
    ShapeMismatch
        If two sizes differ and none is 1.

    Notes
    -----
    Clauses: POLICY-TAGS-1
    """
    sizes = []
    for tag, i, j in zip(tags, first, second, strict=True):
        m, n = (1 if i is None else a[i]), (1 if j is None else b[j])
        if m != n and 1 not in (m, n):
            raise ShapeMismatch(
                f"the sizes of axis {tag!r} must be equal or 1, got {m} and {n}", clause="POLICY-TAGS-1"
            )
        sizes.append(max(m, n))
    return tuple(sizes)
