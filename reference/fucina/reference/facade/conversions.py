"""Conversions to other dtypes, and dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fucina.reference.arguments import f32_argument, scalar_dtype, word
from fucina.reference.arithmetic import scaling
from fucina.reference.bridges import caster
from fucina.reference.dropout import dropout_scale
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import BLOCKS, TRACKABLE, operation, require_branch
from fucina.reference.facade.arithmetic import Arithmetic
from fucina.reference.facade.results import Results, tracks
from fucina.reference.geometry import storage
from fucina.reference.ops.operands import patterns, store
from fucina.reference.quant import dequantize
from fucina.reference.runtime import ExecContext
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import InvalidDType
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.tensor import RawTensor

__all__ = ["Conversions", "decoded"]


class Conversions(Arithmetic):
    """One element from one, by other rules than arithmetic's."""

    @operation
    def to(self, ctx: ExecContext, dtype: DType) -> Tensor:
        """Return the tensor in another dtype.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        dtype : DType
            A scalar dtype; of blocks f32.

        Raises
        ------
        InvalidDType
            If it is none, or not what blocks are decoded to.

        Notes
        -----
        Clauses: POLICY-TO-1, POLICY-BRANCH-1, AUTOGRAD-VJP-3
        """
        target = scalar_dtype(dtype, "POLICY-TO-1")
        if self.dtype not in BLOCKS:
            return self._mapped(ctx, target, caster(self.dtype, target), formulas.unchanged)
        if target is not DType.f32:
            raise InvalidDType(f"blocks are decoded to f32 and to nothing else, got {target!r}", clause="POLICY-TO-1")
        with Results(ctx, target) as results:
            raw = results.new(target, self.shape)
            store(raw, decoded(self.raw))
            return results.done(self.kin(self.axis_tags, target), raw)

    @operation
    def dropout(self, ctx: ExecContext, p: float, seed: int) -> Tensor:
        """Return the elements that a seed keeps, scaled, and zeros elsewhere.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        p : float
            The probability of being dropped, in [0, 1).
        seed : int
            In [0, 2^64).

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16 and f32.
        DTypeMismatch, InvalidBounds
            If p is no such number.
        InvalidInteger, Overflow
            If the seed is none.

        Notes
        -----
        Clauses: POLICY-DROPOUT-1, RNG-DROPOUT-1, AUTOGRAD-VJP-4
        """
        require_branch("dropout", self.dtype, TRACKABLE)
        f32_argument("p", p)
        word("seed", seed)
        formulas.kept_of(seed, p, 0)  # the errors of the mask; numbers that are none come first
        apply = scaling(self.dtype, Soft32.from_float(dropout_scale(p)))
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self)) as results:
            raw = results.new(self.dtype, self.shape)
            own = patterns(self.raw)
            kept = formulas.kept_of(seed, p, len(own))
            store(raw, [apply(bits) if keep else 0 for bits, keep in zip(own, kept, strict=True)])
            return results.done(type(self), raw, formulas.dropped(seed, p), [self])


def decoded(raw: RawTensor) -> list[int]:
    """Return the elements of blocks as f32 patterns.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    blocks = np.ascontiguousarray(raw.elements()).reshape(-1).view(storage(raw.dtype))
    found: list[int] = dequantize(raw.dtype, blocks).reshape(-1).view(np.uint32).tolist()
    return found
