"""Geometry: how elements of a dtype are held, counted and accumulated.

All sizes come from the one registry in ``fucina.spec`` (clause DTYPE-GEOM-1).  Where a dtype has no answer, as a scalar
has no block size, the function raises ``InvalidDType``; the documents reject such a call at compile time (clause
ERR-TYPE-1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.arguments import dtype_argument, scalar_dtype
from fucina.reference.bridges import FLOATS, INTEGERS
from fucina.reference.predicates import SIGNED
from fucina.reference.values import VALUE_TYPES
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

ONES = {DType.bf16: 0x3F80, DType.f8_e4m3: 0x38, DType.f8_e5m2: 0x3C}  # raw-bit floats: the pattern of one


# -- sizes


def block_size(dtype: DType) -> int:
    """Return the logical elements per block.

    Raises
    ------
    InvalidDType
        If the dtype is a scalar: it has no blocks.

    Notes
    -----
    Clauses: DTYPE-GEOM-1
    """
    size = GEOMETRY[dtype_argument(dtype)].block_size
    if size is None:
        raise InvalidDType(f"dtype must be a block dtype, got {dtype!r}", clause="DTYPE-GEOM-1")
    return size


def block_byte_size(dtype: DType) -> int:
    """Return the bytes of one storage element, a packed block or a scalar.

    Notes
    -----
    Clauses: DTYPE-GEOM-2
    """
    return GEOMETRY[dtype_argument(dtype)].byte_size


def scalar_byte_size(dtype: DType) -> int:
    """Return the bytes of one scalar.

    Raises
    ------
    InvalidDType
        If the dtype is a block.

    Notes
    -----
    Clauses: DTYPE-GEOM-3
    """
    return GEOMETRY[scalar_dtype(dtype, "DTYPE-GEOM-3")].byte_size


# -- how elements are held


def scalar(dtype: DType) -> type[np.generic]:
    """Return the numpy scalar type of the storage form of a scalar dtype.

    Raises
    ------
    InvalidDType
        If the dtype is a block.

    Notes
    -----
    Clauses: DTYPE-STORAGE-1
    """
    return storage(scalar_dtype(dtype, "DTYPE-STORAGE-1")).type


def storage(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype of arrays of a dtype; of a block, the packed struct.

    Notes
    -----
    Clauses: DTYPE-STORAGE-2
    """
    geometry = GEOMETRY[dtype_argument(dtype)]
    if geometry.format is not None:
        return np.dtype(geometry.format)
    # without `align` numpy packs a struct; a single member stays plain, several become a subarray
    return np.dtype([(f.name, f.format) if f.count == 1 else (f.name, f.format, (f.count,)) for f in geometry.fields])


def element(dtype: DType) -> type[Any]:
    """Return the type in which the public surface speaks of an element: a value type for bf16 and f8.

    Notes
    -----
    Clauses: DTYPE-STORAGE-3
    """
    return VALUE_TYPES.get(dtype_argument(dtype)) or storage(dtype).type


def accumulator(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype in which reductions over a scalar dtype accumulate.

    Raises
    ------
    InvalidDType
        If the dtype is a block.

    Notes
    -----
    Clauses: DTYPE-ACC-1
    """
    scalar_dtype(dtype, "DTYPE-ACC-1")
    if dtype in FLOATS:
        return np.dtype(np.float64 if dtype is DType.f64 else np.float32)
    return np.dtype(np.int64 if dtype in SIGNED else np.uint64)


# -- constants


def zero(dtype: DType) -> ScalarValue:
    """Return the element 0 in scalar form.

    Raises
    ------
    InvalidDType
        If the dtype is a block.

    Notes
    -----
    Clauses: DTYPE-CONST-1
    """
    scalar_dtype(dtype, "DTYPE-CONST-1")
    if dtype is DType.bool:
        return False
    return 0 if dtype in ONES or dtype in INTEGERS else 0.0


def one(dtype: DType) -> ScalarValue:
    """Return the element 1 in scalar form: of bf16 and f8, its pattern.

    Raises
    ------
    InvalidDType
        If the dtype is a block.

    Notes
    -----
    Clauses: DTYPE-CONST-1
    """
    scalar_dtype(dtype, "DTYPE-CONST-1")
    if dtype is DType.bool:
        return True
    return ONES.get(dtype, 1 if dtype in INTEGERS else 1.0)
