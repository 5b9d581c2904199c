"""Sums, means, and what depends on an order."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, cast

from fucina.fast import _formulas as formulas
from fucina.fast._arguments import whole
from fucina.fast._context_core import contexts
from fucina.fast._facade_core import (
    FLOATS,
    INTEGERS,
    checked_count,
    fresh,
    handed,
    kept,
    on_context,
    require_dtype,
    result,
    switch,
    tracks,
)
from fucina.fast._facade_looking import LIVES
from fucina.fast._facade_operations import Operations
from fucina.fast._facade_types import TensorType, axes_of, axis_of
from fucina.fast._objects import handles
from fucina.fast._shown import integer_shown
from fucina.fast.autograd import Node
from fucina.fast.policy import output_dtype
from fucina.spec.errors import EmptySelection, IndexOutOfBounds, UseAfterDeinit
from fucina.spec.types import DType, FloatOp

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.fast._facade_types import Tag
    from fucina.fast.facade import Tensor
    from fucina.fast.tensor import RawTensor

__all__ = ["Reductions", "Selection", "mean_of"]

_SUMMED = FLOATS | INTEGERS | {DType.bool}
_DIV = 3
_DEINITED = LIVES.index("deinited")


class Selection:
    """Values and their indices: what ``sort`` and ``top_k`` return.

    Clauses: FACADE-OWN-4
    """

    __slots__ = ("_indices", "_values")

    def __init__(self, values: Tensor, indices: Tensor) -> None:
        self._values = values
        self._indices = indices

    @property
    def values(self) -> Tensor:
        """The values."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where they were, of i64."""
        return self._indices

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self._values, self._indices))

    def _ended(self, name: str, *args: Any) -> None:
        try:
            getattr(self._values, name)(*args)
        finally:
            getattr(self._indices, name)(*args)

    def deinit(self) -> None:
        """End both.

        Raises
        ------
        UseAfterDeinit
            One of them was deinited; then the other one is not.

        Clauses: FACADE-OWN-4, FACADE-OWN-1
        """
        if any(t._state[0] == _DEINITED for t in self):
            raise UseAfterDeinit(f"{self!r} was used after deinit", clause="FACADE-OWN-4")
        self._ended("deinit")

    def _deinit_replaced(self) -> None:
        self._ended("_deinit_replaced")

    def __enter__(self) -> Self:
        self._values._check()
        self._indices._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended("__exit__", kind, error, trace)

    def __repr__(self) -> str:
        return f"<Selection values={self._values!r} indices={self._indices!r}>"


class Reductions(Operations):
    """What a tensor does along axes."""

    __slots__ = ()

    # -- sums

    @on_context
    def _sum(self, ctx: Any, axes: Any = None, *, keep_dims: bool = False) -> Tensor:
        """Return the sums along an axis, several, or all.

        Clauses: POLICY-SUM-1, POLICY-RESULT-1, AUTOGRAD-VJP-2
        """
        found = _summed(cast("Tensor", self), ctx, "sum", _SUMMED, axes, keep_dims)
        if type(axes) is str and not keep_dims:
            handles.facade_sum(type(self), axes, type(found), axis_of(cast(TensorType, type(self)), axes))
        return found

    @on_context
    def _sum_all(self, ctx: Any) -> Tensor:
        return _summed(cast("Tensor", self), ctx, "sum_all", _SUMMED, None, False)

    @on_context
    def mean(self, ctx: Any, axes: Any = None, *, keep_dims: bool = False) -> Tensor:
        """Return the means along an axis, several, or all; see :meth:`sum`.

        Raises
        ------
        InvalidDType, InvalidTag
            Not of floats; no such axes.
        EmptySelection, Overflow, OutOfMemory
            An empty tuple; there is no such result.

        Clauses: POLICY-MEAN-1, POLICY-RESULT-1, AUTOGRAD-VJP-2
        """
        return _summed(cast("Tensor", self), ctx, "mean", FLOATS, axes, keep_dims)

    # -- order

    def _ordered(self, what: str, axis: Any) -> tuple[TensorType, int]:
        require_dtype(what, self.dtype, FLOATS)
        kind = cast(TensorType, type(self))
        return kind, axis_of(kind, axis)

    @on_context
    def argmax(self, ctx: Any, axis: Tag) -> Tensor:
        """Return the index of the greatest element along an axis, which goes.

        Raises
        ------
        InvalidDType, InvalidTag, OutOfMemory
            Not of floats; no such axis; there is no memory.

        Clauses: POLICY-ARGMAX-1, POLICY-CONST-1
        """
        kind, at = self._ordered("argmax", axis)
        shape = checked_count(self._raw_shape, "POLICY-ARGMAX-1")
        left = tuple(k for k in range(kind.rank) if k != at)
        with fresh(ctx, DType.i64, tuple(shape[k] for k in left) or (1,)) as raw:
            contexts.argmax(self, at, raw)
            return result(ctx, kept(kind, left, DType.i64), raw)

    @on_context
    def argsort(self, ctx: Any, axis: Tag, descending: bool = False) -> Tensor:
        """Return the indices that sort along an axis.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : str or int
            The axis.
        descending : bool
            Whether the greatest comes first.

        Raises
        ------
        InvalidDType, InvalidTag, DTypeMismatch, OutOfMemory
            Not of floats; no such axis; no bool; there is no memory.

        Clauses: POLICY-SORT-1, POLICY-CONST-1
        """
        kind, at = self._ordered("argsort", axis)
        backwards = switch("descending", descending, "POLICY-SORT-1")
        with fresh(ctx, DType.i64, checked_count(self._raw_shape, "POLICY-SORT-1")) as raw:
            contexts.argsort(self, at, backwards, raw)
            return result(ctx, kept(kind, range(kind.rank), DType.i64), raw)

    @on_context
    def sort(self, ctx: Any, axis: Tag, descending: bool = False) -> Selection:
        """Return the values in order along an axis, and their indices; see :meth:`argsort`.

        Clauses: POLICY-SORT-1, POLICY-CONST-1, FACADE-OWN-4
        """
        kind, at = self._ordered("sort", axis)
        backwards = switch("descending", descending, "POLICY-SORT-1")
        shape = checked_count(self._raw_shape, "POLICY-SORT-1")
        with fresh(ctx, self.dtype, shape) as values, fresh(ctx, DType.i64, shape) as indices:
            contexts.argsort(self, at, backwards, indices)
            contexts.sort(self, at, backwards, values)
            return _selection(ctx, kind, values, indices)

    @on_context
    def top_k(self, ctx: Any, axis: Tag, k: int) -> Selection:
        """Return the k greatest values along an axis, in order, and their indices.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : str or int
            The axis.
        k : int
            From 1 to its size.

        Raises
        ------
        InvalidDType, InvalidTag, InvalidInteger
            Not of floats; no such axis; no integer.
        EmptySelection, IndexOutOfBounds
            k is 0; it is negative, or above the size.
        OutOfMemory
            There is no memory.

        Clauses: POLICY-TOPK-1, POLICY-CONST-1, FACADE-OWN-4
        """
        clause = "POLICY-TOPK-1"
        kind, at = self._ordered("top_k", axis)
        count = whole("k", k, clause)
        shape = checked_count(self._raw_shape, clause)
        if count == 0:
            raise EmptySelection(f"k must be at least 1, got {count}", clause=clause)
        if not 0 < count <= shape[at]:
            raise IndexOutOfBounds(f"k must lie in [1, {shape[at]}], got {integer_shown(count)}", clause=clause)
        dims = (*shape[:at], count, *shape[at + 1 :])
        with fresh(ctx, self.dtype, dims) as values, fresh(ctx, DType.i64, dims) as indices:
            contexts.top_k(self, at, count, values, indices)
            return _selection(ctx, kind, values, indices)


def _selection(ctx: Any, kind: TensorType, values: RawTensor, indices: RawTensor) -> Selection:
    """Return the record of what was selected: the values are a result, the indices the caller's.

    Clauses: FACADE-OWN-2, FACADE-OWN-4
    """
    places = handed(ctx, kept(kind, range(kind.rank), DType.i64), indices)
    try:
        return Selection(result(ctx, kept(kind, range(kind.rank), kind.dtype), values), places)
    except BaseException:
        places.deinit()
        raise


def mean_of(total: RawTensor, n: int) -> None:
    """Divide sums by the number of elements that went into each.

    Clauses: POLICY-MEAN-1
    """
    contexts.pointwise(_DIV, total, formulas.number_of(n, total.dtype), total, False)


def _summed(x: Tensor, ctx: Any, what: str, allowed: frozenset[DType], axes: Any, keep_dims: Any) -> Tensor:
    """Return sums or means, after every check in its turn.

    Clauses: POLICY-SUM-1, POLICY-MEAN-1
    """
    clause = "POLICY-MEAN-1" if what == "mean" else "POLICY-SUM-1"
    require_dtype(what, x.dtype, allowed)
    kind = cast(TensorType, type(x))
    if axes is None:
        gone = tuple(range(kind.rank))
    elif isinstance(axes, tuple | list):
        gone = axes_of(kind, axes)
        if not gone:
            raise EmptySelection(f"axes must name an axis, got {axes!r}", clause=clause)
    else:
        gone = (axis_of(kind, axes),)
    stays = switch("keep_dims", keep_dims, clause)
    shape = checked_count(x._raw_shape, clause)
    left = tuple(k for k in range(kind.rank) if k not in gone)
    dtype = output_dtype(FloatOp.reduction, x.dtype)
    if stays:
        sizes = tuple(1 if k in gone else shape[k] for k in range(kind.rank))
        made = kept(kind, range(kind.rank), dtype)
    else:
        sizes, made = tuple(shape[k] for k in left), kept(kind, left, dtype)
    n = prod(shape[k] for k in gone)
    with fresh(ctx, dtype, sizes or (1,)) as raw:
        contexts.sum_axes(x, sum(1 << k for k in gone) if kind.rank else 1, raw)
        if what == "mean":
            mean_of(raw, n)
        node = None
        if tracks(ctx, dtype, x._node):
            along = (
                None
                if not left
                else tuple(-1 if k in gone else k if stays else left.index(k) for k in range(kind.rank))
            )
            constants: tuple[Any, ...] = (shape, along, n) if what == "mean" else (shape, along)
            formula = formulas.MEAN if what == "mean" else formulas.SUM
            node = Node(tuple(raw.shape), (x._node,), (), formula, constants)
        return result(ctx, made, raw, node)
