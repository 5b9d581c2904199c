"""Rows by index, and products of sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import shown
from fucina.reference.arithmetic import SOFT
from fucina.reference.bridges import FLOATS, convert
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import (
    BLOCKS,
    FLOAT,
    axis_of,
    operation,
    require_branch,
    require_one_dtype,
    tensor,
)
from fucina.reference.facade.conversions import decoded
from fucina.reference.facade.indices import Indices
from fucina.reference.facade.kinds import Tag, Tags
from fucina.reference.facade.places import lines, without
from fucina.reference.facade.results import Results, tracks
from fucina.reference.facade.values import Value
from fucina.reference.formats import decode
from fucina.reference.ops.operands import patterns, store
from fucina.reference.runtime import ExecContext
from fucina.reference.softfloat import SoftFloat
from fucina.spec.errors import InvalidShape, InvalidTag, ShapeMismatch
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.tensor import Tensor

__all__ = ["Products"]

Places = list[list[int]]


class Products(Value):
    """Rows and products."""

    # -- rows

    @operation
    def get_rows(self, ctx: ExecContext, indices: Any) -> Tensor:
        """Return the slices along the first axis that indices name; of blocks, decoded to f32.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        indices : tensor or sequence of int
            A tensor of an integer dtype, or a list, tuple, range or array of integers, for one axis.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, InvalidInteger
            If they are no indices.
        InvalidTag
            If their tags do not go with those of the other axes.
        InvalidShape
            If the tensor has no axes; of blocks, if it has not two.
        EmptySelection, IndexOutOfBounds
            If there is no index, or one names no row.

        Notes
        -----
        Clauses: POLICY-ROWS-1, POLICY-BRANCH-1, AUTOGRAD-VJP-5
        """
        clause = "POLICY-ROWS-1"
        wanted = Indices("indices", indices, clause)
        wanted.require_integers()
        blocks = self.dtype in BLOCKS
        dtype = DType.f32 if blocks else self.dtype
        kind = self.kin(self._row_tags(wanted.source), dtype)
        wanted.read()
        if not self.rank or (blocks and self.rank != 2):
            needed = "two axes" if blocks else "an axis"
            raise InvalidShape(f"rows need {needed}, got {self!r}", clause=clause)
        found = wanted.within(self.shape[0])
        width = math.prod(self.shape[1:])
        with Results(ctx, dtype, tracks(ctx, dtype, self)) as results:
            raw = results.new(dtype, (*wanted.shape, *self.shape[1:]))
            own = decoded(self.raw) if blocks else patterns(self.raw)
            store(raw, [bits for index in found for bits in own[index * width : (index + 1) * width]])
            source = None if wanted.source is None else wanted.source.raw
            copied = found if source is None else []
            formula = formulas.rows(copied, self.shape[0], width)
            return results.done(kind, raw, formula, [self, wanted.source], [None, source])

    def _row_tags(self, source: Value | None) -> Tags:
        """Return the tags of the result.

        Notes
        -----
        Clauses: POLICY-ROWS-1
        """
        if source is None or not self.rank:
            return self.axis_tags
        if source.rank and self.rank > 1 and type(source).is_named != type(self).is_named:
            raise InvalidTag(
                f"a tensor with tags does not go with one without, got {type(self)!r} and {type(source)!r}",
                clause="POLICY-ROWS-1",
            )
        if type(self).is_named and set(source.axis_tags) & set(self.axis_tags[1:]):
            raise InvalidTag(
                f"indices must not have tags of other axes, {self.axis_tags[1:]}, got {source.axis_tags}",
                clause="POLICY-ROWS-1",
            )
        return (*source.axis_tags, *self.axis_tags[1:])

    # -- products

    @operation
    def dot(self, ctx: ExecContext, other: Any, axis: Tag | None = None) -> Tensor:
        """Return the sums of products along an axis that both tensors have.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : tensor
            Of the same dtype.
        axis : str, optional
            The axis; without it the one that both have.  Of tensors without tags, the left one's last and the right
            one's first are contracted.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If ``other`` is no tensor, or of another dtype.
        InvalidDType
            If the dtype is none of f16, bf16, f32 and f64.
        InvalidTag
            If it is not clear which axis is contracted, or another one is common to both.
        ShapeMismatch
            If the sizes of the axis differ.
        InvalidShape
            If the result would have more than 8 axes.

        Notes
        -----
        Clauses: POLICY-DOT-1, POLICY-MIXED-1, POLICY-RESULT-1, AUTOGRAD-VJP-6
        """
        b = tensor("other", other)
        require_branch("dot", self.dtype, FLOAT)
        require_one_dtype("dot", self.dtype, b.dtype)
        i, j = self._contracted(b, axis)
        kind = self.kin((*without(self.axis_tags, (i,)), *without(b.axis_tags, (j,))))
        if self.shape[i] != b.shape[j]:
            raise ShapeMismatch(
                f"the contracted sizes must be equal, got {self.shape[i]} and {b.shape[j]}", clause="POLICY-DOT-1"
            )
        shape = (*without(self.shape, (i,)), *without(b.shape, (j,)))
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self, b)) as results:
            raw = results.new(self.dtype, shape)
            left, right = lines(self.shape, i), lines(b.shape, j)
            store(raw, chained(self.dtype, patterns(self.raw), left, patterns(b.raw), right))
            tracked = self.node is not None, b.node is not None
            saved = [self.raw if tracked[1] else None, b.raw if tracked[0] else None]
            return results.done(kind, raw, formulas.products(left, right, tracked), [self, b], saved)

    def _contracted(self, b: Value, axis: Any) -> tuple[int, int]:
        """Return the places of the contracted axis.

        Notes
        -----
        Clauses: POLICY-DOT-1
        """
        clause = "POLICY-DOT-1"
        named = type(self).is_named, type(b).is_named
        if not self.rank or not b.rank or named[0] != named[1]:
            raise InvalidTag(f"{type(self)!r} and {type(b)!r} have no axis in common", clause=clause)
        if not named[0]:
            if axis is not None:
                raise InvalidTag(
                    f"the axis of tensors without tags is the last and the first, and not given: got {shown(axis)}",
                    clause=clause,
                )
            return self.rank - 1, 0
        common = [tag for tag in self.axis_tags if tag in b.axis_tags]
        if axis is None:
            if len(common) != 1:
                raise InvalidTag(f"one axis in common is required, got {common}", clause=clause)
            axis = common[0]
        i, j = axis_of(self, axis), axis_of(b, axis)
        if len(common) > 1:
            raise InvalidTag(f"no other axis may be common, got {common}", clause=clause)
        return i, j


def chained(dtype: DType, a: Sequence[int], left: Places, b: Sequence[int], right: Places) -> list[int]:
    """Return ``acc = fma(a_k, b_k, acc)`` from +0, for each pair of lines, rounded to the dtype at the end.

    Notes
    -----
    Clauses: POLICY-DOT-1
    """
    fmt, wide = FLOATS[dtype], SOFT[DType.f64 if dtype is DType.f64 else DType.f32]
    first = [wide.from_number(decode(fmt, bits)) for bits in a]
    second = [wide.from_number(decode(fmt, bits)) for bits in b]

    def element(p: Sequence[int], q: Sequence[int]) -> int:
        acc: SoftFloat = wide.integer(0)
        for k, place in enumerate(p):
            acc = first[place].fma(second[q[k]], acc)
        return convert(wide.format, fmt, acc.bits)

    return [element(p, q) for p in left for q in right]
