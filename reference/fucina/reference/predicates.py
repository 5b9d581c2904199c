"""Dtypes: which there are, and what each can do.

The facts are the geometry registry of ``fucina.spec`` and the few sets named below; the functions look them up.
"""

from __future__ import annotations

from fucina.reference.arguments import dtype_argument
from fucina.reference.bridges import FLOATS, INTEGERS
from fucina.spec.types import GEOMETRY, DType, DTypeKind

__all__ = [
    "F8",
    "SIGNED",
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

F8 = frozenset({DType.f8_e4m3, DType.f8_e5m2})
UNSIGNED = frozenset({DType.u8, DType.u16})
SIGNED = INTEGERS - UNSIGNED
FORWARD_FLOATS = frozenset(FLOATS) - F8
ACTIVATIONS = frozenset({DType.q8_1, DType.q8_k})  # block formats of the left operand of a dot product


# -- kinds and families


def name(dtype: DType) -> str:
    """Return the name of a dtype.

    Notes
    -----
    Clauses: DTYPE-NAME-1
    """
    return dtype_argument(dtype).name


def kind(dtype: DType) -> DTypeKind:
    """Return whether a dtype stores scalars or packed blocks.

    Notes
    -----
    Clauses: DTYPE-KIND-1
    """
    return GEOMETRY[dtype_argument(dtype)].kind


def is_scalar(dtype: DType) -> bool:
    """Return whether one storage element is one logical element.

    Notes
    -----
    Clauses: DTYPE-PRED-1
    """
    return kind(dtype) is DTypeKind.scalar


def is_block_quantized(dtype: DType) -> bool:
    """Return whether a storage element is a packed block of logical elements.

    Notes
    -----
    Clauses: DTYPE-PRED-1
    """
    return kind(dtype) is DTypeKind.block_quantized


def is_f8(dtype: DType) -> bool:
    """Return whether a dtype is one of the two 8-bit floats, which are for storage only.

    Notes
    -----
    Clauses: DTYPE-PRED-2
    """
    return dtype_argument(dtype) in F8


def is_signed_integer(dtype: DType) -> bool:
    """Return whether a dtype is a signed integer.

    Notes
    -----
    Clauses: DTYPE-PRED-2
    """
    return dtype_argument(dtype) in SIGNED


def is_unsigned_integer(dtype: DType) -> bool:
    """Return whether a dtype is an unsigned integer; the raw bits of bf16 and f8 are not.

    Notes
    -----
    Clauses: DTYPE-PRED-2
    """
    return dtype_argument(dtype) in UNSIGNED


# -- what a dtype supports


def supports_forward_float_math(dtype: DType) -> bool:
    """Return whether float operations compute with this dtype.

    Notes
    -----
    Clauses: DTYPE-PRED-3
    """
    return dtype_argument(dtype) in FORWARD_FLOATS


def supports_grad(dtype: DType) -> bool:
    """Return whether tensors of this dtype carry a gradient; f64 has forward math only.

    Notes
    -----
    Clauses: DTYPE-PRED-3
    """
    return dtype_argument(dtype) in FORWARD_FLOATS - {DType.f64}


def supports_int_math(dtype: DType) -> bool:
    """Return whether wrapping integer operations compute with this dtype.

    Notes
    -----
    Clauses: DTYPE-PRED-3
    """
    return dtype_argument(dtype) in INTEGERS


def supports_to_float(dtype: DType) -> bool:
    """Return whether elements can be decoded to f32.

    Notes
    -----
    Clauses: DTYPE-PRED-4
    """
    return is_block_quantized(dtype) or dtype in FLOATS


def supports_quantized_matmul_rhs(dtype: DType) -> bool:
    """Return whether a block dtype serves as the stored right operand of a matrix product.

    Notes
    -----
    Clauses: DTYPE-PRED-4
    """
    return is_block_quantized(dtype) and dtype not in ACTIVATIONS


def supports_quantized_get_rows(dtype: DType) -> bool:
    """Return whether rows of a block dtype can be gathered and decoded.

    Notes
    -----
    Clauses: DTYPE-PRED-4
    """
    return is_block_quantized(dtype)


def logical_dtype(dtype: DType) -> DType:
    """Return the dtype an element has when it is looked at: f32 for blocks and f8.

    Notes
    -----
    Clauses: DTYPE-LOGICAL-1
    """
    return DType.f32 if is_f8(dtype) or is_block_quantized(dtype) else dtype
