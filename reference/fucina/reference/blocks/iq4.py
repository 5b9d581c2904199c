"""What iq4_nl and iq4_xs share: sixteen unequal levels and the scale of a group of 32."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from fucina.reference.blocks.rounding import ONE, ZERO, peak
from fucina.reference.formats import Kind
from fucina.reference.softfloat import Soft32
from fucina.spec.block_tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LEVELS", "group_scale", "nearest_code", "reciprocal"]

LEVELS = [Soft32.integer(level) for level in table("kvalues_iq4nl")]
LEAST, MOST = LEVELS[0], LEVELS[15]
SILENT = Soft32.decimal("1e-15")
AIM = Soft32.integer(127)
AIMS = [Soft32.integer(t) - AIM for t in range(-7, 8)]
"""What the trials of the search aim the peak at."""


def nearest_code(v: Soft32) -> int:
    """Return C(v): the code of the nearest level, the upper one of two as near; of a NaN 15.

    Notes
    -----
    Clauses: BLOCK-SEARCH-4
    """
    if v <= LEAST:
        return 0
    if v.number.kind is Kind.NAN or v >= MOST:
        return 15
    k = bisect_right(table("kvalues_iq4nl"), v.floor()) - 1
    # a tie, of the two rounded distances, goes to the upper level
    return k if v - LEVELS[k] < LEVELS[k + 1] - v else k + 1


def reciprocal(v: Soft32) -> Soft32:
    """Return 1/v, and +0 for a zero.

    A NaN is not zero and stays a NaN.  Nothing overflows: a scale is +0 or far from the least f32.

    Notes
    -----
    Clauses: BLOCK-SEARCH-4
    """
    return ZERO if v.is_zero else ONE / v


def group_scale(x: Sequence[Soft32], search: bool) -> tuple[Soft32, list[int]]:
    """Return the scale of a group and the codes of the first trial.

    Parameters
    ----------
    x : sequence of Soft32
        32 elements.
    search : bool
        Whether to try other multipliers after the first.

    Returns
    -------
    scale : Soft32
        The unrounded scale, +0 of a group that is degenerate.
    codes : list of int
        One per element; the codes of the other trials are not kept.

    Notes
    -----
    Clauses: BLOCK-SEARCH-4
    """
    top, extreme = peak(x)
    if top < SILENT:
        return ZERO, [8] * len(x)
    w = [v * v for v in x]

    def fit(r: Soft32) -> tuple[list[int], Soft32, Soft32]:
        codes = [nearest_code(r * v) for v in x]
        a = b = ZERO
        for code, w_j, x_j in zip(codes, w, x, strict=True):
            level = LEVELS[code]
            product = w_j * level
            a += product * x_j
            b += product * level
        return codes, a, b

    # The first trial aims the peak at -127, the least level, or in a search at +127, which lies beyond the levels.
    # Its multiplier is the reciprocal of a rounded scale.
    first = (-extreme if search else extreme) / -AIM
    codes, a, b = fit(ONE / first)
    scale = a / b if b > ZERO else ZERO
    score = scale * a
    if search:
        for aim in AIMS:
            _, a, b = fit(aim / extreme)
            if b > ZERO and a * a > score * b:
                scale = a / b
                score = scale * a
    return scale, codes
