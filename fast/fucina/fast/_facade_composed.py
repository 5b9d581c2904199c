"""Operations that are formulas of others: losses and norms."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fucina.fast import _formulas as formulas
from fucina.fast._accelerate import of_bits
from fucina.fast._arguments import cast_pattern, double, pattern
from fucina.fast._context_core import contexts
from fucina.fast._facade_core import (
    Pending,
    checked_count,
    fresh,
    kept,
    on_context,
    operand,
    require_dtype,
    result,
    tracks,
)
from fucina.fast._facade_indices import indices_of, require_indices, require_integers
from fucina.fast._facade_operations import require_same_dtype
from fucina.fast._facade_products import Products
from fucina.fast._facade_reductions import mean_of
from fucina.fast._facade_types import TensorType, axis_of
from fucina.fast._shown import shown, tuple_shown
from fucina.fast._sizes import row_major
from fucina.fast.autograd import Node
from fucina.spec.errors import ActiveExecScopeRequired, InvalidBounds, InvalidTag, ShapeMismatch
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast._facade_indices import Indices
    from fucina.fast._facade_types import Tag
    from fucina.fast.facade import Tensor
    from fucina.fast.tensor import RawTensor

__all__ = ["Composed"]

_F32 = frozenset({DType.f32})
_MUL, _DIV = 2, 3
_F32_INDEX, _F64_INDEX = DType.f32.index, DType.f64.index


class Composed(Products):
    """What a tensor does by several operations."""

    __slots__ = ()

    def _composed(self, what: str, axis: Any) -> tuple[TensorType, int, tuple[int, ...]]:
        """Return the type, the place of an axis, and the places of the others."""
        require_dtype(what, self.dtype, _F32)
        kind = cast(TensorType, type(self))
        at = axis_of(kind, axis)
        return kind, at, tuple(k for k in range(kind.rank) if k != at)

    @on_context
    def nll_loss(self, ctx: Any, targets: Any, axis: Tag, *, reduction: str = "mean") -> Tensor:
        """Return the negative log-likelihood of targets, of log-probabilities along an axis.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        targets : Tensor, list, tuple, range, array, or int where there is no other axis
            An index along the axis for each place along the others.
        axis : str or int
            The axis.
        reduction : str
            "mean", "sum" or "none".

        Raises
        ------
        DTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidDType, InvalidInteger
            They are no indices; not of f32.
        InvalidTag, ShapeMismatch, IndexOutOfBounds, EmptySelection
            No such axis; the targets have not the other axes; one lies outside.
        InvalidBounds, ActiveExecScopeRequired
            No reduction; the result would track gradients, and no scope is open.
        OutOfMemory
            There is no memory.

        Clauses: POLICY-NLL-1, AUTOGRAD-VJP-7, AUTOGRAD-SCOPE-1
        """
        clause = "POLICY-NLL-1"
        one = hasattr(type(targets), "__index__") and not isinstance(targets, bool | np.ndarray)
        if not one:
            require_indices("targets", targets, clause)
        require_dtype("nll_loss", self.dtype, _F32)
        require_integers("targets", targets, clause)
        kind, at, others = self._composed("nll_loss", axis)
        if one and others:
            raise ShapeMismatch(f"one index is for a tensor of one axis, got {kind!r}", clause=clause)
        with indices_of(ctx, "targets", (targets,) if one else targets, clause) as found:
            shape = checked_count(self._raw_shape, clause)
            _require_targets(kind, tuple(shape[k] for k in others), others, found, at, clause)
            found.require_below(shape[at], clause)
            reduction = _reduction(reduction, clause)
            tracked = _require_scope(ctx, self._node)
            n = prod(shape[k] for k in others)
            raw = _losses(ctx, self.as_raw_tensor(), found.words, shape, at)
            left = others
            if reduction != "none":
                raw, left = _all(ctx, raw, n if reduction == "mean" else None), ()
            else:
                raw = _reshaped(raw, tuple(shape[k] for k in others) or (1,))
            node = None
            if tracked:
                along = tuple(-1 if k == at else others.index(k) for k in range(kind.rank))
                constants = (shape, along if reduction == "none" else None, n if reduction == "mean" else None, at)
                node = Node(tuple(raw.shape), (self._node,), (found.saved(),), formulas.NLL, constants)
            return result(ctx, kept(kind, left, DType.f32), raw, node)

    @on_context
    def l2_normalize(self, ctx: Any, axis: Tag, eps: float = 1e-12) -> Tensor:
        """Return the tensor over its length along an axis.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : str or int
            The axis.
        eps : float
            Added to the sum of the squares; as f32.

        Raises
        ------
        InvalidDType, InvalidTag, DTypeMismatch
            Not of f32; no such axis; no number.
        ActiveExecScopeRequired, OutOfMemory
            The result would track gradients, and no scope is open; there is no memory.

        Clauses: POLICY-NORM-1, AUTOGRAD-VJP-7, AUTOGRAD-SCOPE-1
        """
        clause = "POLICY-NORM-1"
        kind, at, _ = self._composed("l2_normalize", axis)
        small = _single("eps", eps)
        shape = checked_count(self._raw_shape, clause)
        tracked = _require_scope(ctx, self._node)
        with fresh(ctx, DType.f32, shape) as raw:
            with formulas.norm_factor(ctx, self.as_raw_tensor(), at, small) as factor:
                contexts.pointwise(_MUL, self, factor, raw, False)
            node = None
            if tracked:
                node = Node(shape, (self._node,), (self._clone_view(),), formulas.NORM, (at, small))
            return result(ctx, kind, raw, node)

    @on_context
    def cosine_similarity(self, ctx: Any, other: Any, axis: Tag, eps: float = 1e-8) -> Tensor:
        """Return the cosines of the angles between two tensors along an axis, which goes.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : Tensor
            Of the same tags and shape.
        axis : str or int
            The axis.
        eps : float
            The least divisor; as f32.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType
            No two tensors of f32; no number.
        InvalidTag, ShapeMismatch
            Other tags, or no such axis; another shape.
        ActiveExecScopeRequired, OutOfMemory
            The result would track gradients, and no scope is open; there is no memory.

        Clauses: POLICY-COSINE-1, AUTOGRAD-VJP-7, AUTOGRAD-SCOPE-1
        """
        clause = "POLICY-COSINE-1"
        found = operand("other", other)
        require_dtype("cosine_similarity", self.dtype, _F32)
        require_same_dtype(self, found)
        if self.axis_tags != found.axis_tags:
            raise InvalidTag(f"other must have the tags {self.axis_tags}, got {found.axis_tags}", clause=clause)
        kind, at, others = self._composed("cosine_similarity", axis)
        small = _single("eps", eps)
        shape = checked_count(self._raw_shape, clause)
        if found._raw_shape != shape:
            raise ShapeMismatch(
                f"other must have shape {tuple_shown(shape)}, got {tuple_shown(found._raw_shape)}", clause=clause
            )
        tracked = _require_scope(ctx, self._node, found._node)
        raw = _cosines(ctx, self.as_raw_tensor(), found.as_raw_tensor(), at, small)
        raw = _reshaped(raw, tuple(shape[k] for k in others) or (1,))
        node = None
        if tracked:
            saved = (self._clone_view(), found._clone_view())
            node = Node(tuple(raw.shape), (self._node, found._node), saved, formulas.COSINE, (at, small))
        return result(ctx, kept(kind, others, DType.f32), raw, node)


def _single(name: str, value: Any) -> float:
    """Return a number, rounded to f32."""
    bits = cast_pattern(_F64_INDEX, _F32_INDEX, pattern(name, double(name, value), "NUM-PARAM-1"))
    return of_bits(cast_pattern(_F32_INDEX, _F64_INDEX, bits))


def _reduction(value: Any, clause: str) -> str:
    name = str.__str__(value) if issubclass(type(value), str) else ""
    if name not in ("mean", "sum", "none"):
        raise InvalidBounds(f'reduction must be "mean", "sum" or "none", got {shown(value)}', clause=clause)
    return name


def _require_scope(ctx: Any, *nodes: Any) -> bool:
    """Return whether a composed operation tracks, for which a scope must be open.

    Clauses: AUTOGRAD-SCOPE-1
    """
    tracked = tracks(ctx, DType.f32, *nodes)
    if tracked and not ctx._rt.scopes.marks:
        raise ActiveExecScopeRequired(
            f"a scope must be open for a composed operation whose result tracks gradients, got none in {ctx!r}",
            clause="AUTOGRAD-SCOPE-1",
        )
    return tracked


def _require_targets(
    kind: TensorType, sizes: tuple[int, ...], others: tuple[int, ...], found: Indices, at: int, clause: str
) -> None:
    """Refuse targets that have not the axes of the log-probabilities but one.

    Clauses: POLICY-NLL-1
    """
    if found.kind is None:
        wanted = sizes or (1,)
    else:
        tags = tuple(range(len(others))) if kind._names is None else tuple(kind._names[k] for k in others)
        if found.kind.axis_tags != tags:
            raise InvalidTag(f"targets must have the tags {tags}, got {found.kind.axis_tags}", clause=clause)
        wanted = sizes
    if found.shape != wanted:
        raise ShapeMismatch(
            f"targets must have shape {tuple_shown(wanted)}, got {tuple_shown(found.shape)}", clause=clause
        )


def _reshaped(raw: RawTensor, dims: tuple[int, ...]) -> RawTensor:
    """Return a contiguous raw tensor in another shape; it takes the place of the one that is given."""
    with raw:
        made: RawTensor = raw._view(dims, row_major(dims), raw.offset)
        return made


def _losses(ctx: Any, x: RawTensor, targets: RawTensor, shape: tuple[int, ...], at: int) -> RawTensor:
    """Return -1 * sum(x * h) along an axis, which stays with size 1.

    Clauses: POLICY-NLL-1
    """
    with formulas.one_hot(ctx, targets, shape, at) as h:
        made = formulas.sum_of_products(ctx, x, h, at)
    contexts.scale(made, -1.0, made, False)
    return made


def _all(ctx: Any, raw: RawTensor, n: int | None) -> RawTensor:
    """Return the sum of all elements, over n where there is one; it takes the place of the one that is given."""
    with raw:
        made: RawTensor = ctx._rt.new(DType.f32, (1,))
        contexts.sum_axes(raw, (1 << len(raw.shape)) - 1, made)
    if n is not None:
        mean_of(made, n)
    return made


def _cosines(ctx: Any, x: RawTensor, y: RawTensor, at: int, eps: float) -> RawTensor:
    """Return sum(x * y) / max(sqrt(sum(x * x)) * sqrt(sum(y * y)), eps) along an axis, which stays with size 1.

    Clauses: POLICY-COSINE-1
    """
    with (
        Pending(formulas.sum_of_products(ctx, x, y, at)) as made,
        formulas.sum_of_products(ctx, x, x, at) as sx,
        formulas.sum_of_products(ctx, y, y, at) as sy,
        ctx._rt.new(DType.f32, tuple(made.shape)) as p,
    ):
        contexts.unary(contexts.SQRT, sx, p)
        contexts.unary(contexts.SQRT, sy, sx)
        contexts.pointwise(_MUL, p, sx, p, False)
        contexts.max_scalar(p, eps, sy)
        contexts.pointwise(_DIV, made, sy, made, False)
        return made
