"""Reductions: sums and means along axes, each element one fixed tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fucina.reference.arguments import flag
from fucina.reference.arithmetic import SOFT, total
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import FLOAT, SUMMABLE, axes_of, axis_of, operation, require_branch
from fucina.reference.facade.kinds import Tag
from fucina.reference.facade.places import Repetition, collected, reduced, without
from fucina.reference.facade.results import Results, tracks
from fucina.reference.facade.values import Value
from fucina.reference.ops.operands import patterns, store
from fucina.reference.policy import output_dtype
from fucina.reference.runtime import ExecContext
from fucina.spec.errors import EmptySelection
from fucina.spec.types import DType, FloatOp

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.graph import Formula

__all__ = ["Reductions"]


class Reductions(Value):
    """What makes fewer elements of many."""

    @operation
    def sum(self, ctx: ExecContext, axes: Tag | Sequence[Tag] | None = None, *, keep_dims: bool = False) -> Tensor:
        """Return the sum along one axis, several, or all.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axes : tag, or tuple or list of tags, optional
            The axes that go; without them all.
        keep_dims : bool
            Whether they stay, with size 1.

        Raises
        ------
        InvalidDType
            If the dtype has no sum.
        InvalidTag
            If there is no such axis, or one stands twice.
        DTypeMismatch
            If ``keep_dims`` is no bool.
        EmptySelection
            If ``axes`` is empty.

        Notes
        -----
        Clauses: POLICY-SUM-1, POLICY-RESULT-1, CONTEXT-SUM-1, AUTOGRAD-VJP-2
        """
        require_branch("sum", self.dtype, SUMMABLE)
        places = self._places(axes, "POLICY-SUM-1")
        return self._reduced(ctx, places, keep_dims, "POLICY-SUM-1", lambda bits: bits, formulas.summed)

    @operation
    def sum_all(self, ctx: ExecContext) -> Tensor:
        """Return the sum of all elements.

        Raises
        ------
        InvalidDType
            If the dtype has no sum.

        Notes
        -----
        Clauses: POLICY-SUM-1, POLICY-RESULT-1, CONTEXT-SUM-1, AUTOGRAD-VJP-2
        """
        require_branch("sum_all", self.dtype, SUMMABLE)
        places = tuple(range(self.rank))
        return self._reduced(ctx, places, False, "POLICY-SUM-1", lambda bits: bits, formulas.summed)

    @operation
    def mean(self, ctx: ExecContext, axes: Tag | Sequence[Tag] | None = None, *, keep_dims: bool = False) -> Tensor:
        """Return the mean along one axis, several, or all; parameters and errors as of :meth:`sum`.

        Notes
        -----
        Clauses: POLICY-MEAN-1, POLICY-RESULT-1, AUTOGRAD-VJP-2
        """
        require_branch("mean", self.dtype, FLOAT)
        places = self._places(axes, "POLICY-MEAN-1")
        n = math.prod(self.shape[axis] for axis in places)
        wide = SOFT[output_dtype(FloatOp.reduction, self.dtype)]
        count = wide.integer(n)
        return self._reduced(
            ctx,
            places,
            keep_dims,
            "POLICY-MEAN-1",
            lambda bits: (wide.from_bits(bits) / count).bits,
            lambda along: formulas.averaged(along, n),
        )

    def _places(self, axes: Tag | Sequence[Tag] | None, clause: str) -> tuple[int, ...]:
        """Return the places of the axes that go, in the tensor's order."""
        if axes is None:
            return tuple(range(self.rank))
        if not isinstance(axes, tuple | list):
            return (axis_of(self, axes),)
        if not axes:
            raise EmptySelection(f"axes must have at least one axis, got {axes!r}", clause=clause)
        return tuple(sorted(axes_of(self, axes)))

    def _reduced(
        self,
        ctx: ExecContext,
        places: tuple[int, ...],
        keep_dims: bool,
        clause: str,
        finish: Callable[[int], int],
        formula: Callable[[Repetition], Formula],
    ) -> Tensor:
        """Return a reduction: the tree of each element, and what is then done with it."""
        kept = flag("keep_dims", keep_dims, clause)
        own = self.shape
        dtype: DType = output_dtype(FloatOp.reduction, self.dtype)
        shape = tuple(1 if axis in places else n for axis, n in enumerate(own) if kept or axis not in places)
        kind = self.kin(self.axis_tags if kept else without(self.axis_tags, places), dtype)
        with Results(ctx, dtype, tracks(ctx, dtype, self)) as results:
            raw = results.new(dtype, shape)
            along = reduced(own, places)
            groups = collected(along.places, along.size, patterns(self.raw))
            store(raw, [finish(total(self.dtype, group)) for group in groups])
            return results.done(kind, raw, formula(along), [self])
