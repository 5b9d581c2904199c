"""Buffers: which objects may be read and written, and where their elements lie.

This is the complete check, for every object with the buffer protocol; ``_entry`` shortens it for plain numpy arrays.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._native import ffi
from fucina.fast._shown import shown, tuple_shown
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
    from fucina.fast._native import CData
    from fucina.spec.interface import AnyArray

__all__ = [
    "Memory",
    "buffer_of",
    "dtype_of_array",
    "empty",
    "has_struct_format",
    "inferred",
    "is_array",
    "reading",
    "refuse_overlap",
    "require_count",
    "writing",
]

_CODES = {"f": "efd", "i": "bhilqn", "u": "BHILQN", "?": "?"}
_FORMATS = {
    dtype: (_CODES[geometry.format[0]], geometry.byte_size)
    for dtype, geometry in GEOMETRY.items()
    if geometry.format is not None
}
# numpy marks the elements of an unaligned array with "=": native order, standard sizes
_NATIVE_ORDER = "@=<" if sys.byteorder == "little" else "@=>!"


class Memory:
    """Checked memory: ``view`` keeps the exporter's buffer in place for as long as this object lives."""

    __slots__ = ("address", "count", "view")

    def __init__(self, view: memoryview, itemsize: int) -> None:
        self.view = view
        self.address = int(ffi.cast("uintptr_t", ffi.from_buffer(view)))
        self.count = view.nbytes // itemsize

    @classmethod
    def of(cls, array: Any) -> Memory:
        """Return the memory of a C-contiguous array of our own."""
        return cls(memoryview(array), array.itemsize)

    def pointer(self, ctype: str) -> CData:
        """Return the address of the first element as a C pointer."""
        return ffi.cast(ctype, self.address)


def _stored(dtype: DType) -> str:
    """Return the numpy name of a scalar dtype's storage form."""
    geometry = GEOMETRY[dtype]
    kind = {"?": "bool", "f": "float", "i": "int", "u": "uint"}[str(geometry.format)[0]]
    return kind if kind == "bool" else f"{kind}{8 * geometry.byte_size}"


def _described(dtype: DType) -> str:
    return f"{dtype.name} elements ({_stored(dtype)} in native byte order)"


def _format(view: memoryview) -> str:
    return f"buffer format {view.format!r}, {view.itemsize} bytes each"


def buffer_of(name: str, value: Any, dtype: DType | None, clause: str) -> memoryview:
    """Return the buffer of an object, whatever its elements are; ``dtype`` is what an error says they should be.

    Raises
    ------
    DTypeMismatch
        No buffer, or a masked array.
    """
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise DTypeMismatch(
            f"{name} must be a plain buffer, got a masked array: give its data and its mask apart", clause=clause
        )
    try:
        return memoryview(value)
    except (TypeError, ValueError, BufferError) as refusal:
        wanted = f" of {_described(dtype)}" if dtype else ""
        raise DTypeMismatch(f"{name} must be a buffer{wanted}, got {shown(value)} ({refusal})", clause=clause) from None


def empty(shape: tuple[int, ...], form: np.dtype[Any], clause: str) -> AnyArray:
    """Return a new array for a result.

    Raises
    ------
    OutOfMemory, InvalidShape
        There is no memory for it; numpy has no array of this shape.

    Clauses: BRIDGE-ARRAY-1, BLOCK-OUT-1, BLOCK-VALUES-1
    """
    try:
        return np.empty(shape, form)
    except MemoryError as refusal:
        raise OutOfMemory(
            f"no memory for a result of {math.prod(shape)} elements of {form.itemsize} bytes ({refusal})", clause=clause
        ) from None
    except ValueError as refusal:
        raise InvalidShape(f"no array can have shape {tuple_shown(shape)} here ({refusal})", clause=clause) from None


def is_array(value: object) -> bool:
    """Return whether an object is an array by its type: ``isinstance`` would believe what it says of itself."""
    return issubclass(type(value), np.ndarray)


def dtype_of_array(value: Any, view: memoryview) -> np.dtype[Any] | None:
    """Return the dtype of an array whose buffer is ``view``, or None where it is none that fits the buffer.

    A subclass may call its dtype what it likes, not so its base; and another thread may have set it since.
    """
    held: np.dtype[Any] = np.ndarray.dtype.__get__(value)
    return held if held.itemsize == view.itemsize else None


def has_struct_format(view: memoryview, struct: np.dtype[Any]) -> bool:
    """Return whether a buffer's format is that of a numpy struct, without numpy's reading it.

    numpy reads a struct's format in Python, which raises flags (NUM-ENV-3).
    """
    return (view.format, view.itemsize) == (np.empty(1, struct).data.format, struct.itemsize)


def _code(view: memoryview) -> str:
    """Return the one letter of a simple format in native byte order, or a space."""
    code = view.format[1:] if view.format[:1] in _NATIVE_ORDER else view.format
    return code if len(code) == 1 else " "


def inferred(name: str, value: Any, clause: str) -> DType:
    """Return the dtype that a buffer's format means: of an unsigned integer u8 or u16, never bf16 or f8.

    Clauses: BRIDGE-CONVERT-1
    """
    view = buffer_of(name, value, None, clause)
    for dtype, (codes, size) in _FORMATS.items():  # the documents' order: u8 before f8, u16 before bf16
        if _code(view) in codes and view.itemsize == size:
            return dtype
    allowed = ", ".join(dict.fromkeys(map(_stored, _FORMATS)))
    raise DTypeMismatch(f"{name} must hold {allowed} in native byte order, got {_format(view)}", clause=clause)


def reading(name: str, value: Any, dtype: DType, clause: str) -> Memory:
    """Return the memory of a buffer that holds elements of ``dtype``: C-contiguous, of any alignment, read-only or not.

    Raises
    ------
    DTypeMismatch
        No buffer, a masked array, or another format.
    UnsupportedView
        Not C-contiguous.

    Clauses: BRIDGE-ARRAY-2
    """
    view = buffer_of(name, value, dtype, clause)
    codes, size = _FORMATS[dtype]
    if _code(view) not in codes or view.itemsize != size:
        raise DTypeMismatch(
            f"{name} must hold {_described(dtype)}, got {_format(view)}",
            clause=clause,
        )
    if not view.c_contiguous:
        raise UnsupportedView(
            f"{name} must be C-contiguous, got shape {view.shape} with strides {view.strides}", clause=clause
        )
    return Memory(view, size)


def writing(name: str, value: Any, dtype: DType, clause: str) -> Memory:
    """Return the memory of a buffer that results may be written to: also writable, and aligned to its element.

    Raises
    ------
    DTypeMismatch, UnsupportedView
        As for reading; UnsupportedView also when misaligned.
    ReadOnlyStorage
        Not writable.

    Clauses: RNG-OUT-1, BRIDGE-ARRAY-3
    """
    memory = reading(name, value, dtype, clause)
    if memory.view.readonly:
        raise ReadOnlyStorage(f"{name} must be writable, got read-only memory", clause=clause)
    size = memory.view.itemsize
    if memory.count and memory.address % size:
        raise UnsupportedView(
            f"{name} must be aligned to its {size}-byte element, got an address {memory.address % size} bytes past one",
            clause=clause,
        )
    return memory


def require_count(name: str, memory: Memory, count: int, clause: str) -> None:
    """Refuse memory with another number of elements.

    Clauses: BRIDGE-ARRAY-3
    """
    if memory.count != count:
        raise InvalidDataLength(f"{name} must hold {count} elements, got {memory.count}", clause=clause)


def refuse_overlap(source_name: str, source: Memory, name: str, target: Memory, clause: str) -> None:
    """Refuse an output that shares a byte with the input.

    Clauses: BRIDGE-ARRAY-3
    """
    source_end, target_end = source.address + source.view.nbytes, target.address + target.view.nbytes
    if source.address < target_end and target.address < source_end and source.count:
        first, last = max(source.address, target.address), min(source_end, target_end)
        raise OverlappingMemory(
            f"{name} must not share memory with {source_name}, got bytes [{first - source.address}, "
            f"{last - source.address}) of {source_name} as bytes [{first - target.address}, {last - target.address}) "
            f"of {name}",
            clause=clause,
        )
