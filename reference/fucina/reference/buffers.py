"""Buffers: which memory may be read and written, seen as patterns.

Any object with the buffer protocol will do if it is C-contiguous and holds exactly the storage form of its dtype, in
native byte order.  numpy only moves integers here: the memory is viewed as unsigned integers of the element's size, so
no float is ever touched.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.ma import MaskedArray  # np.ma would import it in the first call, which raises flags (NUM-ENV-3)

from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidShape,
    OutOfMemory,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.spec.interface import AnyArray

__all__ = [
    "Memory",
    "array_dtype",
    "empty",
    "numpy_format",
    "readable",
    "refuse_overlap",
    "require_contiguous",
    "require_count",
    "require_writable",
    "struct_format",
    "viewed",
    "writable",
]

# format characters of the buffer protocol by numpy kind; which of them has which size is the platform's business
CHARACTERS = {"b": "?", "u": "BHILQN", "i": "bhilqn", "f": "efd"}
NATIVE_ORDER = ("@", "=", "<" if sys.byteorder == "little" else ">")


class Memory(NamedTuple):
    """Checked memory of a buffer.

    ``patterns`` is a one-dimensional numpy view of it, one unsigned integer per element, and keeps the exporter alive;
    ``shape`` is the shape of the buffer.
    """

    patterns: np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]
    shape: tuple[int, ...]

    @property
    def address(self) -> int:
        """Where the memory starts."""
        return int(self.patterns.__array_interface__["data"][0])

    def read(self) -> list[int]:
        """Return all patterns."""
        patterns: list[int] = self.patterns.tolist()
        return patterns

    def write(self, patterns: Sequence[int]) -> None:
        """Store all patterns.

        Notes
        -----
        Clauses: ERR-STATE-1
        """
        self.patterns[:] = np.array(patterns, dtype=self.patterns.dtype)


def numpy_format(fmt: str, itemsize: int) -> str | None:
    """Return the numpy kind and size (``"f4"``) of a buffer's element format, or None if it is none of ours."""
    character = fmt[1:] if fmt.startswith(NATIVE_ORDER) else fmt
    for kind, characters in CHARACTERS.items():
        if len(character) == 1 and character in characters:
            return f"{kind}{itemsize}"
    return None


def readable(name: str, buffer: object, dtype: DType, clause: str = "BRIDGE-ARRAY-2") -> Memory:
    """Return the memory of a buffer that holds a scalar dtype.

    Parameters
    ----------
    name : str
        The parameter's name, for messages.
    buffer : buffer
        C-contiguous, of any shape and alignment, writable or not.
    dtype : DType
        What it must hold, in storage form.
    clause : str
        The clause that asks for it.

    Raises
    ------
    DTypeMismatch
        If it is no buffer, is masked, or holds another format.
    UnsupportedView
        If it is not C-contiguous.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-2
    """
    wanted = np.dtype(GEOMETRY[dtype].format)
    view = viewed(name, buffer, f"a buffer of {wanted} elements", clause)
    if numpy_format(view.format, view.itemsize) != f"{wanted.kind}{wanted.itemsize}":
        raise DTypeMismatch(
            f"{name} must hold {dtype.name} as {wanted} in native byte order, got buffer format {view.format!r} "
            f"of {view.itemsize} bytes",
            clause=clause,
        )
    require_contiguous(name, view, clause)
    return Memory(np.frombuffer(view, dtype=f"u{wanted.itemsize}"), tuple(view.shape or ()))


def array_dtype(value: object, view: memoryview) -> np.dtype[Any] | None:
    """Return the dtype of an array, asked as the base class because a subclass may answer anything.

    None where the buffer has other items, as after another thread has set the dtype.
    """
    held: np.dtype[Any] = np.ndarray.dtype.__get__(value)
    return held if held.itemsize == view.itemsize else None


def struct_format(view: memoryview, struct: np.dtype[Any]) -> bool:
    """Return whether the items of a buffer are a struct, by its format string.

    numpy would read the string in Python, which raises a flag (clause NUM-ENV-3).
    """
    return (view.format, view.itemsize) == (np.empty(1, struct).data.format, struct.itemsize)


def viewed(name: str, buffer: object, wanted: str, clause: str) -> memoryview:
    """Return the view of a buffer, of whatever format; ``wanted`` says in the message what should have been given.

    Raises
    ------
    DTypeMismatch
        If it is no buffer, or is masked.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-2
    """
    if isinstance(buffer, MaskedArray):
        raise DTypeMismatch(f"{name} must be a plain array, got a masked one", clause=clause)
    try:
        return memoryview(buffer)  # type: ignore[arg-type]  # what exports no buffer is refused below
    except (TypeError, ValueError, BufferError) as refusal:
        raise DTypeMismatch(
            f"{name} must be {wanted}, got {type(buffer).__name__} ({refusal})", clause=clause
        ) from None


def require_contiguous(name: str, view: memoryview, clause: str) -> None:
    """Refuse memory with gaps, or in another order than C's.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-2
    """
    if not view.c_contiguous:
        raise UnsupportedView(
            f"{name} must be C-contiguous, got shape {view.shape} with strides {view.strides}", clause=clause
        )


def writable(name: str, buffer: object, dtype: DType, clause: str) -> Memory:
    """Return the memory of a buffer that results go to: as :func:`readable`, and writable and aligned.

    Raises
    ------
    DTypeMismatch, UnsupportedView
        As there; UnsupportedView also if it is not aligned to its element size.
    ReadOnlyStorage
        If it is read-only.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-3, RNG-OUT-1
    """
    memory = readable(name, buffer, dtype, clause)
    require_writable(name, memory, clause)
    size = memory.patterns.itemsize
    if memory.patterns.size and memory.address % size:
        raise UnsupportedView(
            f"{name} must be aligned to its elements of {size} bytes, got an address {memory.address % size} past one",
            clause=clause,
        )
    return memory


def require_writable(name: str, memory: Memory, clause: str) -> None:
    """Refuse memory that is read-only.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-3
    """
    if not memory.patterns.flags.writeable:
        raise ReadOnlyStorage(f"{name} must be writable, got a read-only buffer", clause=clause)


def require_count(name: str, memory: Memory, count: int, clause: str) -> None:
    """Refuse memory of another number of elements.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-3
    """
    if memory.patterns.size != count:
        raise InvalidDataLength(f"{name} must hold {count} elements, got {memory.patterns.size}", clause=clause)


def refuse_overlap(source: Memory, target: Memory, clause: str, name: str = "the input") -> None:
    """Refuse two memories that have a byte in common; ``name`` is what the source is called.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-3
    """
    first, second = sorted((memory.address, memory.patterns.nbytes) for memory in (source, target))
    if first[1] and second[1] and first[0] + first[1] > second[0]:
        raise OverlappingMemory(
            f"out must not share memory with {name}, got two ranges that overlap by "
            f"{min(first[0] + first[1], second[0] + second[1]) - second[0]} bytes",
            clause=clause,
        )


def empty(shape: tuple[int, ...], form: np.dtype[Any], clause: str) -> AnyArray:
    """Return a new array for a result.

    Raises
    ------
    OutOfMemory, InvalidShape
        If there is no memory for it, or no array can have its shape.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-1
    """
    try:
        return np.empty(shape, form)
    except MemoryError as refusal:
        raise OutOfMemory(f"no memory for a result of {math.prod(shape)} elements ({refusal})", clause=clause) from None
    except ValueError as refusal:
        raise InvalidShape(f"no array can have shape {shape} here ({refusal})", clause=clause) from None
