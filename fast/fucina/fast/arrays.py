"""Bulk casts: whole arrays between the 13 scalar dtypes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._accelerate import accelerated
from fucina.fast._arguments import kind_of, scalar_dtype
from fucina.fast._buffers import Memory, reading, refuse_overlap, require_count, writing
from fucina.fast._native import lib
from fucina.spec.errors import DTypeMismatch, InvalidDType
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from fucina.spec.interface import AnyArray

__all__ = ["cast_array", "convert"]


@accelerated
def cast_array(
    source: DType,
    target: DType,
    array: Buffer,
    *,
    out: Buffer | None = None,
    saturate: bool = False,
    single_rounding: bool = False,
) -> AnyArray:
    """Cast every element of an array as :func:`cast_scalar` does.

    Parameters
    ----------
    source, target : DType
        Scalar dtypes; InvalidDType for block dtypes.
    array : buffer of ``source`` in storage form
        C-contiguous, in native byte order; of any alignment, read-only or not.
    out : buffer of ``target`` in storage form, optional
        C-contiguous, writable, aligned, with as many elements as ``array``, sharing no memory with it.
    saturate : bool
        A finite or infinite overflow gives the largest finite f8 value of its sign.
    single_rounding : bool
        Round an f64 once instead of by way of f32.

    Returns
    -------
    ndarray
        ``out``, or a new array of the shape of ``array``.

    Raises
    ------
    InvalidDType, DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength, OverlappingMemory
        On each of them ``out`` is untouched.

    Clauses: BRIDGE-ARRAY-1, BRIDGE-ARRAY-2, BRIDGE-ARRAY-3, BRIDGE-ARRAY-4, BRIDGE-SAT-1, BRIDGE-SINGLE-1
    """
    start, end = scalar_dtype(source, "BRIDGE-ARRAY-1"), scalar_dtype(target, "BRIDGE-ARRAY-1")
    given = reading("array", array, start, "BRIDGE-ARRAY-2")
    result: Any = np.empty(given.view.shape, GEOMETRY[end].format) if out is None else out
    filled = writing("out", result, end, "BRIDGE-ARRAY-3")
    require_count("out", filled, given.count, "BRIDGE-ARRAY-3")
    refuse_overlap(given, filled, "BRIDGE-ARRAY-3")
    mode = (lib.FC_CAST_SATURATE if saturate else 0) | (lib.FC_CAST_SINGLE_ROUNDING if single_rounding else 0)
    _cast(start, end, mode, given, filled)
    return result  # type: ignore[no-any-return] # the caller's own object when out was given


def _cast(source: DType, target: DType, mode: int, given: Memory, filled: Memory) -> None:
    status = lib.fc_cast(
        source.index, target.index, mode, given.pointer("void *"), filled.pointer("void *"), given.count
    )
    if status != lib.FC_OK:
        raise AssertionError(f"the core refused the cast {source!r} -> {target!r}")


# numpy's own dtypes by what they hold; of an unsigned 16-bit or 8-bit array nobody can tell a bf16 or f8
_INFERRED = {
    np.dtype(str(GEOMETRY[dtype].format)): dtype
    for dtype in (
        DType.bool,
        DType.u8,
        DType.u16,
        DType.i8,
        DType.i16,
        DType.i32,
        DType.i64,
        DType.f16,
        DType.f32,
        DType.f64,
    )
}
_ML_DTYPES = {"bfloat16": DType.bf16, "float8_e4m3fn": DType.f8_e4m3, "float8_e5m2": DType.f8_e5m2}


def convert(array: Buffer, to: DType, *, source: DType | None = None) -> AnyArray:
    """Cast an array whose dtype tells what it holds.

    Parameters
    ----------
    array : buffer
        As for :func:`cast_array`; also an ``ml_dtypes`` array of bfloat16, float8_e4m3fn or float8_e5m2.
    to : DType
        A scalar dtype.
    source : DType, optional
        What ``array`` holds, where its format does not tell: uint16 is taken for u16 and uint8 for u8 otherwise.

    Returns
    -------
    ndarray
        A new array in storage form.

    Clauses: BRIDGE-CONVERT-1
    """
    given: Any = array
    named = _ML_DTYPES.get(given.dtype.name) if isinstance(given, np.ndarray | np.generic) else None
    if named is not None:
        if sys.byteorder == "little" and given.dtype.byteorder == ">":
            raise DTypeMismatch("array must be in native byte order", clause="BRIDGE-CONVERT-1")
        given = given.view(GEOMETRY[named].format)
    held = source if source is not None else named or _inferred(given)
    return cast_array(held, to, given)


def _inferred(array: Any) -> DType:
    try:
        view = memoryview(array)
        found = _INFERRED.get(np.dtype(view.format or "B"))
    except (TypeError, ValueError, BufferError):
        raise DTypeMismatch(
            f"array must be a buffer of a known format, got {kind_of(array)}", clause="BRIDGE-CONVERT-1"
        ) from None
    if found is None:
        raise InvalidDType(
            f"no dtype has the buffer format {view.format!r}; name the source", clause="BRIDGE-CONVERT-1"
        )
    return found
