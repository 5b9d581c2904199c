"""The compute and output policy: what a float operation on a dtype computes in, and what it returns."""

from __future__ import annotations

from fucina.fast._shown import shown
from fucina.fast.predicates import is_block_quantized, is_f8, supports_forward_float_math
from fucina.spec.errors import InvalidDType
from fucina.spec.types import DType, FloatOp

__all__ = [
    "compute_dtype",
    "output_dtype",
]


def _policy(op: FloatOp, dtype: DType) -> tuple[DType, DType]:
    """Return the dtypes that an operation computes in and returns.

    Clauses: DTYPE-POLICY-1, DTYPE-POLICY-4
    """
    if type(op) is not FloatOp:
        raise InvalidDType(f"op must be a FloatOp, got {shown(op)}", clause="DTYPE-POLICY-1")
    if supports_forward_float_math(dtype):
        wide = DType.f64 if dtype is DType.f64 else DType.f32
        if op is FloatOp.pointwise:
            return dtype if dtype is DType.f16 else wide, dtype
        return wide, wide if op is FloatOp.reduction else dtype
    if is_block_quantized(dtype):
        return dtype, dtype
    if op is FloatOp.widened:
        raise InvalidDType(f"{op!r} takes f16, bf16, f32, f64 and blocks, got {dtype!r}", clause="DTYPE-POLICY-4")
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
