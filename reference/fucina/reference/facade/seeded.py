"""Seeded tensors: what the fills of :mod:`fucina.reference.rng` write, in the shape of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference import rng
from fucina.reference.arguments import f32_argument, number_shown, whole
from fucina.reference.facade.arguments import F32, I64, operation, require_branch, shape_of_new
from fucina.reference.facade.filling import Filling
from fucina.reference.geometry import storage
from fucina.reference.graph import read32, write32
from fucina.reference.runtime import ExecContext
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import InvalidBounds

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import AnyArray
    from fucina.spec.memory import ShapeLike

__all__ = ["Seeded"]

ZERO, ONE = Soft32.integer(0), Soft32.integer(1)


class Seeded(Filling):
    """Constructors of random numbers."""

    @classmethod
    def _seeded(
        cls, ctx: ExecContext, shape: Any, what: str, fill: Callable[[AnyArray], None], *, integers: bool = False
    ) -> Self:
        """Return a tensor that a fill of :mod:`fucina.reference.rng` has filled.

        Notes
        -----
        Clauses: FACADE-NEW-7
        """
        require_branch(what, cls.dtype, I64 if integers else F32)
        refusal = None
        try:
            fill(np.empty(0, storage(cls.dtype)))  # the numbers are looked at before the shape
        except InvalidBounds as error:  # and what they are together after it
            refusal = error
        sizes = shape_of_new(cls, shape, "FACADE-NEW-7")
        if refusal is not None:
            raise refusal
        raw = ctx.rt.new(cls.dtype, sizes)
        fill(raw.elements().reshape(-1).view(storage(cls.dtype)))
        return cls._made(ctx, raw)

    @classmethod
    @operation
    def rand(cls, ctx: ExecContext, shape: ShapeLike, seed: int) -> Self:
        """Return numbers spread evenly over [0, 1).

        Parameters
        ----------
        ctx : ExecContext
            The context.
        shape : sequence of int
            A size for each axis.
        seed : int
            In [0, 2^64).

        Raises
        ------
        InvalidDType
            If the type is not of f32.
        InvalidInteger, Overflow
            If the seed is none; so in all seeded constructors.
        InvalidShape, OutOfMemory
            If it is no shape of the type, or there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-UNIF-1
        """
        return cls._seeded(ctx, shape, "rand", lambda out: rng.uniform_fill(seed, out, 0, 1))

    @classmethod
    @operation
    def uniform(cls, ctx: ExecContext, shape: ShapeLike, seed: int, lo: float, hi: float) -> Self:
        """Return numbers spread evenly over [lo, hi).

        Raises
        ------
        InvalidDType, InvalidInteger, Overflow, InvalidShape, OutOfMemory
            As :meth:`rand`.
        DTypeMismatch, InvalidBounds
            If the bounds are no numbers, or not finite and in order.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-UNIF-1, RNG-UNIF-3
        """
        return cls._seeded(ctx, shape, "uniform", lambda out: rng.uniform_fill(seed, out, lo, hi))

    @classmethod
    @operation
    def randn(cls, ctx: ExecContext, shape: ShapeLike, seed: int) -> Self:
        """Return normal numbers of mean 0 and standard deviation 1; errors as of :meth:`rand`.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-GAUSS-1
        """
        return cls._seeded(ctx, shape, "randn", lambda out: rng.gaussian_fill(seed, out, 1))

    @classmethod
    @operation
    def normal(cls, ctx: ExecContext, shape: ShapeLike, seed: int, mean: float, std_dev: float) -> Self:
        """Return normal numbers of a mean and a standard deviation.

        Raises
        ------
        InvalidDType, InvalidInteger, Overflow, InvalidShape, OutOfMemory
            As :meth:`rand`.
        DTypeMismatch
            If one of the two is no number.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-NORMAL-1
        """
        return cls._seeded(ctx, shape, "normal", lambda out: rng.normal_fill(seed, out, mean, std_dev))

    @classmethod
    @operation
    def gumbel(cls, ctx: ExecContext, shape: ShapeLike, seed: int) -> Self:
        """Return standard Gumbel numbers; errors as of :meth:`rand`.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-GUMBEL-1
        """
        return cls._seeded(ctx, shape, "gumbel", lambda out: rng.gumbel_fill(seed, out))

    @classmethod
    @operation
    def bernoulli(cls, ctx: ExecContext, shape: ShapeLike, seed: int, p: float) -> Self:
        """Return 1 with probability p, else 0.

        Raises
        ------
        InvalidDType, InvalidInteger, Overflow, InvalidShape, OutOfMemory
            As :meth:`rand`.
        DTypeMismatch, InvalidBounds
            If p is no number in [0, 1].

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-UNIF-1
        """
        require_branch("bernoulli", cls.dtype, F32)
        bound = f32_argument("p", p)

        def fill(out: AnyArray) -> None:
            rng.uniform_fill(seed, out, 0, 1)
            if not (bound >= ZERO and bound <= ONE):
                raise InvalidBounds(f"p must be in [0, 1], got {number_shown(bound.number)}", clause="FACADE-NEW-7")

        made = cls._seeded(ctx, shape, "bernoulli", fill)
        write32(made.raw, [ONE if value < bound else ZERO for value in read32(made.raw)])
        return made

    @classmethod
    @operation
    def randint(cls, ctx: ExecContext, shape: ShapeLike, seed: int, low: int, high: int) -> Self:
        """Return integers spread evenly over [low, high).

        Raises
        ------
        InvalidDType
            If the type is not of i64.
        InvalidInteger, Overflow, InvalidBounds
            If seed or bounds are no integers, too large, or not in order.
        InvalidShape, OutOfMemory
            As :meth:`rand`.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-INT-1, RNG-INT-2
        """
        return cls._seeded(ctx, shape, "randint", lambda out: rng.randint_fill(seed, out, low, high), integers=True)

    @classmethod
    @operation
    def randperm(cls, ctx: ExecContext, n: int, seed: int) -> Self:
        """Return a permutation of 0 to n - 1.

        Raises
        ------
        InvalidDType
            If the type is not of i64.
        InvalidInteger, Overflow, InvalidShape
            If n is no size, the seed none, or the type has not one axis.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: FACADE-NEW-7, RNG-PERM-1
        """
        require_branch("randperm", cls.dtype, I64)
        whole("n", n, "FACADE-NEW-7")
        rng.randperm_fill(seed, np.empty(0, np.int64))
        cls._require_rank("randperm", 1, "FACADE-NEW-7")
        return cls._seeded(ctx, (n,), "randperm", lambda out: rng.randperm_fill(seed, out), integers=True)
