"""The judges: what each conversion must give, from the formats' definition and from other people's software.

Encoding is judged by a table: the exact values of a format's codes, ties between neighbours, and so the f32 pattern
from which each code begins.  Beside it stand numpy (f16, i32) and ml_dtypes (bf16, f8); where a library's rule for NaN
is not the contract's, its NaNs are compared as a class, and the rule is stated here as a formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["FORMATS", "Format", "decoded", "encoded", "peer_agrees", "truncated", "truncated_by_integers"]

Words = npt.NDArray[Any]

SIGN, F32_INFINITY, F32_QUIET = 1 << 31, 0x7F80_0000, 0x0040_0000


@dataclass(frozen=True)
class Format:
    """A format narrower than f32: its fields, the NaN that it gives for an f32 NaN, and its peer.

    The code after the largest finite one is what overflow gives: infinity, or the NaN code where there is none.
    """

    name: str
    code: npt.DTypeLike
    mantissa_bits: int
    bias: int
    largest: int
    has_infinity: bool
    nan: Callable[[Words], Words]
    peer: npt.DTypeLike

    @property
    def sign_shift(self) -> int:
        """Place of the sign bit."""
        return 8 * np.dtype(self.code).itemsize - 1

    def value(self, code: int) -> float:
        """Return the exact value of a finite code without sign; of ``largest + 1`` as if it were finite too."""
        exponent, fraction = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        if exponent == 0:
            return float(fraction * 2.0 ** (1 - self.bias - self.mantissa_bits))
        return float((fraction + (1 << self.mantissa_bits)) * 2.0 ** (exponent - self.bias - self.mantissa_bits))


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("bf16", "u2", 7, 127, 0x7F7F, True, lambda b: b >> 16 | 0x40, ml_dtypes.bfloat16),
        Format("f16", "u2", 10, 15, 0x7BFF, True, lambda b: b >> 13 & 0x3FF | 0x7E00, np.float16),
        Format("f8_e4m3", "u1", 3, 7, 0x7E, False, lambda b: 0 * b + 0x7F, ml_dtypes.float8_e4m3fn),
        Format("f8_e5m2", "u1", 2, 15, 0x7B, True, lambda b: 0 * b + 0x7E, ml_dtypes.float8_e5m2),
    )
}


@cache
def _borders(format: str, saturate: bool) -> Words:
    """Return for code 1, 2, ... the least f32 pattern that rounds to it or beyond; a tie goes to the even code."""
    f = FORMATS[format]
    codes = range(f.largest + (0 if saturate else 1))
    ties = [(f.value(c) + f.value(c + 1)) / 2 for c in codes]  # exact: one bit more than the format has
    narrow = np.array(ties, np.float64).astype(np.float32)
    assert (narrow.astype(np.float64) == ties).all()
    up = np.array([c % 2 == 0 for c in codes], np.uint32)  # above an even code the tie itself still belongs to it
    borders: Words = narrow.view(np.uint32) + up
    return borders


def encoded(format: str, patterns: Words, saturate: bool = False) -> Words:
    """Return the codes that consecutive f32 patterns of one sign must give."""
    f = FORMATS[format]
    sign, least = int(patterns[0]) & SIGN, int(patterns[0]) & (SIGN - 1)
    beyond = least + len(patterns)
    assert int(patterns[-1]) == sign + beyond - 1
    borders = _borders(format, saturate)
    # the patterns ascend by one, so each code is one run between two borders
    first, last = (int(np.searchsorted(borders, p, side="right")) for p in (least, beyond - 1))
    starts = np.concatenate([[least], borders[first:last].astype(np.int64), [beyond]])
    codes = np.repeat(np.arange(first, last + 1).astype(f.code), np.diff(starts))
    if beyond > F32_INFINITY + 1:
        nans = max(F32_INFINITY + 1 - least, 0)
        codes[nans:] = f.nan(patterns[nans:] & np.uint32(SIGN - 1)).astype(f.code)
    codes |= np.asarray(bool(sign) << f.sign_shift).astype(f.code)
    return codes


def peer_agrees(format: str, patterns: Words, expected: Words) -> int:
    """Return how many codes of the peer differ: bits of numbers and infinities, class and sign of NaNs."""
    f = FORMATS[format]
    with np.errstate(all="ignore"):
        got = patterns.view(np.float32).astype(f.peer).view(f.code)
    different = np.flatnonzero(got != expected)
    if not different.size:
        return 0
    values, want = got[different].view(f.peer), expected[different].view(f.peer)
    both_nan = np.isnan(values) & np.isnan(want)
    same_sign = (got[different] ^ expected[different]) >> f.sign_shift == 0
    return int(np.count_nonzero(~(both_nan & same_sign)))


def truncated(patterns: Words) -> Words:
    """Return f32 -> i32 by numpy in f64: NaN to 0, clipped, truncated."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = patterns.view(np.float32).astype(np.float64)
    wide[np.isnan(wide)] = 0
    np.clip(wide, -(2.0**31), 2.0**31 - 1, out=wide)
    return wide.astype(np.int32)


def truncated_by_integers(patterns: Words) -> Words:
    """Return f32 -> i32 by shifting the significand; the patterns share their sign and exponent."""
    sign, exponent = int(patterns[0]) >> 31, int(patterns[0]) >> 23 & 0xFF
    assert int(patterns[-1]) >> 23 == int(patterns[0]) >> 23
    if exponent < 127:
        return np.zeros(len(patterns), np.int32)
    significand = (patterns & np.uint32(0x7F_FFFF) | np.uint32(0x80_0000)).astype(np.int64)
    if exponent >= 127 + 31:
        full = np.full(len(patterns), -(2**31) if sign else 2**31 - 1, np.int32)
        if exponent == 255:
            full[np.flatnonzero(patterns & np.uint32(0x7F_FFFF))] = 0
        return full
    shift = exponent - 127 - 23
    magnitude = significand << shift if shift >= 0 else significand >> -shift
    return (-magnitude if sign else magnitude).astype(np.int32)


def decoded(format: str, width: int) -> Words:
    """Return the f32 (width 4) or f64 (width 8) patterns of all codes, from the format's definition."""
    f = FORMATS[format]
    mantissa, infinity, size = (23, F32_INFINITY, "u4") if width == 4 else (52, 0x7FF << 52, "u8")
    out = []
    for code in range(2 << f.sign_shift):
        sign, rest = code >> f.sign_shift, code & ((1 << f.sign_shift) - 1)
        if rest <= f.largest:
            value = np.float64(f.value(rest)).astype(np.float32) if width == 4 else np.float64(f.value(rest))
            pattern = int(value.view(size))
        elif f.has_infinity and rest == f.largest + 1:
            pattern = infinity
        elif f.name in ("f8_e4m3", "f8_e5m2"):  # one quiet NaN a sign
            pattern = infinity | 1 << (mantissa - 1)
        else:  # the payload moves along at the top; bf16 -> f32 is the plain shift, every other way quiets
            payload = (rest & ((1 << f.mantissa_bits) - 1)) << (mantissa - f.mantissa_bits)
            quiet = 0 if (f.name, width) == ("bf16", 4) else 1 << (mantissa - 1)
            pattern = infinity | payload | quiet
        out.append(sign << (8 * width - 1) | pattern)
    return np.array(out, size)
