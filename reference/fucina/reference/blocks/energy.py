"""The energy of a block and the weights it gives to the elements: the first step of the iq1 and iq2 encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.blocks.rounding import soft, total
from fucina.reference.softfloat import Soft32

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["block_energy", "block_weights"]


def block_energy(x: Sequence[Soft32], factor: int) -> Soft32:
    """Return V, ``factor`` times the mean square of the 256 values of a block.

    Parameters
    ----------
    x : sequence of Soft32
        The values.
    factor : int
        1 or 2, as the format has it.

    Notes
    -----
    Clauses: BLOCK-SEARCH-6
    """
    return Soft32.integer(factor) * total(v * v for v in x) / Soft32.integer(256)


def block_weights(x: Sequence[Soft32], factor: int, importance: Sequence[int] | None) -> list[Soft32]:
    """Return the weight of each element, ``m * sqrt(V + x*x)`` with its importance m.

    Parameters
    ----------
    x : sequence of Soft32
        The 256 values of a block.
    factor : int
        The factor of :func:`block_energy`.
    importance : sequence of int, optional
        f32 patterns; without them each m is 1, which changes nothing.

    Notes
    -----
    Clauses: BLOCK-SEARCH-6, BLOCK-IMATRIX-1
    """
    energy = block_energy(x, factor)
    spread = [(energy + v * v).sqrt() for v in x]
    return spread if importance is None else [m * s for m, s in zip(soft(importance), spread, strict=True)]
