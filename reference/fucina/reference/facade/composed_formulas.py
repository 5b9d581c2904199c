"""Formulas of the composed operations, and what operation and gradient both compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fucina.reference.arithmetic import folded
from fucina.reference.facade.formulas import minus_one_times, over, times, value_of
from fucina.reference.facade.indices import formula_indices
from fucina.reference.facade.places import Repetition, collected
from fucina.reference.graph import Formula, Numbers
from fucina.reference.softfloat import Soft32
from fucina.reference.tensor import RawTensor

__all__ = ["cosine", "cosine_parts", "inverse_lengths", "likelihood", "normalized", "one_hot", "sums_along"]


def likelihood(along: Repetition, classes: Sequence[int], targets: Sequence[int], reduction: str) -> Formula:
    """Return the formula of ``nll_loss``: ``(-1 * e) * h`` with e the gradient of l, repeated along the axis.

    Parameters
    ----------
    along : Repetition
        How l would be repeated to x.
    classes : sequence of int
        For each element of x, its index along the axis.
    targets : sequence of int
        For each element of l, its target.
    reduction : {"none", "sum", "mean"}
        What was made of l.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-7
    """

    def formula(ctx: object, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
        wanted = formula_indices(saved[1], list(targets))
        if reduction == "none":
            e = g
        else:
            e = [g[0] / Soft32.integer(len(wanted)) if reduction == "mean" else g[0]] * len(wanted)
        h = one_hot(along, classes, wanted)
        return times(along.spread(minus_one_times(e)), h), None

    return formula


def one_hot(along: Repetition, classes: Sequence[int], targets: Sequence[int]) -> Numbers:
    """Return ``h``: 1 where an element of x has the index of its target, else 0."""
    return [Soft32.integer(int(own == wanted)) for own, wanted in zip(classes, along.spread(targets), strict=True)]


def normalized(along: Repetition, eps: Soft32) -> Formula:
    """Return the formula of ``l2_normalize``: ``r * (g - y * sum(g * y))``, with r and y computed again.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-7, POLICY-NORM-1
    """

    def formula(ctx: object, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
        x = value_of(saved[0])
        r = along.spread(inverse_lengths(x, along, eps))
        y = times(x, r)
        inner = along.spread(sums_along(times(g, y), along))
        return (times(r, [a - b for a, b in zip(g, times(y, inner), strict=True)]),)

    return formula


def sums_along(values: Numbers, along: Repetition) -> Numbers:
    """Return the sum along an axis, a tree for each element of the result.

    Notes
    -----
    Clauses: POLICY-SUM-1
    """
    return [folded(group) for group in collected(along.places, along.size, values)]


def inverse_lengths(x: Numbers, along: Repetition, eps: Soft32) -> Numbers:
    """Return ``r = rsqrt(sum(x * x) + eps)``.

    Notes
    -----
    Clauses: POLICY-NORM-1
    """
    return [(s + eps).rsqrt() for s in sums_along(times(x, x), along)]


def cosine(along: Repetition, eps: Soft32, tracked: tuple[bool, bool]) -> Formula:
    """Return the formula of ``cosine_similarity``, with everything but the operands computed again.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-7, POLICY-COSINE-1
    """

    def formula(ctx: object, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
        x, y = value_of(saved[0]), value_of(saved[1])
        parts = cosine_parts(x, y, along, eps)
        wide_g, c, d = along.spread(g), along.spread(over(parts.dot, parts.divisor)), along.spread(parts.divisor)
        clear = along.spread([p > eps for p in parts.roots])

        def gradient(own: Numbers, other: Numbers, squares: Numbers) -> Numbers:
            straight, s = over(other, d), along.spread(squares)
            bent = [a - b for a, b in zip(straight, over(times(c, own), s), strict=True)]
            return times(wide_g, [b if far else a for a, b, far in zip(straight, bent, clear, strict=True)])

        return (
            gradient(x, y, parts.squares[0]) if tracked[0] else None,
            gradient(y, x, parts.squares[1]) if tracked[1] else None,
        )

    return formula


class CosineParts(NamedTuple):
    """What a cosine is made of, along an axis.

    Parameters
    ----------
    dot : list of Soft32
        ``sum(x * y)``.
    squares : pair of lists of Soft32
        ``sum(x * x)`` and ``sum(y * y)``.
    roots : list of Soft32
        The product of their roots.
    divisor : list of Soft32
        The greater of that and eps.

    Notes
    -----
    Clauses: POLICY-COSINE-1
    """

    dot: Numbers
    squares: tuple[Numbers, Numbers]
    roots: Numbers
    divisor: Numbers


def cosine_parts(x: Numbers, y: Numbers, along: Repetition, eps: Soft32) -> CosineParts:
    """Return the parts of the cosine of two tensors.

    Notes
    -----
    Clauses: POLICY-COSINE-1
    """
    squares = sums_along(times(x, x), along), sums_along(times(y, y), along)
    roots = times([s.sqrt() for s in squares[0]], [s.sqrt() for s in squares[1]])
    return CosineParts(sums_along(times(x, y), along), squares, roots, [greater(root, eps) for root in roots])


def greater(a: Soft32, b: Soft32) -> Soft32:
    """Return the greater number: +0 rather than -0, and NaN where either is.

    Notes
    -----
    Clauses: POLICY-COSINE-1
    """
    if not a <= a or not b <= b:  # only a NaN is not ordered with itself
        return a + b
    if a.is_zero and b.is_zero:
        return b if a.sign else a
    return a if a > b else b
