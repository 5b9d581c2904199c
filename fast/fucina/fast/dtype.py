"""Dtypes: what each is, how its elements are stored, what may be done with them (chapters ``dtype`` and ``bridge``).

Every function that takes a dtype raises InvalidDType for anything else (clause DTYPE-ARG-1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fucina.fast._arguments import known_dtype, scalar_dtype
from fucina.fast._facts import facts
from fucina.fast._shown import kind_of
from fucina.fast.arrays import cast_array, convert
from fucina.fast.bridges import (
    bf16_to_f32,
    cast_bits,
    cast_float,
    cast_scalar,
    f8e4m3_to_f32,
    f8e5m2_to_f32,
    f32_to_bf16,
    f32_to_f8e4m3,
    f32_to_f8e5m2,
    from_accumulator,
    from_f32,
    from_f64,
    is_truthy,
    to_accumulator,
    to_f32,
    to_f64,
)
from fucina.fast.values import F8E4M3, F8E5M2, Bf16
from fucina.spec.errors import InvalidDType
from fucina.spec.interface import ScalarValue
from fucina.spec.types import BLOCK_CONSTANTS, GEOMETRY, DType, DTypeKind, FloatOp

__all__ = [
    "F8E4M3",
    "F8E5M2",
    "Bf16",
    "accumulator",
    "bf16_to_f32",
    "block_byte_size",
    "block_size",
    "cast_array",
    "cast_bits",
    "cast_float",
    "cast_scalar",
    "compute_dtype",
    "convert",
    "element",
    "f8e4m3_to_f32",
    "f8e5m2_to_f32",
    "f32_to_bf16",
    "f32_to_f8e4m3",
    "f32_to_f8e5m2",
    "from_accumulator",
    "from_f32",
    "from_f64",
    "is_block_quantized",
    "is_f8",
    "is_scalar",
    "is_signed_integer",
    "is_truthy",
    "is_unsigned_integer",
    "kind",
    "logical_dtype",
    "name",
    "one",
    "output_dtype",
    "scalar",
    "scalar_byte_size",
    "storage",
    "supports_forward_float_math",
    "supports_grad",
    "supports_int_math",
    "supports_quantized_get_rows",
    "supports_quantized_matmul_rhs",
    "supports_to_float",
    "to_accumulator",
    "to_f32",
    "to_f64",
    "zero",
    *BLOCK_CONSTANTS,
]

# the named sizes (clause DTYPE-GEOM-4)
q1_0_block_size = BLOCK_CONSTANTS["q1_0_block_size"]
q2_0_block_size = BLOCK_CONSTANTS["q2_0_block_size"]
q4_0_block_size = BLOCK_CONSTANTS["q4_0_block_size"]
q4_1_block_size = BLOCK_CONSTANTS["q4_1_block_size"]
q5_0_block_size = BLOCK_CONSTANTS["q5_0_block_size"]
q5_1_block_size = BLOCK_CONSTANTS["q5_1_block_size"]
q8_0_block_size = BLOCK_CONSTANTS["q8_0_block_size"]
q8_1_block_size = BLOCK_CONSTANTS["q8_1_block_size"]
qk_k_block_size = BLOCK_CONSTANTS["qk_k_block_size"]
k_scale_size = BLOCK_CONSTANTS["k_scale_size"]
iq4_nl_block_size = BLOCK_CONSTANTS["iq4_nl_block_size"]
mxfp4_block_size = BLOCK_CONSTANTS["mxfp4_block_size"]
nvfp4_block_size = BLOCK_CONSTANTS["nvfp4_block_size"]
nvfp4_subblock_size = BLOCK_CONSTANTS["nvfp4_subblock_size"]
iq3s_n_scale = BLOCK_CONSTANTS["iq3s_n_scale"]


# -- predicates: facts of the C core


def kind(dtype: DType) -> DTypeKind:
    """Return how a dtype stores its elements.

    Clauses: DTYPE-KIND-1
    """
    return DTypeKind.block_quantized if is_block_quantized(dtype) else DTypeKind.scalar


def is_scalar(dtype: DType) -> bool:
    """Return whether a dtype stores one element at a time.

    Clauses: DTYPE-PRED-1
    """
    return not is_block_quantized(dtype)


def is_block_quantized(dtype: DType) -> bool:
    """Return whether a dtype stores blocks of elements.

    Clauses: DTYPE-PRED-1
    """
    return facts(dtype).block_quantized


def is_f8(dtype: DType) -> bool:
    """Return whether a dtype is one of the two 8-bit floats.

    Clauses: DTYPE-PRED-2
    """
    return facts(dtype).f8


def is_signed_integer(dtype: DType) -> bool:
    """Return whether a dtype is i8, i16, i32 or i64.

    Clauses: DTYPE-PRED-2
    """
    return facts(dtype).signed_integer


def is_unsigned_integer(dtype: DType) -> bool:
    """Return whether a dtype is u8 or u16.

    Clauses: DTYPE-PRED-2
    """
    return facts(dtype).unsigned_integer


def supports_forward_float_math(dtype: DType) -> bool:
    """Return whether tensors of a dtype have float arithmetic.

    Clauses: DTYPE-PRED-3
    """
    return facts(dtype).forward_float_math


def supports_grad(dtype: DType) -> bool:
    """Return whether tensors of a dtype can carry a gradient.

    Clauses: DTYPE-PRED-3
    """
    return facts(dtype).grad


def supports_int_math(dtype: DType) -> bool:
    """Return whether tensors of a dtype have wrapping integer arithmetic.

    Clauses: DTYPE-PRED-3
    """
    return facts(dtype).int_math


def supports_to_float(dtype: DType) -> bool:
    """Return whether elements of a dtype decode to f32.

    Clauses: DTYPE-PRED-4
    """
    return facts(dtype).to_float


def supports_quantized_matmul_rhs(dtype: DType) -> bool:
    """Return whether a dtype can be the stored right-hand side of a matrix product.

    Clauses: DTYPE-PRED-4
    """
    return facts(dtype).quantized_matmul_rhs


def supports_quantized_get_rows(dtype: DType) -> bool:
    """Return whether rows of a dtype can be gathered and decoded.

    Clauses: DTYPE-PRED-4
    """
    return facts(dtype).quantized_get_rows


def logical_dtype(dtype: DType) -> DType:
    """Return the dtype that an element has when it is looked at: f32 for blocks and the 8-bit floats.

    Clauses: DTYPE-LOGICAL-1
    """
    return facts(dtype).logical


# -- geometry: the registry of fucina.spec


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
        raise InvalidDType(f"a block dtype is required, got {dtype!r}", clause="DTYPE-GEOM-1")
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
        raise InvalidDType(f"a scalar dtype is required, got {dtype!r}", clause="DTYPE-ACC-1")
    return found


def name(dtype: DType) -> str:
    """Return the name of a dtype.

    Clauses: DTYPE-NAME-1
    """
    return known_dtype(dtype).name


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


# -- the policy of float operations


def _policy(op: FloatOp, dtype: DType) -> tuple[DType, DType]:
    """Return the dtypes that an operation computes in and returns.

    Clauses: DTYPE-POLICY-1, DTYPE-POLICY-4
    """
    if type(op) is not FloatOp:
        raise InvalidDType(f"a FloatOp is required, got {kind_of(op)}", clause="DTYPE-POLICY-1")
    if supports_forward_float_math(dtype):
        wide = DType.f64 if dtype is DType.f64 else DType.f32
        if op is FloatOp.pointwise:
            return dtype if dtype is DType.f16 else wide, dtype
        return wide, wide if op is FloatOp.reduction else dtype
    if is_block_quantized(dtype):
        return dtype, dtype
    if op is FloatOp.widened:
        raise InvalidDType(f"no operation of the family widened is defined for {dtype!r}", clause="DTYPE-POLICY-4")
    if op is FloatOp.reduction and not is_f8(dtype):
        return DType.i64, DType.i64
    return dtype, dtype


def compute_dtype(op: FloatOp, dtype: DType) -> DType:
    """Return the dtype that an operation computes in.

    Raises
    ------
    InvalidDType
        Where the policy has no cell.

    Clauses: DTYPE-POLICY-2, DTYPE-POLICY-4
    """
    return _policy(op, dtype)[0]


def output_dtype(op: FloatOp, dtype: DType) -> DType:
    """Return the dtype of an operation's result.

    Raises
    ------
    InvalidDType
        Where the policy has no cell.

    Clauses: DTYPE-POLICY-3, DTYPE-POLICY-4
    """
    return _policy(op, dtype)[1]
