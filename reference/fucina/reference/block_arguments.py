"""The arguments of the block functions besides the buffers: rows and their indices, the options of the encoders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fucina.reference.arguments import f32_argument, number_shown, shown, whole
from fucina.reference.block_buffers import Format, place, refuse_nonfinite
from fucina.reference.buffers import Memory, viewed
from fucina.reference.formats import F32, decode
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    OutOfMemory,
    OverlappingMemory,
)
from fucina.spec.types import DType

__all__ = ["Indices", "blocks_per_row", "check_options", "given_importance", "given_indices", "given_scale"]

IMPORTANCE = (DType.iq1_s, DType.iq1_m, DType.iq2_xxs, DType.iq2_xs)
"""The formats that take an importance for each column."""


# -- rows


def blocks_per_row(row_len: object, fmt: Format) -> int:
    """Return how many blocks make a row of so many elements.

    Notes
    -----
    Clauses: BLOCK-ROWS-1
    """
    found = whole("row_len", row_len, "BLOCK-ROWS-1")
    if found <= 0 or found % fmt.elements:
        raise InvalidShape(
            f"row_len must be a positive multiple of the block size {fmt.elements} of {fmt.dtype.name}, got "
            f"{shown(found)}",
            clause="BLOCK-ROWS-1",
        )
    return found // fmt.elements


class Indices(NamedTuple):
    """Checked indices: what they are, their shape, and the array that they were given as, if they were."""

    rows: list[int]
    shape: tuple[int, ...]
    array: np.ndarray[Any, np.dtype[Any]] | None

    def refuse_overlap(self, out: Memory) -> None:
        """Refuse to write where the indices are.

        Notes
        -----
        Clauses: BLOCK-OUT-1
        """
        if self.array is not None and np.shares_memory(self.array, out.patterns):
            raise OverlappingMemory(
                f"out must not share memory with indices, got {out.patterns.nbytes} bytes over them",
                clause="BLOCK-OUT-1",
            )


def given_indices(indices: object, rows: int) -> Indices:
    """Return the indices of an array of integers, of any shape and layout, or of a sequence.

    Parameters
    ----------
    indices : array of integers or sequence of int
        The argument.
    rows : int
        How many rows there are; the first index that is none of them is named.

    Notes
    -----
    Clauses: BLOCK-ROWS-1, BLOCK-ROWS-2
    """
    if isinstance(indices, Sequence) and not isinstance(indices, str | bytes | bytearray | memoryview):
        found = _checked(indices, None, rows)
        return Indices(found, (len(found),), None)
    view = viewed("indices", indices, "a sequence or a buffer of integers", "BLOCK-ROWS-2")
    try:
        held = np.asarray(view)
    except (TypeError, ValueError, RuntimeError):
        held = None
    if held is None or held.dtype.kind not in "iu":
        raise InvalidInteger(f"indices must be integers, got buffer format {view.format!r}", clause="BLOCK-ROWS-2")
    try:
        values = held.reshape(-1).tolist()
    except MemoryError:  # a broadcast array is larger than its memory
        raise OutOfMemory(f"no memory for a list of {held.size} indices", clause="BLOCK-ROWS-1") from None
    return Indices(_checked(values, held.shape, rows), held.shape, held)


def _checked(values: Iterable[object], shape: tuple[int, ...] | None, rows: int) -> list[int]:
    """Return values if each is the index of a row; without a shape they are a sequence, of whatever length.

    Notes
    -----
    Clauses: BLOCK-ROWS-1, BLOCK-ROWS-2
    """
    found: list[int] = []
    try:
        for position, value in enumerate(values):
            name = f"indices[{position if shape is None else place(position, shape)}]"
            index = whole(name, value, "BLOCK-ROWS-2")
            if not 0 <= index < rows:
                raise IndexOutOfBounds(f"{name} must be in [0, {rows}), got {shown(index)}", clause="BLOCK-ROWS-2")
            found.append(index)
    except MemoryError:
        raise OutOfMemory(f"no memory for more than {len(found)} indices", clause="BLOCK-ROWS-1") from None
    return found


# -- options of the encoders


def check_options(dtype: DType, imatrix: object, search: object, scale: object) -> None:
    """Refuse options that the format does not take.

    Notes
    -----
    Clauses: BLOCK-ARG-1
    """
    if type(search) not in (bool, np.bool_):
        raise DTypeMismatch(f"search must be a bool, got {shown(search)}", clause="BLOCK-ARG-1")
    if not search and dtype is not DType.iq4_nl:
        raise InvalidDType(f"search=False is for {DType.iq4_nl!r}, got {dtype!r}", clause="BLOCK-ARG-1")
    if scale is not None and dtype is not DType.tq2_0:
        raise InvalidDType(f"scale is for {DType.tq2_0!r}, got {dtype!r}", clause="BLOCK-ARG-1")
    if imatrix is not None and dtype not in IMPORTANCE:
        raise InvalidDType(f"imatrix is for {', '.join(map(repr, IMPORTANCE))}, got {dtype!r}", clause="BLOCK-ARG-1")


def given_scale(scale: object) -> int:
    """Return the pattern of the scale of tq2_0.

    Notes
    -----
    Clauses: BLOCK-SCALE-1, NUM-PARAM-1
    """
    found = f32_argument("scale", scale)
    if not found.is_finite or not found > Soft32.integer(0):
        raise InvalidBounds(
            f"scale must be finite and above 0 as an f32, got {number_shown(found.number)}", clause="BLOCK-SCALE-1"
        )
    return found.bits


def given_importance(memory: Memory, columns: int) -> list[int]:
    """Return the importance of the columns.

    Notes
    -----
    Clauses: BLOCK-IMATRIX-1
    """
    if memory.shape != (columns,):
        raise InvalidDataLength(
            f"imatrix must have the shape ({columns},), one element for each of the last axis of values, got "
            f"{memory.shape}",
            clause="BLOCK-IMATRIX-1",
        )
    patterns = memory.read()
    refuse_nonfinite("imatrix", patterns, memory.shape, "BLOCK-IMATRIX-1")
    for i, bits in enumerate(patterns):
        if bits > 0x80000000:  # a zero of either sign will do
            raise InvalidBounds(
                f"imatrix must not be below 0, got imatrix[{i}] = {number_shown(decode(F32, bits))}",
                clause="BLOCK-IMATRIX-1",
            )
    return patterns
