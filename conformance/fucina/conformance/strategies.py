"""Hypothesis strategies biased to where numerics go wrong, and the two profiles ``ci`` and ``nightly``."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from fucina.conformance.compare import FLOATS, PATTERN, f32_bits
from fucina.spec import DType

__all__ = [
    "SCALARS",
    "chunks",
    "dtype_pairs",
    "dtypes",
    "finite_bounds",
    "firsts",
    "lengths",
    "pattern_arrays",
    "patterns",
    "profile_size",
    "scales",
    "seed_for",
    "seeds",
    "unmix",
    "words",
]

T = TypeVar("T")

M64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
SCALARS = tuple(PATTERN)

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
_CI_EXAMPLES = 30
_NIGHTLY_EXAMPLES = 2000
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=_CI_EXAMPLES,
    database=None,
    print_blob=False,
    suppress_health_check=_QUIET,
)
settings.register_profile(
    "nightly",
    deadline=timedelta(seconds=30),
    max_examples=_NIGHTLY_EXAMPLES,
    print_blob=True,
    suppress_health_check=_QUIET,
)


def profile_size(ci: int, nightly: int) -> int:
    """Return a length for the active profile: small in ``ci``, larger in ``nightly``."""
    return nightly if settings().max_examples >= _NIGHTLY_EXAMPLES else ci


def _unshift(value: int, by: int) -> int:
    """Invert ``z ^ (z >> by)``."""
    answer = value
    for _ in range(64 // by):
        answer = value ^ (answer >> by)
    return answer


def unmix(word: int) -> int:
    """Invert the output function of splitmix64: the state whose word this is."""
    z = _unshift(word, 31)
    z = z * pow(0x94D049BB133111EB, -1, 1 << 64) & M64
    z = _unshift(z, 27)
    z = z * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & M64
    return _unshift(z, 30)


def seed_for(word: int, index: int) -> int:
    """Return the seed for which ``at(seed, index) == word`` (clause RNG-AT-1 read backwards)."""
    return (unmix(word) - (index + 1) * GAMMA) & M64


def _near(*centres: int, top: int = M64) -> st.SearchStrategy[int]:
    values = sorted({c + d for c in centres for d in (-2, -1, 0, 1, 2) if 0 <= c + d <= top})
    return st.sampled_from(values)


def words() -> st.SearchStrategy[int]:
    """Stream words on the borders of the mappings: quadrants, binades, all zeros, all ones, the 11 low bits."""
    k = st.one_of(
        _near(*(j << 50 for j in range(9)), top=(1 << 53) - 1),  # eighths of the unit interval: quadrant edges
        _near(*(1 << j for j in range(53)), top=(1 << 53) - 1),  # binade edges
        _near(0x16A09E667F3BCD, top=(1 << 53) - 1),  # sqrt(1/2)
        st.integers(0, (1 << 53) - 1),
    )
    return st.one_of(
        st.builds(lambda high, low: high << 11 | low, k, st.sampled_from((0, 1, 0x7FF))),
        _near(0, 1 << 32, 1 << 63, M64),
    )


def seeds() -> st.SearchStrategy[int]:
    """Seeds: plain borders, any, and seeds built backwards so that one of the first words is a border word."""
    return st.one_of(
        _near(0, 1 << 31, 1 << 32, 1 << 53, 1 << 63, M64),
        st.integers(0, M64),
        st.builds(seed_for, words(), st.integers(0, 7)),
    )


def firsts(room: int = 1 << 12) -> st.SearchStrategy[int]:
    """First indices of windows of up to ``room`` elements, the last legal ones included."""
    top = (1 << 64) - room
    return st.one_of(
        st.integers(0, 300),
        _near(1 << 20, 1 << 32, 1 << 53, 1 << 63, top, top=top),
        st.integers(0, top),
    )


def lengths(most: int = 300) -> st.SearchStrategy[int]:
    """Lengths around the widths of vectors and blocks."""
    edges = sorted({m + d for m in (0, 2, 4, 8, 16, 32, 64, 128, 256) for d in (-1, 0, 1) if 0 <= m + d <= most})
    return st.one_of(st.sampled_from(edges), st.integers(0, most))


@st.composite
def chunks(draw: st.DrawFn, length: int) -> list[tuple[int, int]]:
    """A decomposition of ``range(length)``: consecutive (start, stop), empty chunks included."""
    cuts = draw(st.lists(st.integers(0, length), max_size=6).map(sorted))
    ends = [0, *cuts, length]
    return list(pairwise(ends))


def scales() -> st.SearchStrategy[float]:
    """f32 values for scales: zeros of both signs, one, subnormals, huge ones, infinities, NaN, any pattern."""
    special = (0.0, -0.0, 1.0, -1.0, 0.02, 2.0**-126, 2.0**-149, -(2.0**-140), 3.0e38, -3.0e38)
    return st.one_of(
        st.sampled_from((*(float(np.float32(s)) for s in special), float("inf"), float("-inf"), float("nan"))),
        st.floats(width=32, allow_nan=False),
    )


@st.composite
def finite_bounds(draw: st.DrawFn) -> tuple[float, float]:
    """Bounds ``lo < hi`` of a uniform fill, neighbouring f32 values included."""
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    lo = np.float32(draw(st.one_of(st.sampled_from((0.0, -0.0, -1.0, 1.0, 1.0e-3, 2.0**-149)), floats)))
    ordered = lo if lo < np.finfo(np.float32).max else np.float32(0)
    hi = np.nextafter(ordered, np.float32(np.inf)) if draw(st.booleans()) else np.float32(draw(floats))
    if hi == ordered:
        hi = np.nextafter(ordered, np.float32(np.inf))
    return float(min(ordered, hi)), float(max(ordered, hi))


def dtypes(among: tuple[DType, ...] = SCALARS) -> st.SearchStrategy[DType]:
    """Scalar dtypes."""
    return st.sampled_from(among)


def dtype_pairs() -> st.SearchStrategy[tuple[DType, DType]]:
    """Ordered pairs of scalar dtypes."""
    return st.tuples(dtypes(), dtypes())


def _rounding_borders(source: DType) -> st.SearchStrategy[int]:
    """Patterns of a float at, just below and just above what a narrower format can hold: values, ties, overflow."""
    exponent, fraction = FLOATS[source]
    top = (1 << (exponent + fraction)) - 1

    def build(field: int, kept: int, keep: int, nudge: int, sign: int) -> int:
        cut = max(fraction - keep - 1, 0)
        magnitude = field << fraction | ((kept << cut) & ((1 << fraction) - 1))
        return (min(max(magnitude + nudge, 0), top)) | sign << (exponent + fraction)

    bias = (1 << (exponent - 1)) - 1
    interesting = [
        bias + e for e in (-149, -133, -126, -24, -16, -14, -9, -6, -1, 0, 1, 8, 15, 16, 31, 32, 63, 64, 127)
    ]
    fields = sorted({field for field in (*interesting, 0, 1, 2 * bias, 2 * bias + 1) if 0 <= field <= 2 * bias + 1})
    return st.builds(
        build,
        st.sampled_from(fields),
        st.integers(0, (1 << min(fraction, 24)) - 1),
        st.sampled_from((2, 3, 7, 10, 23)),
        st.sampled_from((-1, 0, 1)),
        st.integers(0, 1),
    )


def _integer_ties(width: int) -> st.SearchStrategy[int]:
    """Patterns of integers at and beside the ties of the float formats, and of a tie seen through a wider format."""

    def build(power: int, keep: int, kept: int, nudge: int, negative: bool) -> int:
        step = max(power - keep - 1, 0)  # place of the first bit that does not fit
        value = (1 << power) + ((kept << (step + 1)) & ((1 << power) - 1)) + (1 << step) + nudge
        return (-value if negative else value) & ((1 << width) - 1)

    return st.builds(
        build,
        st.integers(2, width - 2),
        st.sampled_from((2, 3, 7, 10, 23, 52)),
        st.integers(0, 1 << 12),
        st.sampled_from((-1, 0, 1)),
        st.booleans(),
    )


def patterns(dtype: DType) -> st.SearchStrategy[int]:
    """Patterns of one element, biased to zeros, ends, NaN codes and rounding borders."""
    if dtype is DType.bool:
        return st.integers(0, 1)
    width = 8 * PATTERN[dtype].itemsize
    every = st.integers(0, (1 << width) - 1)
    if dtype not in FLOATS:
        half = 1 << (width - 1)
        return st.one_of(_near(0, half, 2 * half - 1, top=2 * half - 1), _integer_ties(width), every)
    exponent, fraction = FLOATS[dtype]
    sign, inf = 1 << (width - 1), ((1 << exponent) - 1) << fraction
    edges = (0, 1, (1 << fraction) - 1, 1 << fraction, inf - 1, inf, inf + 1, inf | 1 << (fraction - 1), sign - 1)
    return st.one_of(
        st.sampled_from(sorted({edge | s for edge in edges for s in (0, sign)})),
        _rounding_borders(dtype),
        st.builds(lambda value: _integral(dtype, value), st.integers(-(1 << 66), 1 << 66)),
        every,
    )


def _integral(dtype: DType, value: int) -> int:
    """Pattern of an integer (or its nearest) in f32/f64; elsewhere the low bits of it."""
    if dtype is DType.f64:
        return int(np.float64(value).view(np.uint64))
    if dtype is DType.f32:
        return f32_bits(float(value))
    return value & ((1 << 8 * PATTERN[dtype].itemsize) - 1)


@st.composite
def pattern_arrays(draw: st.DrawFn, dtype: DType, most: int = 80) -> npt.NDArray[Any]:
    """Arrays of patterns: drawn ones repeated to a drawn length, so that lanes and tails both meet them."""
    some = draw(st.lists(patterns(dtype), min_size=1, max_size=12))
    length = draw(lengths(most))
    return np.resize(np.array(some, dtype=PATTERN[dtype]), length)
