"""What each dtype is, as the C core's own table says; read once at import."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fucina.fast._arguments import known_dtype
from fucina.fast._native import ffi, lib
from fucina.spec.types import GEOMETRY, DType

__all__ = ["Facts", "facts"]


class Facts(NamedTuple):
    """The answers to the predicates for one dtype.

    Clauses: DTYPE-PRED-1, DTYPE-PRED-2, DTYPE-PRED-3, DTYPE-PRED-4, DTYPE-LOGICAL-1, DTYPE-ACC-1
    """

    block_quantized: bool
    f8: bool
    signed_integer: bool
    unsigned_integer: bool
    forward_float_math: bool
    grad: bool
    int_math: bool
    to_float: bool
    quantized_matmul_rhs: bool
    quantized_get_rows: bool
    logical: DType
    accumulator: np.dtype[np.generic] | None


_ACCUMULATORS = {
    lib.FC_ACCUMULATOR_NONE: None,
    lib.FC_ACCUMULATOR_F32: np.dtype(np.float32),
    lib.FC_ACCUMULATOR_F64: np.dtype(np.float64),
    lib.FC_ACCUMULATOR_U64: np.dtype(np.uint64),
    lib.FC_ACCUMULATOR_I64: np.dtype(np.int64),
}


def _read(dtype: DType, members: tuple[DType, ...]) -> Facts:
    info = ffi.new("struct fc_dtype_info *")
    geometry = GEOMETRY[dtype]
    status = lib.fc_dtype_info(dtype.index, info)
    if (
        status != lib.FC_OK
        or ffi.string(info.name).decode("ascii") != dtype.name
        or (info.byte_size, info.block_size) != (geometry.byte_size, geometry.block_size or 0)
    ):
        raise ImportError(
            f"the native module and fucina.spec do not agree about {dtype!r}: they are of different versions"
        )
    properties = info.properties
    return Facts(
        block_quantized=info.kind == lib.FC_KIND_BLOCK_QUANTIZED,
        f8=bool(properties & lib.FC_DTYPE_F8),
        signed_integer=bool(properties & lib.FC_DTYPE_SIGNED_INTEGER),
        unsigned_integer=bool(properties & lib.FC_DTYPE_UNSIGNED_INTEGER),
        forward_float_math=bool(properties & lib.FC_DTYPE_FORWARD_FLOAT_MATH),
        grad=bool(properties & lib.FC_DTYPE_GRAD),
        int_math=bool(properties & lib.FC_DTYPE_INT_MATH),
        to_float=bool(properties & lib.FC_DTYPE_TO_FLOAT),
        quantized_matmul_rhs=bool(properties & lib.FC_DTYPE_QUANTIZED_MATMUL_RHS),
        quantized_get_rows=bool(properties & lib.FC_DTYPE_QUANTIZED_GET_ROWS),
        logical=members[info.logical],
        accumulator=_ACCUMULATORS[info.accumulator],
    )


_FACTS = {dtype: _read(dtype, tuple(DType)) for dtype in DType}


def facts(dtype: DType) -> Facts:
    """Return the record of a dtype; InvalidDType for anything else.

    Clauses: DTYPE-ARG-1
    """
    return _FACTS[known_dtype(dtype)]
