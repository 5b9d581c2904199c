"""Taking: operations that consume their tensor, and write where it was if that may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import f32_argument
from fucina.reference.arithmetic import pointwise, scaling
from fucina.reference.facade.arguments import F32, operation, require_branch, require_one_dtype, tensor
from fucina.reference.facade.arithmetic import Pair
from fucina.reference.facade.results import Results
from fucina.reference.facade.values import Value
from fucina.reference.lives import Life
from fucina.reference.ops.operands import patterns, store
from fucina.reference.runtime import ExecContext
from fucina.spec.errors import ActiveExecScopeUnsupported, GradientsTracked, InvalidTag, ShapeMismatch

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor

__all__ = ["Taking"]


class Taking(Value):
    """The operations that consume the tensor."""

    @operation
    def take_add_no_grad(self, ctx: ExecContext, other: Any) -> Tensor:
        """Return ``self + other``, written into the tensor's own storage if that may be; the tensor is consumed.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : tensor
            Of f32, with tags that the tensor has, and sizes that are equal or 1.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If it is no tensor, or of another dtype.
        InvalidDType
            If the tensor is not of f32.
        InvalidTag, ShapeMismatch
            If the result would not have the tensor's type and shape.
        ActiveExecScopeUnsupported
            If a scope owns the tensor.
        GradientsTracked
            If one of them tracks gradients.

        Notes
        -----
        Clauses: POLICY-TAKE-1, TENSOR-TAKE-1
        """
        clause = "POLICY-TAKE-1"
        b = tensor("other", other)
        require_branch("take_add_no_grad", self.dtype, F32)
        require_one_dtype("take_add_no_grad", self.dtype, b.dtype)
        pair = Pair(self, b)
        if pair.tags != self.axis_tags:
            raise InvalidTag(f"other may have the tags {self.axis_tags}, got {b.axis_tags}", clause=clause)
        if pair.shape != self.shape:
            raise ShapeMismatch(f"other must fit {self.shape}, got {b.shape}", clause=clause)
        self._require_takable(self, b)
        apply = pointwise("add", self.dtype)
        terms = pair.repetitions()[1].spread(patterns(b.raw))
        return self._taken(ctx, [apply(x, y) for x, y in zip(patterns(self.raw), terms, strict=True)])

    @operation
    def take_scale_no_grad(self, ctx: ExecContext, number: float) -> Tensor:
        """Return the tensor times a number, in its own storage if that may be; the tensor is consumed.

        Raises
        ------
        InvalidDType
            If the tensor is not of f32.
        DTypeMismatch
            If it is no number.
        ActiveExecScopeUnsupported, GradientsTracked
            As :meth:`take_add_no_grad`.

        Notes
        -----
        Clauses: POLICY-TAKE-1, TENSOR-TAKE-1
        """
        require_branch("take_scale_no_grad", self.dtype, F32)
        factor = f32_argument("number", number)
        self._require_takable(self)
        apply = scaling(self.dtype, factor)
        return self._taken(ctx, [apply(bits) for bits in patterns(self.raw)])

    def _require_takable(self, *operands: Value) -> None:
        clause = "POLICY-TAKE-1"
        if self.raw.life is Life.SCOPED:
            raise ActiveExecScopeUnsupported(f"the tensor is consumed, and a scope owns it: {self!r}", clause=clause)
        for x in operands:
            if x.node is not None:
                raise GradientsTracked(f"there is no gradient of it, and {x!r} tracks some", clause=clause)

    def _taken(self, ctx: ExecContext, results_bits: list[int]) -> Tensor:
        """Return a result in the place of the tensor, or in a new one.

        Notes
        -----
        Clauses: POLICY-TAKE-1
        """
        with Results(ctx, self.dtype) as results:
            if self.raw.can_take_in_place():
                self.raw.live().open_for_writing()
                raw = results.keep(ctx.rt.traced(self.raw.moved()))
                store(raw, results_bits)
            else:
                raw = results.new(self.dtype, self.shape)
                store(raw, results_bits)
                self.deinit_replaced()
            return results.done(type(self), raw)
