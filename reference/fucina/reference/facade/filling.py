"""Filling tensors: sequences and one-hot vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import f32_argument, number_shown, whole
from fucina.reference.facade.arguments import F32, operation, require_branch, shape_of
from fucina.reference.facade.filled import Filled
from fucina.reference.facade.indices import Indices
from fucina.reference.facade.results import raw_shape
from fucina.reference.ops.operands import store
from fucina.reference.runtime import ExecContext
from fucina.reference.sizes import counted
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import InvalidShape, InvalidTag, Overflow

if TYPE_CHECKING:
    from typing import Self


__all__ = ["Filling"]

ZERO, ONE = Soft32.integer(0), Soft32.integer(1)


class Filling(Filled):
    """Constructors that compute what they fill with."""

    @classmethod
    def _require_rank(cls, what: str, rank: int, clause: str) -> None:
        if cls.rank != rank:
            raise InvalidShape(f"{what} makes tensors of rank {rank}, {cls!r} has {cls.rank}", clause=clause)

    @classmethod
    def _of_numbers(cls, ctx: ExecContext, shape: tuple[int, ...], count: int, element: Callable[[int], int]) -> Self:
        """Return a tensor whose element i has the pattern ``element(i)``."""
        raw = ctx.rt.new(cls.dtype, raw_shape(shape))
        store(raw, [element(i) for i in range(count)])
        return cls._made(ctx, raw)

    # -- sequences

    @classmethod
    @operation
    def arange(cls, ctx: ExecContext, start: float, end: float, step: float = 1.0) -> Self:
        """Return ``start + i * step`` for all i below ``ceil((end - start) / step)``.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        start, end, step : float
            f32.

        Raises
        ------
        InvalidDType
            If the type is not of f32.
        DTypeMismatch
            If one is no number.
        InvalidShape
            If there is no element, or ``step`` is 0, or the type has not one axis.
        Overflow
            If there are 2^64 elements or more.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-5, NUM-PARAM-1
        """
        clause = "FACADE-NEW-5"
        require_branch("arange", cls.dtype, F32)
        first, last, stride = (f32_argument(n, v) for n, v in (("start", start), ("end", end), ("step", step)))
        cls._require_rank("arange", 1, clause)
        span = (last - first) / stride
        if stride.is_zero or not span > ZERO:
            raise InvalidShape(
                f"arange must have an element, got {number_shown(first.number)} to {number_shown(last.number)} by "
                f"{number_shown(stride.number)}",
                clause=clause,
            )
        if not span.is_finite or (count := -(-span).floor()) >> 64:
            raise Overflow(
                f"the number of elements must be below 2^64, got {number_shown(first.number)} to "
                f"{number_shown(last.number)} by {number_shown(stride.number)}",
                clause=clause,
            )
        return cls._of_numbers(ctx, (count,), count, lambda i: (first + Soft32.integer(i) * stride).bits)

    @classmethod
    @operation
    def linspace(cls, ctx: ExecContext, start: float, end: float, steps: int) -> Self:
        """Return ``steps`` numbers from ``start`` to ``end``.

        Raises
        ------
        InvalidDType
            If the type is not of f32.
        DTypeMismatch, InvalidInteger
            If one is no number, or ``steps`` no integer.
        InvalidShape
            If ``steps`` is below 1, or the type has not one axis.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-5, NUM-PARAM-1
        """
        clause = "FACADE-NEW-5"
        require_branch("linspace", cls.dtype, F32)
        first, last = f32_argument("start", start), f32_argument("end", end)
        whole("steps", steps, clause)
        cls._require_rank("linspace", 1, clause)
        count = counted("steps", shape_of((steps,), 1, clause, "steps"), clause)
        if count == 1:
            return cls._of_numbers(ctx, (1,), 1, lambda i: first.bits)
        step = (last - first) / Soft32.integer(count - 1)

        def element(i: int) -> int:
            return (last if i == count - 1 else first + Soft32.integer(i) * step).bits

        return cls._of_numbers(ctx, (count,), count, element)

    @classmethod
    @operation
    def eye(cls, ctx: ExecContext, n: int, m: int | None = None) -> Self:
        """Return ones where the two indices are equal, zeros elsewhere.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        n, m : int
            The sizes; m is n if it is left out.

        Raises
        ------
        InvalidDType
            If the type is not of f32.
        InvalidInteger, InvalidShape, Overflow
            If they are no sizes, or the type has not two axes.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-5
        """
        clause = "FACADE-NEW-5"
        require_branch("eye", cls.dtype, F32)
        given = (whole("n", n, clause), whole("m", n if m is None else m, clause))
        cls._require_rank("eye", 2, clause)
        shape = shape_of(given, 2, clause)
        columns = shape[1]
        return cls._of_numbers(
            ctx, shape, shape[0] * columns, lambda i: (ONE if i // columns == i % columns else ZERO).bits
        )

    @classmethod
    @operation
    def one_hot(cls, ctx: ExecContext, indices: Any, classes: int) -> Self:
        """Return 1 where the last index is the one that is given, else 0.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        indices : tensor or sequence of int
            A tensor of an integer dtype, or a list, tuple, range or array of integers, for one axis.
        classes : int
            The size of the last axis.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidDType, InvalidInteger
            If they are no indices.
        InvalidDType
            If the type is not of f32.
        InvalidTag
            If the type's tags are not those of the tensor of indices and one more.
        InvalidShape
            If ``classes`` is no size; for a sequence, if the type has not two axes.
        EmptySelection, IndexOutOfBounds
            If there is no index, or one is not below ``classes``.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-6, POLICY-CONST-1
        """
        clause = "FACADE-NEW-6"
        wanted = Indices("indices", indices, clause)
        require_branch("one_hot", cls.dtype, F32)
        wanted.require_integers()
        source = wanted.source
        if source is not None and (not cls.rank or cls.axis_tags[:-1] != source.axis_tags):
            raise InvalidTag(
                f"{cls!r} must have the tags of the indices, {source.axis_tags}, and one more", clause=clause
            )
        whole("classes", classes, clause)
        wanted.read()
        if source is None:
            cls._require_rank("one_hot of a sequence", 2, clause)
        last = counted("classes", shape_of((classes,), 1, clause, "classes"), clause)
        found = wanted.within(last)
        return cls._of_numbers(
            ctx,
            (*wanted.shape, last),
            len(found) * last,
            lambda i: (ONE if found[i // last] == i % last else ZERO).bits,
        )
