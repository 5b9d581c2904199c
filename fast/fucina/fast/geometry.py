"""Geometry: how elements of a dtype are held, counted and accumulated; sizes from the registry of ``fucina.spec``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._arguments import known_dtype, scalar_dtype
from fucina.fast._facts import facts
from fucina.fast.scalars import cast_scalar
from fucina.fast.values import F8E4M3, F8E5M2, Bf16
from fucina.spec.errors import InvalidDType
from fucina.spec.types import GEOMETRY, DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue

__all__ = [
    "accumulator",
    "block_byte_size",
    "block_size",
    "element",
    "one",
    "scalar",
    "scalar_byte_size",
    "storage",
    "zero",
]


def block_size(dtype: DType) -> int:
    """Return the number of elements in one block.

    Raises
    ------
    InvalidDType
        For a scalar dtype.

    Clauses: DTYPE-GEOM-1
    """
    size = GEOMETRY[known_dtype(dtype)].block_size
    if size is None:
        raise InvalidDType(f"dtype must be a block dtype, got {dtype!r}", clause="DTYPE-GEOM-1")
    return size


def block_byte_size(dtype: DType) -> int:
    """Return the bytes of one storage element: a packed block, or a scalar.

    Clauses: DTYPE-GEOM-2
    """
    return GEOMETRY[known_dtype(dtype)].byte_size


def scalar_byte_size(dtype: DType) -> int:
    """Return the bytes of one element of a scalar dtype.

    Raises
    ------
    InvalidDType
        For a block dtype.

    Clauses: DTYPE-GEOM-3
    """
    return GEOMETRY[scalar_dtype(dtype, "DTYPE-GEOM-3")].byte_size


def _storage_of(dtype: DType) -> np.dtype[Any]:
    geometry = GEOMETRY[dtype]
    if geometry.format is not None:
        return np.dtype(geometry.format)
    layout = {
        "names": [field.name for field in geometry.fields],
        "formats": [field.format if field.count == 1 else (field.format, (field.count,)) for field in geometry.fields],
        "offsets": [field.offset for field in geometry.fields],
        "itemsize": geometry.byte_size,
    }
    packed: np.dtype[Any] = np.dtype(layout)  # type: ignore[call-overload] # the stubs know no dict with subarrays
    return packed


_STORAGE = {dtype: _storage_of(dtype) for dtype in DType}
_ELEMENT: dict[DType, type[Any]] = {value.dtype: value for value in (Bf16, F8E4M3, F8E5M2)}


def scalar(dtype: DType) -> type[np.generic]:
    """Return the numpy scalar type of a scalar dtype's storage form.

    Clauses: DTYPE-STORAGE-1
    """
    return _STORAGE[scalar_dtype(dtype, "DTYPE-STORAGE-1")].type


def storage(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype of the storage form; of a block dtype the packed struct.

    Clauses: DTYPE-STORAGE-2
    """
    return _STORAGE[known_dtype(dtype)]


def element(dtype: DType) -> type[Any]:
    """Return the type in which the tensor facade speaks of an element.

    Clauses: DTYPE-STORAGE-3
    """
    return _ELEMENT.get(known_dtype(dtype)) or _STORAGE[dtype].type


def accumulator(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype in which a reduction accumulates.

    Raises
    ------
    InvalidDType
        For a block dtype.

    Clauses: DTYPE-ACC-1
    """
    found = facts(dtype).accumulator
    if found is None:
        raise InvalidDType(f"dtype must be a scalar dtype, got {dtype!r}", clause="DTYPE-ACC-1")
    return found


def zero(dtype: DType) -> ScalarValue:
    """Return the element 0 of a scalar dtype in scalar form.

    Clauses: DTYPE-CONST-1
    """
    return cast_scalar(DType.bool, scalar_dtype(dtype, "DTYPE-CONST-1"), False)


def one(dtype: DType) -> ScalarValue:
    """Return the element 1 of a scalar dtype in scalar form.

    Clauses: DTYPE-CONST-1
    """
    return cast_scalar(DType.bool, scalar_dtype(dtype, "DTYPE-CONST-1"), True)
