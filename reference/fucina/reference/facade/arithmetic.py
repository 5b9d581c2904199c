"""Arithmetic, element by element: of two tensors, of one and a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import factor_argument
from fucina.reference.arithmetic import pointwise, scaling, widened
from fucina.reference.bridges import INTEGERS
from fucina.reference.facade import formulas
from fucina.reference.facade.arguments import (
    FLOAT,
    NUMBER,
    operation,
    require_branch,
    require_one_dtype,
    tensor,
)
from fucina.reference.facade.places import Repetition, aligned, common_sizes, repeated
from fucina.reference.facade.results import Results, tracks
from fucina.reference.facade.values import Value
from fucina.reference.graph import Formula
from fucina.reference.ops.operands import patterns, store
from fucina.reference.runtime import ExecContext
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import DivisionByZero
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.reference.facade.kinds import Tags
    from fucina.reference.facade.tensor import Tensor

__all__ = ["Arithmetic"]

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


class Arithmetic(Value):
    """The elementwise operations of a tensor."""

    # -- of two tensors

    def _binary(self, ctx: ExecContext, name: str, other: Any) -> Tensor:
        b = tensor("other", other)
        require_branch(name, self.dtype, NUMBER)
        require_one_dtype(name, self.dtype, b.dtype)
        pair = Pair(self, b)
        if name == "div" and self.dtype in INTEGERS and not b.raw.elements().all():
            raise DivisionByZero(
                f"other has a zero, and integers were to be divided by it: {b!r}", clause="POLICY-ARITH-1"
            )
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
        factor = factor_argument("number", number, self.dtype)
        # a gradient is of f32, and then so is the factor
        formula = formulas.constant_factor(Soft32.nearest(factor))
        return self._mapped(ctx, self.dtype, scaling(self.dtype, factor), formula)

    @operation
    def add_scalar(self, ctx: ExecContext, number: float) -> Tensor:
        """Return the tensor plus a number; parameters and errors as of :meth:`scale`.

        Notes
        -----
        Clauses: POLICY-SCALAR-1, POLICY-RESULT-1, AUTOGRAD-VJP-1
        """
        require_branch("add_scalar", self.dtype, FLOAT)
        term = factor_argument("number", number, self.dtype)
        return self._mapped(ctx, self.dtype, widened(self.dtype, type(term), lambda x: x + term), formulas.unchanged)
