"""What the encoders of iq2_xxs, iq2_xs and iq2_s share: the fit of one group to a codebook of octets.

A level l, 0 to 2, stands for the number q = 2*l + 1 (1, 3, 5) throughout; the magnitudes of the tables (8, 25, 43) are
for the decoders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.codebook import Codebook, Levels, snap
from fucina.reference.blocks.group_scales import HALF, odd_codes
from fucina.reference.blocks.rounding import ZERO, inverse, total, wide
from fucina.reference.blocks.signs import signed
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OctetGroup", "decode_octets"]

ODD = tuple(Soft32.integer(q) for q in (1, 3, 5))
TENTH = Soft32.decimal("0.1")
FIVE = Soft32.integer(5)
QUARTER = Soft32.decimal("0.25")


def decode_octets(d: int, code: int, octets: Sequence[tuple[Sequence[int], int]]) -> list[int]:
    """Return the f32 patterns of a group, ``((d*(0.5 + code))*0.25)*magnitude`` with the sign.

    Parameters
    ----------
    d : int
        The f16 pattern of the block's scale.
    code : int
        The scale code of the group.
    octets : sequence of (sequence of int, int)
        Eight magnitudes of the codebook and a sign byte each.

    Notes
    -----
    Clauses: BLOCK-DECODE-1
    """
    scale = wide(d) * (HALF + Soft32.integer(code)) * QUARTER
    values: list[int] = []
    for magnitudes, signs in octets:
        values += signed((scale * Soft32.integer(g) for g in magnitudes), signs)
    return values


class OctetGroup:
    """One group of an iq2 block while a scale and points of the codebook are fitted to it.

    Parameters
    ----------
    book : Codebook
        The codebook.
    v, w : sequence of Soft32
        The magnitudes, whose signs are stored apart (one of an octet may be negative), and the weights.

    Attributes
    ----------
    scale : Soft32
        The scale so far.
    levels : list of tuple of int
        The levels of each octet so far.
    on_grid : list of bool
        Whether the levels of each octet were in the codebook by themselves.

    Notes
    -----
    Clauses: BLOCK-SEARCH-6
    """

    def __init__(self, book: Codebook, v: Sequence[Soft32], w: Sequence[Soft32]) -> None:
        self.book = book
        self.scale = ZERO
        self.levels: list[Levels] = [(0,) * 8] * (len(v) // 8)
        self.on_grid = [True] * len(self.levels)
        self._v = [v[i : i + 8] for i in range(0, len(v), 8)]
        # errors are weighted by the square roots of the weights, moments by the weights themselves
        self._a = [[weight.sqrt() for weight in w[i : i + 8]] for i in range(0, len(v), 8)]
        # both terms of the moments, of every element at every level
        self._wvq = [[weight * value * q for q in ODD] for value, weight in zip(v, w, strict=True)]
        self._wqq = [[weight * q * q for q in ODD] for weight in w]

    def moments(self, octets: Sequence[Levels]) -> tuple[Soft32, Soft32]:
        """Return A and B, the sums of ``(w*v)*q`` and ``(w*q)*q`` over the group."""
        levels = [level for octet in octets for level in octet]
        return (
            total(terms[level] for terms, level in zip(self._wvq, levels, strict=True)),
            total(terms[level] for terms, level in zip(self._wqq, levels, strict=True)),
        )

    def quantise(self, k: int, r: Soft32, scaled: Sequence[Soft32]) -> tuple[Levels, bool]:
        """Return the levels of octet k at inverse scale r, snapped with a scale times 1, 3, 5."""
        return snap(self.book, odd_codes(self._v[k], r, 2), scaled, self._v[k], self._a[k])

    def search(self, reference: Soft32, reach: int) -> None:
        """Try the inverse scales ``(5 + 0.1*k)/reference``, k from ``-reach`` to ``reach``; keep the best.

        The snap of a trial uses the reciprocal of the inverse scale.  A trial is the better one if ``A*A > F*B``, the
        best score F being its ``(A/B)*A``.

        Raises
        ------
        Unencodable
            If no point near an octet has a finite error.

        Notes
        -----
        Clauses: BLOCK-SEARCH-6, BLOCK-REJECT-1
        """
        best = ZERO
        for step in range(-reach, reach + 1):
            r = (FIVE + Soft32.integer(step) * TENTH) / reference
            back = inverse(r)
            scaled = [back * q for q in ODD]
            octets = [self.quantise(k, r, scaled) for k in range(len(self._v))]
            a, b = self.moments([levels for levels, _ in octets])
            if b > ZERO and a * a > best * b:
                self.scale = a / b
                best = self.scale * a
                self.levels = [levels for levels, _ in octets]
                self.on_grid = [on_grid for _, on_grid in octets]

    def refine(self, octets: Sequence[int]) -> None:
        """Quantise some octets again at the scale found, snap them with it, and fit the scale to all levels.

        Raises
        ------
        Unencodable
            If no point near an octet has a finite error.

        Notes
        -----
        Clauses: BLOCK-SEARCH-6, BLOCK-REJECT-1
        """
        r = inverse(self.scale)
        scaled = [self.scale * q for q in ODD]
        for k in octets:
            self.levels[k], _ = self.quantise(k, r, scaled)
        a, b = self.moments(self.levels)
        if b > ZERO:
            self.scale = a / b

    @property
    def indices(self) -> list[int]:
        """The points of the octets."""
        return [self.book.index_of[levels] for levels in self.levels]
