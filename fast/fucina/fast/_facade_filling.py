"""Constructors of the facade that compute what they hold: sequences, one-hot, random."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fucina.fast import rng
from fucina.fast._arguments import cast_pattern, double, integer, pattern, u64, whole
from fucina.fast._context_core import contexts
from fucina.fast._facade_core import checked_count, constructor, fresh
from fucina.fast._facade_indices import indices_of, require_indices
from fucina.fast._facade_making import Making, sized
from fucina.fast._objects import handles
from fucina.fast._shown import double_shown, integer_shown, shown
from fucina.fast._sizes import length
from fucina.fast.tensor import TensorOf
from fucina.spec.errors import InvalidBounds, InvalidDType, InvalidShape, InvalidTag, Overflow
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast._facade_types import TensorType
    from fucina.fast.tensor import RawTensor

__all__ = ["Filling"]

_F32, _F64 = DType.f32.index, DType.f64.index
_ONE = 0x3F800000
_SUB, _DIV = 1, 3
_WORD = 1 << 64
_I64 = (-(1 << 63), 1 << 63)


class Filling(Making):
    """The constructors of a type that compute; what they return is the caller's.

    Clauses: FACADE-OWN-1
    """

    __slots__ = ()

    # -- sequences

    @classmethod
    @constructor
    def arange(cls, ctx: Any, start: float, end: float, step: float = 1.0) -> RawTensor:
        """Return ``start``, ``start + step``, ... below ``end``, of one axis.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        start, end, step : float
            As f32.

        Raises
        ------
        InvalidDType
            Not of f32.
        DTypeMismatch
            No numbers.
        InvalidShape, Overflow
            The type has another number of axes; there are no elements; 2^64 of them and more; a step of 0.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-NEW-5
        """
        _require("arange", cls.dtype, DType.f32)
        first, last, by = double("start", start), double("end", end), double("step", step)
        _require_rank(cast("TensorType", cls), 1)
        return _progression(ctx, _number_of_steps(first, last, by), first, by)

    @classmethod
    @constructor
    def linspace(cls, ctx: Any, start: float, end: float, steps: int) -> RawTensor:
        """Return ``steps`` numbers from ``start`` to ``end`` at equal distances, of one axis.

        Raises
        ------
        InvalidDType
            Not of f32.
        DTypeMismatch, InvalidInteger, Overflow
            No numbers.
        InvalidShape
            The type has another number of axes; no steps.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-NEW-5
        """
        _require("linspace", cls.dtype, DType.f32)
        first, last = double("start", start), double("end", end)
        count = whole("steps", steps, "FACADE-NEW-5")
        _require_rank(cast("TensorType", cls), 1)
        if count < 1:
            raise InvalidShape(f"steps must be at least 1, got {integer_shown(count)}", clause="FACADE-NEW-5")
        length("steps", count, "FACADE-NEW-5")
        if count == 1:
            return _filled(ctx, (1,), first)
        with _number(last) as b, _number(first) as a, _number(float(count - 1)) as parts:
            contexts.pointwise(_SUB, b, a, b, False)
            contexts.pointwise(_DIV, b, parts, b, False)
            made = _progression(ctx, count, first, cast(float, b.item()))
        made._patterns()[-1] = _bits(last)
        return made

    @classmethod
    @constructor
    def eye(cls, ctx: Any, n: int, m: int | None = None) -> RawTensor:
        """Return 1 where the indices are equal, else 0, of two axes.

        Raises
        ------
        InvalidDType
            Not of f32.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            The type has another number of axes; there is no such tensor.

        Clauses: FACADE-NEW-5
        """
        _require("eye", cls.dtype, DType.f32)
        given = (whole("n", n, "FACADE-NEW-5"), whole("m", n if m is None else m, "FACADE-NEW-5"))
        dims = sized(cast("TensorType", cls), given, "FACADE-NEW-5")
        made: RawTensor = ctx._filled(dims, DType.f32, 0)
        made._patterns().reshape(dims)[np.arange(min(dims)), np.arange(min(dims))] = _ONE
        return made

    @classmethod
    @constructor
    def one_hot(cls, ctx: Any, indices: Any, classes: int) -> RawTensor:
        """Return 1 where an index is, else 0, along a last axis.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        indices : Tensor, list, tuple, range or array
            Integers; a tensor's tags are the type's but the last.
        classes : int
            The size of the last axis.

        Raises
        ------
        DTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidDType
            ``indices`` are none; the type is not of f32.
        InvalidTag
            A tensor has other tags.
        InvalidInteger, InvalidShape, Overflow
            No number of classes; of a sequence, a type of other than two axes.
        IndexOutOfBounds, EmptySelection
            An index outside [0, classes); a sequence of none.
        OutOfMemory
            There is no memory.

        Clauses: FACADE-NEW-6
        """
        clause, kind = "FACADE-NEW-6", cast("TensorType", cls)
        require_indices("indices", indices, clause)
        _require("one_hot", cls.dtype, DType.f32)
        of_tensor = issubclass(type(indices), handles.Facade)  # its tags come before numbers
        count = 0 if of_tensor else whole("classes", classes, clause)
        with indices_of(ctx, "indices", indices, clause) as found:
            if found.kind is not None:
                its = found.kind
                same = its.rank + 1 == kind.rank and (its.rank == 0 or (its._names is None) is (kind._names is None))
                if not same or (kind._names is not None and its.axis_tags != kind.axis_tags[:-1]):
                    raise InvalidTag(
                        f"the type must have the tags {its.axis_tags} of the indices and one more, got {kind!r}",
                        clause=clause,
                    )
                count = whole("classes", classes, clause)
            elif kind.rank != 2:
                raise InvalidShape(f"of a sequence, the type must have two axes, got {kind!r}", clause=clause)
            if count < 1:
                raise InvalidShape(f"classes must be at least 1, got {integer_shown(count)}", clause=clause)
            dims = sized(kind, (*found.shape, count), clause)
            found.require_below(dims[-1], clause)
            made: RawTensor = ctx._filled(dims, DType.f32, 0)
            flat = found.flat()
            made._patterns().reshape(-1, dims[-1])[np.arange(flat.size), flat] = _ONE
            return made

    # -- random: each is what a fill of the chapter rng writes

    @classmethod
    @constructor
    def rand(cls, ctx: Any, shape: Any, seed: int) -> RawTensor:
        """Return values uniform in [0, 1).

        Raises
        ------
        InvalidDType
            Not of f32.
        InvalidInteger, Overflow
            No seed.
        InvalidShape, InvalidInteger, Overflow, OutOfMemory
            There is no such tensor.

        Clauses: FACADE-NEW-7, RNG-UNIF-1
        """
        key = _seed("rand", cls.dtype, seed)
        return _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.uniform_fill(key, out, 0.0, 1.0))

    @classmethod
    @constructor
    def uniform(cls, ctx: Any, shape: Any, seed: int, lo: float, hi: float) -> RawTensor:
        """Return values uniform in [lo, hi); InvalidBounds where there are none, other errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7, RNG-UNIF-1, RNG-UNIF-3
        """
        key, low, high = _seed("uniform", cls.dtype, seed), double("lo", lo), double("hi", hi)
        return _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.uniform_fill(key, out, low, high))

    @classmethod
    @constructor
    def randn(cls, ctx: Any, shape: Any, seed: int) -> RawTensor:
        """Return normal values of mean 0 and standard deviation 1; errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7, RNG-GAUSS-1
        """
        key = _seed("randn", cls.dtype, seed)
        return _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.gaussian_fill(key, out, 1.0))

    @classmethod
    @constructor
    def normal(cls, ctx: Any, shape: Any, seed: int, mean: float, std_dev: float) -> RawTensor:
        """Return normal values; errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7, RNG-NORMAL-1
        """
        key, middle, spread = _seed("normal", cls.dtype, seed), double("mean", mean), double("std_dev", std_dev)
        return _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.normal_fill(key, out, middle, spread))

    @classmethod
    @constructor
    def gumbel(cls, ctx: Any, shape: Any, seed: int) -> RawTensor:
        """Return standard Gumbel values; errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7, RNG-GUMBEL-1
        """
        key = _seed("gumbel", cls.dtype, seed)
        return _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.gumbel_fill(key, out))

    @classmethod
    @constructor
    def bernoulli(cls, ctx: Any, shape: Any, seed: int, p: float) -> RawTensor:
        """Return 1 where the element of :meth:`rand` is below ``p``, else 0.

        Raises
        ------
        InvalidBounds
            ``p`` outside [0, 1]; other errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7
        """
        key = _seed("bernoulli", cls.dtype, seed)
        chance = double("p", p)
        bound = _bits(chance)
        if bound > _ONE and bound != 1 << 31:  # patterns order numbers that are not negative
            sized(cast("TensorType", cls), shape, "FACADE-NEW-7")  # its errors come first
            shown = double_shown(pattern("p", chance, "NUM-PARAM-1"))
            raise InvalidBounds(f"p must lie in [0, 1] once rounded to f32, got p={shown}", clause="FACADE-NEW-7")
        made = _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.uniform_fill(key, out, 0.0, 1.0))
        words = made._patterns()
        words[:] = (words < bound if bound != 1 << 31 else np.zeros(1, np.bool_)) * np.uint32(_ONE)
        return made

    @classmethod
    @constructor
    def randint(cls, ctx: Any, shape: Any, seed: int, low: int, high: int) -> RawTensor:
        """Return integers uniform in [low, high), of i64.

        Raises
        ------
        InvalidDType
            Not of i64.
        InvalidInteger, Overflow
            No seed; no bounds in i64.
        InvalidBounds
            ``low`` is not below ``high``; other errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7, RNG-INT-1, RNG-INT-2
        """
        key = _seed("randint", cls.dtype, seed, DType.i64)
        below, above = integer("low", low, *_I64, "RNG-INT-2"), integer("high", high, *_I64, "RNG-INT-2")
        return _drawn(ctx, cast("TensorType", cls), shape, lambda out: rng.randint_fill(key, out, below, above))

    @classmethod
    @constructor
    def randperm(cls, ctx: Any, n: int, seed: int) -> RawTensor:
        """Return a permutation of 0 to n - 1, of i64 and one axis; errors as of :meth:`rand`.

        Clauses: FACADE-NEW-7, RNG-PERM-1
        """
        key = _seed("randperm", cls.dtype, seed, DType.i64)
        size = whole("n", n, "FACADE-NEW-7")
        return _drawn(ctx, cast("TensorType", cls), (size,), lambda out: rng.randperm_fill(key, out))


def _require(what: str, dtype: DType, needed: DType) -> None:
    if dtype is not needed:
        raise InvalidDType(f"{what} takes {needed.name}, got {dtype!r}", clause="POLICY-BRANCH-1")


def _seed(what: str, dtype: DType, seed: int, needed: DType = DType.f32) -> int:
    _require(what, dtype, needed)
    return u64("seed", seed)


def _require_rank(kind: TensorType, rank: int) -> None:
    if kind.rank != rank:
        raise InvalidShape(f"the type must have {rank} axes, got {kind!r}", clause="FACADE-NEW-5")


def _bits(value: float) -> int:
    """Return the f32 pattern of a float."""
    return cast_pattern(_F64, _F32, pattern("value", value, "NUM-PARAM-1"))


def _number(value: float) -> RawTensor:
    """Return a float, rounded to f32, as a tensor of one element that no pool knows."""
    return TensorOf(DType.f32)._filled((1,), _bits(value))


def _filled(ctx: Any, dims: tuple[int, ...], value: float) -> RawTensor:
    made: RawTensor = ctx._filled(dims, DType.f32, _bits(value))
    return made


def _number_of_steps(start: float, end: float, step: float) -> int:
    """Return ceil((end - start) / step), in f32.

    Clauses: FACADE-NEW-5
    """
    clause = "FACADE-NEW-5"
    with _number(end) as b, _number(start) as a, _number(step) as by:
        if by.item() == 0.0:
            raise InvalidShape(f"step must not be 0, got {shown(step)}", clause=clause)
        contexts.pointwise(_SUB, b, a, b, False)
        contexts.pointwise(_DIV, b, by, b, False)
        value = cast(float, b.item())
    if value != value or value == -float("inf"):
        raise InvalidShape(f"the number of elements must be at least 1, got {value!r}", clause=clause)
    if value == float("inf"):
        raise Overflow(f"the number of elements must be below 2^64, got {value!r}", clause=clause)
    top, bottom = value.as_integer_ratio()
    count = -(-top // bottom)
    if count < 1:
        raise InvalidShape(f"the number of elements must be at least 1, got {integer_shown(count)}", clause=clause)
    if count >= _WORD:
        raise Overflow(f"the number of elements must be below 2^64, got {integer_shown(count)}", clause=clause)
    return count


def _progression(ctx: Any, count: int, start: float, step: float) -> RawTensor:
    """Return start + f32(i) * step.

    Clauses: FACADE-NEW-5
    """
    checked_count((count,), "FACADE-NEW-5")
    with fresh(ctx, DType.f32, (count,)) as made, ctx._rt.new(DType.f32, (count,)) as steps:
        with ctx._rt.new(DType.i64, (count,)) as places:
            places._patterns()[:] = np.arange(count, dtype=np.uint64)
            contexts.convert(places, steps)
        contexts.scale(steps, step, steps, False)
        contexts.add_scalar(steps, start, made)
        return made


def _drawn(ctx: Any, kind: TensorType, shape: Any, fill: Callable[[Any], None]) -> RawTensor:
    """Return a tensor that a fill wrote; its errors come before there is memory.

    Clauses: FACADE-NEW-7
    """
    dims = sized(kind, shape, "FACADE-NEW-7")
    form = np.dtype(np.float32 if kind.dtype is DType.f32 else np.int64)
    fill(np.empty(0, form))
    made: RawTensor = ctx._rt.new(kind.dtype, dims)
    fill(made._patterns().view(form))
    return made
