"""A third party's implementation, in numpy: the streams only, and with one wrong rule.

It is here to show what the suite says.  From this folder:

    python -m fucina.conformance --impl third_party --expect third_party.toml

The wrong rule is marked below: integers are drawn with a remainder, as many libraries do, and not with the high half of
the product.  What leans on numpy's log, sin and cos is expected to fail, and ``third_party.toml`` says so.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.spec import DType, DTypeKind, FloatOp
from fucina.spec.errors import DTypeMismatch, InvalidBounds, InvalidInteger, Overflow, ReadOnlyStorage, UnsupportedView

__all__ = ["DType", "DTypeKind", "FloatOp", "capabilities", "rng"]

capabilities = frozenset({"rng"})

Array = npt.NDArray[Any]
U64 = np.uint64
F32 = np.float32
M64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
UNIT = 2.0**-53
LN: tuple[float, ...] = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
)
LN += (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def integer(name: str, value: object, clause: str, low: int = 0, high: int = M64) -> int:
    """Return an integer argument after checking its type and range."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise InvalidInteger(f"{name} must be an integer, got {value!r}", clause=clause)
    found = operator.index(value)
    if not low <= found <= high:
        raise Overflow(f"{name} must be in [{low}, {high}], got {found}", clause=clause)
    return found


def single(name: str, value: object) -> np.float32:
    """Round a float parameter to f32."""
    # by type(): isinstance would believe an object that poses as a number
    if not issubclass(type(value), int | float | np.integer | np.floating) or type(value) in (bool, np.timedelta64):
        raise DTypeMismatch(f"{name} must be a float or an integer, got {value!r}", clause="NUM-PARAM-1")
    number: Any = value
    try:
        wide = float(number)
    except OverflowError:
        wide = np.inf if number > 0 else -np.inf
    with np.errstate(over="ignore"):
        return F32(wide)


def output(out: Any, first: int, dtype: type[np.generic]) -> Array:
    """Return a flat view of an output after checking its format, layout and range of indices."""
    if isinstance(out, np.ma.MaskedArray):
        raise DTypeMismatch("out must be a plain buffer, got a masked array", clause="RNG-OUT-1")
    try:
        view = memoryview(out)
    except (TypeError, ValueError) as error:
        raise DTypeMismatch(f"out must hold {dtype.__name__}, got {out!r}: {error}", clause="RNG-OUT-1") from error
    if not view.c_contiguous:
        raise UnsupportedView("out must be C-contiguous, got a strided view", clause="RNG-OUT-1")
    flat = np.asarray(view)
    if flat.dtype != np.dtype(dtype):
        raise DTypeMismatch(f"out must hold {dtype.__name__}, got {flat.dtype}", clause="RNG-OUT-1")
    if view.readonly:
        raise ReadOnlyStorage("out must be writable, got read-only memory", clause="RNG-OUT-1")
    if not flat.flags.aligned:
        raise UnsupportedView(f"out must be aligned to {flat.itemsize} bytes", clause="RNG-OUT-1")
    if first + flat.size > M64 + 1:
        raise Overflow(f"first + len(out) must be at most 2^64, got {first} + {flat.size}", clause="RNG-RANGE-1")
    return flat.reshape(-1)


def words(seed: int, first: int, n: int) -> npt.NDArray[np.uint64]:
    """Return the words ``first ... first + n - 1`` of a stream."""
    start = U64((seed + (first + 1) * GAMMA) & M64)
    z = np.arange(n, dtype=U64) * U64(GAMMA) + start
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> U64(31)))


def high_product(x: npt.NDArray[np.uint64], y: npt.NDArray[np.uint64] | np.uint64) -> npt.NDArray[np.uint64]:
    """Return the upper 64 bits of the 128-bit products."""
    low, shift = U64(0xFFFFFFFF), U64(32)
    xl, xh, yl, yh = x & low, x >> shift, y & low, y >> shift
    middle = xh * yl + (xl * yl >> shift)
    return np.asarray(xh * yh + (middle >> shift) + ((xl * yh + (middle & low)) >> shift))


def horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Evaluate a polynomial in f32, highest coefficient first."""
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = total * x + F32(c)
    return total


def fast_ln(x: Array) -> Array:
    """Return the natural logarithm of the fast mapping."""
    m, e = np.frexp(x)
    e = e.astype(F32)
    small = m < F32(0.7071067811865476)
    e[small] -= F32(1)
    m[small] += m[small]
    f = m - F32(1)
    z = f * f
    y = (f * z) * horner(f, LN)
    y = y + e * F32(-2.12194440e-4)
    y = y - F32(0.5) * z
    y = f + y
    return np.asarray(y + e * F32(0.693359375))


def fast_turn(u: Array) -> tuple[Array, Array]:
    """Return cosine and sine of a fraction of the full turn, as in the fast mapping."""
    t = u * F32(4)
    j = np.floor(t + F32(0.5))
    g = (t - j) * F32(1.5707963267948966)
    z = g * g
    sin = g + (g * z) * horner(z, SIN)
    cos = (F32(1) - F32(0.5) * z) + (z * z) * horner(z, COS)
    q = j.astype(np.int64) & 3
    sin, cos = np.where(q & 1, cos, sin), np.where(q & 1, sin, cos)
    return np.where((q + 1) & 2, -cos, cos), np.where(q & 2, -sin, sin)


def gaussian(seed: int, first: int, n: int, scale: np.float32, *, fast: bool = False) -> Array:
    """Return elements ``first ... first + n - 1`` of the gaussian stream."""
    skip = first & 1
    pairs = (skip + n + 1) // 2
    x = words(seed, first - skip, 2 * pairs) >> U64(11)
    ua, ub = (x[0::2] + U64(1)).astype(float) * UNIT, x[1::2].astype(float) * UNIT
    both = np.empty(2 * pairs, F32)
    with np.errstate(all="ignore"):
        if fast:
            r = np.sqrt(F32(-2) * fast_ln(ua.astype(F32)))
            cos, sin = fast_turn(ub.astype(F32))
            factor: Any = scale
        else:
            r, angle = np.sqrt(-2.0 * np.log(ua)), 2 * np.pi * ub
            cos, sin, factor = np.cos(angle), np.sin(angle), float(scale)
        both[0::2], both[1::2] = (r * cos) * factor, (r * sin) * factor
    return both[skip : skip + n]


def uniform(seed: int, first: int, n: int, lo: np.float32, hi: np.float32) -> Array:
    """Return elements of the uniform stream."""
    u = (words(seed, first, n) >> U64(11)).astype(float) * UNIT
    v = (float(lo) + (float(hi) - float(lo)) * u).astype(F32)
    return np.where(v >= hi, np.nextafter(hi, F32(-np.inf)), v)


class Rng:
    """The streams."""

    def splitmix64(self, state: int) -> tuple[int, int]:
        """Advance a state and return it with its word."""
        state = integer("state", state, "RNG-SEED-1")
        return (state + GAMMA) & M64, self.at(state, 0)

    def at(self, seed: int, i: int) -> int:
        """Return word ``i`` of a stream."""
        return int(words(integer("seed", seed, "RNG-SEED-1"), integer("i", i, "RNG-SEED-1"), 1)[0])

    def gaussian_fill(self, seed: int, out: Any, scale: float) -> None:
        """Fill with the gaussian stream from its start."""
        self.gaussian_fill_at(seed, 0, out, scale)

    def gaussian_fill_at(self, seed: int, first: int, out: Any, scale: float, *, fast: bool = False) -> None:
        """Fill with gaussian elements from ``first`` on."""
        seed, first = integer("seed", seed, "RNG-SEED-1"), integer("first", first, "RNG-SEED-1")
        factor, flat = single("scale", scale), output(out, first, F32)
        flat[:] = gaussian(seed, first, flat.size, factor, fast=fast)

    def gaussian_fill_at_fast(self, seed: int, first: int, out: Any, scale: float) -> None:
        """Fill with the fast gaussian mapping."""
        self.gaussian_fill_at(seed, first, out, scale, fast=True)

    def normal_fill(self, seed: int, out: Any, mean: float, std_dev: float) -> None:
        """Fill with normal elements from the start."""
        self.normal_fill_at(seed, 0, out, mean, std_dev)

    def normal_fill_at(self, seed: int, first: int, out: Any, mean: float, std_dev: float) -> None:
        """Fill with normal elements: a gaussian, then the mean added in f32."""
        middle = single("mean", mean)
        self.gaussian_fill_at(seed, first, out, std_dev)
        if middle != 0:
            with np.errstate(all="ignore"):
                output(out, 0, F32)[:] += middle

    def uniform_fill(self, seed: int, out: Any, lo: float, hi: float) -> None:
        """Fill with uniform elements from the start."""
        self.uniform_fill_at(seed, 0, out, lo, hi)

    def uniform_fill_at(self, seed: int, first: int, out: Any, lo: float, hi: float) -> None:
        """Fill with uniform elements of ``[lo, hi)``."""
        seed, first = integer("seed", seed, "RNG-SEED-1"), integer("first", first, "RNG-SEED-1")
        below, above = single("lo", lo), single("hi", hi)
        if not (np.isfinite(below) and np.isfinite(above) and below < above):
            raise InvalidBounds(f"lo must be below hi, both finite, got lo={lo}, hi={hi}", clause="RNG-UNIF-3")
        flat = output(out, first, F32)
        flat[:] = uniform(seed, first, flat.size, below, above)

    def kaiming_uniform_fill(self, seed: int, out: Any, fan_in: int) -> None:
        """Fill with kaiming uniform elements from the start."""
        self.kaiming_uniform_fill_at(seed, 0, out, fan_in)

    def kaiming_uniform_fill_at(self, seed: int, first: int, out: Any, fan_in: int) -> None:
        """Fill with uniform elements of a bound that the fan-in gives."""
        if integer("fan_in", fan_in, "RNG-KAIMING-2", low=-(2**9999)) < 1:
            raise InvalidBounds(f"fan_in must be at least 1, got fan_in={fan_in}", clause="RNG-KAIMING-2")
        bound = float(F32(np.sqrt(1.0 / float(fan_in))))
        self.uniform_fill_at(seed, first, out, -bound, bound)

    def gumbel_fill(self, seed: int, out: Any) -> None:
        """Fill with gumbel elements from the start."""
        self.gumbel_fill_at(seed, 0, out)

    def gumbel_fill_at(self, seed: int, first: int, out: Any) -> None:
        """Fill with gumbel elements."""
        seed, first = integer("seed", seed, "RNG-SEED-1"), integer("first", first, "RNG-SEED-1")
        flat = output(out, first, F32)
        u = ((words(seed, first, flat.size) >> U64(11)).astype(float) + 0.5) * UNIT
        flat[:] = -np.log(-np.log(np.minimum(u, 1 - UNIT)))

    def randint_fill(self, seed: int, out: Any, low: int, high: int) -> None:
        """Fill with integers from the start."""
        self.randint_fill_at(seed, 0, out, low, high)

    def randint_fill_at(self, seed: int, first: int, out: Any, low: int, high: int) -> None:
        """Fill with integers of ``[low, high)``."""
        seed, first = integer("seed", seed, "RNG-SEED-1"), integer("first", first, "RNG-SEED-1")
        low = integer("low", low, "RNG-INT-2", -(1 << 63), (1 << 63) - 1)
        high = integer("high", high, "RNG-INT-2", -(1 << 63), (1 << 63) - 1)
        if low >= high:
            raise InvalidBounds(f"low must be below high, got low={low}, high={high}", clause="RNG-INT-2")
        flat = output(out, first, np.int64)
        # WRONG, to show what the suite says: the clause RNG-INT-1 wants high_product(x, span)
        offset = words(seed, first, flat.size) % U64(high - low)
        flat[:] = (offset + U64(low & M64)).view(np.int64)

    def randperm_fill(self, seed: int, out: Any) -> None:
        """Fill with a permutation."""
        seed = integer("seed", seed, "RNG-SEED-1")
        flat = output(out, 0, np.int64)
        n = flat.size
        flat[:] = np.arange(n)
        draws = high_product(words(seed, 0, max(n - 1, 0)), np.arange(n, 1, -1, dtype=U64))
        for k, j in zip(range(n - 1, 0, -1), draws.tolist(), strict=True):
            flat[k], flat[j] = flat[j], flat[k]

    def dropout_mask(self, seed: int, first: int, out: Any, p: float) -> None:
        """Fill with the mask of the elements that are kept."""
        seed, first = integer("seed", seed, "RNG-SEED-1"), integer("first", first, "RNG-SEED-1")
        drop = self._probability(p)
        flat = output(out, first, np.bool_)
        flat[:] = (words(seed, first, flat.size) >> U64(11)).astype(float) < (1.0 - float(drop)) * 2.0**53

    def dropout_scale(self, p: float) -> float:
        """Return the factor of the elements that are kept."""
        return float(F32(1) / (F32(1) - self._probability(p)))

    def _probability(self, p: float) -> np.float32:
        drop = single("p", p)
        if not 0 <= drop < 1:
            raise InvalidBounds(f"p must be in [0, 1), got p={p}", clause="RNG-DROPOUT-3")
        return drop


rng = Rng()
