"""Comparison of bit patterns, and of errors.

Everything the suite asserts goes through these functions: a vectorised test first, then the first bad element by index,
with both patterns in hex and as values, the number of differences and the worst distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.spec import GEOMETRY, DType

__all__ = [
    "PATTERN",
    "Mismatch",
    "as_patterns",
    "assert_bits",
    "assert_raises",
    "assert_same",
    "f32",
    "f32_bits",
    "f64",
    "f64_bits",
    "is_nan",
    "sentinel",
    "value_of",
]

Bits = npt.NDArray[Any]

PATTERN: dict[DType, np.dtype[Any]] = {
    dtype: np.dtype(f"u{geometry.byte_size}") for dtype, geometry in GEOMETRY.items() if geometry.format is not None
}
"""The unsigned integer that holds the pattern of one element of each scalar dtype."""

FLOATS: dict[DType, tuple[int, int]] = {
    DType.f16: (5, 10),
    DType.bf16: (8, 7),
    DType.f32: (8, 23),
    DType.f64: (11, 52),
    DType.f8_e4m3: (4, 3),
    DType.f8_e5m2: (5, 2),
}
"""Exponent and fraction bits of the float formats."""

_FLOAT_OF_NUMPY = {np.dtype(np.float16): DType.f16, np.dtype(np.float32): DType.f32, np.dtype(np.float64): DType.f64}


class Mismatch(AssertionError):  # noqa: N818 - it is what it says, and pytest shows it as a failed assertion
    """Two arrays of patterns differ.

    ``index`` is the first bad index (``None`` when shape or format differ), ``got`` and ``expected`` the patterns
    there, ``count`` the number of differences, ``worst`` the largest distance in representable values (infinite where
    one side is a NaN and the other is not).
    """

    def __init__(
        self,
        message: str,
        *,
        index: int | tuple[int, ...] | None = None,
        got: int | None = None,
        expected: int | None = None,
        count: int = 0,
        worst: float = math.inf,
    ) -> None:
        super().__init__(message)
        self.index = index
        self.got = got
        self.expected = expected
        self.count = count
        self.worst = worst


def f32(bits: int) -> float:
    """Return the f32 with this pattern as a Python float."""
    return float(np.uint32(bits).view(np.float32))


def f32_bits(value: float) -> int:
    """Return the pattern of a value rounded to f32 (RNE, overflow to inf)."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.uint32))


def f64(bits: int) -> float:
    """Return the f64 with this pattern."""
    return float(np.uint64(bits).view(np.float64))


def f64_bits(value: float) -> int:
    """Return the pattern of an f64."""
    return int(np.float64(value).view(np.uint64))


def as_patterns(array: Any) -> Bits:
    """View an array of any scalar format as unsigned patterns of the same width, without a copy."""
    if not isinstance(array, np.ndarray):
        raise Mismatch(f"expected a numpy array, got {type(array).__name__}")
    if array.dtype.kind not in "?biuf" or not array.dtype.isnative:
        raise Mismatch(f"expected a native scalar format, got {array.dtype!r}")
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _classes(patterns: Bits, dtype: DType) -> tuple[Bits, Bits]:
    """Split into magnitude (without the sign) and the smallest NaN magnitude of the format."""
    exponent, fraction = FLOATS[dtype]
    unsigned = patterns.dtype.type
    magnitude = patterns & unsigned((1 << (exponent + fraction)) - 1)
    first_nan = (((1 << exponent) - 1) << fraction) + 1
    if dtype is DType.f8_e4m3:
        first_nan = 0x7F
    return magnitude, unsigned(first_nan)


def is_nan(patterns: Bits, dtype: DType) -> npt.NDArray[np.bool_]:
    """Say for each pattern whether it is a NaN of a float format (``False`` for the other dtypes)."""
    if dtype not in FLOATS:
        return np.zeros(patterns.shape, dtype=np.bool_)
    magnitude, first_nan = _classes(patterns, dtype)
    return np.asarray(magnitude >= first_nan)


def _rank(pattern: int, dtype: DType | None, width: int) -> int:
    """Place of a pattern in the order of the format's values; neighbours differ by one."""
    top = 1 << (width - 1)
    if dtype in FLOATS:
        return -(pattern - top) - 1 if pattern & top else pattern
    if dtype is not None and np.dtype(GEOMETRY[dtype].format).kind == "i" and pattern & top:
        return pattern - 2 * top
    return pattern


def value_of(pattern: int, dtype: DType | None) -> str:
    """Render the value behind a pattern for a message."""
    if dtype is None:
        return str(pattern)
    if dtype not in FLOATS:
        return str(_rank(pattern, dtype, 8 * GEOMETRY[dtype].byte_size))
    exponent, fraction = FLOATS[dtype]
    sign = "-" if pattern >> (exponent + fraction) else ""
    if is_nan(np.array([pattern], dtype=PATTERN[dtype]), dtype)[0]:
        return f"{sign}nan"
    field, tail = (pattern >> fraction) & ((1 << exponent) - 1), pattern & ((1 << fraction) - 1)
    if field == (1 << exponent) - 1 and dtype is not DType.f8_e4m3:
        return f"{sign}inf"
    bias = (1 << (exponent - 1)) - 1
    significand = tail + (1 << fraction if field else 0)
    return f"{sign}{math.ldexp(significand, max(field, 1) - bias - fraction)!r}"


def _worst(got: Bits, expected: Bits, nan_got: Bits, nan_expected: Bits, dtype: DType | None) -> float:
    if np.any(nan_got != nan_expected):
        return math.inf
    width = 8 * got.dtype.itemsize
    if got.size > 4096 and width <= 32:
        top = np.int64(1) << np.int64(width - 1)
        a, b = got.astype(np.int64), expected.astype(np.int64)
        if dtype in FLOATS:
            a, b = np.where(a & top, top - a - 1, a), np.where(b & top, top - b - 1, b)
        elif dtype is not None and np.dtype(GEOMETRY[dtype].format).kind == "i":
            a, b = np.where(a & top, a - 2 * top, a), np.where(b & top, b - 2 * top, b)
        return float(np.abs(a - b).max())
    return float(
        max(
            abs(_rank(a, dtype, width) - _rank(b, dtype, width))
            for a, b in zip(got.tolist(), expected.tolist(), strict=True)
        )
    )


def assert_bits(
    got: Any,
    expected: Any,
    *,
    nan: str = "exact",
    dtype: DType | None = None,
    what: str = "",
    clause: str | None = None,
) -> None:
    """Assert that two arrays hold the same bit patterns.

    Parameters
    ----------
    got, expected
        Arrays of one shape and element width; floats are viewed as their patterns.
    nan
        ``"exact"``: a NaN must have the expected bits; ``"any"``: any NaN equals any other.
    dtype
        How to read the patterns; found from a float array by itself, needed for ``nan="any"`` on unsigned arrays.
    what, clause
        Named in the message.

    Raises
    ------
    Mismatch
        Shape, width or a pattern differs.
    """
    if dtype is None:
        for side in (got, expected):
            if isinstance(side, np.ndarray):
                dtype = dtype or _FLOAT_OF_NUMPY.get(side.dtype)
    subject = f"{clause}: " if clause else ""
    subject += f"{what}: " if what else ""
    got, expected = as_patterns(got), as_patterns(expected)
    if got.dtype != expected.dtype or (dtype is not None and PATTERN[dtype] != got.dtype):
        wanted = expected.dtype if dtype is None else PATTERN[dtype]
        raise Mismatch(f"{subject}patterns of {8 * got.dtype.itemsize} bits, expected {8 * wanted.itemsize}")
    if got.shape != expected.shape:
        raise Mismatch(f"{subject}shape {got.shape}, expected {expected.shape}")
    if nan not in ("exact", "any"):
        raise ValueError(f'nan is "exact" or "any", got {nan!r}')
    if nan == "any" and dtype is None:
        raise ValueError('nan="any" needs to know the float format: pass dtype=')
    bad = got != expected
    if not bad.any():
        return
    if dtype is None:
        nan_got = nan_expected = np.zeros(got.shape, dtype=np.bool_)
    else:
        nan_got, nan_expected = is_nan(got, dtype), is_nan(expected, dtype)
    if nan == "any":
        bad &= ~(nan_got & nan_expected)
        if not bad.any():
            return
    position = np.unravel_index(int(np.argmax(bad)), bad.shape)
    index = tuple(int(axis) for axis in position)
    first_got, first_expected = int(got[index]), int(expected[index])
    count = int(np.count_nonzero(bad))
    worst = _worst(got[bad], expected[bad], nan_got[bad], nan_expected[bad], dtype)
    digits = 2 * got.dtype.itemsize
    shown = index[0] if len(index) == 1 else index
    raise Mismatch(
        f"{subject}index {shown}: got {first_got:#0{digits + 2}x} ({value_of(first_got, dtype)}), "
        f"expected {first_expected:#0{digits + 2}x} ({value_of(first_expected, dtype)}); "
        f"{count} of {got.size} differ, worst by {worst:g}",
        index=shown,
        got=first_got,
        expected=first_expected,
        count=count,
        worst=worst,
    )


def assert_same(got: Any, expected: Any, *, what: str = "", clause: str | None = None) -> None:
    """Assert that two Python scalars have the same type and value; floats by their bits (so -0.0 is not 0.0).

    Raises
    ------
    Mismatch
        Type or value differs.
    """
    subject = f"{clause}: " if clause else ""
    subject += f"{what}: " if what else ""
    if type(got) is not type(expected):
        raise Mismatch(
            f"{subject}got {got!r} ({type(got).__name__}), expected {expected!r} ({type(expected).__name__})"
        )
    if isinstance(expected, float):
        assert_bits(np.array([got]), np.array([expected]), dtype=DType.f64, what=what, clause=clause)
    elif got != expected:
        raise Mismatch(f"{subject}got {got!r}, expected {expected!r}", count=1)


def sentinel(n: int, format: Any) -> npt.NDArray[Any]:
    """Return ``n`` elements of a format, every byte 0xAA: what an untouched output must still hold."""
    return np.full(n * np.dtype(format).itemsize, 0xAA, dtype=np.uint8).view(format)


def assert_raises(
    kind: type[BaseException] | tuple[type[BaseException], ...],
    clause: str | Iterable[str] | None,
    call: Callable[[], object],
    *,
    shows: Iterable[object] = (),
    out: npt.NDArray[Any] | None = None,
    what: str = "",
) -> BaseException:
    """Assert that a call raises the documented error and leaves its output alone (ERR-NAME-1, ERR-MSG-1, ERR-STATE-1).

    Parameters
    ----------
    kind
        The documented exception.
    clause
        The clause that the message must start with, or several of which it must be one; ``None``: not looked at.
    call
        What to call, without arguments.
    shows
        Values whose text must stand in the message.
    out
        An array that the call must not change.
    what
        Named when the assertion fails.

    Returns
    -------
    BaseException
        What was raised.

    Raises
    ------
    AssertionError
        Nothing was raised, or another kind, or the message lacks something, or ``out`` was written.
    """
    __tracebackhide__ = True
    subject = f"{what}: " if what else ""
    names = kind.__name__ if isinstance(kind, type) else " or ".join(one.__name__ for one in kind)
    before = None if out is None else out.tobytes()
    try:
        answer = call()
    except Exception as raised:
        error = raised
    else:
        raise AssertionError(f"{subject}expected {names}, but the call returned {answer!r}")
    message = str(error)
    if not isinstance(error, kind):
        raise AssertionError(f"{subject}expected {names}, got {type(error).__name__}: {message}") from error
    if clause is not None:
        allowed = (clause,) if isinstance(clause, str) else tuple(clause)
        if not any(message.startswith(f"{one}: ") and getattr(error, "clause", None) == one for one in allowed):
            raise AssertionError(f"{subject}the message must start with {' or '.join(allowed)}: {message!r}") from error
    for value in shows:
        if str(value) not in message:
            raise AssertionError(f"{subject}the message must show {value}: {message!r}") from error
    if out is not None and out.tobytes() != before:
        raise AssertionError(f"{subject}the output was written although {type(error).__name__} was raised") from error
    return error
