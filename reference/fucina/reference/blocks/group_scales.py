"""One scale for a block and an odd multiple of it for each group: the last step of the iq1, iq2 and iq3 encoders.

Group g decodes with ``d * (2*code_g + 1)``, up to a constant of the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.rounding import ONE, clamp, even, inverse, largest
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HALF", "group_scales", "odd_codes"]

HALF = Soft32.decimal("0.5")


def odd_codes(values: Sequence[Soft32], r: Soft32, high: int) -> tuple[int, ...]:
    """Return the integers k from 0 to ``high`` whose odd number 2k + 1 is nearest to each value times r.

    Each is EVEN(0.5*(r*v - 1)), limited.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-SEARCH-6, BLOCK-ROUND-1
    """
    return tuple(clamp(even(HALF * (r * v - ONE)), 0, high) for v in values)


def group_scales(scales: Sequence[Soft32], divisor: int, high: int) -> tuple[Soft32, tuple[int, ...]] | None:
    """Return the scale of a block and the scale codes of its groups.

    Parameters
    ----------
    scales : sequence of Soft32
        The scale of each group, not below zero; zero for a silent group.
    divisor : int
        What the largest scale is divided by.
    high : int
        The largest code.

    Returns
    -------
    d : Soft32
        The scale of the block.  The codes are made with this number, not with the f16 number that is stored.
    codes : tuple of int
        A code for each group.
    None
        Instead of the pair, if no scale is above zero.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-SEARCH-6, BLOCK-SEARCH-8
    """
    top = largest(scales)
    if top.is_zero:
        return None
    d = top / Soft32.integer(divisor)
    return d, odd_codes(scales, inverse(d), high)
