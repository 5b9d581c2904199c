"""Composed operations: formulas of the others, in f32, with one rounding for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.arguments import f32_argument, is_a, shown
from fucina.reference.arithmetic import folded
from fucina.reference.facade import composed_formulas, formulas
from fucina.reference.facade.arguments import F32, axis_of, operation, require_branch, require_one_dtype, tensor
from fucina.reference.facade.indices import Indices
from fucina.reference.facade.kinds import Tag
from fucina.reference.facade.places import numbered, reduced, without
from fucina.reference.facade.results import Results, tracks
from fucina.reference.facade.values import Value
from fucina.reference.graph import read32, write32
from fucina.reference.runtime import ExecContext
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import ActiveExecScopeRequired, InvalidBounds, InvalidTag, ShapeMismatch
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor

__all__ = ["Composed"]

REDUCTIONS = ("none", "sum", "mean")


def require_scope(ctx: ExecContext, what: str, tracked: bool) -> None:
    """Refuse to track gradients where no scope is open.

    Raises
    ------
    ActiveExecScopeRequired
        If that is so.

    Notes
    -----
    Clauses: AUTOGRAD-SCOPE-1
    """
    if tracked and ctx.rt.scope_depth == 0:
        raise ActiveExecScopeRequired(
            f"{what} of a tensor that tracks gradients needs an open exec scope", clause="AUTOGRAD-SCOPE-1"
        )


class Composed(Value):
    """Losses, norms and similarities."""

    @operation
    def nll_loss(self, ctx: ExecContext, targets: Any, axis: Tag, *, reduction: str = "mean") -> Tensor:
        """Return the negative log-likelihood of targets.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        targets : tensor, sequence of int, or int
            Indices along the axis, with the tensor's other axes.
        axis : tag
            The axis of the log-probabilities.
        reduction : {"mean", "sum", "none"}
            What is made of the losses.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, InvalidInteger
            If the tensor is not of f32, or the targets are no indices.
        InvalidTag
            If there is no such axis, or the targets have other axes.
        InvalidBounds
            If ``reduction`` is none of the three.
        ShapeMismatch, EmptySelection, IndexOutOfBounds
            If the targets do not fit.
        ActiveExecScopeRequired
            If gradients are tracked and no scope is open.

        Notes
        -----
        Clauses: POLICY-NLL-1, AUTOGRAD-SCOPE-1, AUTOGRAD-VJP-7
        """
        clause = "POLICY-NLL-1"
        single = hasattr(type(targets), "__index__") and not isinstance(targets, bool | np.ndarray)
        wanted = Indices("targets", [targets] if single else targets, clause)
        require_branch("nll_loss", self.dtype, F32)
        wanted.require_integers()
        at = axis_of(self, axis)
        tags, sizes = without(self.axis_tags, (at,)), without(self.shape, (at,))
        source = wanted.source
        if source is not None and source.axis_tags != (tags if type(self).is_named else tuple(range(len(tags)))):
            raise InvalidTag(f"targets must have the axes {tags}, got {source.axis_tags}", clause=clause)
        wanted.read()
        one = not sizes and source is None  # a single target, which stands in a sequence of its own
        if source is None:
            wanted.numbers()
        if wanted.shape != ((1,) if one else sizes):
            raise ShapeMismatch(f"targets must have the shape {sizes}, got {wanted.shape}", clause=clause)
        found = wanted.within(self.shape[at])
        reduction = str.__str__(reduction) if is_a(reduction, str) else reduction
        if not is_a(reduction, str) or reduction not in REDUCTIONS:
            raise InvalidBounds(f"reduction must be one of {REDUCTIONS}, got {shown(reduction)}", clause=clause)
        tracked = tracks(ctx, DType.f32, self)
        require_scope(ctx, "nll_loss", tracked)

        with Results(ctx, DType.f32, tracked) as results:
            raw = results.new(DType.f32, sizes if reduction == "none" else ())
            along = reduced(self.shape, (at,))
            classes = numbered(np.indices(self.shape, np.int64)[at])
            h = composed_formulas.one_hot(along, classes, found)
            losses = formulas.minus_one_times(composed_formulas.sums_along(formulas.times(read32(self.raw), h), along))
            if reduction == "sum":
                losses = [folded(losses)]
            elif reduction == "mean":
                losses = [folded(losses) / Soft32.integer(len(losses))]
            write32(raw, losses)
            copied = found if source is None else []
            formula = composed_formulas.likelihood(along, classes, copied, reduction)
            kind = self.kin(tags if reduction == "none" else ())
            saved = [None, None if source is None else source.raw]
            return results.done(kind, raw, formula, [self, source], saved)

    @operation
    def l2_normalize(self, ctx: ExecContext, axis: Tag, eps: float = 1e-12) -> Tensor:
        """Return the tensor divided by its length along an axis.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : tag
            The axis.
        eps : float
            What is added to the square of the length; f32.

        Raises
        ------
        InvalidDType
            If the tensor is not of f32.
        InvalidTag
            If there is no such axis.
        DTypeMismatch
            If ``eps`` is no number.
        ActiveExecScopeRequired
            If gradients are tracked and no scope is open.

        Notes
        -----
        Clauses: POLICY-NORM-1, AUTOGRAD-SCOPE-1, AUTOGRAD-VJP-7
        """
        require_branch("l2_normalize", self.dtype, F32)
        at = axis_of(self, axis)
        small = f32_argument("eps", eps)
        tracked = tracks(ctx, DType.f32, self)
        require_scope(ctx, "l2_normalize", tracked)
        with Results(ctx, DType.f32, tracked) as results:
            raw = results.new(DType.f32, self.shape)
            along = reduced(self.shape, (at,))
            x = read32(self.raw)
            write32(raw, formulas.times(x, along.spread(composed_formulas.inverse_lengths(x, along, small))))
            return results.done(type(self), raw, composed_formulas.normalized(along, small), [self], [self.raw])

    @operation
    def cosine_similarity(self, ctx: ExecContext, other: Any, axis: Tag, eps: float = 1e-8) -> Tensor:
        """Return the cosine of two tensors along an axis, which goes.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : tensor
            With the same tags and shape, of f32.
        axis : tag
            The axis.
        eps : float
            The least divisor; f32.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If ``other`` is no tensor, or of another dtype.
        InvalidDType
            If the tensor is not of f32.
        InvalidTag, ShapeMismatch
            If there is no such axis, or the two have not the same tags and shape.
        DTypeMismatch
            If ``eps`` is no number.
        ActiveExecScopeRequired
            If gradients are tracked and no scope is open.

        Notes
        -----
        Clauses: POLICY-COSINE-1, POLICY-MIXED-1, AUTOGRAD-SCOPE-1, AUTOGRAD-VJP-7
        """
        clause = "POLICY-COSINE-1"
        b = tensor("other", other)
        require_branch("cosine_similarity", self.dtype, F32)
        require_one_dtype("cosine_similarity", self.dtype, b.dtype)
        if self.axis_tags != b.axis_tags:
            raise InvalidTag(f"the tags must be the same, got {self.axis_tags} and {b.axis_tags}", clause=clause)
        at = axis_of(self, axis)
        small = f32_argument("eps", eps)
        if self.shape != b.shape:
            raise ShapeMismatch(f"the shapes must be equal, got {self.shape} and {b.shape}", clause=clause)
        tracked = tracks(ctx, DType.f32, self, b)
        require_scope(ctx, "cosine_similarity", tracked)
        with Results(ctx, DType.f32, tracked) as results:
            raw = results.new(DType.f32, without(self.shape, (at,)))
            along = reduced(self.shape, (at,))
            parts = composed_formulas.cosine_parts(read32(self.raw), read32(b.raw), along, small)
            write32(raw, formulas.over(parts.dot, parts.divisor))
            formula = composed_formulas.cosine(along, small, (self.node is not None, b.node is not None))
            return results.done(self.kin(without(self.axis_tags, (at,))), raw, formula, [self, b], [self.raw, b.raw])
