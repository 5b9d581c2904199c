"""Random fills: from a seed, an index and a few parameters to numbers in a buffer.

Every fill is the same three steps: check the arguments, compute the pattern of each element, store them all.  Nothing
is stored before everything is computed, so an error leaves ``out`` as it was (clause RNG-OUT-2).  Element i of a fill
depends on nothing but the seed, i and the parameters (clause RNG-CHUNK-1); a fill without ``first`` is the ``_at``
form from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from fucina.reference.arguments import f32_argument, integer, number_shown, shown
from fucina.reference.buffers import Memory
from fucina.reference.dropout import dropout_mask, dropout_scale
from fucina.reference.elementary import ln
from fucina.reference.gaussian import exact_pair, fast_pair
from fucina.reference.integers import randint_fill, randint_fill_at, randperm_fill
from fucina.reference.softfloat import Soft32, Soft64
from fucina.reference.streams import at, splitmix64, unit_half_open, unit_open, window, word_at
from fucina.spec.errors import InvalidBounds
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import Buffer

__all__ = [
    "at",
    "dropout_mask",
    "dropout_scale",
    "gaussian_fill",
    "gaussian_fill_at",
    "gaussian_fill_at_fast",
    "gumbel_fill",
    "gumbel_fill_at",
    "kaiming_uniform_fill",
    "kaiming_uniform_fill_at",
    "normal_fill",
    "normal_fill_at",
    "randint_fill",
    "randint_fill_at",
    "randperm_fill",
    "splitmix64",
    "uniform_fill",
    "uniform_fill_at",
]

Pair: TypeAlias = Callable[[int, int, Soft32], tuple[Soft32, Soft32]]

ONE = Soft64.integer(1)


def _gaussians(seed: int, elements: range, pair: Pair, scale: Soft32) -> list[Soft32]:
    """Return consecutive elements of a sequence of pairs.

    Notes
    -----
    Clauses: RNG-GAUSS-2, RNG-GAUSS-3, RNG-FAST-2
    """
    values: list[Soft32] = []
    for p in range(elements.start // 2, (elements.stop + 1) // 2):
        values += pair(word_at(seed, 2 * p), word_at(seed, 2 * p + 1), scale)
    # an odd start drops the first cosine, an odd end the last sine
    odd = elements.start % 2
    return values[odd : odd + len(elements)]


# -- gaussian


def gaussian_fill(seed: int, out: Buffer, scale: float) -> None:
    """Fill with normal values of mean 0 and standard deviation ``scale``.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of f32
        Writable, C-contiguous, aligned, of any shape; so in all fills.
    scale : float
        Any f32: zero, negative, infinite and NaN too.

    Raises
    ------
    InvalidInteger, Overflow
        If the seed is no integer, or outside its range; so in all fills.
    DTypeMismatch, ReadOnlyStorage, UnsupportedView
        If ``out`` is of another format, read-only, not contiguous or misaligned; so in all fills.

    Notes
    -----
    Clauses: RNG-GAUSS-1, RNG-GAUSS-2, RNG-GAUSS-4, RNG-OUT-2
    """
    gaussian_fill_at(seed, 0, out, scale)


def gaussian_fill_at(seed: int, first: int, out: Buffer, scale: float) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the sequence of :func:`gaussian_fill`.

    Parameters
    ----------
    seed, first : int
        In [0, 2^64); ``first + len(out)`` at most 2^64, else Overflow; so in all ``_at`` forms.
    out : buffer of f32
        Where the elements go.
    scale : float
        Any f32.

    Notes
    -----
    Clauses: RNG-GAUSS-1, RNG-GAUSS-3, RNG-GAUSS-4, RNG-CHUNK-1
    """
    factor = f32_argument("scale", scale)
    seed, elements, memory = window(seed, first, out, DType.f32)
    values = _gaussians(seed, elements, exact_pair, factor)
    memory.write([value.bits for value in values])


def gaussian_fill_at_fast(seed: int, first: int, out: Buffer, scale: float) -> None:
    """Fill with elements of the fast gaussian sequence, a mapping of its own.

    Parameters
    ----------
    seed, first : int
        As in :func:`gaussian_fill_at`.
    out : buffer of f32
        Where the elements go.
    scale : float
        Any f32.

    Notes
    -----
    At scale 1 a value is usually within 1.6e-5 of that of :func:`gaussian_fill_at`, and never farther than
    2^-12 + 2^-20; no closer relation holds.

    Clauses: RNG-FAST-1, RNG-FAST-2, RNG-FAST-3, RNG-GAUSS-4
    """
    factor = f32_argument("scale", scale)
    seed, elements, memory = window(seed, first, out, DType.f32)
    values = _gaussians(seed, elements, fast_pair, factor)
    memory.write([value.bits for value in values])


def normal_fill(seed: int, out: Buffer, mean: float, std_dev: float) -> None:
    """Fill with normal values of a given mean and standard deviation.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of f32
        Where the values go.
    mean, std_dev : float
        Any f32.

    Notes
    -----
    Clauses: RNG-NORMAL-1
    """
    normal_fill_at(seed, 0, out, mean, std_dev)


def normal_fill_at(seed: int, first: int, out: Buffer, mean: float, std_dev: float) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the sequence of :func:`normal_fill`.

    Notes
    -----
    Clauses: RNG-NORMAL-1, RNG-ELEMENT-1
    """
    shift, scale = f32_argument("mean", mean), f32_argument("std_dev", std_dev)
    seed, elements, memory = window(seed, first, out, DType.f32)
    values = _gaussians(seed, elements, exact_pair, scale)
    if not shift.is_zero:  # adding a zero would turn -0 into +0
        values = [value + shift for value in values]
    memory.write([value.bits for value in values])


# -- uniform


def uniform_fill(seed: int, out: Buffer, lo: float, hi: float) -> None:
    """Fill with values spread evenly over ``[lo, hi)``.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of f32
        Where the values go.
    lo, hi : float
        Finite f32, lo < hi.

    Raises
    ------
    InvalidBounds
        If the bounds, rounded to f32, are not finite or not in order.

    Notes
    -----
    Clauses: RNG-UNIF-1, RNG-UNIF-2, RNG-UNIF-3
    """
    uniform_fill_at(seed, 0, out, lo, hi)


def uniform_fill_at(seed: int, first: int, out: Buffer, lo: float, hi: float) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the sequence of :func:`uniform_fill`.

    Notes
    -----
    Clauses: RNG-UNIF-1, RNG-UNIF-2, RNG-UNIF-3, RNG-ELEMENT-1
    """
    low, high = f32_argument("lo", lo), f32_argument("hi", hi)
    if not (low.is_finite and high.is_finite and low < high):
        raise InvalidBounds(
            f"lo and hi must be finite f32 with lo < hi, "
            f"got lo={number_shown(low.number)}, hi={number_shown(high.number)}",
            clause="RNG-UNIF-3",
        )
    _uniform(*window(seed, first, out, DType.f32), low, high)


def kaiming_uniform_fill(seed: int, out: Buffer, fan_in: int) -> None:
    """Fill with values spread evenly over ``[-bound, bound)``, where bound is the root of ``1 / fan_in``.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of f32
        Where the values go.
    fan_in : int
        In [1, 2^64).

    Raises
    ------
    InvalidBounds
        If ``fan_in`` is below 1.

    Notes
    -----
    Clauses: RNG-KAIMING-1, RNG-KAIMING-2
    """
    kaiming_uniform_fill_at(seed, 0, out, fan_in)


def kaiming_uniform_fill_at(seed: int, first: int, out: Buffer, fan_in: int) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the sequence of :func:`kaiming_uniform_fill`.

    Notes
    -----
    Clauses: RNG-KAIMING-1, RNG-KAIMING-2, RNG-UNIF-2, RNG-ELEMENT-1
    """
    bound = _kaiming_bound(fan_in)
    _uniform(*window(seed, first, out, DType.f32), -bound, bound)


def _kaiming_bound(fan_in: object) -> Soft32:
    """Return the root of ``1 / fan_in``: division and root in f64, then one rounding.

    Notes
    -----
    Clauses: RNG-KAIMING-1, RNG-KAIMING-2
    """
    count = integer("fan_in", fan_in, None, 1 << 64, "RNG-KAIMING-2")
    if count < 1:
        raise InvalidBounds(f"fan_in must be at least 1, got {shown(count)}", clause="RNG-KAIMING-2")
    return Soft32.nearest((ONE / Soft64.integer(count)).sqrt())


def _uniform(seed: int, elements: range, memory: Memory, low: Soft32, high: Soft32) -> None:
    """Fill over ``[low, high)``.

    Notes
    -----
    Clauses: RNG-UNIF-1, RNG-UNIF-2, NUM-ARITH-1
    """
    wide_low = Soft64.nearest(low)
    span = Soft64.nearest(high) - wide_low
    # the f32 before high: one magnitude down above zero, one up below it, the least negative at zero
    bits = high.bits
    before = 0x80000001 if high.is_zero else bits - 1 if bits < 1 << 31 else bits + 1

    def element(i: int) -> int:
        value = Soft32.nearest(wide_low + span * unit_half_open(word_at(seed, i)))
        return before if value >= high else value.bits

    memory.write([element(i) for i in elements])


# -- gumbel


def gumbel_fill(seed: int, out: Buffer) -> None:
    """Fill with standard Gumbel values; all are finite.

    Parameters
    ----------
    seed : int
        In [0, 2^64).
    out : buffer of f32
        Where the values go.

    Notes
    -----
    Clauses: RNG-GUMBEL-1, RNG-GUMBEL-2
    """
    gumbel_fill_at(seed, 0, out)


def gumbel_fill_at(seed: int, first: int, out: Buffer) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the sequence of :func:`gumbel_fill`.

    Notes
    -----
    Clauses: RNG-GUMBEL-1, RNG-GUMBEL-2, RNG-ELEMENT-1
    """
    seed, elements, memory = window(seed, first, out, DType.f32)
    memory.write([Soft32.nearest(-ln(-ln(unit_open(word_at(seed, i))))).bits for i in elements])
