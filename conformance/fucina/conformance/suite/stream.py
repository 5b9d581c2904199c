"""The mappings written out with numpy's own operations and Python integers: a judge that is neither implementation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.compare import f32
from fucina.conformance.suite.casts import exact_value, round_to
from fucina.spec import DType

__all__ = [
    "dropout",
    "dropout_scale",
    "fast_gaussian",
    "kaiming_bound",
    "randint",
    "randperm",
    "uniform",
    "unit",
    "words",
]

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

M64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def words(seed: int, first: int, n: int) -> npt.NDArray[np.uint64]:
    """Return ``at(seed, first) ... at(seed, first + n - 1)`` (clause RNG-AT-1)."""
    start = np.uint64((seed + (first + 1) * GAMMA) & M64)
    with np.errstate(over="ignore"):
        z = start + np.arange(n, dtype=np.uint64) * np.uint64(GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def unit(x: npt.NDArray[np.uint64], plus: int = 0) -> F64:
    """Return ``((x >> 11) + plus) * 2^-53``, exact in f64 (clause RNG-UNIT-1)."""
    return ((x >> np.uint64(11)) + np.uint64(plus)).astype(np.float64) * 2.0**-53


def uniform(seed: int, first: int, n: int, lo: float, hi: float) -> F32:
    """Clauses RNG-UNIF-1, RNG-UNIF-2; the bounds are f32 values."""
    v = (np.float64(lo) + (np.float64(hi) - np.float64(lo)) * unit(words(seed, first, n))).astype(np.float32)
    below = np.nextafter(np.float32(hi), np.float32(-np.inf))
    return np.where(v >= np.float32(hi), below, v)


def kaiming_bound(fan_in: int) -> float:
    """Return ``f32(sqrt(1 / f64(fan_in)))``: quotient and root are each rounded to f64 (clause RNG-KAIMING-1)."""
    quotient = exact_value(DType.f64, round_to(DType.f64, 1 / Fraction(float(fan_in))))
    assert isinstance(quotient, Fraction)
    # the root to 200 bits with a sticky one below: enough to round it right
    scaled = quotient.numerator * (1 << 400) // quotient.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and (quotient.numerator << 400) % quotient.denominator == 0
    value = Fraction(2 * root + (not exact), 1 << 201)
    narrow = exact_value(DType.f64, round_to(DType.f64, value))
    return f32(round_to(DType.f32, narrow))


def randint(seed: int, first: int, n: int, low: int, high: int) -> npt.NDArray[np.int64]:
    """Clause RNG-INT-1."""
    span = (high - low) & M64
    return np.array([low + (x * span >> 64) for x in words(seed, first, n).tolist()], dtype=np.int64)


def randperm(seed: int, n: int) -> npt.NDArray[np.int64]:
    """Clause RNG-PERM-1."""
    order = list(range(n))
    for c, x in enumerate(words(seed, 0, max(n - 1, 0)).tolist()):
        k = n - 1 - c
        j = x * (k + 1) >> 64
        order[k], order[j] = order[j], order[k]
    return np.array(order, dtype=np.int64)


def dropout(seed: int, first: int, n: int, p: float) -> npt.NDArray[np.bool_]:
    """Clause RNG-DROPOUT-1; ``p`` is an f32 value."""
    threshold = int((1.0 - p) * 2.0**53)  # the difference is one f64 operation, the product is exact
    return np.array([(x >> 11) < threshold for x in words(seed, first, n).tolist()], dtype=np.bool_)


def dropout_scale(p: float) -> float:
    """Clause RNG-DROPOUT-2: ``1 - p`` and the quotient, each rounded to f32."""
    kept = exact_value(DType.f32, round_to(DType.f32, 1 - Fraction(p)))
    assert isinstance(kept, Fraction)
    return f32(round_to(DType.f32, 1 / kept))


_LN = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def _horner(x: F32, coefficients: tuple[float, ...]) -> F32:
    p = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        p = p * x + np.float32(c)  # two operations: numpy never fuses them
    return p


def fast_gaussian(seed: int, first: int, n: int, scale: float) -> F32:
    """Clause RNG-FAST-1, every operation one f32 operation of numpy."""
    one = np.float32
    pairs = (first + n + 1) // 2 - first // 2
    x = words(seed, first - first % 2, 2 * pairs)
    ua, ub = unit(x[0::2], 1).astype(np.float32), unit(x[1::2]).astype(np.float32)
    # ln ua
    m, e = np.frexp(ua)
    e = e.astype(np.int32)
    low = m < one(0.7071067811865476)
    e, m = np.where(low, e - 1, e), np.where(low, m + m, m)
    f = m - one(1)
    z = f * f
    y = (f * z) * _horner(f, _LN)
    ef = e.astype(np.float32)
    y = y + ef * one(-2.12194440e-4)
    y = y - one(0.5) * z
    y = f + y
    r = np.sqrt(one(-2) * (y + ef * one(0.693359375)))
    # sine and cosine of a turn
    t = ub * one(4)
    j = np.floor(t + one(0.5))
    g = (t - j) * one(1.5707963267948966)
    z = g * g
    sin = g + (g * z) * _horner(z, _SIN)
    cos = (one(1) - one(0.5) * z) + (z * z) * _horner(z, _COS)
    q = j.astype(np.int64) % 4
    odd = q % 2 == 1
    sin, cos = np.where(odd, cos, sin), np.where(odd, sin, cos)
    sin, cos = np.where(q & 2, -sin, sin), np.where((q + 1) & 2, -cos, cos)
    out: Any = np.empty(2 * pairs, dtype=np.float32)
    with np.errstate(all="ignore"):
        out[0::2], out[1::2] = (r * cos) * one(scale), (r * sin) * one(scale)
    window: F32 = out[first % 2 : first % 2 + n]
    return window
