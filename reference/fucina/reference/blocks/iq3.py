"""What the encoders of iq3_xxs and iq3_s share: the fit of one group of 32 to a codebook of quads.

A level l, 0 to 7, stands for the number q = 2*l + 1 throughout; the values of the tables are for the decoders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fucina.reference.blocks.codebook import Levels, codebook, snap
from fucina.reference.blocks.group_scales import odd_codes
from fucina.reference.blocks.options import Unencodable
from fucina.reference.blocks.rounding import ZERO, inverse, largest, total
from fucina.reference.blocks.signs import signed
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["QuadGroup", "QuadRules", "decode_quads", "fit_quads"]

ODD = tuple(Soft32.integer(2 * level + 1) for level in range(8))
FIFTEEN = ODD[7]
FIFTH = Soft32.decimal("0.2")


class QuadRules(NamedTuple):
    """What differs between the two formats.

    Attributes
    ----------
    book : str
        The codebook.
    silent : Soft32
        A group whose largest magnitude is below this is silent.
    reach : int
        The steps of the search to either side.
    flags_at_start : bool
        Whether the quads count as being on the grid as long as no trial was accepted.
    redo_all : bool
        Whether the second pass redoes all quads as soon as one was off the grid, or only those that were.
    """

    book: str
    silent: Soft32
    reach: int
    flags_at_start: bool
    redo_all: bool


class QuadGroup(NamedTuple):
    """A group that was fitted.

    Attributes
    ----------
    scale : Soft32
        Its scale, not below zero.
    indices : list of int
        The points of its eight quads.
    turned : bool
        Whether the scale came out negative and was turned over, so that the signs of all elements change.
    """

    scale: Soft32
    indices: list[int]
    turned: bool


def decode_quads(scale: Soft32, quads: Sequence[Sequence[int]], signs: Sequence[int]) -> list[int]:
    """Return the f32 patterns ``scale*magnitude`` of a group, with the signs of one sign byte per two quads.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    values: list[int] = []
    for octet, byte in enumerate(signs):
        magnitudes = (*quads[2 * octet], *quads[2 * octet + 1])
        values += signed((scale * Soft32.integer(g) for g in magnitudes), byte)
    return values


def fit_quads(rules: QuadRules, x: Sequence[Soft32], y: Sequence[Soft32]) -> QuadGroup | None:
    """Return the fit of a group of 32.

    Parameters
    ----------
    rules : QuadRules
        The format's own choices.
    x : sequence of Soft32
        The values, which make the weights.
    y : sequence of Soft32
        Their magnitudes; one of an octet may be negative.

    Returns
    -------
    QuadGroup or None
        None for a silent group.

    Raises
    ------
    Unencodable
        If no point near a quad has a finite error, or the scale is not a number.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-REJECT-1
    """
    top = largest(y)
    if top < rules.silent:
        return None
    book = codebook(rules.book)
    w = [v * v for v in x]
    quads = [slice(at, at + 4) for at in range(0, 32, 4)]
    # errors are weighted by the roots of the weights, which are not |x| where the square has left the normal range
    factors = [weight.sqrt() for weight in w]
    # both terms of the moments, of every element at every level
    wyq = [[weight * v * q for q in ODD] for weight, v in zip(w, y, strict=True)]
    wqq = [[weight * q * q for q in ODD] for weight in w]

    def moments(points: Sequence[Levels]) -> tuple[Soft32, Soft32]:
        levels = [level for point in points for level in point]
        return (
            total(terms[level] for terms, level in zip(wyq, levels, strict=True)),
            total(terms[level] for terms, level in zip(wqq, levels, strict=True)),
        )

    def quantise(quad: slice, r: Soft32, scaled: Sequence[Soft32]) -> tuple[Levels, bool]:
        return snap(book, odd_codes(y[quad], r, 7), scaled, y[quad], factors[quad])

    # the search: inverse scales around 15/top
    scale, best = top / FIFTEEN, ZERO
    points: list[Levels] = [(0,) * 4] * 8
    flags = [rules.flags_at_start] * 8
    for step in range(-rules.reach, rules.reach + 1):
        r = (FIFTEEN + Soft32.integer(step) * FIFTH) / top
        if not r.is_finite:
            r = ZERO
        back = inverse(r)
        scaled = [back * q for q in ODD]
        trial = [quantise(quad, r, scaled) for quad in quads]
        a, b = moments([point for point, _ in trial])
        if b > ZERO and a * a > best * b:
            scale = a / b
            best = scale * a
            points = [point for point, _ in trial]
            flags = [on_grid for _, on_grid in trial]

    # the second pass, with the scale found
    if not all(flags) and scale > ZERO:
        r = inverse(scale)
        scaled = [scale * q for q in ODD]
        for k, quad in enumerate(quads):
            if rules.redo_all or not flags[k]:
                points[k], _ = quantise(quad, r, scaled)
        a, b = moments(points)
        if b > ZERO:
            scale = a / b

    turned = scale < ZERO
    if turned:
        scale = -scale
    if not scale >= ZERO:
        raise Unencodable
    return QuadGroup(scale, [book.index_of[point] for point in points], turned)
