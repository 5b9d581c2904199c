"""Buffers of the block formats: what holds blocks, what holds the values that become blocks, which rows are wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fucina.reference.arguments import dtype_argument, is_a
from fucina.reference.buffers import (
    Memory,
    array_dtype,
    readable,
    require_contiguous,
    require_writable,
    struct_format,
    viewed,
)
from fucina.reference.formats import F32
from fucina.reference.geometry import storage
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidDType,
    InvalidShape,
    NonFiniteValue,
)
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = [
    "Blocks",
    "Format",
    "block_format",
    "block_target",
    "place",
    "refuse_nonfinite",
    "stored_blocks",
    "to_encode",
]

UPSTREAM = (
    "; 18 bytes are a block of another format, of 64 elements, to which upstream gave the same type id, 42 (clause "
    "BLOCK-IN-2); a block of q2_0 has 128 elements in 34 bytes"
)
"""What a message adds where blocks of upstream's q2_0 seem to have been given."""


class Format(NamedTuple):
    """The sizes of a block format, and its packed struct."""

    dtype: DType
    elements: int
    size: int
    struct: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Checked memory that holds blocks: its bytes, and the shape of the array of blocks."""

    memory: Memory
    shape: tuple[int, ...]
    size: int

    @property
    def count(self) -> int:
        """The number of blocks."""
        return math.prod(self.shape)

    def read(self) -> Iterator[bytes]:
        """Return the blocks one by one."""
        data = self.memory.patterns
        return (data[start : start + self.size].tobytes() for start in range(0, data.size, self.size))

    def write(self, blocks: Sequence[bytes]) -> None:
        """Store all blocks.

        Notes
        -----
        Clauses: ERR-STATE-1
        """
        self.memory.patterns[:] = np.frombuffer(b"".join(blocks), np.uint8)


def block_format(dtype: object) -> Format:
    """Return the format of the argument if it is a block dtype.

    Notes
    -----
    Clauses: BLOCK-ARG-1
    """
    found = dtype_argument(dtype)
    elements = GEOMETRY[found].block_size
    if elements is None:
        raise InvalidDType(f"dtype must be a block dtype, got {found!r}", clause="BLOCK-ARG-1")
    return Format(found, elements, GEOMETRY[found].byte_size, storage(found))


# -- blocks


def stored_blocks(name: str, buffer: object, fmt: Format) -> Blocks:
    """Return the blocks of a buffer: an array of the format's struct, or bytes.

    Parameters
    ----------
    name : str
        The parameter's name, for messages.
    buffer : buffer
        C-contiguous, of any alignment, writable or not.  The last axis of bytes is a whole number of blocks.
    fmt : Format
        What it must hold.

    Raises
    ------
    DTypeMismatch, UnsupportedView
        If it is no such buffer.
    InvalidShape, InvalidDataLength
        If there is no block along its last axis, or no whole number of them.

    Notes
    -----
    Clauses: BLOCK-IN-1, BLOCK-IN-2
    """
    memory, shape, is_bytes = _memory(name, buffer, fmt, "BLOCK-IN-1")
    if is_bytes and not shape:
        raise InvalidShape(f"{name} must have an axis of bytes, got a single byte without axes", clause="BLOCK-IN-1")
    if shape and not shape[-1]:
        raise InvalidShape(
            f"the last axis of {name} must hold at least one block, got length 0 in shape {shape}", clause="BLOCK-IN-1"
        )
    if is_bytes:
        if shape[-1] % fmt.size:
            raise InvalidDataLength(
                f"the last axis of {name} must be a multiple of the {fmt.size} bytes of a block of {fmt.dtype.name}, "
                f"got {shape[-1]} bytes{UPSTREAM if fmt.dtype is DType.q2_0 and shape[-1] % 18 == 0 else ''}",
                clause="BLOCK-IN-1",
            )
        shape = (*shape[:-1], shape[-1] // fmt.size)
    return Blocks(memory, shape, fmt.size)


def block_target(name: str, buffer: object, fmt: Format, count: int) -> Blocks:
    """Return the memory of a buffer that blocks go to: the struct or bytes, exactly as many as needed.

    Raises
    ------
    DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
        If it has another format, is not C-contiguous, is read-only, or has another size.

    Notes
    -----
    Clauses: BLOCK-OUT-1
    """
    memory, _, _ = _memory(name, buffer, fmt, "BLOCK-OUT-1")
    require_writable(name, memory, "BLOCK-OUT-1")
    if memory.patterns.size != count * fmt.size:
        raise InvalidDataLength(
            f"{name} must hold {count} blocks of {fmt.size} bytes, {count * fmt.size} bytes, got "
            f"{memory.patterns.size}",
            clause="BLOCK-OUT-1",
        )
    return Blocks(memory, (count,), fmt.size)


def _memory(name: str, buffer: object, fmt: Format, clause: str) -> tuple[Memory, tuple[int, ...], bool]:
    """Return the bytes of a buffer of structs or of bytes, its shape, and which of the two it is.

    Notes
    -----
    Clauses: BLOCK-STRUCT-1, BLOCK-IN-1
    """
    view = viewed(name, buffer, f"a buffer of {GEOMETRY[fmt.dtype].struct_name} structs or of bytes", clause)
    is_bytes = _named_bytes(view) and view.itemsize == 1  # ctypes calls packed structs bytes, in Python 3.11
    if not is_bytes:
        _require_struct(name, buffer, view, fmt, clause)
    require_contiguous(name, view, clause)
    shape = tuple(view.shape or ())
    return Memory(np.frombuffer(view, np.uint8), shape), shape, is_bytes


def _named_bytes(view: memoryview) -> bool:
    """Return whether the format of a buffer is that of a byte; its items may be larger, if it is wrong."""
    return view.format.lstrip("@=<>!") == "B"


def _require_struct(name: str, buffer: object, view: memoryview, fmt: Format, clause: str) -> None:
    """Refuse elements that are not the packed struct of the format; the message names the field that differs.

    Notes
    -----
    Clauses: BLOCK-STRUCT-1, BLOCK-IN-1, BLOCK-IN-2
    """
    held: np.dtype[Any] | None
    if is_a(buffer, np.ndarray):
        held = array_dtype(buffer, view)
    elif struct_format(view, fmt.struct):
        return
    elif _named_bytes(view):
        held = None
    else:
        try:
            held = np.asarray(view).dtype
        except (TypeError, ValueError, RuntimeError):  # what numpy has no dtype for is not the struct
            held = None
    if held == fmt.struct:
        return
    wanted = f"{name} must hold {GEOMETRY[fmt.dtype].struct_name}, the packed struct of {fmt.size} bytes, or bytes (B)"
    if held is None or held.fields is None:
        raise DTypeMismatch(f"{wanted}, got buffer format {view.format!r} of {view.itemsize} bytes", clause=clause)
    upstream = UPSTREAM if fmt.dtype is DType.q2_0 and held.itemsize == 18 else ""
    for field in GEOMETRY[fmt.dtype].fields:
        found = held.fields.get(field.name)
        if found is None:
            raise DTypeMismatch(f"{wanted}, got a struct without the field {field.name}{upstream}", clause=clause)
        form, offset = found[0], found[1]
        if form != fmt.struct[field.name] or offset != field.offset:
            raise DTypeMismatch(
                f"{wanted}, with {field.count} of {field.format} at byte {field.offset} as field {field.name}, got "
                f"{form} at byte {offset}{upstream}",
                clause=clause,
            )
    raise DTypeMismatch(
        f"{wanted}, got a struct of {held.itemsize} bytes with the fields {', '.join(held.names or ())}", clause=clause
    )


# -- values


def to_encode(values: object, fmt: Format) -> Memory:
    """Return the memory of values that become blocks: f32, whole blocks along the last axis.

    Notes
    -----
    Clauses: BLOCK-VALUES-1
    """
    memory = readable("values", values, DType.f32, "BLOCK-VALUES-1")
    length = memory.shape[-1] if memory.shape else 0
    if not length or length % fmt.elements:
        got = f"length {length} in shape {memory.shape}" if memory.shape else "no axis at all"
        raise InvalidShape(
            f"the last axis of values must be a nonzero multiple of the block size {fmt.elements} of {fmt.dtype.name}, "
            f"got {got}",
            clause="BLOCK-VALUES-1",
        )
    return memory


def refuse_nonfinite(name: str, patterns: Sequence[int], shape: tuple[int, ...], clause: str) -> None:
    """Refuse f32 patterns among which there is a NaN or an infinity.

    Notes
    -----
    Clauses: BLOCK-FINITE-1
    """
    for flat, bits in enumerate(patterns):
        magnitude = bits & 0x7FFFFFFF
        if magnitude > F32.largest:
            word = "nan" if magnitude > F32.overflow else "-inf" if bits >> 31 else "inf"
            raise NonFiniteValue(
                f"{name} must be finite, got {name}[{place(flat, shape)}] = {word} (element {flat} in C order)",
                clause=clause,
            )


def place(flat: int, shape: tuple[int, ...]) -> str:
    """Return the index of an element of an array, from its position in C order."""
    found: list[int] = []
    for length in reversed(shape):
        flat, last = divmod(flat, length)
        found.insert(0, last)
    return ", ".join(map(str, found))
