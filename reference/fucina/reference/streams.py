"""Streams: the 64-bit words that a seed determines, the unit numbers made from them, and the window a fill opens."""

from __future__ import annotations

from fucina.reference.arguments import word
from fucina.reference.buffers import Memory, writable
from fucina.reference.formats import F64
from fucina.reference.softfloat import Soft64
from fucina.spec.errors import Overflow
from fucina.spec.types import DType

__all__ = ["at", "splitmix64", "unit_closed", "unit_half_open", "unit_open", "window", "word_at"]

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio, odd


def _mix(z: int) -> int:
    """Scramble a state into a word; a bijection of the 64-bit integers."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def word_at(seed: int, i: int) -> int:
    """Return word ``i`` of a stream; both arguments are known to be good."""
    return _mix(seed + (i + 1) * GAMMA & MASK)


def splitmix64(state: int) -> tuple[int, int]:
    """Take one step of a stream.

    Parameters
    ----------
    state : int
        In [0, 2^64).

    Returns
    -------
    state, word : int
        The next state and the word it gives.

    Raises
    ------
    InvalidInteger, Overflow
        If ``state`` is no integer, or outside the range.

    Notes
    -----
    Clauses: RNG-STREAM-1, RNG-SEED-1
    """
    state = word("state", state) + GAMMA & MASK
    return state, _mix(state)


def at(seed: int, i: int) -> int:
    """Return word ``i`` of the stream of a seed, directly.

    Parameters
    ----------
    seed, i : int
        In [0, 2^64).

    Returns
    -------
    int
        What the ``i + 1``-th step of :func:`splitmix64` from the state ``seed`` gives.

    Raises
    ------
    InvalidInteger, Overflow
        If an argument is no integer, or outside the range.

    Notes
    -----
    Clauses: RNG-AT-1, RNG-SEED-1
    """
    return word_at(word("seed", seed), word("i", i))


# -- unit numbers: the upper 53 bits of a word, as f64


def unit_closed(x: int) -> Soft64:
    """Return ua, in (0, 1]: never zero, so its logarithm is finite.

    Notes
    -----
    Clauses: RNG-UNIT-1
    """
    return Soft64.rounded(0, (x >> 11) + 1, -53)


def unit_half_open(x: int) -> Soft64:
    """Return ub, in [0, 1).

    Notes
    -----
    Clauses: RNG-UNIT-1
    """
    return Soft64.rounded(0, x >> 11, -53)


def unit_open(x: int) -> Soft64:
    """Return u, in (0, 1): the middle of the step that ub begins, but below 1 where rounding would reach it.

    Notes
    -----
    Clauses: RNG-UNIT-1, RNG-GUMBEL-2
    """
    u = Soft64.rounded(0, 2 * (x >> 11) + 1, -54)
    below_one = Soft64.rounded(0, (1 << F64.precision) - 1, -F64.precision)
    return u if u < below_one else below_one


# -- the window of a fill: part of a stream, and the memory it goes to


def window(seed: object, first: object, out: object, dtype: DType) -> tuple[int, range, Memory]:
    """Return the checked seed, the element indices of a fill, and where they go.

    Notes
    -----
    Clauses: RNG-SEED-1, RNG-OUT-1, RNG-RANGE-1
    """
    # the memory comes last: an __index__ is the caller's code, and may move the memory of an array elsewhere
    key, start = word("seed", seed), word("first", first)
    memory = writable("out", out, dtype, "RNG-OUT-1")
    stop = start + memory.patterns.size
    if stop > 1 << 64:
        raise Overflow(f"first + len(out) must be at most 2^64, got 2^64 + {stop - (1 << 64)}", clause="RNG-RANGE-1")
    return key, range(start, stop), memory
