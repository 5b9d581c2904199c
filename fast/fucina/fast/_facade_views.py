"""Views of tensors with tags: other shapes, parts, orders, repetitions."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, cast

from fucina.fast import _formulas as formulas
from fucina.fast._context_core import contexts
from fucina.fast._context_layouts import _narrowed as narrowed
from fucina.fast._facade_core import PLAIN, checked_count, kept, on_context, require_dtype, result, tracks
from fucina.fast._facade_gradients import Tracking
from fucina.fast._facade_types import TensorType, axes_of, axis_of, kind_of, names_of
from fucina.fast._objects import handles
from fucina.fast._shown import tuple_shown
from fucina.fast._sizes import count_of, entries, require_rank, row_major
from fucina.fast.autograd import Node
from fucina.spec.errors import InvalidShape, InvalidTag

if TYPE_CHECKING:
    from fucina.fast._facade_types import Names, Tag
    from fucina.fast.facade import Tensor
    from fucina.fast.tensor import RawTensor

__all__ = ["Views", "merged_stride", "reshaped"]


class Views(Tracking):
    """The views of a tensor.

    Clauses: FACADE-VIEW-1, FACADE-VIEW-2, FACADE-VIEW-3, FACADE-VIEW-4
    """

    __slots__ = ()

    def _kind(self, what: str) -> TensorType:
        """Return the type of a tensor that has views.

        Clauses: POLICY-BRANCH-1
        """
        require_dtype(what, self.dtype, PLAIN)
        return cast(TensorType, type(self))

    def _viewed(self, ctx: Any, kind: Any, raw: RawTensor, formula: Any, *constants: Any) -> Tensor:
        node = None
        if tracks(ctx, self.dtype, self._node):
            node = Node(tuple(raw.shape), (self._node,), (), formula, constants)
        return result(ctx, kind, raw, node)

    @on_context
    def reshape(self, ctx: Any, shape: Any, tags: Any = None) -> Tensor:
        """Return the elements in row-major order in another shape: a view of a contiguous tensor, else a copy.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            Of as many elements.
        tags : tuple or list of str, optional
            The names of its axes; without, those of a tensor with as many axes.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidTag
            They are none, or not as many as axes; there are none, and the tensor has other ones.
        InvalidInteger, InvalidShape, Overflow
            No shape; another number of elements.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-VIEW-1
        """
        clause, kind = "FACADE-VIEW-1", self._kind("reshape")
        names, sizes = _named(kind, shape, tags, clause)
        dims = entries("shape", sizes, clause)
        if dims:
            checked_count(dims, clause)
        if prod(dims) != prod(self._raw_shape):
            raise InvalidShape(
                f"shape must have {prod(self._raw_shape)} elements, got {tuple_shown(dims)}", clause=clause
            )
        raw = reshaped(ctx, self, dims or (1,))
        return self._viewed(ctx, kind_of(names, len(dims), self.dtype), raw, formulas.RESHAPE, self._raw_shape)

    @on_context
    def flatten(self, ctx: Any, tag: Any = None) -> Tensor:
        """Return the elements along one axis; see :meth:`reshape`.

        Clauses: FACADE-VIEW-1
        """
        kind = self._kind("flatten")
        names, _ = _named(kind, (1,), None if tag is None else (tag,), "FACADE-VIEW-1")
        checked_count(self._raw_shape, "FACADE-VIEW-1")
        raw = reshaped(ctx, self, (prod(self._raw_shape),))
        return self._viewed(ctx, kind_of(names, 1, self.dtype), raw, formulas.RESHAPE, self._raw_shape)

    @on_context
    def contiguous(self, ctx: Any) -> Tensor:
        """Return a view of a contiguous tensor, and a contiguous copy of another one.

        Raises
        ------
        InvalidDType, OutOfMemory
            Of blocks; there is no memory.

        Clauses: FACADE-VIEW-1
        """
        kind = self._kind("contiguous")
        checked_count(self._raw_shape, "FACADE-VIEW-1")
        raw = reshaped(ctx, self, self._raw_shape)
        return self._viewed(ctx, kind, raw, formulas.RESHAPE, self._raw_shape)

    @on_context
    def _narrow(self, ctx: Any, axis: Tag, start: int, length: int) -> Tensor:
        """Return a view of the indices ``start`` to ``start + length - 1`` of an axis.

        Clauses: FACADE-VIEW-2, CONTEXT-NARROW-1
        """
        kind = self._kind("narrow")
        at = axis_of(kind, axis)
        raw = narrowed(self.as_raw_tensor(), at, start, length)
        handles.facade_axis(kind, axis, at)
        return self._viewed(ctx, kind, raw, formulas.NARROW, self._raw_shape, at, int(start))

    def _permuted(self, ctx: Any, kind: TensorType, order: tuple[int, ...]) -> Tensor:
        shape, strides = self._raw_shape, self._raw_strides
        places = order or (0,)
        raw = self._view(tuple(shape[k] for k in places), tuple(strides[k] for k in places), self._raw_offset)
        axes = tuple(places.index(k) for k in range(len(places)))
        return self._viewed(ctx, kept(kind, order, self.dtype), raw, formulas.PERMUTE, shape, axes)

    @on_context
    def permute(self, ctx: Any, axes: Any) -> Tensor:
        """Return a view with all axes in another order.

        Raises
        ------
        InvalidDType, InvalidTag
            Of blocks; not exactly the tensor's axes.

        Clauses: FACADE-VIEW-2
        """
        clause, kind = "FACADE-VIEW-2", self._kind("permute")
        order = axes_of(kind, axes)
        if len(order) != kind.rank:
            raise InvalidTag(f"axes must be all of {kind.axis_tags}, got {len(order)} of them", clause=clause)
        return self._permuted(ctx, kind, order)

    @on_context
    def transpose(self, ctx: Any, a: Tag, b: Tag) -> Tensor:
        """Return a view with two axes exchanged.

        Raises
        ------
        InvalidDType, InvalidTag
            Of blocks; there are no such axes.

        Clauses: FACADE-VIEW-2
        """
        kind = self._kind("transpose")
        first, second = axis_of(kind, a), axis_of(kind, b)
        order = list(range(kind.rank))
        order[first], order[second] = second, first
        return self._permuted(ctx, kind, tuple(order))

    @on_context
    def broadcast_to(self, ctx: Any, shape: Any, tags: Any = None) -> Tensor:
        """Return a view that repeats the tensor to a shape.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            Along an axis of size 1, any size, else the same; new axes have any.
        tags : tuple or list of str, optional
            The names of its axes, among them all of the tensor's; without, those that it has, or none.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidTag
            They are none, or not as many as axes, or not all of the tensor's.
        InvalidInteger, InvalidShape, Overflow
            No shape, or none that the tensor can be repeated to.

        Clauses: FACADE-VIEW-3
        """
        clause, kind = "FACADE-VIEW-3", self._kind("broadcast_to")
        names: Names = None if tags is None else names_of(tags)
        if names is not None and not set(kind.axis_tags) <= set(names):
            raise InvalidTag(f"tags must have all of {kind.axis_tags}, got {names}", clause=clause)
        sizes = _sizes("shape", shape, clause)
        places: tuple[int | None, ...]
        if names is not None:
            if len(names) != len(sizes):
                raise InvalidTag(f"tags must be as many as axes, {len(sizes)}, got {len(names)}", clause=clause)
            places = tuple(kind.axis_tags.index(name) if name in kind.axis_tags else None for name in names)
        else:
            names = kind._names or None
            if len(sizes) != kind.rank if names else len(sizes) < kind.rank:
                raise InvalidShape(f"shape must have {kind.rank} sizes{'' if names else ' or more'}", clause=clause)
            missing = len(sizes) - kind.rank
            places = tuple(at - missing if at >= missing else None for at in range(len(sizes)))
        dims = entries("shape", sizes, clause)
        if dims:
            checked_count(dims, clause)
        have, steps = self._raw_shape, self._raw_strides
        for at, (place, size) in enumerate(zip(places, dims, strict=True)):
            if place is not None and have[place] not in (1, size):
                raise InvalidShape(
                    f"a size must be equal or 1, got {have[place]} for {size} at place {at} of the shape", clause=clause
                )
        strides = tuple(
            0 if place is None or have[place] != size else steps[place]
            for place, size in zip(places, dims, strict=True)
        )
        raw = self._view(dims or (1,), strides or steps, self._raw_offset)
        axes = tuple(places.index(k) for k in range(kind.rank)) or ((0,) if not dims else (-1,))
        same = raw.shape == have and axes == tuple(range(len(have)))
        place_of = None if same and (kind.rank or not dims) else (have, axes)
        return self._viewed(ctx, kind_of(names, len(dims), self.dtype), raw, formulas.BROADCAST, place_of)

    @on_context
    def split(self, ctx: Any, axis: Tag, sizes: Any, tags: Any = None) -> Tensor:
        """Return a view with several axes in the place of one.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : str or int
            The axis.
        sizes : sequence of int
            At least one; their product is the axis's size.
        tags : tuple or list of str, optional
            As many names, where the tensor has tags, and only there.

        Raises
        ------
        InvalidDType, InvalidTag
            Of blocks; no such axis; the names are none for these axes.
        InvalidInteger, InvalidShape, Overflow
            The sizes are none of the axis; more than 8 axes.

        Clauses: FACADE-VIEW-4
        """
        clause, kind = "FACADE-VIEW-4", self._kind("split")
        at = axis_of(kind, axis)
        inserted = _inserted(kind, tags, clause)
        names = _replaced(kind, at, at + 1, inserted)
        given = _sizes("sizes", sizes, clause)
        if inserted is not None and len(inserted) != len(given):
            raise InvalidTag(f"tags must be as many as sizes, {len(given)}, got {len(inserted)}", clause=clause)
        parts = entries("sizes", given, clause)
        shape, strides = self._raw_shape, self._raw_strides
        if parts:
            count_of("sizes", parts, clause)
        if not parts or prod(parts) != shape[at]:
            raise InvalidShape(f"sizes must have the product {shape[at]}, got {tuple_shown(parts)}", clause=clause)
        dims = (*shape[:at], *parts, *shape[at + 1 :])
        require_rank("the result's shape", dims, clause)
        steps = tuple(step * strides[at] for step in row_major(parts))
        raw = self._view(dims, (*strides[:at], *steps, *strides[at + 1 :]), self._raw_offset)
        return self._viewed(ctx, kind_of(names, len(dims), self.dtype), raw, formulas.RESHAPE, shape)

    @on_context
    def merge(self, ctx: Any, axes: Any, tag: Any = None) -> Tensor:
        """Return a tensor with one axis in the place of neighbours: a view where the strides allow it, else a copy.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axes : tuple or list of str or int
            Neighbours, in their order.
        tag : str, optional
            The name of the new axis, where the tensor has tags, and only there.

        Raises
        ------
        InvalidDType, InvalidTag
            Of blocks; no neighbours; no name.
        Overflow, OutOfMemory
            The new size is 2^64 and above; there is no memory.

        Clauses: FACADE-VIEW-4
        """
        clause, kind = "FACADE-VIEW-4", self._kind("merge")
        places = axes_of(kind, axes)
        if not places or places != tuple(range(places[0], places[0] + len(places))):
            raise InvalidTag(f"axes must be neighbours in their order, got places {places}", clause=clause)
        first, end = places[0], places[-1] + 1
        names = _replaced(kind, first, end, _inserted(kind, None if tag is None else (tag,), clause))
        shape, strides = self._raw_shape, self._raw_strides
        checked_count(shape, clause)
        dims = (*shape[:first], prod(shape[first:end]), *shape[end:])
        step = merged_stride(shape[first:end], strides[first:end])
        if step is None:
            raw = reshaped(ctx, self, dims)
        else:
            raw = self._view(dims, (*strides[:first], step, *strides[end:]), self._raw_offset)
        return self._viewed(ctx, kind_of(names, len(dims), self.dtype), raw, formulas.RESHAPE, shape)


def _sizes(name: str, shape: Any, clause: str) -> tuple[Any, ...]:
    """Return what is given as sizes, one by one; what they are is looked at later."""
    if isinstance(shape, str | bytes | bytearray) or not hasattr(shape, "__iter__"):
        return entries(name, shape, clause)
    return tuple(shape)


def _named(kind: TensorType, shape: Any, tags: Any, clause: str) -> tuple[Names, tuple[Any, ...]]:
    """Return the names of the axes of a tensor in another shape, and its sizes.

    Clauses: FACADE-VIEW-1
    """
    given = None if tags is None else names_of(tags)
    sizes = _sizes("shape", shape, clause)
    if given is not None:
        if len(given) != len(sizes):
            raise InvalidTag(f"tags must be as many as axes, {len(sizes)}, got {len(given)}", clause=clause)
        return given, sizes
    if kind._names and len(sizes) != kind.rank:
        raise InvalidTag(f"{len(sizes)} axes instead of {kind.axis_tags} need tags", clause=clause)
    return kind._names or None, sizes


def _inserted(kind: TensorType, tags: Any, clause: str) -> Names:
    """Return the names of new axes, which are given exactly where the tensor has tags.

    Clauses: FACADE-VIEW-4
    """
    if (tags is not None) != (kind._names is not None):
        raise InvalidTag(f"new axes of a {kind!r} {'need tags' if kind._names else 'have no tags'}", clause=clause)
    return None if tags is None else names_of(tags)


def _replaced(kind: TensorType, start: int, end: int, names: Names) -> Names:
    """Return the names after some were replaced.

    Clauses: FACADE-VIEW-4, FACADE-TYPE-2
    """
    if kind._names is None or names is None:
        return None
    found = (*kind._names[:start], *names, *kind._names[end:])
    if len(set(found)) != len(found):
        raise InvalidTag(f"no tag may stand twice, got {found}", clause="FACADE-TYPE-2")
    return found


def merged_stride(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Return the stride of one axis in the place of several; None where they do not lie so.

    Clauses: FACADE-VIEW-4
    """
    pairs = [(size, step) for size, step in zip(sizes, strides, strict=True) if size > 1]
    for (_, outer), (size, inner) in pairwise(pairs):
        if outer != size * inner:
            return None
    return pairs[-1][1] if pairs else strides[-1]


def reshaped(ctx: Any, x: Any, dims: tuple[int, ...]) -> RawTensor:
    """Return the elements of a tensor in another raw shape: a view of a contiguous one, else a copy.

    Clauses: FACADE-VIEW-1
    """
    made: RawTensor
    if x._is_contiguous():
        made = x._view(dims, row_major(dims), x._raw_offset)
        return made
    with ctx._rt.new(x.dtype, x._raw_shape) as flat:
        contexts.copy(x, flat)
        made = flat._view(dims, row_major(dims), 0)
        return made
