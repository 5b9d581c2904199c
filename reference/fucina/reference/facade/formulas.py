"""Formulas: the gradients of the operands, each as its clause has it.

A function here returns a formula, made of what the operation knows: how its operands were repeated, which of them
track, its numbers.  The formula is then given ``g``, the gradient that arrived, and the saved values.  Everything is
f32, and one written operation is one operation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fucina.reference.dropout import dropout_mask, dropout_scale
from fucina.reference.facade.indices import formula_indices
from fucina.reference.facade.places import Repetition
from fucina.reference.graph import Formula, Numbers, added, read32
from fucina.reference.softfloat import Soft32
from fucina.reference.tensor import RawTensor

__all__ = [
    "ZERO",
    "averaged",
    "broadcasted",
    "constant_factor",
    "differences",
    "divided",
    "dropped",
    "kept_of",
    "minus_one_times",
    "moved",
    "multiplied",
    "over",
    "products",
    "rows",
    "summed",
    "sums",
    "times",
    "unchanged",
    "value_of",
]

ZERO, MINUS_ONE = Soft32.integer(0), Soft32.integer(-1)


# -- the operations that formulas are written in


def times(a: Numbers, b: Numbers) -> Numbers:
    """Return ``a * b``, element by element."""
    return [x * y for x, y in zip(a, b, strict=True)]


def over(a: Numbers, b: Numbers) -> Numbers:
    """Return ``a / b``, element by element."""
    return [x / y for x, y in zip(a, b, strict=True)]


def minus_one_times(a: Numbers) -> Numbers:
    """Return ``-1 * a``, element by element."""
    return [MINUS_ONE * x for x in a]


def scattered(g: Numbers, places: Sequence[int], size: int) -> Numbers:
    """Return elements where they came from, and +0 elsewhere."""
    found = [ZERO] * size
    for place, value in zip(places, g, strict=True):
        found[place] = value
    return found


def value_of(raw: RawTensor | None) -> Numbers:
    """Return a saved value."""
    assert raw is not None
    return read32(raw)


# -- arithmetic: AUTOGRAD-VJP-1


def sums(a: Repetition, b: Repetition, tracked: tuple[bool, bool]) -> Formula:
    """Return the formula of ``add``: ``R(g)`` and ``R(g)``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-1
    """
    return lambda ctx, g, saved: (a.gathered(g) if tracked[0] else None, b.gathered(g) if tracked[1] else None)


def differences(a: Repetition, b: Repetition, tracked: tuple[bool, bool]) -> Formula:
    """Return the formula of ``sub``: ``R(g)`` and ``-1 * R(g)``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-1
    """
    return lambda ctx, g, saved: (
        a.gathered(g) if tracked[0] else None,
        minus_one_times(b.gathered(g)) if tracked[1] else None,
    )


def multiplied(a: Repetition, b: Repetition, tracked: tuple[bool, bool]) -> Formula:
    """Return the formula of ``mul``: ``R(g * b)`` and ``R(g * a)``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-1
    """
    return lambda ctx, g, saved: (
        a.gathered(times(g, b.spread(value_of(saved[1])))) if tracked[0] else None,
        b.gathered(times(g, a.spread(value_of(saved[0])))) if tracked[1] else None,
    )


def divided(a: Repetition, b: Repetition, tracked: tuple[bool, bool]) -> Formula:
    """Return the formula of ``div``: ``R(g / b)`` and ``-1 * R((g * a) / (b * b))``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-1
    """

    def formula(ctx: object, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
        divisor = b.spread(value_of(saved[1]))
        first = a.gathered(over(g, divisor)) if tracked[0] else None
        if not tracked[1]:
            return first, None
        dividend = a.spread(value_of(saved[0]))
        return first, minus_one_times(b.gathered(over(times(g, dividend), times(divisor, divisor))))

    return formula


def constant_factor(factor: Soft32) -> Formula:
    """Return the formula of ``scale``: ``g * s``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-1
    """
    return lambda ctx, g, saved: ([x * factor for x in g],)


def unchanged(ctx: object, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
    """Return ``g``: the formula of ``add_scalar`` and ``to``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-1, AUTOGRAD-VJP-3
    """
    return (g,)


# -- reductions: AUTOGRAD-VJP-2


def summed(along: Repetition) -> Formula:
    """Return the formula of ``sum``: ``g``, repeated.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-2
    """
    return lambda ctx, g, saved: (along.spread(g),)


def averaged(along: Repetition, n: int) -> Formula:
    """Return the formula of ``mean``: ``g / n``, repeated.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-2
    """
    count = Soft32.integer(n)
    return lambda ctx, g, saved: (along.spread([x / count for x in g]),)


# -- views: AUTOGRAD-VJP-3


def moved(places: Sequence[int], size: int) -> Formula:
    """Return the formula of views: the elements of ``g`` where they came from, +0 elsewhere.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-3
    """
    return lambda ctx, g, saved: (scattered(g, places, size),)


def broadcasted(repetition: Repetition) -> Formula:
    """Return the formula of ``broadcast_to``: ``R(g)``.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-3
    """
    return lambda ctx, g, saved: (repetition.gathered(g),)


# -- dropout: AUTOGRAD-VJP-4


def dropped(seed: int, p: float) -> Formula:
    """Return the formula of ``dropout``: ``g * scale`` where the element was kept, +0 elsewhere.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-4
    """
    factor = Soft32.from_float(dropout_scale(p))
    return lambda ctx, g, saved: (
        [x * factor if kept else ZERO for x, kept in zip(g, kept_of(seed, p, len(g)), strict=True)],
    )


def kept_of(seed: int, p: float, count: int) -> list[bool]:
    """Return which of so many elements are kept.

    Notes
    -----
    Clauses: POLICY-DROPOUT-1
    """
    mask = np.empty(count, np.bool_)
    dropout_mask(seed, 0, mask, p)
    found: list[bool] = mask.tolist()
    return found


# -- rows: AUTOGRAD-VJP-5


def rows(indices: Sequence[int], count: int, width: int) -> Formula:
    """Return the formula of ``get_rows``: for each row +0, to which the rows of ``g`` that came from it are added.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-5
    """

    def formula(ctx: object, g: Numbers, saved: Sequence[RawTensor | None]) -> Sequence[Numbers | None]:
        found = [[ZERO] * width for _ in range(count)]
        for i, index in enumerate(formula_indices(saved[1], list(indices))):
            found[index] = added(found[index], g[i * width : (i + 1) * width])
        return [value for row in found for value in row], None

    return formula


# -- products: AUTOGRAD-VJP-6


def products(left: Sequence[Sequence[int]], right: Sequence[Sequence[int]], tracked: tuple[bool, bool]) -> Formula:
    """Return the formula of ``dot``: each gradient one chain of fma over all other axes of the other operand.

    Parameters
    ----------
    left : sequence of sequences of int
        ``left[i][k]`` is the place of an element of the left operand: i counts its other axes, k the contracted one.
    right : sequence of sequences of int
        ``right[j][k]``, of the right one.  The element (i, j) of the result is at ``i * len(right) + j``.
    tracked : tuple of bool
        For which of them a gradient is wanted.

    Notes
    -----
    Clauses: AUTOGRAD-VJP-6
    """
    n, contracted = len(right), range(len(left[0]))

    def of_left(g: Numbers, b: Numbers) -> Numbers:
        found = [ZERO] * (len(left) * len(contracted))
        for i, places in enumerate(left):
            for k in contracted:
                acc = ZERO
                for j in range(n):
                    acc = g[i * n + j].fma(b[right[j][k]], acc)
                found[places[k]] = acc
        return found

    def of_right(g: Numbers, a: Numbers) -> Numbers:
        found = [ZERO] * (n * len(contracted))
        for j, places in enumerate(right):
            for k in contracted:
                acc = ZERO
                for i in range(len(left)):
                    acc = a[left[i][k]].fma(g[i * n + j], acc)
                found[places[k]] = acc
        return found

    return lambda ctx, g, saved: (
        of_left(g, value_of(saved[1])) if tracked[0] else None,
        of_right(g, value_of(saved[0])) if tracked[1] else None,
    )
