"""Axes: views that repeat a tensor, split an axis, or merge several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from fucina.reference.arguments import shown
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import (
    PLAIN,
    axes_of,
    axis_of,
    operation,
    require_branch,
    shape_of,
    tagged_shape,
    tags_argument,
)
from fucina.reference.facade.kinds import Tag, Tags, tag_of
from fucina.reference.facade.places import placed, repeated
from fucina.reference.facade.results import raw_shape
from fucina.reference.facade.values import Value
from fucina.reference.facade.views import Views
from fucina.reference.layouts import row_major
from fucina.reference.runtime import ExecContext
from fucina.reference.sizes import counted, listed
from fucina.spec.errors import InvalidShape, InvalidTag

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor
    from fucina.spec.memory import ShapeLike

__all__ = ["Axes"]


class Axes(Views):
    """The views with another number of axes."""

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
        kind: type[Value] = type(self)
        if tags is not None:
            kind = self.kin(tags_argument(tags))
            for tag in self.axis_tags:
                if tag not in kind.axis_tags:
                    raise InvalidTag(f"tags must contain {tag!r} of {type(self)!r}", clause=clause)
            sizes = tagged_shape(shape, kind, clause)
        elif kind.is_named:
            sizes = shape_of(shape, kind.rank, clause)
        else:
            given = listed("shape", shape, clause)
            if len(given) < self.rank:
                raise InvalidShape(f"{len(given)} sizes are fewer than {self.shape} has", clause=clause)
            sizes = shape_of(given, None, clause)
            kind = self.kin(tuple(range(len(sizes))))
        counted("shape", raw_shape(sizes), clause)
        own, axes = self.shape, placed(self, kind.axis_tags)
        for axis, n in zip(axes, sizes, strict=True):
            if axis is not None and own[axis] not in (1, n):
                raise InvalidShape(f"{own} does not fit {sizes}: {own[axis]} is neither 1 nor {n}", clause=clause)
        steps = self.raw.strides
        strides = tuple(
            0 if axis is None or own[axis] != n else steps[axis] for axis, n in zip(axes, sizes, strict=True)
        )
        return self._seen(ctx, kind, sizes, strides, lambda: formulas.broadcasted(repeated(own, axes, sizes)))

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
        given = listed("sizes", sizes, clause)
        if new is not None and len(new) != len(given):
            raise InvalidTag(f"{len(given)} sizes need as many tags, got {len(new)}", clause=clause)
        parts = shape_of(given, None, clause, "sizes")
        if parts:
            counted("sizes", parts, clause)
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
