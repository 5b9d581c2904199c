"""What the encoders of iq1_s and iq1_m share: the fit of three levels to a group, and its snap to the codebook.

Values keep their signs here.  A level 0, 1, 2 stands for -1, 0, 1 plus a *shift* of 1/8, up or down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fucina.reference.blocks.codebook import Levels, codebook, snap
from fucina.reference.blocks.options import Unencodable
from fucina.reference.blocks.rounding import FMAX, ZERO, total, wide
from fucina.reference.softfloat import Soft32
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["SHIFTED", "Fit", "Moments", "ascending", "decode_octet", "octet_scale", "snap_group", "three_level_fit"]

SHIFTED = (
    tuple(Soft32.decimal(z) for z in ("-0.875", "0.125", "1.125")),
    tuple(Soft32.decimal(z) for z in ("-1.125", "-0.125", "0.875")),
)
"""What the levels 0, 1, 2 stand for with the shift up (0) and down (1)."""

SHIFT = Soft32.decimal("0.125"), Soft32.decimal("-0.125")

Moments = tuple[Soft32, Soft32]


def octet_scale(d: int, code: int) -> Soft32:
    """Return ``d*(2*code + 1)``, d an f16 pattern.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    return wide(d) * Soft32.integer(2 * code + 1)


def decode_octet(scale: Soft32, index: int, shift: int) -> list[int]:
    """Return the f32 patterns ``scale*(g + shift)`` of an octet, g the codebook's -1, 0 or 1.

    Parameters
    ----------
    scale : Soft32
        The scale.
    index : int
        The point.
    shift : int
        0 for 1/8 up, 1 for 1/8 down.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    numbers = {g: (scale * (Soft32.integer(g) + SHIFT[shift])).bits for g in (-1, 0, 1)}
    return [numbers[g] for g in block_tables.codebook("iq1s_grid")[index]]


@dataclass(frozen=True, slots=True)
class Fit:
    """Three levels fitted to a group.

    Parameters
    ----------
    scale : Soft32
        The scale, not below zero unless it is a NaN.
    levels : tuple of int
        The level of each element.
    shifts : tuple of int
        The shift of each octet, 0 up or 1 down.
    """

    scale: Soft32
    levels: Levels
    shifts: tuple[int, ...]


def three_level_fit(
    x: Sequence[Soft32],
    candidates: Callable[[int, int], Iterable[Moments]],
    shifts: Sequence[tuple[int, ...]],
) -> Fit | None:
    """Return the best split of the sorted values of a group in three.

    Parameters
    ----------
    x : sequence of Soft32
        The values of the group.
    candidates : callable
        ``candidates(i, j)`` yields the moments A, B of the split that gives level 0 to the first i values in ascending
        order, level 1 to those before the j-th and level 2 to the rest, once for each entry of ``shifts``.
    shifts : sequence of tuple of int
        The shifts of the octets, for each candidate of a split.

    Returns
    -------
    Fit or None
        The first candidate with the largest score ``(A/B)*A``, turned over if its scale is negative; None if no
        candidate has a B above zero.

    Notes
    -----
    Clauses: BLOCK-SEARCH-8
    """
    best, found = -FMAX, None
    for i in range(len(x) + 1):
        for j in range(i, len(x) + 1):
            for shift, (a, b) in zip(shifts, candidates(i, j), strict=True):
                if b > ZERO and a * a > best * b:
                    scale = a / b
                    best = scale * a
                    found = scale, i, j, shift
    if found is None:
        return None

    scale, i, j, shift = found
    levels = [0] * len(x)
    for place, k in enumerate(ascending(x)):
        levels[k] = (place >= i) + (place >= j)
    if scale < ZERO:
        return Fit(-scale, tuple(2 - level for level in levels), tuple(1 - s for s in shift))
    return Fit(scale, tuple(levels), shift)


def ascending(x: Sequence[Soft32]) -> list[int]:
    """Return the places of some finite values in ascending order; equal ones, -0 and +0 too, in the order they have.

    Notes
    -----
    Clauses: BLOCK-SEARCH-8
    """

    def signed_magnitude(k: int) -> int:
        bits = x[k].bits
        return -(bits & 0x7FFFFFFF) if bits >> 31 else bits

    return sorted(range(len(x)), key=signed_magnitude)


def snap_group(fit: Fit, x: Sequence[Soft32], w: Sequence[Soft32]) -> tuple[Soft32, list[int]]:
    """Return the final scale of a group and the codebook index of each octet.

    If an octet had to be snapped, the scale is fitted again to the sums of ``(w*q)*x`` and ``(w*q)*q``.

    Raises
    ------
    Unencodable
        If no point near an octet has a finite error, or the scale is not a number.

    Notes
    -----
    Clauses: BLOCK-SEARCH-6, BLOCK-SEARCH-8, BLOCK-REJECT-1
    """
    book, scale = codebook("iq1s_grid"), fit.scale
    numbers: list[Soft32] = []
    indices: list[int] = []
    all_on_grid = True
    for k, shift in enumerate(fit.shifts):
        octet = slice(8 * k, 8 * k + 8)
        scaled = [scale * z for z in SHIFTED[shift]]
        levels, on_grid = snap(book, fit.levels[octet], scaled, x[octet], w[octet])
        numbers += [SHIFTED[shift][level] for level in levels]
        indices.append(book.index_of[levels])
        all_on_grid = all_on_grid and on_grid
    if not all_on_grid:
        wq = [weight * q for weight, q in zip(w, numbers, strict=True)]
        a = total(term * value for term, value in zip(wq, x, strict=True))
        b = total(term * q for term, q in zip(wq, numbers, strict=True))
        if a > ZERO and b > ZERO:
            scale = a / b
    if not scale >= ZERO:
        raise Unencodable
    return scale, indices
