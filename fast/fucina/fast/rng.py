"""Seeded streams: every value is a pure function of a seed and its place (chapter ``rng``).

A fill writes the elements of ``out`` in row-major order and returns ``None``.  Element j of an ``_at`` form is element
``first + j`` of the stream, so any decomposition of a fill into pieces gives the same bits (clause RNG-CHUNK-1).

Common to all of them: seeds, counters and indices are integers in [0, 2^64), numpy integers included (InvalidInteger,
Overflow).  ``out`` is any writable, aligned, C-contiguous buffer of the stated format (DTypeMismatch, ReadOnlyStorage,
UnsupportedView), and ``first + len(out) <= 2^64`` (Overflow).  A parameter of f32 precision takes a float or an integer
(DTypeMismatch) and rounds it to nearest, ties to even.  On every error ``out`` is untouched (clause RNG-OUT-2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.fast._accelerate import accelerated, bits_of
from fucina.fast._arguments import double, integer, u64, whole
from fucina.fast._buffers import Memory, writing
from fucina.fast._native import ffi, lib
from fucina.fast._shown import double_shown, integer_shown
from fucina.spec.errors import InvalidBounds, Overflow
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

_GAMMA = 0x9E3779B97F4A7C15
_I64 = (-(1 << 63), 1 << 63)


def _window(first: object, out: object, dtype: DType) -> tuple[int, Memory]:
    """Check where a fill begins and what it writes to: the last step before the kernel.

    Arguments can run code of the caller's (``__index__``), and numpy reallocates an array in place whoever looks at it.
    So every other argument is taken before the address is.

    Clauses: RNG-OUT-1, RNG-RANGE-1
    """
    start = u64("first", first)
    memory = writing("out", out, dtype, "RNG-OUT-1")
    if start + memory.count > 1 << 64:
        raise Overflow(
            f"first + len(out) must not exceed 2^64, got first={integer_shown(start)}, len(out)={memory.count}",
            clause="RNG-RANGE-1",
        )
    return start, memory


def _shown(value: float) -> str:
    return double_shown(bits_of(value))


def splitmix64(state: int) -> tuple[int, int]:
    """Advance a splitmix64 state by one step.

    Parameters
    ----------
    state : int
        In [0, 2^64).

    Returns
    -------
    tuple of int
        The new state and the value drawn.

    Clauses: RNG-STREAM-1, RNG-SEED-1
    """
    before = u64("state", state)
    return (before + _GAMMA) & 0xFFFF_FFFF_FFFF_FFFF, lib.fc_at(before, 0)


@accelerated
def at(seed: int, i: int) -> int:
    """Return word ``i`` of the stream of ``seed``, in [0, 2^64).

    Clauses: RNG-AT-1, RNG-SEED-1
    """
    return lib.fc_at(u64("seed", seed), u64("i", i))


@accelerated
def gaussian_fill(seed: int, out: Buffer, scale: float) -> None:
    """Fill with independent normal values of mean 0 and standard deviation ``scale``, correctly rounded.

    Parameters
    ----------
    seed : int
    out : buffer of f32
    scale : float
        Any f32, also 0, an infinity or a NaN.

    Clauses: RNG-GAUSS-1, RNG-GAUSS-2, RNG-GAUSS-4
    """
    gaussian_fill_at(seed, 0, out, scale)


@accelerated
def gaussian_fill_at(seed: int, first: int, out: Buffer, scale: float) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the stream of :func:`gaussian_fill`.

    Parameters
    ----------
    seed, first : int
    out : buffer of f32
    scale : float

    Clauses: RNG-GAUSS-1, RNG-GAUSS-3, RNG-GAUSS-4, RNG-RANGE-1
    """
    key = u64("seed", seed)
    factor = double("scale", scale)
    start, memory = _window(first, out, DType.f32)
    lib.fc_gaussian(key, start, factor, memory.pointer("float *"), memory.count)


@accelerated
def gaussian_fill_at_fast(seed: int, first: int, out: Buffer, scale: float) -> None:
    """Fill with normal values from a cheaper chain of f32 operations: another mapping than :func:`gaussian_fill_at`.

    At scale 1 it usually lies within 1.6e-5 of the exact one, and never farther than 2^-12 + 2^-20; near a zero that is
    many units in the last place.

    Parameters
    ----------
    seed, first : int
    out : buffer of f32
    scale : float

    Clauses: RNG-FAST-1, RNG-FAST-2, RNG-FAST-3, RNG-RANGE-1
    """
    key = u64("seed", seed)
    factor = double("scale", scale)
    start, memory = _window(first, out, DType.f32)
    lib.fc_gaussian_fast(key, start, factor, memory.pointer("float *"), memory.count)


@accelerated
def uniform_fill(seed: int, out: Buffer, lo: float, hi: float) -> None:
    """Fill with values uniform in [lo, hi).

    Parameters
    ----------
    seed : int
    out : buffer of f32
    lo, hi : float
        As f32: both finite, lo below hi; InvalidBounds otherwise.

    Clauses: RNG-UNIF-1, RNG-UNIF-2, RNG-UNIF-3
    """
    uniform_fill_at(seed, 0, out, lo, hi)


@accelerated
def uniform_fill_at(seed: int, first: int, out: Buffer, lo: float, hi: float) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the stream of :func:`uniform_fill`.

    Parameters
    ----------
    seed, first : int
    out : buffer of f32
    lo, hi : float
        As f32: both finite, lo below hi; InvalidBounds otherwise.

    Clauses: RNG-ELEMENT-1, RNG-UNIF-1, RNG-UNIF-2, RNG-UNIF-3, RNG-RANGE-1
    """
    key = u64("seed", seed)
    low, high = double("lo", lo), double("hi", hi)
    start, memory = _window(first, out, DType.f32)
    if lib.fc_uniform(key, start, low, high, memory.pointer("float *"), memory.count) == lib.FC_BAD_BOUNDS:
        raise InvalidBounds(
            f"lo must be below hi and both finite once rounded to f32, got lo={_shown(low)}, hi={_shown(high)}",
            clause="RNG-UNIF-3",
        )


@accelerated
def kaiming_uniform_fill(seed: int, out: Buffer, fan_in: int) -> None:
    """Fill with values uniform in [-b, b), b = sqrt(1 / fan_in) as f32.

    Parameters
    ----------
    seed : int
    out : buffer of f32
    fan_in : int
        At least 1; InvalidBounds otherwise.

    Clauses: RNG-KAIMING-1, RNG-KAIMING-2
    """
    kaiming_uniform_fill_at(seed, 0, out, fan_in)


@accelerated
def kaiming_uniform_fill_at(seed: int, first: int, out: Buffer, fan_in: int) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the stream of :func:`kaiming_uniform_fill`.

    Parameters
    ----------
    seed, first : int
    out : buffer of f32
    fan_in : int
        At least 1; InvalidBounds otherwise.

    Clauses: RNG-ELEMENT-1, RNG-KAIMING-1, RNG-KAIMING-2, RNG-RANGE-1
    """
    key = u64("seed", seed)
    fan = whole("fan_in", fan_in, "RNG-KAIMING-2")
    if fan < 1:
        raise InvalidBounds(f"fan_in must be at least 1, got {integer_shown(fan)}", clause="RNG-KAIMING-2")
    fan = u64("fan_in", fan, "RNG-KAIMING-2")
    start, memory = _window(first, out, DType.f32)
    lib.fc_kaiming_uniform(key, start, fan, memory.pointer("float *"), memory.count)


@accelerated
def normal_fill(seed: int, out: Buffer, mean: float, std_dev: float) -> None:
    """Fill with normal values: :func:`gaussian_fill` with scale ``std_dev``, then an f32 addition of ``mean``.

    Parameters
    ----------
    seed : int
    out : buffer of f32
    mean, std_dev : float

    Clauses: RNG-NORMAL-1
    """
    normal_fill_at(seed, 0, out, mean, std_dev)


@accelerated
def normal_fill_at(seed: int, first: int, out: Buffer, mean: float, std_dev: float) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the stream of :func:`normal_fill`.

    Parameters
    ----------
    seed, first : int
    out : buffer of f32
    mean, std_dev : float

    Clauses: RNG-ELEMENT-1, RNG-NORMAL-1, RNG-RANGE-1
    """
    key = u64("seed", seed)
    middle, spread = double("mean", mean), double("std_dev", std_dev)
    start, memory = _window(first, out, DType.f32)
    lib.fc_normal(key, start, middle, spread, memory.pointer("float *"), memory.count)


@accelerated
def gumbel_fill(seed: int, out: Buffer) -> None:
    """Fill with standard Gumbel values, correctly rounded and always finite.

    Parameters
    ----------
    seed : int
    out : buffer of f32

    Clauses: RNG-GUMBEL-1, RNG-GUMBEL-2
    """
    gumbel_fill_at(seed, 0, out)


@accelerated
def gumbel_fill_at(seed: int, first: int, out: Buffer) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the stream of :func:`gumbel_fill`.

    Parameters
    ----------
    seed, first : int
    out : buffer of f32

    Clauses: RNG-ELEMENT-1, RNG-GUMBEL-1, RNG-GUMBEL-2, RNG-RANGE-1
    """
    key = u64("seed", seed)
    start, memory = _window(first, out, DType.f32)
    lib.fc_gumbel(key, start, memory.pointer("float *"), memory.count)


@accelerated
def randint_fill(seed: int, out: Buffer, low: int, high: int) -> None:
    """Fill with integers uniform in [low, high).

    Parameters
    ----------
    seed : int
    out : buffer of i64
    low, high : int
        In i64 (Overflow), low below high (InvalidBounds, also for an empty ``out``).

    Clauses: RNG-INT-1, RNG-INT-2
    """
    randint_fill_at(seed, 0, out, low, high)


@accelerated
def randint_fill_at(seed: int, first: int, out: Buffer, low: int, high: int) -> None:
    """Fill with elements ``first``, ``first + 1``, ... of the stream of :func:`randint_fill`.

    Parameters
    ----------
    seed, first : int
    out : buffer of i64
    low, high : int
        In i64 (Overflow), low below high (InvalidBounds, also for an empty ``out``).

    Clauses: RNG-ELEMENT-1, RNG-INT-1, RNG-INT-2, RNG-RANGE-1
    """
    key = u64("seed", seed)
    below, above = integer("low", low, *_I64, "RNG-INT-2"), integer("high", high, *_I64, "RNG-INT-2")
    if below >= above:
        raise InvalidBounds(f"low must be below high, got low={below}, high={above}", clause="RNG-INT-2")
    start, memory = _window(first, out, DType.i64)
    lib.fc_randint(key, start, below, above, memory.pointer("int64_t *"), memory.count)


@accelerated
def randperm_fill(seed: int, out: Buffer) -> None:
    """Fill with a permutation of 0, 1, ..., len(out) - 1.

    Parameters
    ----------
    seed : int
    out : buffer of i64

    Clauses: RNG-PERM-1
    """
    key = u64("seed", seed)
    _, memory = _window(0, out, DType.i64)
    lib.fc_randperm(key, memory.pointer("int64_t *"), memory.count)


@accelerated
def dropout_mask(seed: int, first: int, out: Buffer, p: float) -> None:
    """Fill with the keep-mask of dropout: each element is true with probability 1 - p.

    Parameters
    ----------
    seed, first : int
    out : buffer of bool
    p : float
        As f32: 0 <= p < 1; InvalidBounds otherwise.

    Clauses: RNG-DROPOUT-1, RNG-DROPOUT-3, RNG-RANGE-1
    """
    key = u64("seed", seed)
    probability = double("p", p)
    start, memory = _window(first, out, DType.bool)
    if lib.fc_dropout_mask(key, start, probability, memory.pointer("uint8_t *"), memory.count) == lib.FC_BAD_BOUNDS:
        raise _bad_probability(probability)


def dropout_scale(p: float) -> float:
    """Return the factor of the kept elements, 1 / (1 - p) in f32 operations.

    Parameters
    ----------
    p : float
        As f32: 0 <= p < 1; InvalidBounds otherwise.

    Clauses: RNG-DROPOUT-2, RNG-DROPOUT-3
    """
    probability = double("p", p)
    result = ffi.new("float *")
    if lib.fc_dropout_scale(probability, result) == lib.FC_BAD_BOUNDS:
        raise _bad_probability(probability)
    return float(result[0])


def _bad_probability(p: float) -> InvalidBounds:
    return InvalidBounds(f"p must lie in [0, 1) once rounded to f32, got p={_shown(p)}", clause="RNG-DROPOUT-3")
