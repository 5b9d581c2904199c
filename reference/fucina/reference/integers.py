"""Integer fills: draws from a range, and permutations.

Both scale a 64-bit word to a span by the upper half of a 128-bit product, so no word is thrown away and every element
costs exactly one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.reference.arguments import integer
from fucina.reference.streams import window, word_at
from fucina.spec.errors import InvalidBounds
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import Buffer

__all__ = ["randint_fill", "randint_fill_at", "randperm_fill"]


def randint_fill(seed: int, out: Buffer, low: int, high: int) -> None:
    """Fill with integers spread evenly over ``[low, high)``.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of i64
        Where the integers go.
    low, high : int
        In [-2^63, 2^63), low < high.

    Raises
    ------
    InvalidBounds
        If the bounds are not in order.

    Notes
    -----
    Clauses: RNG-INT-1, RNG-INT-2
    """
    randint_fill_at(seed, 0, out, low, high)


def randint_fill_at(seed: int, first: int, out: Buffer, low: int, high: int) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the sequence of :func:`randint_fill`.

    Notes
    -----
    Clauses: RNG-INT-1, RNG-INT-2, RNG-ELEMENT-1
    """
    low = integer("low", low, -(1 << 63), 1 << 63, "RNG-INT-2")
    high = integer("high", high, -(1 << 63), 1 << 63, "RNG-INT-2")
    if low >= high:
        raise InvalidBounds(f"low must be below high, got low={low}, high={high}", clause="RNG-INT-2")
    seed, elements, memory = window(seed, first, out, DType.i64)
    span = high - low
    memory.write([low + (word_at(seed, i) * span >> 64) & (1 << 64) - 1 for i in elements])


def randperm_fill(seed: int, out: Buffer) -> None:
    """Fill with a permutation of 0, 1, ..., len(out) - 1.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of i64
        Where the permutation goes.

    Notes
    -----
    Clauses: RNG-PERM-1
    """
    seed, elements, memory = window(seed, 0, out, DType.i64)
    order = list(elements)
    for counter, k in enumerate(reversed(elements[1:])):
        j = word_at(seed, counter) * (k + 1) >> 64
        order[k], order[j] = order[j], order[k]
    memory.write(order)
