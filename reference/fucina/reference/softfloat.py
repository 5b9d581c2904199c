"""Floating-point arithmetic in integers: f32 and f64 numbers that compute without a floating-point unit.

The formulas of the chapter *rng* are sequences of single IEEE operations (clause NUM-ARITH-1).  Written on Python
floats they would run on the hardware and obey whatever rounding mode or flush-to-zero switch the calling thread
happens to have.  :class:`Soft32` and :class:`Soft64` obey nobody: each operator forms the exact result as an integer
times a power of two and rounds it once.

The two formats never mix in one operation; going from one to the other is written down, as
``Soft32.nearest(x)`` or ``Soft64.nearest(x)``.
"""

from __future__ import annotations

from math import isqrt
from typing import ClassVar, Self

from fucina.reference.formats import F32, F64, Format, Kind, Number, decode, encode, float_of, pattern_of

__all__ = ["Soft32", "Soft64", "SoftFloat"]

FINITE, INFINITE, NAN = Kind.FINITE, Kind.INFINITE, Kind.NAN


def _integer(text: str) -> int:
    """Return the integer that a text shows; ``int`` estimates its size in f64, which raises a flag (NUM-ENV-3)."""
    found = 0
    for digit in text.lstrip("-"):
        found = 10 * found + ord(digit) - ord("0")
    return -found if text.startswith("-") else found


class SoftFloat:
    """A number of one binary format, with the IEEE operations on it.

    A NaN result is the positive quiet NaN without payload, which clause NUM-NAN-2 leaves free.

    Attributes
    ----------
    kind : Kind
        Finite, infinite or NaN.
    sign : int
        0 or 1; zeros, infinities and NaNs have a sign too.
    m, e : int
        A finite number is ``m * 2**e``, exactly, with the sign in m.  The pair need not be in lowest terms.

    Notes
    -----
    Clauses: NUM-ARITH-1, NUM-NAN-2
    """

    format: ClassVar[Format]
    precision: ClassVar[int]
    least: ClassVar[int]
    above: ClassVar[int]  # every finite number is below 2**above
    __slots__ = ("e", "kind", "m", "sign")

    def __init_subclass__(cls) -> None:
        cls.precision, cls.least, cls.above = cls.format.precision, cls.format.least, cls.format.bias + 1

    def __init__(self, number: Number) -> None:
        self.kind, self.sign, m, self.e = number
        self.m = -m if self.sign else m

    # -- making numbers

    @classmethod
    def _make(cls, kind: Kind, sign: int, m: int = 0, e: int = 0) -> Self:
        """Return a number from its attributes."""
        made = object.__new__(cls)  # the encoders of blocks make millions of numbers: this skips a call
        made.kind, made.sign, made.m, made.e = kind, sign, m, e
        return made

    @classmethod
    def _nearest(cls, m: int, e: int) -> Self:
        """Return the number nearest to ``m * 2**e``, for m other than 0.

        It rounds as :func:`~fucina.reference.formats.round_to` does, written for speed: a right shift rounds toward
        minus infinity, and what is added before it makes that the nearest integer, ties to even.
        """
        sign = 1 if m < 0 else 0
        excess = m.bit_length() - cls.precision
        if e + excess < cls.least:  # a subnormal has fewer bits
            excess = cls.least - e
        if excess > 0:
            m = (m + (1 << (excess - 1)) - 1 + (m >> excess & 1)) >> excess
            e += excess
        if m.bit_length() + e > cls.above:
            return cls._make(INFINITE, sign)
        made = object.__new__(cls)
        made.kind = FINITE
        made.sign = sign
        made.m = m
        made.e = e
        return made

    @classmethod
    def rounded(cls, sign: int, m: int, e: int) -> Self:
        """Return the number nearest to ``(-1)**sign * m * 2**e``; beyond the range, the infinity."""
        return cls._nearest(-m if sign else m, e) if m else cls._make(FINITE, sign)

    @classmethod
    def ratio(cls, sign: int, numerator: int, denominator: int, e: int = 0) -> Self:
        """Return the number nearest to ``(-1)**sign * numerator / denominator * 2**e``, for denominator > 0."""
        # two bits more than the precision and a sticky bit for the remainder decide every rounding
        shift = max(0, cls.format.precision + 2 + denominator.bit_length() - numerator.bit_length())
        quotient, remainder = divmod(numerator << shift, denominator)
        return cls.rounded(sign, quotient << 1 | (remainder != 0), e - shift - 1)

    @classmethod
    def decimal(cls, text: str) -> Self:
        """Return the number nearest to a decimal such as ``-1.5e-3``: the constants of a formula, rounded once."""
        digits, _, exponent = text.lstrip("-").partition("e")
        whole, _, fraction = digits.partition(".")
        ten = _integer(exponent) - len(fraction)
        return cls.ratio(int(text[0] == "-"), _integer(whole + fraction) * 10 ** max(ten, 0), 10 ** max(-ten, 0))

    @classmethod
    def integer(cls, value: int) -> Self:
        """Return the number nearest to an integer."""
        return cls.rounded(int(value < 0), abs(value), 0)

    @classmethod
    def from_number(cls, number: Number) -> Self:
        """Return a number, of whatever format, in this one, rounded once."""
        kind, sign, m, e = number
        return cls.rounded(sign, m, e) if kind is FINITE else cls(number)

    @classmethod
    def nearest(cls, value: SoftFloat) -> Self:
        """Return a soft float of another format in this one, rounded once."""
        return cls.from_number(value.number)

    @classmethod
    def from_bits(cls, bits: int) -> Self:
        """Return the number of a pattern of this format."""
        return cls(decode(cls.format, bits))

    @classmethod
    def from_float(cls, value: float) -> Self:
        """Return a Python float in this format, rounded once."""
        return cls.from_number(decode(F64, pattern_of(value)))

    # -- reading numbers

    @property
    def number(self) -> Number:
        """The number, without its format."""
        return Number(self.kind, self.sign, abs(self.m), self.e)

    @property
    def bits(self) -> int:
        """The pattern in this format."""
        return encode(self.format, self.number)

    def to_float(self) -> float:
        """Return the value as a Python float; exact, since no format here is wider."""
        return float_of(encode(F64, self.number))

    @property
    def is_finite(self) -> bool:
        """Whether this is neither an infinity nor a NaN."""
        return self.kind is FINITE

    @property
    def is_zero(self) -> bool:
        """Whether this is a zero of either sign."""
        return self.kind is FINITE and not self.m

    def floor(self) -> int:
        """Return the largest integer not above a finite number."""
        return self.m << self.e if self.e >= 0 else self.m >> -self.e

    def __repr__(self) -> str:
        return f"{type(self).__name__}(0x{self.bits:0{(self.format.sign_shift + 1) // 4}x} = {self.to_float()!r})"

    # -- arithmetic

    def __neg__(self) -> Self:
        return self._make(self.kind, 1 - self.sign, -self.m, self.e)

    def __abs__(self) -> Self:
        return self._make(self.kind, 0, abs(self.m), self.e)

    def __add__(self, other: Self) -> Self:
        if self.kind is FINITE and other.kind is FINITE:
            # align both to the smaller exponent: the sum of the integers is the exact sum
            shift = self.e - other.e
            if shift >= 0:
                m, e = (self.m << shift) + other.m, other.e
            else:
                m, e = self.m + (other.m << -shift), self.e
            # an exact zero is +0, unless both operands are negative (then both are -0)
            return self._nearest(m, e) if m else self._make(FINITE, self.sign & other.sign)
        if self.kind is NAN or other.kind is NAN or (self.kind is other.kind and self.sign != other.sign):
            return self._make(NAN, 0)
        return self._make(INFINITE, self.sign if self.kind is INFINITE else other.sign)

    def __sub__(self, other: Self) -> Self:
        if self.kind is FINITE and other.kind is FINITE:
            shift = self.e - other.e
            if shift >= 0:
                m, e = (self.m << shift) - other.m, other.e
            else:
                m, e = self.m - (other.m << -shift), self.e
            if m:
                return self._nearest(m, e)
        return self + -other

    def __mul__(self, other: Self) -> Self:
        if self.kind is FINITE and other.kind is FINITE:
            m = self.m * other.m
            return self._nearest(m, self.e + other.e) if m else self._make(FINITE, self.sign ^ other.sign)
        if self.kind is NAN or other.kind is NAN or self.is_zero or other.is_zero:
            return self._make(NAN, 0)
        return self._make(INFINITE, self.sign ^ other.sign)

    def __truediv__(self, other: Self) -> Self:
        sign = self.sign ^ other.sign
        if self.kind is FINITE and other.kind is FINITE and other.m:
            return self.ratio(sign, abs(self.m), abs(other.m), self.e - other.e)
        if self.kind is NAN or other.kind is NAN or (self.kind is other.kind and not self.m):
            return self._make(NAN, 0)
        return self._make(FINITE if other.kind is INFINITE else INFINITE, sign)

    def fma(self, factor: Self, term: Self) -> Self:
        """Return ``self * factor + term`` with one rounding.

        Notes
        -----
        Clauses: POLICY-DOT-1
        """
        if self.kind is FINITE and factor.kind is FINITE and term.kind is FINITE:
            # the exact product and the term, aligned to the smaller exponent
            m, e = self.m * factor.m, self.e + factor.e
            shift = e - term.e
            if shift >= 0:
                m, e = (m << shift) + term.m, term.e
            else:
                m += term.m << -shift
            return self._nearest(m, e) if m else self._make(FINITE, (self.sign ^ factor.sign) & term.sign)
        # with a NaN or an infinity in it, the product is exact, unless it is finite; then the term decides alone
        if self.kind is FINITE and factor.kind is FINITE:
            return term
        return self * factor + term

    def rsqrt(self) -> Self:
        """Return ``1 / sqrt(self)``, correctly rounded.

        Notes
        -----
        Clauses: POLICY-NORM-1, NUM-ELEM-1
        """
        if self.kind is NAN or (self.sign and not self.is_zero):
            return self._make(NAN, 0)
        if self.is_zero:
            return self._make(INFINITE, self.sign)
        if self.kind is INFINITE:
            return self._make(FINITE, 0)
        m, e = (self.m << 1, self.e - 1) if self.e & 1 else (self.m, self.e)
        # floor(2**s / sqrt(m)), with at least two bits more than the precision, and whether anything follows
        s = self.precision + 3 + (m.bit_length() + 1) // 2
        root = isqrt((1 << 2 * s) // m)
        return self._nearest(root << 1 | (root * root * m != 1 << 2 * s), -s - e // 2 - 1)

    def sqrt(self) -> Self:
        """Return the square root.

        The integer square root of a significand widened to twice the precision and more is exact in all bits that
        decide the rounding; a sticky bit tells whether anything follows.

        Notes
        -----
        Clauses: NUM-ELEM-1
        """
        if self.kind is NAN or self.is_zero:
            return self
        if self.sign:
            return self._make(NAN, 0)
        if self.kind is INFINITE:
            return self
        shift = max(0, 2 * self.precision + 4 - self.m.bit_length())
        shift += (self.e - shift) & 1  # the exponent under the root must be even
        m = self.m << shift
        root = isqrt(m)
        return self._nearest(root << 1 | (root * root != m), ((self.e - shift) >> 1) - 1)

    # -- order: where a NaN makes two numbers unordered, every comparison is false

    def __lt__(self, other: Self) -> bool:
        return self._order(other) < 0

    def __gt__(self, other: Self) -> bool:
        return other._order(self) < 0

    def __le__(self, other: Self) -> bool:
        return self._order(other) <= 0

    def __ge__(self, other: Self) -> bool:
        return other._order(self) <= 0

    def _order(self, other: Self) -> int:
        """Return an integer with the sign of ``self - other``; of what is not ordered, 1."""
        if self.kind is FINITE and other.kind is FINITE:
            shift = self.e - other.e
            return (self.m << shift) - other.m if shift >= 0 else self.m - (other.m << -shift)
        if self.kind is NAN or other.kind is NAN:
            return 1
        return (self.kind is INFINITE) * (1 - 2 * self.sign) - (other.kind is INFINITE) * (1 - 2 * other.sign)


class Soft32(SoftFloat):
    """A binary32 number."""

    format = F32
    __slots__ = ()


class Soft64(SoftFloat):
    """A binary64 number."""

    format = F64
    __slots__ = ()
