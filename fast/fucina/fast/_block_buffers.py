"""Buffers of the block formats: what holds blocks, what holds the values that become blocks, and their shapes."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fucina.fast._arguments import known_dtype
from fucina.fast._buffers import Memory, buffer_of, dtype_of_array, has_struct_format, is_array, reading
from fucina.fast._flags import kept_flags
from fucina.fast._native import lib
from fucina.fast.geometry import storage
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidDType,
    InvalidShape,
    NonFiniteValue,
    ReadOnlyStorage,
    UnsupportedView,
)
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from fucina.spec.interface import Buffer

__all__ = ["Blocks", "block_dtype", "block_target", "require_finite", "stored_blocks", "values_to_encode"]

UPSTREAM_Q2_0 = (
    "; 18 bytes are a block of the 64-element format that has the same type id (42) elsewhere, which is not q2_0: here "
    "a block has 128 elements in 34 bytes (BLOCK-IN-2)"
)
_BYTES = frozenset({"B", "@B", "=B", "<B", ">B", "!B"})


class Geometry(NamedTuple):
    """The two sizes of a block, and its struct."""

    elements: int
    bytes: int
    struct: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Checked blocks: their memory, how many there are, and the shape of the array of blocks."""

    memory: Memory
    count: int
    shape: tuple[int, ...]


def block_dtype(dtype: object) -> DType:
    """Return the argument if it is one of the 27 block dtypes.

    Clauses: BLOCK-ARG-1
    """
    found = known_dtype(dtype)
    if GEOMETRY[found].block_size is None:
        raise InvalidDType(f"dtype must be a block dtype, got {found!r}", clause="BLOCK-ARG-1")
    return found


def geometry_of(dtype: DType) -> Geometry:
    """Return the sizes of a block dtype."""
    found = GEOMETRY[dtype]
    return Geometry(found.block_size or 0, found.byte_size, storage(dtype))


def stored_blocks(name: str, value: object, dtype: DType, clause: str = "BLOCK-IN-1") -> Blocks:
    """Return a buffer of blocks: an array of the packed struct, or bytes.

    Raises
    ------
    DTypeMismatch
        No buffer, or of another format than the struct or bytes.
    UnsupportedView
        Not C-contiguous.
    InvalidShape, InvalidDataLength
        No block along the last axis; bytes that are no whole number of blocks.

    Clauses: BLOCK-IN-1, BLOCK-IN-2
    """
    size = geometry_of(dtype).bytes
    view = buffer_of(name, value, None, clause)
    shape = tuple(view.shape or ())
    if _is_bytes(view):
        shape = _in_blocks(name, shape, dtype, clause)
    else:
        _require_struct(name, value, view, dtype, clause)
        if shape and shape[-1] == 0:
            raise InvalidShape(
                f"{name} must hold at least one block along its last axis, got shape {shape}", clause=clause
            )
    if not view.c_contiguous:
        raise UnsupportedView(
            f"{name} must be C-contiguous, got shape {view.shape} with strides {view.strides}", clause=clause
        )
    return Blocks(Memory(view, size), math.prod(shape), shape)


def _is_bytes(view: memoryview) -> bool:
    """Return whether a buffer holds bytes; ctypes calls packed structs bytes, in Python 3.11, whatever their size."""
    return view.format in _BYTES and view.itemsize == 1


def _in_blocks(name: str, shape: tuple[int, ...], dtype: DType, clause: str) -> tuple[int, ...]:
    """Return the shape in blocks of a buffer of bytes.

    Clauses: BLOCK-IN-1, BLOCK-IN-2
    """
    size = geometry_of(dtype).bytes
    if not shape or shape[-1] == 0:
        raise InvalidShape(
            f"{name} must hold at least one block of {size} bytes along its last axis, got bytes of shape {shape}",
            clause=clause,
        )
    if shape[-1] % size:
        hint = UPSTREAM_Q2_0 if dtype is DType.q2_0 and shape[-1] % 18 == 0 else ""
        raise InvalidDataLength(
            f"{name} must hold a whole number of {dtype.name} blocks of {size} bytes along its last axis, got "
            f"{shape[-1]} bytes{hint}",
            clause=clause,
        )
    return (*shape[:-1], shape[-1] // size)


def _require_struct(name: str, value: object, view: memoryview, dtype: DType, clause: str) -> None:
    """Refuse elements that are not the packed struct of the dtype.

    Clauses: BLOCK-STRUCT-1, BLOCK-IN-1, BLOCK-IN-2
    """
    wanted = geometry_of(dtype).struct
    held: np.dtype[Any] | None = None
    if is_array(value):
        held = dtype_of_array(value, view)
    elif has_struct_format(view, wanted):
        return
    elif view.format not in _BYTES:  # other exporters write the same fields in another way
        with kept_flags(), suppress(TypeError, ValueError, RuntimeError):
            held = np.asarray(view).dtype
    if held == wanted:
        return
    allowed = f"{name} must hold {GEOMETRY[dtype].struct_name} structs of {wanted.itemsize} bytes, or bytes (uint8)"
    if held is None or held.names is None:
        raise DTypeMismatch(f"{allowed}, got buffer format {view.format!r}, {view.itemsize} bytes each", clause=clause)
    hint = UPSTREAM_Q2_0 if dtype is DType.q2_0 and held.itemsize == 18 else ""
    swapped = [f for f in held.names if f in (wanted.names or ()) and _is_swapped(held[f], wanted[f])]
    if swapped and held.names == wanted.names:
        hint = f"; in the other byte order: {', '.join(swapped)} (blocks are little-endian on every machine)"
    raise DTypeMismatch(
        f"{allowed}, got structs of {held.itemsize} bytes with the fields {', '.join(held.names)}{hint}", clause=clause
    )


def _is_swapped(held: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    return held != wanted and held.newbyteorder() == wanted


def block_target(name: str, value: object, dtype: DType, count: int, clause: str = "BLOCK-OUT-1") -> Memory:
    """Return a buffer that ``count`` blocks may be written to: structs or bytes, of any shape and exactly that size.

    Clauses: BLOCK-OUT-1
    """
    size = geometry_of(dtype).bytes
    view = buffer_of(name, value, None, clause)
    if not _is_bytes(view):
        _require_struct(name, value, view, dtype, clause)
    if not view.c_contiguous:
        raise UnsupportedView(
            f"{name} must be C-contiguous, got shape {view.shape} with strides {view.strides}", clause=clause
        )
    if view.readonly:
        raise ReadOnlyStorage(f"{name} must be writable, got read-only memory", clause=clause)
    if view.nbytes != count * size:
        raise InvalidDataLength(
            f"{name} must hold {count} blocks of {size} bytes, {count * size} bytes, got {view.nbytes}", clause=clause
        )
    return Memory(view, size)


def values_to_encode(value: Buffer, dtype: DType) -> Blocks:
    """Return the values that are to become blocks; the shape is that of the array of blocks.

    Clauses: BLOCK-VALUES-1
    """
    memory = reading("values", value, DType.f32, "BLOCK-VALUES-1")
    shape, size = tuple(memory.view.shape or ()), geometry_of(dtype).elements
    if not shape or shape[-1] == 0 or shape[-1] % size:
        had = f"a last axis of {shape[-1]}" if shape else "no axis at all"
        raise InvalidShape(
            f"values must have a last axis that is a nonzero multiple of the block size {size} of {dtype.name}, got "
            f"{had} in shape {shape}",
            clause="BLOCK-VALUES-1",
        )
    return Blocks(memory, memory.count // size, (*shape[:-1], shape[-1] // size))


def require_finite(name: str, memory: Memory, clause: str) -> None:
    """Refuse values among which a NaN or an infinity stands.

    Clauses: BLOCK-FINITE-1
    """
    first = lib.fc_first_nonfinite(memory.pointer("void *"), memory.count)
    if first < memory.count:
        shape = tuple(memory.view.shape or ())
        place = ", ".join(str(int(i)) for i in np.unravel_index(first, shape)) if shape else ""
        bits = int(np.frombuffer(memory.view, np.uint8).view(np.uint32)[first])
        word = "nan" if bits & 0x7FFFFF else "-inf" if bits >> 31 else "inf"
        flat = f" (flat index {first})" if len(shape) > 1 else ""
        raise NonFiniteValue(f"{name} must be finite, got {name}[{place}] = {word}{flat}", clause=clause)
