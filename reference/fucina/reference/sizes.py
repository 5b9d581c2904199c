"""Sizes: what may be passed as a shape, and how many elements it has.

First every entry is read, left to right; then the rank is looked at; then the entries in turn.  Counts are 64-bit
words: a product that does not fit is an error, never a small number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from fucina.reference.arguments import dtype_argument, shown, whole
from fucina.spec.errors import IndexOutOfBounds, InvalidDataLength, InvalidInteger, InvalidShape, Overflow, TensorError
from fucina.spec.runtime import MAX_RANK
from fucina.spec.types import GEOMETRY, DType

__all__ = [
    "Shape",
    "axis_argument",
    "counted",
    "element_count",
    "entries_of",
    "index_argument",
    "length_argument",
    "listed",
    "max_rank",
    "product",
    "rank_argument",
    "sizes",
    "storage_element_count",
    "storage_shape",
]

max_rank = MAX_RANK
"""The largest rank of a shape (clause SHAPE-RULE-1)."""


# -- arguments


def entries_of(name: str, values: object, clause: str) -> tuple[int, ...]:
    """Return the entries of a shape or of strides as ints in [0, 2^64).

    Notes
    -----
    Clauses: SHAPE-RULE-1
    """
    return tuple(_word(f"an entry of {name}", value, InvalidShape, clause) for value in listed(name, values, clause))


def listed(name: str, values: object, clause: str) -> tuple[object, ...]:
    """Return what should be integers, before any of them is looked at.

    Raises
    ------
    InvalidInteger
        If it is no sequence.

    Notes
    -----
    Clauses: SHAPE-RULE-1
    """
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise InvalidInteger(f"{name} must be a sequence of integers, got {shown(values)}", clause=clause)
    return tuple(values)


def _word(name: str, value: object, negative: type[TensorError], clause: str) -> int:
    found = whole(name, value, clause)
    if found < 0:
        raise negative(f"{name} must not be negative, got {shown(found)}", clause=clause)
    return _fits(found, f"{name} {shown(found)}", clause)


def _require_rank(name: str, rank: int, clause: str) -> None:
    if not 1 <= rank <= MAX_RANK:
        raise InvalidShape(f"{name} must have 1 to {MAX_RANK} entries, got {rank}", clause=clause)


def _fits(count: int, what: str, clause: str) -> int:
    if count >> 64:
        raise Overflow(f"{what} must be below 2^64", clause=clause)
    return count


def sizes(name: str, shape: object, clause: str = "SHAPE-RULE-1") -> Shape:
    """Return a shape: 1 to 8 sizes of at least 1.  Their product may be anything.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        As the clause has it.

    Notes
    -----
    Clauses: SHAPE-RULE-1
    """
    found = entries_of(name, shape, clause)
    _require_rank(name, len(found), clause)
    for size in found:
        _require_size(name, size, found, clause)
    return tuple.__new__(Shape, found)


def _require_size(name: str, size: int, shape: tuple[int, ...], clause: str) -> None:
    if size == 0:
        raise InvalidShape(f"{name} must have no zero, got {shape}", clause=clause)


def index_argument(name: str, value: object, clause: str) -> int:
    """Return an int in [0, 2^64) that counts elements.

    Raises
    ------
    InvalidInteger, IndexOutOfBounds, Overflow
        If it is no integer, negative, or 2^64 and above.

    Notes
    -----
    Clauses: SHAPE-RULE-1
    """
    return _word(name, value, IndexOutOfBounds, clause)


def length_argument(name: str, value: object, clause: str) -> int:
    """Return a number of elements.

    Raises
    ------
    InvalidInteger, InvalidDataLength, Overflow
        If it is no integer, negative, or 2^64 and above.

    Notes
    -----
    Clauses: STORAGE-CREATE-1
    """
    return _word(name, value, InvalidDataLength, clause)


def axis_argument(axis: object, rank: int, clause: str) -> int:
    """Return an axis: an int in [0, rank).

    Notes
    -----
    Clauses: SHAPE-AXIS-1
    """
    found = whole("axis", axis, clause)
    if not 0 <= found < rank:
        raise IndexOutOfBounds(f"axis must be in [0, {rank}), got {shown(found)}", clause=clause)
    return found


def rank_argument(rank: object, clause: str) -> int:
    """Return a rank: an int in [1, 8].

    Notes
    -----
    Clauses: SHAPE-RULE-1
    """
    found = whole("rank", rank, clause)
    if not 1 <= found <= MAX_RANK:
        raise InvalidShape(f"a rank must be in [1, {MAX_RANK}], got {shown(found)}", clause=clause)
    return found


# -- the type


class Shape(tuple[int, ...]):
    """Up to eight sizes, or strides; a tuple.

    Notes
    -----
    Clauses: SHAPE-TYPE-1
    """

    __slots__ = ()

    def __new__(cls, values: Any) -> Shape:
        """Return the shape of these sizes."""
        return cls.init(values)

    @classmethod
    def init(cls, values: Any) -> Shape:
        """Return the shape of these sizes.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow
            If they are no shape.

        Notes
        -----
        Clauses: SHAPE-TYPE-1, SHAPE-RULE-1
        """
        return sizes("shape", values)

    @classmethod
    def init_strides(cls, values: Any) -> Shape:
        """Return these strides; zeros are allowed.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow
            If there are none, more than eight, or one is no stride.

        Notes
        -----
        Clauses: SHAPE-TYPE-1
        """
        found = entries_of("strides", values, "SHAPE-TYPE-1")
        _require_rank("strides", len(found), "SHAPE-TYPE-1")
        return tuple.__new__(cls, found)

    @classmethod
    def from_(cls, values: Any) -> Shape:
        """Return the shape of whatever holds sizes.

        Notes
        -----
        Clauses: SHAPE-TYPE-1
        """
        return cls.init(values)

    @property
    def len(self) -> int:
        """The number of entries.

        Notes
        -----
        Clauses: SHAPE-TYPE-1
        """
        return len(self)

    @property
    def dims(self) -> tuple[int, ...]:
        """The entries.

        Notes
        -----
        Clauses: SHAPE-TYPE-1
        """
        return tuple(self)

    def slice(self) -> tuple[int, ...]:
        """Return the entries.

        Notes
        -----
        Clauses: SHAPE-TYPE-1
        """
        return tuple(self)

    def at(self, i: int) -> int:
        """Return entry ``i``.

        Raises
        ------
        IndexOutOfBounds
            If there is none.

        Notes
        -----
        Clauses: SHAPE-TYPE-1
        """
        return self[axis_argument(i, len(self), "SHAPE-TYPE-1")]

    def __repr__(self) -> str:
        return f"Shape{tuple(self)}"

    def __getnewargs__(self) -> tuple[tuple[int, ...]]:
        return (tuple(self),)


# -- counts


def element_count(shape: Any) -> int:
    """Return the number of elements.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        If it is no shape, or the product is 2^64 or more; zeros and the product are looked at together, left to right.

    Notes
    -----
    Clauses: SHAPE-COUNT-1, SHAPE-RULE-1
    """
    return counted("shape", entries_of("shape", shape, "SHAPE-COUNT-1"), "SHAPE-COUNT-1")


def counted(name: str, shape: tuple[int, ...], clause: str) -> int:
    """Return the number of elements of entries that have been read.

    Notes
    -----
    Clauses: SHAPE-COUNT-1
    """
    _require_rank(name, len(shape), clause)
    return _multiplied(name, shape, shape, clause)


def _multiplied(name: str, dims: tuple[int, ...], shape: tuple[int, ...], clause: str) -> int:
    count = 1
    for size in dims:
        _require_size(name, size, shape, clause)
        count = _fits(count * size, f"the number of elements of {shape}", clause)
    return count


def storage_element_count(dtype: DType, shape: Any) -> int:
    """Return the number of storage elements: of a block dtype the number of blocks.

    Raises
    ------
    InvalidDType, InvalidInteger, InvalidShape, Overflow
        If it is no shape; of a block dtype also if the last size is no multiple of the block size.

    Notes
    -----
    Clauses: SHAPE-COUNT-2
    """
    found = dtype_argument(dtype)
    entries = entries_of("shape", shape, "SHAPE-COUNT-2")
    geometry = GEOMETRY[found]
    if geometry.block_size is None:
        return counted("shape", entries, "SHAPE-COUNT-2")

    _require_rank("shape", len(entries), "SHAPE-COUNT-2")
    rows = _multiplied("shape", entries[:-1], entries, "SHAPE-COUNT-2")
    if entries[-1] == 0 or entries[-1] % geometry.block_size:
        raise InvalidShape(
            f"the last size of {found.name} must be a multiple of {geometry.block_size}, got {entries}",
            clause="SHAPE-COUNT-2",
        )
    return _fits(rows * (entries[-1] // geometry.block_size), f"the number of blocks of {entries}", "SHAPE-COUNT-2")


def storage_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a checked shape in storage elements: of a block dtype the last axis in blocks.

    Notes
    -----
    Clauses: TENSOR-BLOCK-1
    """
    return (*shape[:-1], shape[-1] // (GEOMETRY[dtype].block_size or 1))


def product(dims: Any) -> int:
    """Return the product; of no sizes 1.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        If an entry is no size, or the product is 2^64 or more.

    Notes
    -----
    Clauses: SHAPE-PRODUCT-1
    """
    found = entries_of("dims", dims, "SHAPE-PRODUCT-1")
    return _fits(math.prod(found), f"the product of {found}", "SHAPE-PRODUCT-1")
