"""Arithmetic, element by element: of two tensors, of one and a number, conversions, dropout, what is consumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.arguments import f32_argument, number, scalar_dtype
from fucina.reference.arithmetic import pointwise, widened
from fucina.reference.bridges import INTEGERS, caster
from fucina.reference.dropout import dropout_scale
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import (
    BLOCKS,
    FLOAT,
    NUMBER,
    TRACKABLE,
    operation,
    require_branch,
    require_one_dtype,
    tensor,
)
from fucina.reference.facade.places import Repetition, aligned, common_sizes, repeated
from fucina.reference.facade.results import Results, tracks
from fucina.reference.facade.values import Value
from fucina.reference.geometry import storage
from fucina.reference.graph import Formula
from fucina.reference.lives import Life
from fucina.reference.ops.operands import patterns, store
from fucina.reference.quant import dequantize
from fucina.reference.runtime import ExecContext
from fucina.reference.softfloat import Soft32, Soft64, SoftFloat
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    DivisionByZero,
    GradientsTracked,
    InvalidDType,
    InvalidTag,
    ShapeMismatch,
)
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.kinds import Tags
    from fucina.reference.facade.tensor import Tensor
    from fucina.reference.tensor import RawTensor

__all__ = ["Arithmetic"]

F32 = frozenset({DType.f32})

Needs = Callable[[tuple[bool, bool]], tuple[bool, bool]]

FORMULAS: dict[str, tuple[Callable[[Repetition, Repetition, tuple[bool, bool]], Formula], Needs]] = {
    "add": (formulas.sums, lambda tracked: (False, False)),
    "sub": (formulas.differences, lambda tracked: (False, False)),
    "mul": (formulas.multiplied, lambda tracked: (tracked[1], tracked[0])),
    "div": (formulas.divided, lambda tracked: (tracked[1], True)),
}
"""The formula of each operation, and of which operands it needs the values for the gradients that are wanted."""


class Pair:
    """Two operands that go together: the tags and sizes of their result, and how each is repeated to it.

    Parameters
    ----------
    a, b : tensor
        The operands.

    Raises
    ------
    InvalidTag, InvalidShape, ShapeMismatch
        If they do not go together.

    Notes
    -----
    Clauses: POLICY-TAGS-1
    """

    def __init__(self, a: Value, b: Value) -> None:
        self.tags: Tags
        self.tags, self._first, self._second = aligned(a, b)
        self.kind = a.kin(self.tags)
        self._shapes = a.shape, b.shape
        self.shape = common_sizes(a.shape, self._first, b.shape, self._second, self.tags)

    def repetitions(self) -> tuple[Repetition, Repetition]:
        """Return how each is repeated to the result."""
        a, b = self._shapes
        return repeated(a, self._first, self.shape), repeated(b, self._second, self.shape)


def wide_number(dtype: DType, value: object) -> SoftFloat:
    """Return a number in the dtype that a float dtype is widened to.

    Raises
    ------
    DTypeMismatch
        If it is no number.

    Notes
    -----
    Clauses: POLICY-SCALAR-1, NUM-PARAM-1
    """
    if dtype is DType.f64:
        return Soft64.from_number(number("number", value, "NUM-PARAM-1"))
    return f32_argument("number", value)


class Arithmetic(Value):
    """The elementwise operations of a tensor."""

    # -- of two tensors

    def _binary(self, ctx: ExecContext, name: str, other: Any) -> Tensor:
        b = tensor("other", other)
        require_branch(name, self.dtype, NUMBER)
        require_one_dtype(name, self.dtype, b.dtype)
        pair = Pair(self, b)
        if name == "div" and self.dtype in INTEGERS and not b.raw.elements().all():
            raise DivisionByZero("an integer was divided by zero", clause="POLICY-ARITH-1")
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self, b)) as results:
            raw = results.new(self.dtype, pair.shape)
            first, second = pair.repetitions()
            apply = pointwise(name, self.dtype)
            left, right = first.spread(patterns(self.raw)), second.spread(patterns(b.raw))
            store(raw, [apply(x, y) for x, y in zip(left, right, strict=True)])

            tracked = self.node is not None, b.node is not None
            make, needs = FORMULAS[name]
            saves = needs(tracked)
            saved = [x.raw if wanted else None for x, wanted in zip((self, b), saves, strict=True)]
            return results.done(pair.kind, raw, make(first, second, tracked), [self, b], saved)

    @operation
    def add(self, ctx: ExecContext, other: Any) -> Tensor:
        """Return ``self + other``, aligned by tag.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : tensor
            Of the same dtype: a float other than the f8, or an integer.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If it is no tensor, or of another dtype.
        InvalidDType
            If the dtype has no such operation.
        InvalidTag, InvalidShape, ShapeMismatch, Overflow
            If the operands do not go together.

        Notes
        -----
        Clauses: POLICY-TAGS-1, POLICY-ARITH-1, POLICY-MIXED-1, POLICY-RESULT-1, AUTOGRAD-VJP-1
        """
        return self._binary(ctx, "add", other)

    @operation
    def sub(self, ctx: ExecContext, other: Any) -> Tensor:
        """Return ``self - other``; parameters and errors as of :meth:`add`.

        Notes
        -----
        Clauses: POLICY-TAGS-1, POLICY-ARITH-1, AUTOGRAD-VJP-1
        """
        return self._binary(ctx, "sub", other)

    @operation
    def mul(self, ctx: ExecContext, other: Any) -> Tensor:
        """Return ``self * other``; parameters and errors as of :meth:`add`.

        Notes
        -----
        Clauses: POLICY-TAGS-1, POLICY-ARITH-1, AUTOGRAD-VJP-1
        """
        return self._binary(ctx, "mul", other)

    @operation
    def div(self, ctx: ExecContext, other: Any) -> Tensor:
        """Return ``self / other``, of integers truncated; parameters and errors as of :meth:`add`.

        Raises
        ------
        DivisionByZero
            If an integer would be divided by zero.

        Notes
        -----
        Clauses: POLICY-TAGS-1, POLICY-ARITH-1, AUTOGRAD-VJP-1
        """
        return self._binary(ctx, "div", other)

    # -- of a tensor and a number

    def _mapped(self, ctx: ExecContext, dtype: DType, apply: Callable[[int], int], formula: Formula) -> Tensor:
        """Return the result of a function of patterns, with a formula of ``g`` alone."""
        with Results(ctx, dtype, tracks(ctx, dtype, self)) as results:
            raw = results.new(dtype, self.shape)
            store(raw, [apply(bits) for bits in patterns(self.raw)])
            return results.done(self.kin(self.axis_tags, dtype), raw, formula, [self])

    @operation
    def scale(self, ctx: ExecContext, number: float) -> Tensor:
        """Return the tensor times a number.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        number : float or int
            Rounded to f32; for f64 to f64.

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16, f32 and f64.
        DTypeMismatch
            If it is no number.

        Notes
        -----
        Clauses: POLICY-SCALAR-1, POLICY-RESULT-1, AUTOGRAD-VJP-1
        """
        require_branch("scale", self.dtype, FLOAT)
        factor = wide_number(self.dtype, number)
        apply = widened(self.dtype, type(factor), lambda x: x * factor)
        # a gradient is of f32, and then so is the factor
        return self._mapped(ctx, self.dtype, apply, formulas.constant_factor(Soft32.nearest(factor)))

    @operation
    def add_scalar(self, ctx: ExecContext, number: float) -> Tensor:
        """Return the tensor plus a number; parameters and errors as of :meth:`scale`.

        Notes
        -----
        Clauses: POLICY-SCALAR-1, POLICY-RESULT-1, AUTOGRAD-VJP-1
        """
        require_branch("add_scalar", self.dtype, FLOAT)
        term = wide_number(self.dtype, number)
        return self._mapped(ctx, self.dtype, widened(self.dtype, type(term), lambda x: x + term), formulas.unchanged)

    # -- conversions

    @operation
    def to(self, ctx: ExecContext, dtype: DType) -> Tensor:
        """Return the tensor in another dtype.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        dtype : DType
            A scalar dtype; of blocks f32.

        Raises
        ------
        InvalidDType
            If it is none, or not what blocks are decoded to.

        Notes
        -----
        Clauses: POLICY-TO-1, POLICY-BRANCH-1, AUTOGRAD-VJP-3
        """
        target = scalar_dtype(dtype, "POLICY-TO-1")
        if self.dtype not in BLOCKS:
            return self._mapped(ctx, target, caster(self.dtype, target), formulas.unchanged)
        if target is not DType.f32:
            raise InvalidDType(f"blocks are decoded to f32 and to nothing else, got {target!r}", clause="POLICY-TO-1")
        with Results(ctx, target) as results:
            raw = results.new(target, self.shape)
            store(raw, decoded(self.raw))
            return results.done(self.kin(self.axis_tags, target), raw)

    # -- dropout

    @operation
    def dropout(self, ctx: ExecContext, p: float, seed: int) -> Tensor:
        """Return the elements that a seed keeps, scaled, and zeros elsewhere.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        p : float
            The probability of being dropped, in [0, 1).
        seed : int
            In [0, 2^64).

        Raises
        ------
        InvalidDType
            If the dtype is none of f16, bf16 and f32.
        DTypeMismatch, InvalidBounds
            If p is no such number.
        InvalidInteger, Overflow
            If the seed is none.

        Notes
        -----
        Clauses: POLICY-DROPOUT-1, RNG-DROPOUT-1, AUTOGRAD-VJP-4
        """
        require_branch("dropout", self.dtype, TRACKABLE)
        formulas.kept_of(seed, p, 0)  # the errors of the mask
        factor = Soft32.from_float(dropout_scale(p))
        apply = widened(self.dtype, Soft32, lambda x: x * factor)
        with Results(ctx, self.dtype, tracks(ctx, self.dtype, self)) as results:
            raw = results.new(self.dtype, self.shape)
            own = patterns(self.raw)
            kept = formulas.kept_of(seed, p, len(own))
            store(raw, [apply(bits) if keep else 0 for bits, keep in zip(own, kept, strict=True)])
            return results.done(type(self), raw, formulas.dropped(seed, p), [self])

    # -- what consumes the tensor

    @operation
    def take_add_no_grad(self, ctx: ExecContext, other: Any) -> Tensor:
        """Return ``self + other``, written into the tensor's own storage if that may be; the tensor is consumed.

        Parameters
        ----------
        ctx : ExecContext
            The context.
        other : tensor
            Of f32, with tags that the tensor has, and sizes that are equal or 1.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If it is no tensor, or of another dtype.
        InvalidDType
            If the tensor is not of f32.
        InvalidTag, ShapeMismatch
            If the result would not have the tensor's type and shape.
        ActiveExecScopeUnsupported
            If a scope owns the tensor.
        GradientsTracked
            If one of them tracks gradients.

        Notes
        -----
        Clauses: POLICY-TAKE-1, TENSOR-TAKE-1
        """
        clause = "POLICY-TAKE-1"
        b = tensor("other", other)
        require_branch("take_add_no_grad", self.dtype, F32)
        require_one_dtype("take_add_no_grad", self.dtype, b.dtype)
        pair = Pair(self, b)
        if pair.tags != self.axis_tags:
            raise InvalidTag(f"other may have the tags {self.axis_tags}, got {b.axis_tags}", clause=clause)
        if pair.shape != self.shape:
            raise ShapeMismatch(f"other must fit {self.shape}, got {b.shape}", clause=clause)
        self._require_takable(self, b)
        apply = pointwise("add", self.dtype)
        terms = pair.repetitions()[1].spread(patterns(b.raw))
        return self._taken(ctx, [apply(x, y) for x, y in zip(patterns(self.raw), terms, strict=True)])

    @operation
    def take_scale_no_grad(self, ctx: ExecContext, number: float) -> Tensor:
        """Return the tensor times a number, in its own storage if that may be; the tensor is consumed.

        Raises
        ------
        InvalidDType
            If the tensor is not of f32.
        DTypeMismatch
            If it is no number.
        ActiveExecScopeUnsupported, GradientsTracked
            As :meth:`take_add_no_grad`.

        Notes
        -----
        Clauses: POLICY-TAKE-1, TENSOR-TAKE-1
        """
        require_branch("take_scale_no_grad", self.dtype, F32)
        factor = f32_argument("number", number)
        self._require_takable(self)
        apply = widened(self.dtype, Soft32, lambda x: x * factor)
        return self._taken(ctx, [apply(bits) for bits in patterns(self.raw)])

    def _require_takable(self, *operands: Value) -> None:
        clause = "POLICY-TAKE-1"
        if self.raw.life is Life.SCOPED:
            raise ActiveExecScopeUnsupported(f"the tensor is consumed, and a scope owns it: {self!r}", clause=clause)
        for x in operands:
            if x.node is not None:
                raise GradientsTracked(f"there is no gradient of it, and {x!r} tracks some", clause=clause)

    def _taken(self, ctx: ExecContext, results_bits: list[int]) -> Tensor:
        """Return a result in the place of the tensor, or in a new one.

        Notes
        -----
        Clauses: POLICY-TAKE-1
        """
        with Results(ctx, self.dtype) as results:
            if self.raw.can_take_in_place():
                self.raw.live().open_for_writing()
                raw = results.keep(ctx.rt.traced(self.raw.moved()))
                store(raw, results_bits)
            else:
                raw = results.new(self.dtype, self.shape)
                store(raw, results_bits)
                self.deinit_replaced()
            return results.done(type(self), raw)


def decoded(raw: RawTensor) -> list[int]:
    """Return the elements of blocks as f32 patterns.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    blocks = np.ascontiguousarray(raw.elements()).reshape(-1).view(storage(raw.dtype))
    found: list[int] = dequantize(raw.dtype, blocks).reshape(-1).view(np.uint32).tolist()
    return found
