"""Arrays: the scalar conversions, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.ma import MaskedArray  # see fucina.reference.buffers

from fucina.reference.arguments import dtype_argument, scalar_dtype
from fucina.reference.bridges import Caster, caster
from fucina.reference.buffers import empty, numpy_format, readable, refuse_overlap, require_count, writable
from fucina.spec.errors import DTypeMismatch
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from fucina.spec.interface import AnyArray, Buffer

__all__ = ["cast_array", "convert"]

PLAIN = {
    np.dtype(GEOMETRY[dtype].format).str.lstrip("<>=|"): dtype
    for dtype in (
        *(DType.bool, DType.u8, DType.u16, DType.i8, DType.i16, DType.i32, DType.i64),
        *(DType.f16, DType.f32, DType.f64),
    )
}
"""The dtypes that numpy has too, by numpy kind and size; a uint16 is an integer here, not a bf16."""

NAMED = {"bfloat16": DType.bf16, "float8_e4m3fn": DType.f8_e4m3, "float8_e5m2": DType.f8_e5m2}
"""The dtypes that other packages add to numpy, by name."""


class _Table(dict[int, int]):
    """The casts already done: patterns of 8 and 16 bits repeat soon."""

    def __init__(self, cast: Caster) -> None:
        super().__init__()
        self.cast = cast

    def __missing__(self, bits: int) -> int:
        self[bits] = found = self.cast(bits)
        return found


def cast_array(
    source: DType,
    target: DType,
    array: Buffer,
    *,
    out: Buffer | None = None,
    saturate: bool = False,
    single_rounding: bool = False,
) -> AnyArray:
    """Convert every element of a buffer.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes, any of the 169 pairs.
    array : buffer
        Elements of ``source`` in storage form: any shape, C-contiguous, any alignment, writable or not.
    out : buffer, optional
        Where to write: storage form of ``target``, as many elements as ``array``, writable, C-contiguous, aligned, no
        byte in common with ``array``.
    saturate : bool
        To f16, bf16 and f8: overflow gives the largest finite value, infinities too.
    single_rounding : bool
        To floats: round the exact value once, instead of by way of f32 or f64.

    Returns
    -------
    ndarray
        ``out`` itself if it is an array, a view of it if it is another buffer, else a new array of the input's shape.

    Raises
    ------
    InvalidDType
        If either dtype is a block.
    DTypeMismatch, UnsupportedView
        If a buffer has another format, or is not C-contiguous; if ``out`` is misaligned.
    ReadOnlyStorage, InvalidDataLength, OverlappingMemory
        If ``out`` is read-only, of another length, or overlaps the input.
    OutOfMemory, InvalidShape
        If there is no ``out``, and no memory for a new array or none of its size.

    Notes
    -----
    Clauses: BRIDGE-ARRAY-1, BRIDGE-ARRAY-2, BRIDGE-ARRAY-3, BRIDGE-ARRAY-4, BRIDGE-SAT-1, BRIDGE-SINGLE-1
    """
    scalar_dtype(source, "BRIDGE-ARRAY-1", "source")
    scalar_dtype(target, "BRIDGE-ARRAY-1", "target")
    cast = caster(source, target, bool(saturate), bool(single_rounding))  # before the memory: a __bool__ runs any code
    given = readable("array", array, source)

    # all checks stand before the first write
    form = np.dtype(GEOMETRY[target].format)
    if out is None:
        result: AnyArray = empty(given.shape, form, "BRIDGE-ARRAY-1")
        taken = writable("out", result, target, "BRIDGE-ARRAY-3")
    else:
        taken = writable("out", out, target, "BRIDGE-ARRAY-3")
        require_count("out", taken, given.patterns.size, "BRIDGE-ARRAY-3")
        refuse_overlap(given, taken, "BRIDGE-ARRAY-3")
        result = out if isinstance(out, np.ndarray) else taken.patterns.view(form).reshape(taken.shape)

    # a new table per call: it never holds more than the call's own elements
    table = _Table(cast)
    taken.write([table[bits] for bits in given.read()])
    return result


def convert(array: Buffer, to: DType, *, source: DType | None = None) -> AnyArray:
    """Convert an array whose dtype tells what it holds.

    Parameters
    ----------
    array : buffer
        Bools, integers or floats; or an array of a dtype named bfloat16, float8_e4m3fn or float8_e5m2, as ``ml_dtypes``
        defines them.
    to : DType
        A scalar dtype.
    source : DType, optional
        What ``array`` holds, where its dtype does not tell: bf16 in uint16, f8 in uint8.

    Returns
    -------
    ndarray
        A new array in storage form of ``to``, of the input's shape.

    Raises
    ------
    InvalidDType
        If either dtype is a block.
    DTypeMismatch, UnsupportedView
        If the array holds something else, or is not C-contiguous.

    Notes
    -----
    Clauses: BRIDGE-CONVERT-1
    """
    if source is not None:
        dtype_argument(source, "source")
    named = NAMED.get(array.dtype.name) if issubclass(type(array), np.ndarray) else None  # type: ignore[union-attr]
    if named and not isinstance(array, MaskedArray):
        if source not in (None, named):
            raise DTypeMismatch(f"array holds {named.name}, got source={source!r}", clause="BRIDGE-CONVERT-1")
        if GEOMETRY[named].byte_size > 1 and not array.dtype.isnative:  # type: ignore[union-attr]
            raise DTypeMismatch(
                f"array must be in native byte order, got a swapped {named.name}", clause="BRIDGE-CONVERT-1"
            )
        return cast_array(named, to, _bits(array, named))
    return cast_array(source or _inferred(array), to, array)


def _bits(array: Any, dtype: DType) -> Any:
    """Return the storage form of an array of a named dtype: the same memory, seen as unsigned integers."""
    return array.view(GEOMETRY[dtype].format)


def _inferred(array: object) -> DType:
    """Return the dtype that a plain buffer holds."""
    try:
        view = memoryview(array)  # type: ignore[arg-type]  # what exports no buffer is refused below
    except (TypeError, ValueError, BufferError) as refusal:
        raise DTypeMismatch(
            f"array must be a buffer, got {type(array).__name__} ({refusal})", clause="BRIDGE-CONVERT-1"
        ) from None
    found = PLAIN.get(numpy_format(view.format, view.itemsize) or "")
    if found is None:
        raise DTypeMismatch(
            f"array must hold {', '.join(np.dtype(code).name for code in PLAIN)} or a dtype named {', '.join(NAMED)}, "
            f"got buffer format {view.format!r} of {view.itemsize} bytes",
            clause="BRIDGE-CONVERT-1",
        )
    return found
