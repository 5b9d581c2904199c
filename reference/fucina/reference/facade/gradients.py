"""Gradients of a tensor: where backward starts, and what it has left on leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.facade.arguments import TRACKABLE, operation, require_branch
from fucina.reference.facade.values import Value
from fucina.reference.graph import backward
from fucina.reference.ops.movement import materialize
from fucina.reference.runtime import ExecContext
from fucina.spec.errors import GradientsNotTracked, InvalidShape
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.tensor import RawTensor

__all__ = ["Gradients"]


class Gradients(Value):
    """What a tensor of f16, bf16 or f32 has to do with gradients."""

    @operation
    def backward(self, ctx: ExecContext) -> None:
        """Leave gradients of this one element on the leaves on which it depends.

        Parameters
        ----------
        ctx : ExecContext
            Where they come from.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16 and f32.
        InvalidShape
            If there is more than one element.
        GradientsNotTracked
            If no gradients are tracked.
        UseAfterDeinit, SavedValueChanged
            If something that is needed was deinited, or has changed.
        OutOfMemory
            If there is no memory for a gradient.  Whatever is raised, no gradient has changed.

        Notes
        -----
        Clauses: AUTOGRAD-BACK-1, AUTOGRAD-BACK-2, AUTOGRAD-LIFE-1, AUTOGRAD-SAVED-1
        """
        require_branch("backward", self.dtype, TRACKABLE)
        if any(size != 1 for size in self.shape):
            raise InvalidShape(f"backward starts at one element, got {self!r}", clause="AUTOGRAD-BACK-1")
        if self.node is None:
            raise GradientsNotTracked(
                f"backward starts where gradients are tracked, got {self!r}", clause="AUTOGRAD-BACK-1"
            )
        backward(ctx, self.node)

    @operation
    def grad(self, ctx: ExecContext) -> Tensor | None:
        """Return a copy of a leaf's gradient, or None where there is none.

        Returns
        -------
        tensor
            Of f32, contiguous, a constant, the caller's.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16 and f32.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: AUTOGRAD-GRAD-1
        """
        require_branch("grad", self.dtype, TRACKABLE)
        gradient = self._gradient()
        return None if gradient is None else self._fetched(ctx, materialize(ctx.rt, gradient))

    @operation
    def grad_view(self, ctx: ExecContext) -> Tensor | None:
        """Return a view of a leaf's gradient, or None where there is none; a later backward leaves it as it is.

        Returns
        -------
        tensor
            Of f32, contiguous, a constant, the caller's.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16 and f32.

        Notes
        -----
        Clauses: AUTOGRAD-GRAD-1
        """
        require_branch("grad_view", self.dtype, TRACKABLE)
        gradient = self._gradient()
        return None if gradient is None else self._fetched(ctx, ctx.rt.traced(gradient.clone_view()))

    def zero_grad(self) -> None:
        """Drop a leaf's gradient.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16 and f32.

        Notes
        -----
        Clauses: AUTOGRAD-GRAD-1, AUTOGRAD-BACK-2
        """
        self.live()
        require_branch("zero_grad", self.dtype, TRACKABLE)
        if self.node is not None:
            self.node.drop_gradient()

    def _gradient(self) -> RawTensor | None:
        return None if self.node is None else self.node.gradient

    def _fetched(self, ctx: ExecContext, raw: RawTensor) -> Tensor:
        return self.kin(self.axis_tags, DType.f32).holding(ctx, raw)
