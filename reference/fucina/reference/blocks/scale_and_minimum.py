"""Groups with a scale and a minimum, as q2_k, q4_k and q5_k have them: the search, the codes, the way back.

An element is ``scale * code - minimum``; scale and minimum of a group are small integers times the two f16 fields
``d`` and ``dmin`` of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fucina.reference.blocks.rounding import ONE, ZERO, clamp, even, total, value_range
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Fit", "Search", "elements", "final_codes", "magnitude", "spread_weights", "square"]

TENTH = Soft32.decimal("0.1")
THIRTY_TWO = Soft32.integer(32)
INTEGERS = [Soft32.integer(k) for k in range(64)]
"""Every code, small scale and small minimum as an f32."""


def magnitude(v: Soft32) -> Soft32:
    """Return the error measure abs(v)."""
    return abs(v)


def square(v: Soft32) -> Soft32:
    """Return the error measure v*v."""
    return v * v


def spread_weights(x: Sequence[Soft32]) -> list[Soft32]:
    """Return the weights of a group of 32 in q4_k and q5_k: the root of the mean square plus the element's magnitude.

    Notes
    -----
    Clauses: BLOCK-SEARCH-3
    """
    root = (total(v * v for v in x) / THIRTY_TWO).sqrt()
    return [root + abs(v) for v in x]


class Fit(NamedTuple):
    """What the search makes of one group: unrounded scale and minimum, provisional codes."""

    scale: Soft32
    minimum: Soft32
    codes: list[int]


@dataclass(frozen=True)
class Search:
    """The search of one format for the scale and minimum of a group.

    Parameters
    ----------
    top : int
        The top code.
    start : str
        By how much the first step departs from the top code, as a decimal; each further step adds a tenth.
    last : int
        The number of the last step; the first is 0.
    error : callable
        The measure of the error of one element.

    Notes
    -----
    Clauses: BLOCK-SEARCH-3
    """

    top: int
    start: str
    last: int
    error: Callable[[Soft32], Soft32]

    def __call__(self, x: Sequence[Soft32], w: Sequence[Soft32]) -> Fit:
        """Return the fit of a group x with the weights w.

        Notes
        -----
        Clauses: BLOCK-SEARCH-3
        """
        top, start = Soft32.integer(self.top), Soft32.decimal(self.start)
        low, high = value_range(x)
        # These two start from their first term, not from +0; only a -0 could tell.
        weight, moment = w[0], w[0] * x[0]
        for w_i, x_i in zip(w[1:], x[1:], strict=True):
            weight += w_i
            moment += w_i * x_i
        if low > ZERO:
            low = ZERO
        if (high - low).is_zero:
            return Fit(ZERO, -low, [0] * len(x))

        # from the smallest element, or zero, to the largest
        above = [v - low for v in x]
        span = high - low
        f = top / span
        scale = ONE / f
        codes = self._codes(f, above)
        best = self._error(scale, low, codes, x, w)

        # other multipliers: the codes they give, the best scale and minimum for these codes, the error of both
        for s in range(self.last + 1):
            f = ((start + TENTH * Soft32.integer(s)) + top) / span
            trial = self._codes(f, above)
            a = b = c = ZERO
            for k, x_i, w_i in zip(trial, x, w, strict=True):
                code = INTEGERS[k]
                product = w_i * code
                a += product
                b += product * code
                c += product * x_i
            d = weight * b - a * a
            if not d > ZERO:
                continue
            u = (weight * c - moment * a) / d
            v = (b * moment - a * c) / d
            if v > ZERO:
                v, u = ZERO, c / b
            error = self._error(u, v, trial, x, w)
            if error < best:
                # the steps that follow start from this minimum; the largest element stays what it was
                codes, best, scale, low = trial, error, u, v
                above = [v - low for v in x]
                span = high - low
        return Fit(scale, -low, codes)

    def _codes(self, f: Soft32, above: Iterable[Soft32]) -> list[int]:
        return [clamp(even(f * v), 0, self.top) for v in above]

    def _error(
        self, scale: Soft32, low: Soft32, codes: Sequence[int], x: Sequence[Soft32], w: Sequence[Soft32]
    ) -> Soft32:
        levels = {k: scale * INTEGERS[k] + low for k in set(codes)}
        return total(w_i * self.error(levels[k] - x_i) for k, x_i, w_i in zip(codes, x, w, strict=True))


def final_codes(
    x: Sequence[Soft32], fit: Fit, d: Soft32, dmin: Soft32, scale: int, minimum: int, top: int
) -> list[int]:
    """Return the codes of a group for the scale and minimum that are stored.

    Parameters
    ----------
    x : sequence of Soft32
        The group.
    fit : Fit
        What the search found; its codes stay where the stored scale is zero.
    d, dmin : Soft32
        The fields of the block, as they are stored.
    scale, minimum : int
        The small integers of the group.
    top : int
        The top code.

    Returns
    -------
    list of int
        One code per element.

    Notes
    -----
    Clauses: BLOCK-Q2K-2, BLOCK-Q4K-2, BLOCK-Q5K-2
    """
    step = d * INTEGERS[scale]
    if step.is_zero:
        return fit.codes
    offset = dmin * INTEGERS[minimum]
    return [clamp(even((v + offset) / step), 0, top) for v in x]


def elements(d: Soft32, dmin: Soft32, scales: Sequence[int], minima: Sequence[int], codes: Sequence[int]) -> list[int]:
    """Return the f32 patterns ``(d*scale)*code - dmin*minimum``.

    Parameters
    ----------
    d, dmin : Soft32
        The fields of the block.
    scales, minima : sequence of int
        One per group.
    codes : sequence of int
        One per element; the groups are of equal size.

    Returns
    -------
    list of int
        One pattern per element.

    Notes
    -----
    Clauses: BLOCK-DECODE-1, BLOCK-Q2K-1, BLOCK-Q4K-1, BLOCK-Q5K-1
    """
    size = len(codes) // len(scales)
    steps = [d * INTEGERS[k] for k in scales]
    offsets = [dmin * INTEGERS[k] for k in minima]
    return [(steps[i // size] * INTEGERS[k] - offsets[i // size]).bits for i, k in enumerate(codes)]
