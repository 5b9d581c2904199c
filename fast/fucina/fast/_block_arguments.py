"""The options of the block functions, and the indices of a gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._accelerate import of_bits
from fucina.fast._arguments import cast_pattern, pattern, whole
from fucina.fast._block_buffers import geometry_of, require_finite
from fucina.fast._buffers import Memory, buffer_of, reading
from fucina.fast._flags import kept_flags
from fucina.fast._shown import double_shown, integer_shown, shown
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    OutOfMemory,
)
from fucina.spec.types import DType

if TYPE_CHECKING:
    import numpy.typing as npt

    from fucina.spec.interface import Buffer

__all__ = ["imatrix_option", "row_blocks", "row_indices", "scale_option", "search_option"]

WITH_IMPORTANCE = (DType.iq1_s, DType.iq1_m, DType.iq2_xxs, DType.iq2_xs)
_F32, _F64 = DType.f32.index, DType.f64.index


def search_option(dtype: DType, imatrix: object, search: object, scale: object) -> bool:
    """Return the switch of iq4_nl's search, once no option is one that the format does not have.

    Clauses: BLOCK-ARG-1
    """
    if type(search) not in (bool, np.bool_):  # not by isinstance, which believes an object that poses as one
        raise DTypeMismatch(f"search must be True or False, got {shown(search)}", clause="BLOCK-ARG-1")
    if not search and dtype is not DType.iq4_nl:
        raise InvalidDType(f"search=False is an option of iq4_nl alone, got {dtype!r}", clause="BLOCK-ARG-1")
    if scale is not None and dtype is not DType.tq2_0:
        raise InvalidDType(f"scale= is an option of tq2_0 alone, got {dtype!r}", clause="BLOCK-ARG-1")
    if imatrix is not None and dtype not in WITH_IMPORTANCE:
        allowed = ", ".join(d.name for d in WITH_IMPORTANCE)
        raise InvalidDType(f"imatrix= is an option of {allowed}, got {dtype!r}", clause="BLOCK-ARG-1")
    return bool(search)


def scale_option(scale: Any) -> float:
    """Return the given scale of tq2_0 as an f32, or 0 for none.

    Clauses: BLOCK-SCALE-1, NUM-PARAM-1
    """
    if scale is None:
        return 0.0
    given = pattern("scale", scale, "NUM-PARAM-1")
    bits = cast_pattern(_F64, _F32, given)
    if not 0 < bits < 0x7F800000:
        raise InvalidBounds(
            f"scale must be finite and above 0 as an f32, got {double_shown(given)}", clause="BLOCK-SCALE-1"
        )
    return of_bits(cast_pattern(_F32, _F64, bits))


def imatrix_option(imatrix: Buffer | None, columns: int) -> tuple[Memory | None, Memory | None]:
    """Return where the importance of the columns was given, and a checked copy, which is what is used.

    The kernels read aligned floats, and nobody else can change the copy.

    Clauses: BLOCK-IMATRIX-1
    """
    if imatrix is None:
        return None, None
    memory = reading("imatrix", imatrix, DType.f32, "BLOCK-IMATRIX-1")
    if memory.view.ndim != 1 or memory.count != columns:
        raise InvalidDataLength(
            f"imatrix must be 1-D with one entry for each of the {columns} columns, got shape {memory.view.shape}",
            clause="BLOCK-IMATRIX-1",
        )
    bits = np.frombuffer(memory.view, np.uint8).copy().view(np.uint32)
    own = Memory.of(bits.view(np.float32))
    require_finite("imatrix", own, "BLOCK-IMATRIX-1")
    with kept_flags():
        negative = bits > 0x80000000  # a zero of either sign is no negative number
        first = int(negative.argmax())
    if negative[first]:
        value = double_shown(cast_pattern(_F32, _F64, int(bits[first])))
        raise InvalidBounds(f"imatrix must not be negative, got imatrix[{first}] = {value}", clause="BLOCK-IMATRIX-1")
    return memory, own


def row_blocks(row_len: object, dtype: DType) -> int:
    """Return the blocks in a row of ``row_len`` elements.

    Clauses: BLOCK-ROWS-1
    """
    number, size = whole("row_len", row_len, "BLOCK-ROWS-1"), geometry_of(dtype).elements
    if number <= 0 or number % size:
        raise InvalidShape(
            f"row_len must be a positive multiple of the block size {size} of {dtype.name}, got "
            f"{integer_shown(number)}",
            clause="BLOCK-ROWS-1",
        )
    return number // size


def row_indices(indices: Any, rows: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any]]:
    """Return the indices of rows, each below their number, as words of their own; and the array they were given as.

    What is checked is a copy, and the copy is what is used.

    Clauses: BLOCK-ROWS-1, BLOCK-ROWS-2
    """
    if isinstance(indices, Sequence) and not isinstance(indices, str | bytes | bytearray | memoryview):
        words = _listed(indices, rows)
        return words, words
    view = buffer_of("indices", indices, None, "BLOCK-ROWS-2")
    try:
        held = np.asarray(view)
    except (TypeError, ValueError, NotImplementedError, RuntimeError):
        held = np.asarray(None)
    if held.dtype.kind not in "iu":
        raise InvalidInteger(
            f"indices must be integers, got an array of {held.dtype} (buffer format {view.format!r})",
            clause="BLOCK-ROWS-2",
        )
    try:
        return _checked(held, rows), held
    except MemoryError as refusal:  # a broadcast array is larger than its memory
        raise OutOfMemory(f"no memory for a copy of {held.size} indices ({refusal})", clause="BLOCK-ROWS-1") from None


def _listed(indices: Sequence[Any], rows: int) -> npt.NDArray[np.uint64]:
    """Return indices of a sequence as words, each below the number of rows.

    Clauses: BLOCK-ROWS-2
    """
    numbers = []
    try:
        for i, index in enumerate(indices):
            number = whole(f"indices[{i}]", index, "BLOCK-ROWS-2")
            if not 0 <= number < rows:
                raise _out_of_bounds(rows, str(i), number)
            numbers.append(number)
        return np.array(numbers, np.uint64)
    except MemoryError:
        raise OutOfMemory(f"no memory for more than {len(numbers)} indices", clause="BLOCK-ROWS-1") from None


def _checked(indices: npt.NDArray[Any], rows: int) -> npt.NDArray[np.uint64]:
    """Return indices as words, each below the number of rows.

    Clauses: BLOCK-ROWS-2
    """
    flat = np.array(indices).reshape(-1)
    outside = (flat < 0) | (flat >= rows)
    if outside.any():
        first = int(outside.argmax())
        place = ", ".join(str(int(i)) for i in np.unravel_index(first, indices.shape)) if indices.shape else ""
        raise _out_of_bounds(rows, place, int(flat[first]))
    return flat.astype(np.uint64)


def _out_of_bounds(rows: int, place: str, index: int) -> IndexOutOfBounds:
    return IndexOutOfBounds(
        f"indices must lie in [0, {rows}), got indices[{place}] = {integer_shown(index)}", clause="BLOCK-ROWS-2"
    )
