"""Signs kept apart from magnitudes, eight at a time: the sign bytes of the iq2 and iq3 formats.

Bit i of a sign byte is 1 where element i is negative.  Some formats store the byte, others its low seven bits and make
the number of ones even, so that the eighth follows from the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.spec.block_tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fucina.reference.softfloat import Soft32

__all__ = ["even_signs", "parity_signs", "signed", "split_signs"]


def parity_signs(code: int) -> int:
    """Return the sign byte of a seven-bit code: its eighth bit makes the number of ones even.

    Notes
    -----
    Clauses: BLOCK-TABLE-1
    """
    return table("ksigns_iq2xs")[code]


def signed(magnitudes: Iterable[Soft32], signs: int) -> list[int]:
    """Return the f32 patterns of magnitudes with the signs of a sign byte; a negative zero has its sign, too.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    return [(-v if signs >> i & 1 else v).bits for i, v in enumerate(magnitudes)]


def split_signs(x: Sequence[Soft32]) -> tuple[list[Soft32], int]:
    """Return the magnitudes of an octet and its sign byte.

    A zero of either sign has sign bit 0 and stays as it is.  No later step can tell -0 from +0: each rounds it to an
    integer, subtracts it from another number, or adds a product with it to a sum that starts at +0.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-SEARCH-6
    """
    magnitudes, signs = list(x), 0
    for i, v in enumerate(x):
        if v.number.sign and not v.is_zero:
            magnitudes[i] = -v
            signs |= 1 << i
    return magnitudes, signs


def even_signs(x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[list[Soft32], int]:
    """Return the magnitudes of an octet and a sign byte with an even number of ones.

    If the number is odd, the element with the least ``(w*x)*x``, the first of equals, changes its sign: its magnitude
    becomes negative.

    Parameters
    ----------
    x, w : sequence of Soft32
        Eight values and their weights.

    Returns
    -------
    magnitudes : list of Soft32
        Eight numbers, at most one of them negative.
    signs : int
        The sign byte.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-SEARCH-6
    """
    magnitudes, signs = split_signs(x)
    if signs.bit_count() & 1:
        costs = [weight * v * v for v, weight in zip(x, w, strict=True)]
        least = 0
        for i in range(1, 8):
            if costs[i] < costs[least]:
                least = i
        magnitudes[least] = -magnitudes[least]
        signs ^= 1 << least
    return magnitudes, signs
