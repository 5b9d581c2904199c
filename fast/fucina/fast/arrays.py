"""Bulk casts: whole arrays between the 13 scalar dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._accelerate import accelerated
from fucina.fast._arguments import known_dtype, scalar_dtype
from fucina.fast._buffers import empty, inferred, reading, refuse_overlap, require_count, writing
from fucina.fast._native import lib
from fucina.spec.errors import DTypeMismatch
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from fucina.spec.interface import AnyArray, Buffer

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
        To f16, bf16 and f8: a finite or infinite overflow gives the largest finite value of its sign.
    single_rounding : bool
        To floats: round the exact value, of an f64 or an integer, once instead of by way of f32 or f64.

    Returns
    -------
    ndarray
        ``out`` itself when it is an ndarray, a view of it when it is another buffer, else a new array of the shape of
        ``array``.

    Raises
    ------
    InvalidDType, DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength, OverlappingMemory
        On each of them ``out`` is untouched.
    OutOfMemory, InvalidShape
        Without ``out``: a new array of this size cannot be had.

    Clauses: BRIDGE-ARRAY-1, BRIDGE-ARRAY-2, BRIDGE-ARRAY-3, BRIDGE-ARRAY-4, BRIDGE-SAT-1, BRIDGE-SINGLE-1
    """
    start, end = scalar_dtype(source, "BRIDGE-ARRAY-1", "source"), scalar_dtype(target, "BRIDGE-ARRAY-1", "target")
    # before an address is taken: a __bool__ of the caller's can run anything
    mode = (lib.FC_CAST_SATURATE if saturate else 0) | (lib.FC_CAST_SINGLE_ROUNDING if single_rounding else 0)
    given = reading("array", array, start, "BRIDGE-ARRAY-2")
    shape, form = given.view.shape or (), np.dtype(GEOMETRY[end].format)
    result: Any = empty(shape, form, "BRIDGE-ARRAY-1") if out is None else out
    filled = writing("out", result, end, "BRIDGE-ARRAY-3")
    require_count("out", filled, given.count, "BRIDGE-ARRAY-3")
    refuse_overlap("array", given, "out", filled, "BRIDGE-ARRAY-3")
    lib.fc_cast(start.index, end.index, mode, given.pointer("void *"), filled.pointer("void *"), given.count)
    made: AnyArray = result if isinstance(result, np.ndarray) else np.asarray(filled.view)
    return made


_ML_DTYPES = {"bfloat16": DType.bf16, "float8_e4m3fn": DType.f8_e4m3, "float8_e5m2": DType.f8_e5m2}


def convert(array: Buffer, to: DType, *, source: DType | None = None) -> AnyArray:
    """Cast an array whose dtype tells what it holds.

    Parameters
    ----------
    array : buffer
        As for :func:`cast_array`; also an array of bfloat16, float8_e4m3fn or float8_e5m2 of the package ``ml_dtypes``.
    to : DType
        A scalar dtype.
    source : DType, optional
        What ``array`` holds where its format does not tell: without it uint16 is taken for u16 and uint8 for u8.

    Returns
    -------
    ndarray
        A new array in storage form.

    Raises
    ------
    DTypeMismatch
        For a format that is no dtype's, a ``source`` that a named dtype contradicts, and as :func:`cast_array` does.

    Clauses: BRIDGE-CONVERT-1
    """
    if source is not None:
        known_dtype(source, "source")
    given: Any = array
    named = _ML_DTYPES.get(given.dtype.name) if issubclass(type(given), np.ndarray) else None
    if named is not None:
        if GEOMETRY[named].byte_size > 1 and not given.dtype.isnative:
            raise DTypeMismatch(
                f"array must be in native byte order, got {given.dtype.name} in the other", clause="BRIDGE-CONVERT-1"
            )
        if source not in (None, named):
            raise DTypeMismatch(
                f"source must be {named!r} for an array of {given.dtype.name}, got {source!r}",
                clause="BRIDGE-CONVERT-1",
            )
        source, given = named, given.view(str(GEOMETRY[named].format))
    return cast_array(source or inferred("array", given, "BRIDGE-CONVERT-1"), to, given)
