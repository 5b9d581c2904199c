"""The compute and output policy: what an operation on a dtype computes in, and what it returns."""

from __future__ import annotations

from fucina.reference.arguments import dtype_argument, shown
from fucina.reference.bridges import INTEGERS
from fucina.reference.predicates import F8
from fucina.spec.errors import InvalidDType
from fucina.spec.types import DType, FloatOp

__all__ = ["compute_dtype", "output_dtype"]

WIDENED = {DType.f16: DType.f32, DType.bf16: DType.f32}  # 16-bit floats compute in f32
REDUCED = WIDENED | dict.fromkeys((*INTEGERS, DType.bool), DType.i64)

# Every cell that is not here is the input dtype itself.
COMPUTE = {
    FloatOp.pointwise: {DType.bf16: DType.f32},
    FloatOp.widened: WIDENED,
    FloatOp.reduction: REDUCED,
    FloatOp.matmul: WIDENED,
}
OUTPUT = {FloatOp.reduction: REDUCED}

EMPTY = F8 | INTEGERS | {DType.bool}  # dtypes without a widened class


def compute_dtype(op: FloatOp, dtype: DType) -> DType:
    """Return the dtype in which an operation computes.

    Raises
    ------
    InvalidDType
        If the policy has no answer, or ``op`` is no FloatOp.

    Notes
    -----
    Clauses: DTYPE-POLICY-1, DTYPE-POLICY-2, DTYPE-POLICY-4
    """
    _require_cell(op, dtype)
    return COMPUTE[op].get(dtype, dtype)


def output_dtype(op: FloatOp, dtype: DType) -> DType:
    """Return the dtype that an operation returns.

    Raises
    ------
    InvalidDType
        If the policy has no answer, or ``op`` is no FloatOp.

    Notes
    -----
    Clauses: DTYPE-POLICY-1, DTYPE-POLICY-3, DTYPE-POLICY-4
    """
    _require_cell(op, dtype)
    return OUTPUT.get(op, {}).get(dtype, dtype)


def _require_cell(op: FloatOp, dtype: DType) -> None:
    dtype_argument(dtype)
    if type(op) is not FloatOp:
        raise InvalidDType(f"op must be a FloatOp, got {shown(op)}", clause="DTYPE-POLICY-1")
    if op is FloatOp.widened and dtype in EMPTY:
        raise InvalidDType(f"{op!r} takes f16, bf16, f32, f64 and blocks, got {dtype!r}", clause="DTYPE-POLICY-4")
