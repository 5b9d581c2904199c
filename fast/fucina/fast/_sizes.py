"""Sizes: what may be given as a shape, how it is read and counted (clause SHAPE-RULE-1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fucina.fast._arguments import known_dtype, whole
from fucina.fast._shown import integer_shown, shown, tuple_shown
from fucina.spec.errors import IndexOutOfBounds, InvalidDataLength, InvalidInteger, InvalidShape, Overflow, TensorError
from fucina.spec.runtime import MAX_RANK
from fucina.spec.types import GEOMETRY, DType

__all__ = [
    "Shape",
    "axis_of",
    "count_of",
    "element_count",
    "entries",
    "index",
    "length",
    "product",
    "rank_of",
    "row_major",
    "storage_count_of",
    "storage_element_count",
]

_WORD = 1 << 64


def _word(name: str, value: Any, negative: type[TensorError], clause: str) -> int:
    """Return an int in [0, 2^64); ``negative`` is what one below is refused with."""
    number = whole(name, value, clause)
    if number < 0:
        raise negative(f"{name} must not be negative, got {integer_shown(number)}", clause=clause)
    if number >= _WORD:
        raise Overflow(f"{name} must lie in [0, 2^64), got {integer_shown(number)}", clause=clause)
    return number


def entries(name: str, values: Any, clause: str) -> tuple[int, ...]:
    """Return the entries of a shape or of strides, each an int in [0, 2^64).

    Raises
    ------
    InvalidInteger
        Not an iterable of integers; a str or bytes.
    InvalidShape, Overflow
        A negative entry; one of 2^64 and above.

    Clauses: SHAPE-RULE-1
    """
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise InvalidInteger(f"{name} must be a sequence of integers, got {shown(values)}", clause=clause)
    return tuple(_word(f"{name}[{at}]", value, InvalidShape, clause) for at, value in enumerate(tuple(values)))


def require_rank(name: str, values: tuple[int, ...], clause: str) -> None:
    """Refuse a rank of 0, and one above 8.

    Clauses: SHAPE-RULE-1
    """
    if not 1 <= len(values) <= MAX_RANK:
        raise InvalidShape(f"{name} must have 1 to {MAX_RANK} entries, got {len(values)}", clause=clause)


def _times(name: str, sizes: tuple[int, ...], whole_shape: tuple[int, ...], clause: str) -> int:
    """Return the product of sizes, looked at from the left."""
    count = 1
    for size in sizes:
        if size == 0:
            raise InvalidShape(f"{name} must have no size of 0, got {tuple_shown(whole_shape)}", clause=clause)
        count *= size
        if count >= _WORD:
            raise Overflow(f"{name} {tuple_shown(whole_shape)} must have fewer than 2^64 elements", clause=clause)
    return count


def count_of(name: str, shape: tuple[int, ...], clause: str) -> int:
    """Return the number of elements of a shape whose entries were read.

    Clauses: SHAPE-COUNT-1
    """
    require_rank(name, shape, clause)
    return _times(name, shape, shape, clause)


def storage_count_of(dtype: DType, shape: tuple[int, ...], clause: str) -> int:
    """Return the number of storage elements of a shape whose entries were read.

    Clauses: SHAPE-COUNT-2
    """
    block = GEOMETRY[dtype].block_size
    if block is None:
        return count_of("shape", shape, clause)
    require_rank("shape", shape, clause)
    rows, last = _times("shape", shape[:-1], shape, clause), shape[-1]
    if last == 0 or last % block:
        raise InvalidShape(
            f"the last size of a shape of {dtype.name} must be a nonzero multiple of {block}, got {tuple_shown(shape)}",
            clause=clause,
        )
    if rows * (last // block) >= _WORD:
        raise Overflow(f"shape {tuple_shown(shape)} must have fewer than 2^64 blocks", clause=clause)
    return rows * (last // block)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor.

    Clauses: SHAPE-STRIDES-1
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def length(name: str, value: Any, clause: str) -> int:
    """Return a number of elements.

    Raises
    ------
    InvalidInteger, InvalidDataLength, Overflow
        No integer; negative; 2^64 and above.

    Clauses: STORAGE-CREATE-1
    """
    return _word(name, value, InvalidDataLength, clause)


def index(name: str, value: Any, clause: str) -> int:
    """Return a place among elements.

    Raises
    ------
    InvalidInteger, IndexOutOfBounds, Overflow
        No integer; negative; 2^64 and above.

    Clauses: TENSOR-VIEW-3
    """
    return _word(name, value, IndexOutOfBounds, clause)


def axis_of(axis: Any, rank: int, clause: str) -> int:
    """Return an axis in [0, rank).

    Clauses: SHAPE-AXIS-1
    """
    number = whole("axis", axis, clause)
    if not 0 <= number < rank:
        raise IndexOutOfBounds(f"axis must lie in [0, {rank}), got {integer_shown(number)}", clause=clause)
    return number


def rank_of(rank: Any, clause: str) -> int:
    """Return a rank in [1, 8].

    Clauses: SHAPE-RULE-1
    """
    number = whole("rank", rank, clause)
    if not 1 <= number <= MAX_RANK:
        raise InvalidShape(f"rank must lie in [1, {MAX_RANK}], got {integer_shown(number)}", clause=clause)
    return number


class Shape(tuple[int, ...]):
    """Up to eight sizes, or strides: a tuple with the documents' members.

    Clauses: SHAPE-TYPE-1
    """

    __slots__ = ()

    def __new__(cls, values: Any) -> Shape:
        """Return the shape of these sizes, as :meth:`init` does."""
        return cls.init(values)

    @classmethod
    def init(cls, values: Any) -> Shape:
        """Return the shape of these sizes; elements are not counted.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow
            No shape.

        Clauses: SHAPE-TYPE-1, SHAPE-RULE-1
        """
        found = entries("shape", values, "SHAPE-RULE-1")
        require_rank("shape", found, "SHAPE-RULE-1")
        if 0 in found:
            raise InvalidShape(f"shape must have no size of 0, got {tuple_shown(found)}", clause="SHAPE-RULE-1")
        return tuple.__new__(cls, found)

    @classmethod
    def init_strides(cls, values: Any) -> Shape:
        """Return these strides; zeros are allowed.

        Clauses: SHAPE-TYPE-1
        """
        found = entries("strides", values, "SHAPE-TYPE-1")
        require_rank("strides", found, "SHAPE-TYPE-1")
        return tuple.__new__(cls, found)

    @classmethod
    def from_(cls, values: Any) -> Shape:
        """Return the shape of whatever holds sizes.

        Clauses: SHAPE-TYPE-1
        """
        return cls.init(values)

    @property
    def len(self) -> int:
        """The number of entries."""
        return len(self)

    @property
    def dims(self) -> tuple[int, ...]:
        """The entries."""
        return tuple(self)

    def slice(self) -> tuple[int, ...]:
        """Return the entries.

        Clauses: SHAPE-TYPE-1
        """
        return tuple(self)

    def at(self, i: int) -> int:
        """Return entry ``i``; IndexOutOfBounds outside [0, rank).

        Clauses: SHAPE-TYPE-1
        """
        return self[axis_of(i, len(self), "SHAPE-TYPE-1")]

    def __repr__(self) -> str:
        return f"Shape{tuple(self)}"

    def __getnewargs__(self) -> tuple[tuple[int, ...]]:
        return (tuple(self),)

    def __reduce__(self) -> tuple[Any, ...]:
        # strides have zeros, which __new__ refuses
        return (Shape.init_strides, (tuple(self),))


def element_count(shape: Any) -> int:
    """Return the number of elements: an integer below 2^64.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        No shape, or too many elements; zeros and the product are looked at together, from the left.

    Clauses: SHAPE-COUNT-1, SHAPE-RULE-1
    """
    return count_of("shape", entries("shape", shape, "SHAPE-COUNT-1"), "SHAPE-COUNT-1")


def storage_element_count(dtype: DType, shape: Any) -> int:
    """Return the number of storage elements: of a block dtype the number of blocks.

    Raises
    ------
    InvalidDType, InvalidInteger, InvalidShape, Overflow
        As :func:`element_count`; also a last size that is no multiple of the block size.

    Clauses: SHAPE-COUNT-2
    """
    found = known_dtype(dtype)
    return storage_count_of(found, entries("shape", shape, "SHAPE-COUNT-2"), "SHAPE-COUNT-2")


def product(dims: Any) -> int:
    """Return the product of any sizes; of none it is 1.

    Raises
    ------
    InvalidInteger, InvalidShape, Overflow
        No sizes, or a product of 2^64 and above.

    Clauses: SHAPE-PRODUCT-1
    """
    found = entries("dims", dims, "SHAPE-PRODUCT-1")
    result = 1
    for size in found:
        result *= size
    if result >= _WORD:
        raise Overflow(f"the product of {tuple_shown(found)} must lie in [0, 2^64)", clause="SHAPE-PRODUCT-1")
    return result
