"""Binary floating-point formats: one description, one decoder, one rounding, one encoder.

A format is data: so many exponent bits, so many mantissa bits, a bias, and what the codes at the top of the range mean.
The algorithms below are written once and read that data, so f16 differs from f8_e5m2 by four numbers and nothing else.

Between decoding and encoding a finite value is an exact pair of integers, ``m * 2**e`` with a sign, and infinitely many
digits cost nothing.  All arithmetic is on Python ints: the floating-point unit, its rounding mode, its flush-to-zero
switch and its flags play no part (clauses NUM-ENV-2, NUM-ENV-3).  Even a Python float enters and leaves as its 64-bit
pattern only.
"""

from __future__ import annotations

import enum
import pickle
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "BF16",
    "E4M3",
    "E5M2",
    "F16",
    "F32",
    "F64",
    "Format",
    "Kind",
    "Number",
    "decode",
    "encode",
    "float_of",
    "pattern_of",
    "round_to",
]


@dataclass(frozen=True, slots=True, eq=False)  # a format is itself only
class Format:
    """What a bit pattern of a binary floating-point format means.

    A pattern is, from the top, one sign bit, ``exponent_bits`` and ``mantissa_bits``.  Read without its sign it is a
    *magnitude*, and magnitudes are ordered as the values are: zero, the subnormals, the normals up to ``largest``, then
    the infinity if there is one, then the NaNs.

    Parameters
    ----------
    name : str
        The dtype's name.
    exponent_bits, mantissa_bits, bias : int
        The layout; a normal value is ``1.mantissa * 2**(exponent field - bias)``.
    largest : int
        Magnitude of the largest finite value.
    has_infinity : bool
        Whether the magnitude after ``largest`` is the infinity; without one it is the first NaN.
    nan : int
        Magnitude of the NaN that is made here.
    keeps_payload : bool
        Whether the payload of a NaN survives a conversion, or every NaN of a sign is the same.

    Notes
    -----
    Clauses: BRIDGE-FORMAT-1
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    has_infinity: bool
    nan: int
    keeps_payload: bool

    sign_shift: int = field(init=False)  # place of the sign bit
    precision: int = field(init=False)  # bits of a normal significand, the implicit one included
    least: int = field(init=False)  # the least subnormal is 2**least; every finite value is a multiple of it
    overflow: int = field(init=False)  # magnitude of a value beyond the range: infinity, else NaN

    def __post_init__(self) -> None:
        for name, value in (
            ("sign_shift", self.exponent_bits + self.mantissa_bits),
            ("precision", self.mantissa_bits + 1),
            ("least", 1 - self.bias - self.mantissa_bits),
            ("overflow", self.largest + 1),
        ):
            object.__setattr__(self, name, value)


F64 = Format("f64", 11, 52, 1023, 0x7FEFFFFFFFFFFFFF, True, 0x7FF8000000000000, True)
F32 = Format("f32", 8, 23, 127, 0x7F7FFFFF, True, 0x7FC00000, True)
F16 = Format("f16", 5, 10, 15, 0x7BFF, True, 0x7E00, True)
BF16 = Format("bf16", 8, 7, 127, 0x7F7F, True, 0x7FC0, True)
E5M2 = Format("f8_e5m2", 5, 2, 15, 0x7B, True, 0x7E, False)
E4M3 = Format("f8_e4m3", 4, 3, 7, 0x7E, False, 0x7F, False)


class Kind(enum.Enum):
    """The three kinds of floating-point datum."""

    FINITE = "finite"
    INFINITE = "infinite"
    NAN = "nan"


FINITE, INFINITE, NAN = Kind.FINITE, Kind.INFINITE, Kind.NAN


class Number(NamedTuple):
    """What a pattern stands for, without its format.

    A finite number is ``(-1)**sign * m * 2**e``, exactly; zeros have a sign too.  Of a NaN, ``m * 2**e`` is the
    mantissa field read as a fraction below 1, so that payloads of different widths align at the top.  Of an infinity
    only the sign counts.
    """

    kind: Kind
    sign: int
    m: int = 0
    e: int = 0


def decode(fmt: Format, bits: int) -> Number:
    """Return the number that a pattern stands for, exactly.

    Parameters
    ----------
    fmt : Format
        The format of the pattern.
    bits : int
        The pattern.

    Returns
    -------
    Number
        Its kind, sign and exact value, or its payload.

    Notes
    -----
    Clauses: BRIDGE-DECODE-1, BRIDGE-BF16-1, BRIDGE-F16-1, BRIDGE-E4M3-1, BRIDGE-E5M2-1
    """
    sign = bits >> fmt.sign_shift
    magnitude = bits & ((1 << fmt.sign_shift) - 1)
    fraction = magnitude & ((1 << fmt.mantissa_bits) - 1)

    # the codes above the largest finite one
    if magnitude > fmt.largest:
        if fmt.has_infinity and magnitude == fmt.overflow:
            return Number(INFINITE, sign)
        return Number(NAN, sign, fraction if fmt.keeps_payload else 0, -fmt.mantissa_bits)

    # normal values have an implicit leading one; field 0 shares the exponent of field 1
    exponent = magnitude >> fmt.mantissa_bits
    if exponent:
        return Number(FINITE, sign, fraction | 1 << fmt.mantissa_bits, fmt.least + exponent - 1)
    return Number(FINITE, sign, fraction, fmt.least)


def round_to(fmt: Format, m: int, e: int) -> tuple[int, int]:
    """Round ``m * 2**e`` to the precision of a format, to nearest, ties to even.

    This is the only place where anything is rounded: conversions, soft-float operations and elementary functions all
    end here.

    Parameters
    ----------
    fmt : Format
        The format whose precision and least subnormal bound the result.  Its largest value does not: a result too big
        for the format comes back as if the exponent were unbounded, for the caller to treat.
    m, e : int
        The exact value, ``m >= 0``.  A value that is known only to lie strictly between two neighbours is given with
        one extra low bit set (a *sticky* bit) below everything that can decide.

    Returns
    -------
    m, e : int
        The rounded value.  A value that had to be cut comes back in its one form: ``m`` as long as the precision, or
        ``e`` equal to ``fmt.least``; one that was short enough comes back as it is.

    Notes
    -----
    Clauses: BRIDGE-ROUND-1
    """
    excess = m.bit_length() - fmt.precision
    if e + excess < fmt.least:  # a subnormal has fewer bits
        excess = fmt.least - e
    if excess <= 0:
        return m, e
    half = 1 << (excess - 1)
    rest = m & (half + half - 1)
    m >>= excess
    if rest > half or (rest == half and m & 1):
        m += 1
        if m >> fmt.precision:  # a carry out of the top: 2**precision, which is one bit too long
            m >>= 1
            excess += 1
    return m, e + excess


def encode(fmt: Format, number: Number, saturate: bool = False) -> int:
    """Return the pattern nearest to a number.

    Parameters
    ----------
    fmt : Format
        The format of the result.
    number : Number
        What to encode.
    saturate : bool
        Whether a value beyond the range becomes the largest finite value of its sign, infinities included, instead of
        the infinity (of f8_e4m3: the NaN).

    Returns
    -------
    int
        The pattern.  A NaN is always quiet.

    Notes
    -----
    Clauses: BRIDGE-ROUND-1, BRIDGE-BF16-2, BRIDGE-BF16-3, BRIDGE-F16-2, BRIDGE-F16-3, BRIDGE-E4M3-2, BRIDGE-E4M3-3,
    BRIDGE-E5M2-2, BRIDGE-E5M2-3, BRIDGE-SAT-1
    """
    kind, sign, m, e = number
    if kind is FINITE and not m:
        magnitude = 0
    elif kind is FINITE:
        m, e = round_to(fmt, m, e)
        # Bring the last place of m onto the format's own: a full significand, or the least exponent.  Then the exponent
        # field counts the steps above `least`, and the implicit one of a normal m adds the missing 1 to it.
        shift = min(fmt.precision - m.bit_length(), e - fmt.least)
        if shift > 0:
            m <<= shift
            e -= shift
        magnitude = m + ((e - fmt.least) << fmt.mantissa_bits)
        if magnitude > fmt.largest:
            magnitude = fmt.largest if saturate else fmt.overflow
    elif kind is INFINITE:
        magnitude = fmt.largest if saturate else fmt.overflow
    elif fmt.keeps_payload:
        # fmt.nan holds the all-ones exponent and the quiet bit; whatever does not fit falls off the low end
        shift = fmt.mantissa_bits + e
        magnitude = fmt.nan | (m << shift if shift >= 0 else m >> -shift)
    else:
        magnitude = fmt.nan
    return sign << fmt.sign_shift | magnitude


def pattern_of(value: float) -> int:
    """Return the 64-bit pattern of a Python float; a copy of eight bytes, no arithmetic.

    A subclass is asked past a ``__float__`` of its own.  ``struct.pack`` would compare the float with -1.0, and a
    signalling NaN answers any comparison with a flag or a trap (clause NUM-ENV-3).  A pickle holds the bytes behind
    three others, and pickling only copies them.
    """
    return int.from_bytes(pickle.dumps(float.__float__(value), protocol=2)[3:11], "big")


def float_of(bits: int) -> float:
    """Return the Python float of a 64-bit pattern; a copy of eight bytes, no arithmetic."""
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value
