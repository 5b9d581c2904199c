"""Rows by index, and products of sums."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, cast

from fucina.fast import _formulas as formulas
from fucina.fast import quant
from fucina.fast._context_core import contexts
from fucina.fast._facade_core import (
    FLOATS,
    PLAIN,
    checked_count,
    fresh,
    on_context,
    operand,
    require_dtype,
    result,
    tracks,
)
from fucina.fast._facade_indices import indices_of
from fucina.fast._facade_operations import require_same_dtype
from fucina.fast._facade_reductions import Reductions
from fucina.fast._facade_types import TensorType, axis_of, kind_of
from fucina.fast._facade_views import merged_stride
from fucina.fast._objects import handles
from fucina.fast._shown import shown, tuple_shown
from fucina.fast.autograd import Node
from fucina.spec.errors import InvalidShape, InvalidTag, ShapeMismatch
from fucina.spec.runtime import MAX_RANK
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast._facade_types import Names
    from fucina.fast.facade import Tensor

__all__ = ["Products"]


class Products(Reductions):
    """What a tensor does with rows and with another matrix."""

    __slots__ = ()

    @on_context
    def get_rows(self, ctx: Any, indices: Any) -> Tensor:
        """Return the slices along the first axis that indices name; of blocks, decoded to f32.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        indices : Tensor, list, tuple, range or array
            Integers, each in [0, size of the first axis).

        Raises
        ------
        DTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidDType, InvalidInteger
            They are no indices.
        InvalidTag
            Their tags are those of other axes.
        InvalidShape, IndexOutOfBounds, EmptySelection
            A tensor without axes, and of blocks one of other than two; an index outside; none.
        OutOfMemory
            There is no memory.

        Clauses: POLICY-ROWS-1, AUTOGRAD-VJP-5
        """
        clause, kind = "POLICY-ROWS-1", cast(TensorType, type(self))
        with indices_of(ctx, "indices", indices, clause) as found:
            names = self._names_of_rows(found.kind)
            rank = len(found.shape) + kind.rank - 1
            if kind.rank == 0:
                raise InvalidShape(f"rows are those of a tensor with axes, got {kind!r}", clause=clause)
            if self.dtype not in PLAIN and kind.rank != 2:
                raise InvalidShape(f"rows of blocks are those of a tensor of two axes, got {kind!r}", clause=clause)
            if rank > MAX_RANK:
                raise InvalidShape(f"the result would have {rank} axes, more than {MAX_RANK}", clause=clause)
            shape = self._raw_shape
            found.require_below(shape[0], clause)
            dims = checked_count((*found.shape, *shape[1:]) or (1,), clause)
            dtype = self.dtype if self.dtype in PLAIN else DType.f32
            with fresh(ctx, dtype, dims) as raw:
                if self.dtype in PLAIN:
                    contexts.gather_rows(self, found.words, raw)
                else:
                    quant.dequantize_rows(self.dtype, self.data_const(), shape[1], found.flat(), out=raw.data())
                node = None
                if tracks(ctx, dtype, self._node):
                    node = Node(dims, (self._node,), (found.saved(),), formulas.ROWS, (shape,))
                return result(ctx, kind_of(names, rank, dtype), raw, node)

    def _names_of_rows(self, indices: TensorType | None) -> Names:
        """Return the names of the axes of rows: the indices' in place of the first.

        Clauses: POLICY-ROWS-1
        """
        clause, mine = "POLICY-ROWS-1", self._names
        if indices is None or not self.rank:
            return mine
        rest = None if mine is None else mine[1:]
        given = indices._names
        if self.rank == 1:
            return given
        if not indices.rank:
            return rest
        if (given is None) is not (rest is None):
            raise InvalidTag(
                f"indices with tags go with tensors with tags, got {indices!r} and {type(self)!r}", clause=clause
            )
        if given is None or rest is None:
            return None
        if set(given) & set(rest):
            raise InvalidTag(f"indices must not have tags of other axes, {rest}, got {given}", clause=clause)
        return (*given, *rest)

    @on_context
    def _dot(self, ctx: Any, other: Any, axis: Any = None) -> Tensor:
        """Return the sums of products along an axis that both tensors have.

        Clauses: POLICY-DOT-1, AUTOGRAD-VJP-6
        """
        clause = "POLICY-DOT-1"
        found = operand("other", other)
        require_dtype("dot", self.dtype, FLOATS)
        require_same_dtype(self, found)
        kind, its = cast(TensorType, type(self)), cast(TensorType, type(found))
        at, its_at = _contracted(kind, its, axis)
        mine, yours = _others(kind.rank, at), _others(its.rank, its_at)
        names = _names_of_product(kind, its, mine, yours)
        rank = len(mine) + len(yours)
        if rank > MAX_RANK:
            raise InvalidShape(f"the result would have {rank} axes, more than {MAX_RANK}", clause=clause)
        a_shape, b_shape = self._raw_shape, found._raw_shape
        if a_shape[at] != b_shape[its_at]:
            raise ShapeMismatch(
                f"the axis must have one size, got {a_shape[at]} and {b_shape[its_at]} in shapes "
                f"{tuple_shown(a_shape)} and {tuple_shown(b_shape)}",
                clause=clause,
            )
        checked_count(a_shape, clause)
        checked_count(b_shape, clause)
        dims = checked_count((*(a_shape[k] for k in mine), *(b_shape[k] for k in yours)) or (1,), clause)
        with fresh(ctx, self.dtype, dims) as raw:
            with _matrix(ctx, self, mine, at, False) as a, _matrix(ctx, found, yours, its_at, True) as b:
                contexts.matmul(a, b, raw)
            node = None
            if tracks(ctx, self.dtype, self._node, found._node):
                saved = (
                    self._clone_view() if found._node is not None else None,
                    found._clone_view() if self._node is not None else None,
                )
                constants = (a_shape, b_shape, at, its_at)
                node = Node(dims, (self._node, found._node), saved, formulas.DOT, constants)
            made = kind_of(names, rank, self.dtype)
            if axis is None:
                handles.facade_product(kind, its, made, at, its_at)
            return result(ctx, made, raw, node)


def _others(rank: int, at: int) -> tuple[int, ...]:
    return tuple(k for k in range(rank) if k != at)


def _contracted(kind: TensorType, its: TensorType, axis: Any) -> tuple[int, int]:
    """Return which axes of two tensors are contracted.

    Clauses: POLICY-DOT-1
    """
    clause = "POLICY-DOT-1"
    if kind._names is None and its._names is None:
        if axis is not None:
            raise InvalidTag(f"axis is not given for tensors without tags, got {shown(axis)}", clause=clause)
        return kind.rank - 1, 0
    if not kind._names or not its._names:
        raise InvalidTag(f"there must be a tag that both have, got {kind!r} and {its!r}", clause=clause)
    if axis is None:
        common = [name for name in kind._names if name in its._names]
        if len(common) != 1:
            raise InvalidTag(
                f"without axis there must be one tag that both have, got {common} of {kind!r} and {its!r}",
                clause=clause,
            )
        axis = common[0]
    return axis_of(kind, axis), axis_of(its, axis)


def _names_of_product(kind: TensorType, its: TensorType, mine: tuple[int, ...], yours: tuple[int, ...]) -> Names:
    if kind._names is None or its._names is None:
        return None
    names = (*(kind._names[k] for k in mine), *(its._names[k] for k in yours))
    if len(set(names)) != len(names):
        raise InvalidTag(f"one tag is contracted, and no other is common, got {names}", clause="POLICY-DOT-1")
    return names


def _matrix(ctx: Any, x: Any, others: tuple[int, ...], at: int, first: bool) -> Any:
    """Return a raw tensor of two axes: one axis of a tensor, in the first or last place, and all others together."""
    shape, strides = x._raw_shape, x._raw_strides
    size, step = shape[at], strides[at]
    count = prod(shape[k] for k in others)
    along = merged_stride(tuple(shape[k] for k in others), tuple(strides[k] for k in others)) if others else 0
    if along is not None:
        dims, steps = ((size, count), (step, along)) if first else ((count, size), (along, step))
        return x._view(dims, steps, x._raw_offset)
    order = (at, *others) if first else (*others, at)
    moved = x._view(tuple(shape[k] for k in order), tuple(strides[k] for k in order), x._raw_offset)
    with moved, ctx._rt.new(x.dtype, tuple(shape[k] for k in order)) as flat:
        contexts.copy(moved, flat)
        return flat.reshape((size, count) if first else (count, size))
