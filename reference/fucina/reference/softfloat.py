"""Floating-point arithmetic in integers: f32 and f64 numbers that compute without a floating-point unit.

The formulas of the chapter *rng* are sequences of single IEEE operations (clause NUM-ARITH-1).  Written on Python
floats they would run on the hardware and obey whatever rounding mode or flush-to-zero switch the calling thread
happens to have.  :class:`Soft32` and :class:`Soft64` obey nobody: each operator forms the exact result as an integer
times a power of two and rounds it once with :func:`~fucina.reference.formats.round_to`.

The two formats never mix in one operation; going from one to the other is written down, as
``Soft32.nearest(x)`` or ``Soft64.nearest(x)``.
"""

from __future__ import annotations

from math import isqrt
from typing import ClassVar, Self

from fucina.reference.formats import F32, F64, Format, Kind, Number, decode, encode, float_of, pattern_of, round_to

__all__ = ["Soft32", "Soft64", "SoftFloat"]

FINITE, INFINITE, NAN = Kind.FINITE, Kind.INFINITE, Kind.NAN


class SoftFloat:
    """A number of one binary format, with the IEEE operations on it.

    A NaN result is the positive quiet NaN without payload, which clause NUM-NAN-2 leaves free.

    Attributes
    ----------
    number : Number
        The exact value; finite ones fit the format.

    Notes
    -----
    Clauses: NUM-ARITH-1, NUM-NAN-2
    """

    format: ClassVar[Format]
    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    # -- making numbers

    @classmethod
    def rounded(cls, sign: int, m: int, e: int) -> Self:
        """Return the number nearest to ``(-1)**sign * m * 2**e``; beyond the range, the infinity."""
        fmt = cls.format
        m, e = round_to(fmt, m, e)
        if m.bit_length() + e > fmt.bias + 1:
            return cls(Number(INFINITE, sign))
        return cls(Number(FINITE, sign, m, e))

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
        ten = int(exponent or 0) - len(fraction)
        return cls.ratio(int(text[0] == "-"), int(whole + fraction) * 10 ** max(ten, 0), 10 ** max(-ten, 0))

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
    def bits(self) -> int:
        """The pattern in this format."""
        return encode(self.format, self.number)

    def to_float(self) -> float:
        """Return the value as a Python float; exact, since no format here is wider."""
        return float_of(encode(F64, self.number))

    @property
    def is_finite(self) -> bool:
        """Whether this is neither an infinity nor a NaN."""
        return self.number.kind is FINITE

    @property
    def is_zero(self) -> bool:
        """Whether this is a zero of either sign."""
        return self.number.kind is FINITE and not self.number.m

    def floor(self) -> int:
        """Return the largest integer not above a finite number."""
        _, sign, m, e = self.number
        m = -m if sign else m
        return m << e if e >= 0 else m >> -e

    def __repr__(self) -> str:
        return f"{type(self).__name__}(0x{self.bits:0{(self.format.sign_shift + 1) // 4}x} = {self.to_float()!r})"

    # -- arithmetic

    def __neg__(self) -> Self:
        kind, sign, m, e = self.number
        return type(self)(Number(kind, 1 - sign, m, e))

    def __abs__(self) -> Self:
        kind, _, m, e = self.number
        return type(self)(Number(kind, 0, m, e))

    def __add__(self, other: Self) -> Self:
        kind_a, sign_a, m_a, e_a = self.number
        kind_b, sign_b, m_b, e_b = other.number
        if kind_a is FINITE and kind_b is FINITE:
            # align both to the smaller exponent: the sum of the integers is the exact sum
            e = min(e_a, e_b)
            m = (-m_a if sign_a else m_a) << (e_a - e)
            m += (-m_b if sign_b else m_b) << (e_b - e)
            if m:
                return self.rounded(int(m < 0), abs(m), e)
            # an exact zero is +0, unless both operands are negative (then both are -0)
            return type(self)(Number(FINITE, sign_a & sign_b))
        if kind_a is NAN or kind_b is NAN or (kind_a is kind_b and sign_a != sign_b):
            return self._nan()
        return type(self)(Number(INFINITE, sign_a if kind_a is INFINITE else sign_b))

    def __sub__(self, other: Self) -> Self:
        return self + -other

    def __mul__(self, other: Self) -> Self:
        kind_a, sign_a, m_a, e_a = self.number
        kind_b, sign_b, m_b, e_b = other.number
        sign = sign_a ^ sign_b
        if kind_a is FINITE and kind_b is FINITE:
            return self.rounded(sign, m_a * m_b, e_a + e_b)
        if kind_a is NAN or kind_b is NAN or self.is_zero or other.is_zero:
            return self._nan()
        return type(self)(Number(INFINITE, sign))

    def __truediv__(self, other: Self) -> Self:
        kind_a, sign_a, m_a, e_a = self.number
        kind_b, sign_b, m_b, e_b = other.number
        sign = sign_a ^ sign_b
        if kind_a is FINITE and kind_b is FINITE and m_b:
            return self.ratio(sign, m_a, m_b, e_a - e_b)
        if kind_a is NAN or kind_b is NAN or (kind_a is kind_b and not (kind_a is FINITE and m_a)):
            return self._nan()
        return type(self)(Number(FINITE, sign) if kind_b is INFINITE else Number(INFINITE, sign))

    def sqrt(self) -> Self:
        """Return the square root.

        The integer square root of a significand widened to twice the precision and more is exact in all bits that
        decide the rounding; a sticky bit tells whether anything follows.

        Notes
        -----
        Clauses: NUM-ELEM-1
        """
        kind, sign, m, e = self.number
        if kind is NAN or self.is_zero:
            return self
        if sign:
            return self._nan()
        if kind is INFINITE:
            return self
        shift = max(0, 2 * self.format.precision + 4 - m.bit_length())
        shift += (e - shift) & 1  # the exponent under the root must be even
        m <<= shift
        root = isqrt(m)
        return self.rounded(0, root << 1 | (root * root != m), ((e - shift) >> 1) - 1)

    def _nan(self) -> Self:
        return type(self)(Number(NAN, 0))

    # -- order

    def __lt__(self, other: Self) -> bool:
        order = self._order(other)
        return order is not None and order < 0

    def __gt__(self, other: Self) -> bool:
        order = self._order(other)
        return order is not None and order > 0

    def __le__(self, other: Self) -> bool:
        order = self._order(other)
        return order is not None and order <= 0

    def __ge__(self, other: Self) -> bool:
        order = self._order(other)
        return order is not None and order >= 0

    def _order(self, other: Self) -> int | None:
        """Return an integer with the sign of ``self - other``, or None where a NaN makes them unordered."""
        kind_a, sign_a, m_a, e_a = self.number
        kind_b, sign_b, m_b, e_b = other.number
        if kind_a is NAN or kind_b is NAN:
            return None
        if kind_a is FINITE and kind_b is FINITE:
            e = min(e_a, e_b)
            return ((-m_a if sign_a else m_a) << (e_a - e)) - ((-m_b if sign_b else m_b) << (e_b - e))
        return (kind_a is INFINITE) * (1 - 2 * sign_a) - (kind_b is INFINITE) * (1 - 2 * sign_b)


class Soft32(SoftFloat):
    """A binary32 number."""

    format = F32
    __slots__ = ()


class Soft64(SoftFloat):
    """A binary64 number."""

    format = F64
    __slots__ = ()
