"""Views: other ways to see the elements of a tensor, each with a reference of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import (
    PLAIN,
    axes_of,
    axis_of,
    operation,
    require_branch,
    tagged_shape,
    tags_argument,
)
from fucina.reference.facade.kinds import Tag
from fucina.reference.facade.places import numbered, positions
from fucina.reference.facade.results import Results, raw_shape, tracks
from fucina.reference.facade.values import Value
from fucina.reference.ops.movement import narrow_axis
from fucina.reference.ops.operands import patterns, store
from fucina.reference.runtime import ExecContext
from fucina.reference.sizes import listed
from fucina.spec.errors import InvalidShape, InvalidTag

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.graph import Formula
    from fucina.reference.tensor import RawTensor
    from fucina.spec.memory import ShapeLike

__all__ = ["Views"]


class Views(Value):
    """The views of a tensor; each is adopted where a scope is open, as every result is.

    Notes
    -----
    Clauses: FACADE-OWN-2, AUTOGRAD-VJP-3
    """

    # -- another shape

    @operation
    def reshape(self, ctx: ExecContext, shape: ShapeLike, tags: Sequence[Tag] | None = None) -> Tensor:
        """Return the elements in row-major order in another shape: a view of a contiguous tensor, else a copy.

        Parameters
        ----------
        ctx : ExecContext
            The context; so in all operations.
        shape : sequence of int
            Of as many elements.
        tags : sequence of str, optional
            One for each size; without them those of the tensor stay, if it has as many axes.

        Raises
        ------
        DTypeMismatch
            If ``ctx`` is no context; so in all operations.
        UseAfterDeinit, UseAfterScope
            If the tensor has ended; so in all operations.
        InvalidDType
            If it is of blocks.
        InvalidTag
            If there are no tags to be had.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape, or of another number of elements.
        OutOfMemory
            If there is no memory for a copy, or for the adoption by a scope; so in all operations.

        Notes
        -----
        Clauses: FACADE-VIEW-1, FACADE-CTX-1, AUTOGRAD-VJP-3
        """
        require_branch("reshape", self.dtype, PLAIN)
        return self._reshaped(ctx, shape, tags)

    def _reshaped(self, ctx: ExecContext, shape: Any, tags: Any) -> Tensor:
        clause = "FACADE-VIEW-1"
        kind = None if tags is None else self.kin(tags_argument(tags))
        given = listed("shape", shape, clause)
        if kind is None and type(self).is_named and len(given) != self.rank:
            raise InvalidTag(f"{len(given)} sizes need as many tags, got none", clause=clause)
        sizes = tagged_shape(given, kind, clause)
        if kind is None:
            kind = self.kin(self.axis_tags if type(self).is_named else tuple(range(len(sizes))))
        if math.prod(sizes) != math.prod(self.shape):
            raise InvalidShape(f"{math.prod(self.shape)} elements do not fill {sizes}", clause=clause)
        return self._flowing(ctx, kind, sizes)

    def _flowing(self, ctx: ExecContext, kind: Any, sizes: tuple[int, ...]) -> Tensor:
        """Return the elements in row-major order: a view of what is contiguous, else a copy."""
        size = math.prod(sizes)
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self)) as results:
            raw = self.raw
            if raw.is_contiguous():
                seen = results.keep(ctx.rt.traced(raw.reshape(raw_shape(sizes))))
            else:
                seen = results.new(self.dtype, sizes)
                store(seen, patterns(raw))
            return results.done(kind, seen, formulas.moved(range(size), size), [self])

    @operation
    def flatten(self, ctx: ExecContext, tag: Tag | None = None) -> Tensor:
        """Return the elements along one axis: a reshape; errors as of :meth:`reshape`.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        tag : str, optional
            The tag of the axis.

        Notes
        -----
        Clauses: FACADE-VIEW-1, AUTOGRAD-VJP-3
        """
        require_branch("flatten", self.dtype, PLAIN)
        return self._reshaped(ctx, (math.prod(self.shape),), None if tag is None else (tag,))

    @operation
    def contiguous(self, ctx: ExecContext) -> Tensor:
        """Return a contiguous tensor: a view, or a copy where this one is not.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-VIEW-1, AUTOGRAD-VJP-3
        """
        require_branch("contiguous", self.dtype, PLAIN)
        return self._flowing(ctx, type(self), self.shape)

    # -- a part, and another order

    @operation
    def narrow(self, ctx: ExecContext, axis: Tag, start: int, length: int) -> Tensor:
        """Return the part of an axis from ``start`` on.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : tag
            The axis.
        start, length : int
            Where the part begins, and its size.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        InvalidTag
            If there is no such axis.
        InvalidInteger, IndexOutOfBounds, InvalidDataLength, EmptySelection, Overflow
            If it is no part of the axis.

        Notes
        -----
        Clauses: FACADE-VIEW-2, CONTEXT-NARROW-1, AUTOGRAD-VJP-3
        """
        require_branch("narrow", self.dtype, PLAIN)
        at = axis_of(self, axis)
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self)) as results:
            raw = results.keep(ctx.rt.traced(narrow_axis(self.raw, at, start, length)))
            formula = None
            if results.tracked:
                part = (slice(None),) * at + (slice(int(start), int(start) + raw.shape[at]),)
                formula = formulas.moved(numbered(positions(self.shape)[part]), math.prod(self.shape))
            return results.done(type(self), raw, formula, [self])

    @operation
    def permute(self, ctx: ExecContext, axes: Sequence[Tag]) -> Tensor:
        """Return the axes in another order.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axes : sequence of tags
            All of them.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        InvalidTag
            If they are not exactly the tensor's.

        Notes
        -----
        Clauses: FACADE-VIEW-2, AUTOGRAD-VJP-3
        """
        require_branch("permute", self.dtype, PLAIN)
        order = axes_of(self, axes)
        if len(order) != self.rank:
            raise InvalidTag(f"all of {self.axis_tags} are required, got {len(order)}", clause="FACADE-VIEW-2")
        return self._permuted(ctx, order)

    @operation
    def transpose(self, ctx: ExecContext, a: Tag, b: Tag) -> Tensor:
        """Return two axes exchanged; errors as of :meth:`permute`.

        Notes
        -----
        Clauses: FACADE-VIEW-2, AUTOGRAD-VJP-3
        """
        require_branch("transpose", self.dtype, PLAIN)
        order = list(range(self.rank))
        i, j = axis_of(self, a), axis_of(self, b)
        order[i], order[j] = order[j], order[i]
        return self._permuted(ctx, order)

    def _permuted(self, ctx: ExecContext, order: Sequence[int]) -> Tensor:
        raw = self.raw
        shape = tuple(self.shape[axis] for axis in order)
        strides = tuple(raw.strides[axis] for axis in order)
        return self._seen(
            ctx,
            self.kin(tuple(self.axis_tags[axis] for axis in order)),
            shape,
            strides,
            lambda: formulas.moved(numbered(positions(self.shape).transpose(list(order))), math.prod(shape)),
        )

    def _seen(
        self, ctx: ExecContext, kind: Any, shape: tuple[int, ...], strides: tuple[int, ...], formula: Any
    ) -> Tensor:
        """Return a view; ``formula()`` makes its formula, if one is needed."""
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self)) as results:
            raw = self.raw
            found: RawTensor = results.keep(
                ctx.rt.traced(raw.view_with_strides_offset(raw_shape(shape), strides if shape else (1,), 0))
            )
            made: Formula | None = formula() if results.tracked else None
            return results.done(kind, found, made, [self])
