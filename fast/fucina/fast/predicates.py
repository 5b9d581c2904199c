"""Dtypes: what each is called and what it can do, as the C core's own table says."""

from __future__ import annotations

from fucina.fast._arguments import known_dtype
from fucina.fast._facts import facts
from fucina.spec.types import DType, DTypeKind

__all__ = [
    "is_block_quantized",
    "is_f8",
    "is_scalar",
    "is_signed_integer",
    "is_unsigned_integer",
    "kind",
    "logical_dtype",
    "name",
    "supports_forward_float_math",
    "supports_grad",
    "supports_int_math",
    "supports_quantized_get_rows",
    "supports_quantized_matmul_rhs",
    "supports_to_float",
]


def name(dtype: DType) -> str:
    """Return the name of a dtype.

    Clauses: DTYPE-NAME-1
    """
    return known_dtype(dtype).name


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
