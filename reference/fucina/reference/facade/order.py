"""Order: the greatest element, sorted elements, the greatest few; and the record that sorting returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fucina.reference.arguments import flag, shown, whole
from fucina.reference.bridges import FLOATS
from fucina.reference.facade.arguments import FLOAT, axis_of, operation, require_branch
from fucina.reference.facade.kinds import Tag
from fucina.reference.facade.places import lines, without
from fucina.reference.facade.results import Results
from fucina.reference.facade.values import Value
from fucina.reference.formats import Format
from fucina.reference.lives import Life, Replaceable
from fucina.reference.ops.operands import patterns, store
from fucina.reference.runtime import ExecContext
from fucina.spec.errors import EmptySelection, IndexOutOfBounds, UseAfterDeinit
from fucina.spec.types import DType

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.reference.facade.tensor import Tensor

__all__ = ["Order", "Selection"]


class Selection(Replaceable):
    """Values and their indices, as ``sort`` and ``top_k`` return them.

    Notes
    -----
    Clauses: FACADE-OWN-4
    """

    def __init__(self, values: Tensor, indices: Tensor) -> None:
        self._values, self._indices = values, indices

    @property
    def values(self) -> Tensor:
        """The elements.

        Notes
        -----
        Clauses: FACADE-OWN-4
        """
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where each of them was along the axis, as i64.

        Notes
        -----
        Clauses: FACADE-OWN-4
        """
        return self._indices

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self._values, self._indices))

    def live(self, clause: str = "FACADE-OWN-1") -> None:
        """Raise unless both tensors are there.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If one has ended.

        Notes
        -----
        Clauses: FACADE-OWN-4
        """
        for x in self:
            x.live(clause)

    def deinit(self) -> None:
        """End both tensors; of one that a scope owns, nothing.

        Raises
        ------
        UseAfterDeinit
            If one has ended; then nothing has happened.

        Notes
        -----
        Clauses: FACADE-OWN-4
        """
        if any(x.raw.life is Life.ENDED for x in self):
            raise UseAfterDeinit(f"a record was used after the end of its tensors: {self!r}", clause="FACADE-OWN-4")
        for x in self:
            x.deinit()

    def deinit_replaced(self) -> None:
        """End both tensors, and forgive a second ``deinit``.

        Notes
        -----
        Clauses: FACADE-OWN-4, CONTEXT-REPLACE-1
        """
        for x in self:
            x.deinit_replaced()

    def __enter__(self) -> Self:
        self.live()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for x in self:
            x.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<Selection values={self._values!r} indices={self._indices!r}>"


def is_nan(fmt: Format, bits: int) -> bool:
    """Whether a pattern is a NaN of a format with infinities."""
    return bits & ((1 << fmt.sign_shift) - 1) > fmt.overflow


def place_in_order(fmt: Format, bits: int) -> int:
    """Return an integer that is ordered as the numbers are, -0 before +0.

    Notes
    -----
    Clauses: POLICY-SORT-1
    """
    magnitude = bits & ((1 << fmt.sign_shift) - 1)
    return -1 - magnitude if bits >> fmt.sign_shift else magnitude


def greatest(fmt: Format, line: Sequence[int]) -> int:
    """Return the index of the greatest element of a line.

    Notes
    -----
    Clauses: POLICY-ARGMAX-1
    """
    best, at = None, 0
    for i, bits in enumerate(line):
        place = place_in_order(fmt, bits)
        place = max(place, 0) if place == -1 else place  # -0 and +0 are equal
        if not is_nan(fmt, bits) and (best is None or place > best):
            best, at = place, i
    return at


def in_order(fmt: Format, line: Sequence[int], descending: bool) -> list[int]:
    """Return the indices of a line in the order of its elements, NaNs last.

    Notes
    -----
    Clauses: POLICY-SORT-1
    """
    sign = -1 if descending else 1
    return sorted(
        range(len(line)),
        key=lambda i: (is_nan(fmt, line[i]), 0 if is_nan(fmt, line[i]) else sign * place_in_order(fmt, line[i])),
    )


MINUS_INFINITY = {dtype: fmt.overflow | 1 << fmt.sign_shift for dtype, fmt in FLOATS.items() if fmt.has_infinity}


class Order(Value):
    """The operations that compare; their results are constants.

    Notes
    -----
    Clauses: POLICY-CONST-1
    """

    def _lines(self, axis: int) -> list[list[int]]:
        """Return the elements along an axis, line by line."""
        own = patterns(self.raw)
        return [[own[place] for place in line] for line in lines(self.shape, axis)]

    @operation
    def argmax(self, ctx: ExecContext, axis: Tag) -> Tensor:
        """Return the index of the greatest element along an axis, which goes.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : tag
            The axis.

        Returns
        -------
        tensor
            Of i64, the caller's.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16, f32 and f64.
        InvalidTag
            If there is no such axis.

        Notes
        -----
        Clauses: POLICY-ARGMAX-1, POLICY-RESULT-1, POLICY-CONST-1
        """
        require_branch("argmax", self.dtype, FLOAT)
        at = axis_of(self, axis)
        fmt = FLOATS[self.dtype]
        with Results(ctx, DType.i64) as results:
            raw = results.new(DType.i64, without(self.shape, (at,)))
            store(raw, [greatest(fmt, line) for line in self._lines(at)])
            return results.done(self.kin(without(self.axis_tags, (at,)), DType.i64), raw)

    @operation
    def argsort(self, ctx: ExecContext, axis: Tag, descending: bool = False) -> Tensor:
        """Return where the elements along an axis are in their order.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : tag
            The axis.
        descending : bool
            Whether the greatest comes first.

        Returns
        -------
        tensor
            Of i64, the caller's.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16, f32 and f64.
        InvalidTag
            If there is no such axis.
        DTypeMismatch
            If ``descending`` is no bool.

        Notes
        -----
        Clauses: POLICY-SORT-1, POLICY-RESULT-1, POLICY-CONST-1
        """
        require_branch("argsort", self.dtype, FLOAT)
        at = axis_of(self, axis)
        falling = flag("descending", descending, "POLICY-SORT-1")
        with Results(ctx, DType.i64) as results:
            raw = results.new(DType.i64, self.shape)
            found = [0] * len(raw)
            for line, places in zip(self._lines(at), lines(self.shape, at), strict=True):
                for place, index in zip(places, in_order(FLOATS[self.dtype], line, falling), strict=True):
                    found[place] = index
            store(raw, found)
            return results.done(self.kin(self.axis_tags, DType.i64), raw)

    @operation
    def sort(self, ctx: ExecContext, axis: Tag, descending: bool = False) -> Selection:
        """Return the elements along an axis in their order, and where they were.

        Parameters and errors are those of :meth:`argsort`.

        Notes
        -----
        Clauses: POLICY-SORT-1, POLICY-RESULT-1, POLICY-CONST-1, FACADE-OWN-4
        """
        require_branch("sort", self.dtype, FLOAT)
        at = axis_of(self, axis)
        falling = flag("descending", descending, "POLICY-SORT-1")
        fmt = FLOATS[self.dtype]
        return self._selected(ctx, at, self.shape[at], lambda line: in_order(fmt, line, falling))

    @operation
    def top_k(self, ctx: ExecContext, axis: Tag, k: int) -> Selection:
        """Return the k greatest elements along an axis, and where they were.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        axis : tag
            The axis.
        k : int
            How many.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16, f32 and f64.
        InvalidTag
            If there is no such axis.
        InvalidInteger, EmptySelection, IndexOutOfBounds
            If k is no integer, 0, or not in [0, size].

        Notes
        -----
        Clauses: POLICY-TOPK-1, POLICY-RESULT-1, POLICY-CONST-1, FACADE-OWN-4
        """
        clause = "POLICY-TOPK-1"
        require_branch("top_k", self.dtype, FLOAT)
        at = axis_of(self, axis)
        count = whole("k", k, clause)
        if count == 0:
            raise EmptySelection(f"k must be at least 1, got {count}", clause=clause)
        if not 0 <= count <= self.shape[at]:
            raise IndexOutOfBounds(f"k must be in [1, {self.shape[at]}], got {shown(count)}", clause=clause)
        fmt = FLOATS[self.dtype]

        def first(line: Sequence[int]) -> list[int]:
            return [i for i in in_order(fmt, line, True) if not is_nan(fmt, line[i])][:count]

        return self._selected(ctx, at, count, first)

    def _selected(
        self, ctx: ExecContext, at: int, count: int, choose: Callable[[Sequence[int]], list[int]]
    ) -> Selection:
        """Return the chosen elements of each line; where too few are chosen, -inf with index 0."""
        shape = (*self.shape[:at], count, *self.shape[at + 1 :])
        with Results(ctx, self.dtype) as results:
            values, indices = results.new(self.dtype, shape), results.new(DType.i64, shape)
            own, chosen = [0] * len(values), [0] * len(values)
            for line, places in zip(self._lines(at), lines(shape, at), strict=True):
                found = choose(line)
                for j, place in enumerate(places):
                    own[place] = line[found[j]] if j < len(found) else MINUS_INFINITY[self.dtype]
                    chosen[place] = found[j] if j < len(found) else 0
            store(values, own)
            store(indices, chosen)
            # the caller's first: nothing that follows can fail
            second = results.aside(self.kin(self.axis_tags, DType.i64), indices)
            return Selection(results.done(type(self), values), second)
