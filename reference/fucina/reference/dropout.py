"""Dropout: the mask that a seed determines, and the scale of what it keeps.

A mask is never stored: the forward pass, the backward pass and a recomputation each make it again from seed and index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.arguments import f32_argument, number_shown
from fucina.reference.softfloat import Soft32, Soft64
from fucina.reference.streams import window, word_at
from fucina.spec.errors import InvalidBounds
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import Buffer

__all__ = ["dropout_mask", "dropout_scale"]

ZERO, ONE, WIDE_ONE = Soft32.integer(0), Soft32.integer(1), Soft64.integer(1)


def dropout_mask(seed: int, first: int, out: Buffer, p: float) -> None:
    """Fill with True where an element is kept, which happens with probability ``1 - p``.

    Parameters
    ----------
    seed, first : int
        In [0, 2^64); element j of ``out`` is element ``first + j`` of the mask.
    out : buffer of bool
        Where the mask goes.
    p : float
        The probability of being dropped: an f32 with 0 <= p < 1.

    Raises
    ------
    InvalidBounds
        If ``p``, rounded to f32, is outside [0, 1).

    Notes
    -----
    Clauses: RNG-DROPOUT-1, RNG-DROPOUT-3
    """
    threshold = (WIDE_ONE - Soft64.nearest(_probability(p))) * Soft64.integer(1 << 53)
    below = threshold.floor()  # 1 - p is a multiple of 2^-53, so the threshold is an integer
    seed, elements, memory = window(seed, first, out, DType.bool)
    memory.write([int(word_at(seed, i) >> 11 < below) for i in elements])


def dropout_scale(p: float) -> float:
    """Return what kept elements are multiplied by, ``1 / (1 - p)`` in f32.

    Parameters
    ----------
    p : float
        The probability of being dropped: an f32 with 0 <= p < 1.

    Returns
    -------
    float
        An f32.

    Raises
    ------
    InvalidBounds
        If ``p``, rounded to f32, is outside [0, 1).

    Notes
    -----
    Clauses: RNG-DROPOUT-2, RNG-DROPOUT-3
    """
    return (ONE / (ONE - _probability(p))).to_float()


def _probability(p: object) -> Soft32:
    """Return a probability below 1.

    Notes
    -----
    Clauses: RNG-DROPOUT-3
    """
    found = f32_argument("p", p)
    if not (found >= ZERO and found < ONE):
        raise InvalidBounds(
            f"p must be an f32 with 0 <= p < 1, got {number_shown(found.number)}", clause="RNG-DROPOUT-3"
        )
    return found
