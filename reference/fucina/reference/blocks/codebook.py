"""Codebooks of the iq formats as their encoders see them: levels, keys, the points near a key, the choice of one.

A *point* of a codebook is eight or four small integers, its *levels*.  Levels written in base 4 (octets) or 8 (quads),
the first element in the lowest digit, are the point's *key*.  An encoder rounds its values to levels; if their key is
not in the codebook, a point near it is chosen by squared error.  Which points are near depends on integers alone.
"""

from __future__ import annotations

from functools import cache
from operator import add
from typing import TYPE_CHECKING

from fucina.reference.blocks.options import Unencodable
from fucina.reference.blocks.rounding import FMAX, ZERO
from fucina.spec import block_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fucina.reference.softfloat import Soft32

__all__ = ["Codebook", "Levels", "codebook", "nearest_point", "snap"]

Levels = tuple[int, ...]


class Codebook:
    """The points of one codebook.

    Parameters
    ----------
    levels : sequence of tuple of int
        The levels of each point, by index.
    base : int
        The base of the keys, above every level.
    shells : int
        How many distinct distances a neighbour list spans.

    Attributes
    ----------
    levels : tuple of tuple of int
        The levels of each point, by index.
    index_of : dict
        The *map*: the index of the point with given levels.

    Notes
    -----
    Clauses: BLOCK-TABLE-1
    """

    def __init__(self, levels: Sequence[Levels], base: int, shells: int) -> None:
        self.levels = tuple(levels)
        self.index_of = {point: index for index, point in enumerate(self.levels)}
        self.shells = shells
        self._base = base
        self._neighbours: dict[Levels, tuple[int, ...]] = {}
        self._half = len(self.levels[0]) // 2
        self._partial: dict[tuple[int, Levels], list[int]] = {}

    def key(self, levels: Levels) -> int:
        """Return the key of some levels, whether or not a point has them."""
        return sum(level * self._base**k for k, level in enumerate(levels))

    def neighbours(self, levels: Levels) -> tuple[int, ...]:
        """Return the neighbour list of levels that no point has.

        Parameters
        ----------
        levels : tuple of int
            The digits of the absent key.

        Returns
        -------
        tuple of int
            Indices of the points at the least distinct squared distances, as many distances as the codebook has
            shells: ascending distance, equal distances by ascending index.  Made when first asked for.

        Notes
        -----
        Clauses: BLOCK-TABLE-1
        """
        if levels not in self._neighbours:
            # over the first half of the elements and over the second: many keys share either
            first, second = self._distances(0, levels[: self._half]), self._distances(self._half, levels[self._half :])
            distances = list(map(add, first, second))
            farthest = sorted(set(distances))[: self.shells][-1]
            near = [index for index, distance in enumerate(distances) if distance <= farthest]
            self._neighbours[levels] = tuple(sorted(near, key=distances.__getitem__))  # sorted() is stable
        return self._neighbours[levels]

    def _distances(self, start: int, digits: Levels) -> list[int]:
        """Return the squared distance of every point from some digits, over the elements from ``start`` on."""
        if (start, digits) not in self._partial:
            end = start + len(digits)
            self._partial[start, digits] = [
                sum((digit - level) ** 2 for digit, level in zip(digits, point[start:end], strict=True))
                for point in self.levels
            ]
        return self._partial[start, digits]


@cache
def codebook(name: str) -> Codebook:
    """Return a codebook of :mod:`fucina.spec.block_tables` in levels.

    The magnitudes 8, 25, 43 of the iq2 tables are the levels 0, 1, 2, and so are -1, 0, 1 of iq1s_grid.  A value v of
    iq3xxs_grid is the level v // 8, one of iq3s_grid (v - 1) / 2, both 0 to 7.

    Parameters
    ----------
    name : str
        The table's name.

    Returns
    -------
    Codebook
        The same object at every call.

    Notes
    -----
    Clauses: BLOCK-TABLE-1
    """
    level_of = {
        "iq2xxs_grid": {8: 0, 25: 1, 43: 2},
        "iq2xs_grid": {8: 0, 25: 1, 43: 2},
        "iq2s_grid": {8: 0, 25: 1, 43: 2},
        "iq1s_grid": {-1: 0, 0: 1, 1: 2},
        "iq3xxs_grid": {v: v // 8 for v in range(64)},
        "iq3s_grid": {v: (v - 1) // 2 for v in range(1, 16, 2)},
    }[name]
    shells = {"iq2xxs_grid": 2, "iq2xs_grid": 2, "iq2s_grid": 1, "iq1s_grid": 3, "iq3xxs_grid": 2, "iq3s_grid": 3}[name]
    table = block_tables.codebook(name)
    return Codebook([tuple(level_of[v] for v in row) for row in table], 4 if len(table[0]) == 8 else 8, shells)


def nearest_point(
    book: Codebook, levels: Levels, scaled: Sequence[Soft32], targets: Sequence[Soft32], factors: Sequence[Soft32]
) -> int:
    """Return the point of a neighbour list with the least weighted squared error.

    Parameters
    ----------
    book : Codebook
        The codebook.
    levels : tuple of int
        Levels that no point has.
    scaled : sequence of Soft32
        The number that each level stands for, times the scale.
    targets, factors : sequence of Soft32
        What each element should be, and the weight of its error.

    Returns
    -------
    int
        The index of the first point whose error is below that of all before it.

    Raises
    ------
    Unencodable
        If no error is below the largest finite f32.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-SEARCH-6, BLOCK-REJECT-1
    """
    bound, choice = FMAX, None
    # an element's term depends on the point's level there only: made once for all points that share it
    terms: list[dict[int, Soft32]] = [{} for _ in targets]
    for index in book.neighbours(levels):
        error = ZERO
        for k, level in enumerate(book.levels[index]):
            if level not in terms[k]:
                e = scaled[level] - targets[k]
                terms[k][level] = factors[k] * e * e
            error += terms[k][level]
        if error < bound:
            bound, choice = error, index
    if choice is None:
        raise Unencodable
    return choice


def snap(
    book: Codebook, levels: Levels, scaled: Sequence[Soft32], targets: Sequence[Soft32], factors: Sequence[Soft32]
) -> tuple[Levels, bool]:
    """Return levels that a point has: these, if one does, else those of :func:`nearest_point`; and which case it was.

    Notes
    -----
    Clauses: BLOCK-SEARCH-5, BLOCK-SEARCH-6, BLOCK-REJECT-1
    """
    if levels in book.index_of:
        return levels, True
    return book.levels[nearest_point(book, levels, scaled, targets, factors)], False
