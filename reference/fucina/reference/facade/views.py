"""Views: other ways to see the elements of a tensor, each with a reference of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import shown
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import (
    PLAIN,
    axes_of,
    axis_of,
    operation,
    require_branch,
    shape_of,
    tags_argument,
)
from fucina.reference.facade.kinds import Tag, Tags, tag_of
from fucina.reference.facade.places import numbered, positions, repeated
from fucina.reference.facade.results import Results, raw_shape, tracks
from fucina.reference.facade.values import Value
from fucina.reference.layouts import row_major
from fucina.reference.ops.movement import materialize, narrow_axis
from fucina.reference.runtime import ExecContext
from fucina.reference.sizes import counted
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
        sizes = shape_of(shape, None if kind is None else kind.rank, clause)
        if kind is None:
            if type(self).is_named and len(sizes) != self.rank:
                raise InvalidTag(f"{len(sizes)} tags are required for {sizes}, got none", clause=clause)
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
                copy = results.keep(materialize(ctx.rt, raw))
                seen = results.keep(ctx.rt.traced(copy.reshape(raw_shape(sizes))))
                copy.deinit()
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

    # -- repeated

    @operation
    def broadcast_to(self, ctx: ExecContext, shape: ShapeLike, tags: Sequence[Tag] | None = None) -> Tensor:
        """Return the tensor repeated to a shape.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            Its sizes: each is the tensor's, unless that is 1 or missing.
        tags : sequence of str, optional
            One for each size; all of the tensor's are among them.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        InvalidTag
            If the tags do not contain the tensor's.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape, or the tensor does not fit it.

        Notes
        -----
        Clauses: FACADE-VIEW-3, AUTOGRAD-VJP-3
        """
        clause = "FACADE-VIEW-3"
        require_branch("broadcast_to", self.dtype, PLAIN)
        kind = type(self) if tags is None and type(self).is_named else None
        if tags is not None:
            kind = self.kin(tags_argument(tags))
            for tag in self.axis_tags:
                if tag not in kind.axis_tags:
                    raise InvalidTag(f"tags must contain {tag!r} of {type(self)!r}", clause=clause)
        sizes = shape_of(shape, None if kind is None else kind.rank, clause)
        axes: list[int | None]
        if kind is None:
            if len(sizes) < self.rank:
                raise InvalidShape(f"{sizes} has fewer axes than {self.shape}", clause=clause)
            kind = self.kin(tuple(range(len(sizes))))
            axes = [None] * (len(sizes) - self.rank) + list(range(self.rank))
        else:
            axes = [self.axis_tags.index(tag) if tag in self.axis_tags else None for tag in kind.axis_tags]
        own = self.shape
        for axis, n in zip(axes, sizes, strict=True):
            if axis is not None and own[axis] not in (1, n):
                raise InvalidShape(f"{own} does not fit {sizes}: {own[axis]} is neither 1 nor {n}", clause=clause)
        counted("shape", raw_shape(sizes), clause)
        steps = self.raw.strides
        strides = tuple(
            0 if axis is None or own[axis] != n else steps[axis] for axis, n in zip(axes, sizes, strict=True)
        )
        return self._seen(ctx, kind, sizes, strides, lambda: formulas.broadcasted(repeated(own, axes, sizes)))

    # -- split and merged

    @operation
    def split(self, ctx: ExecContext, axis: Tag, sizes: ShapeLike, tags: Sequence[Tag] | None = None) -> Tensor:
        """Return several axes in the place of one.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : tag
            The axis.
        sizes : sequence of int
            At least one; their product is the axis's size.
        tags : sequence of str
            One for each size; left out of a tensor without tags.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        InvalidTag
            If there is no such axis, or the tags do not go with the others or with the sizes.
        InvalidInteger, InvalidShape, Overflow
            If they are no sizes of the axis.

        Notes
        -----
        Clauses: FACADE-VIEW-4, AUTOGRAD-VJP-3
        """
        clause = "FACADE-VIEW-4"
        require_branch("split", self.dtype, PLAIN)
        at = axis_of(self, axis)
        self._require_tags_or_none(tags)
        new = None if tags is None else tags_argument(tags)
        if new is not None:
            self.kin((*self.axis_tags[:at], *new, *self.axis_tags[at + 1 :]))
        parts = shape_of(sizes, None, clause)
        if new is not None and len(new) != len(parts):
            raise InvalidTag(f"{len(parts)} sizes need as many tags, got {len(new)}", clause=clause)
        if not parts or math.prod(parts) != self.shape[at]:
            raise InvalidShape(f"the product of {parts} is not the size {self.shape[at]}", clause=clause)
        places: Tags = tuple(range(len(parts))) if new is None else new
        kind = self.kin((*self.axis_tags[:at], *places, *self.axis_tags[at + 1 :]))
        step = self.raw.strides[at]
        shape = (*self.shape[:at], *parts, *self.shape[at + 1 :])
        inner = (step * part for part in row_major(parts))
        strides = (*self.raw.strides[:at], *inner, *self.raw.strides[at + 1 :])
        size = math.prod(shape)
        return self._seen(ctx, kind, shape, strides, lambda: formulas.moved(range(size), size))

    @operation
    def merge(self, ctx: ExecContext, axes: Sequence[Tag], tag: Tag | None = None) -> Tensor:
        """Return one axis in the place of neighbours: a view where the strides allow it, else a copy.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axes : sequence of tags
            Neighbours, in their order.
        tag : str
            The tag of the new axis; left out of a tensor without tags.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        InvalidTag
            If they are no neighbours in their order, or the tag does not go with the others.
        OutOfMemory
            If there is no memory for a copy.

        Notes
        -----
        Clauses: FACADE-VIEW-4, AUTOGRAD-VJP-3
        """
        clause = "FACADE-VIEW-4"
        require_branch("merge", self.dtype, PLAIN)
        places = axes_of(self, axes)
        if not places or places != tuple(range(places[0], places[0] + len(places))):
            raise InvalidTag(f"neighbours of {self.axis_tags} are required, in their order", clause=clause)
        self._require_tags_or_none(tag)
        first, last = places[0], places[-1]
        new: Tag = 0 if tag is None else tag_of(tag)
        kind = self.kin((*self.axis_tags[:first], new, *self.axis_tags[last + 1 :]))
        own, steps = self.shape, self.raw.strides
        shape = (*own[:first], math.prod(own[first : last + 1]), *own[last + 1 :])
        counting = [i for i in places if own[i] != 1]
        if any(steps[i] != steps[j] * own[j] for i, j in pairwise(counting)):
            return self._flowing(ctx, kind, shape)
        strides = (*steps[:first], steps[counting[-1] if counting else last], *steps[last + 1 :])
        size = math.prod(shape)
        return self._seen(ctx, kind, shape, strides, lambda: formulas.moved(range(size), size))

    def _require_tags_or_none(self, given: object) -> None:
        """Refuse tags for a tensor that has none, and none for one that has some."""
        if (given is not None) != type(self).is_named:
            wanted = "new tags are required" if type(self).is_named else "there are no tags"
            raise InvalidTag(f"of {type(self)!r} {wanted}, got {shown(given)}", clause="FACADE-VIEW-4")
