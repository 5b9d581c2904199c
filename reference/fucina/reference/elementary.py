"""Elementary functions: ln, sin and cos of a binary64 number, correctly rounded, in integers.

Clause NUM-ELEM-1 asks for the exact mathematical value, rounded once.  No mathematical library promises that, so
nothing here calls one.

**Fixed point.** An integer ``n`` stands for ``n / 2**w``; one *unit* is ``2**-w``.  A right shift and a floor division
each lose less than one unit and nothing else is inexact, so errors can be counted.

**The widening loop.** For a precision ``w`` each function forms an integer ``n`` that is less than two units away
from the exact value.  Rounding is monotonic, so if ``n - 2`` and ``n + 2`` round to the same f64, the exact value,
which lies between them, rounds to it as well: that is the answer, by proof.  Otherwise ``w`` grows and the work is
done again.

**Why the loop ends.** The two ends can disagree for ever only if the exact value is itself a border between two
roundings, or zero.  Every border is rational.  By the theorem of Lindemann and Weierstrass ``ln x`` is transcendental
for every rational ``x > 0`` except 1, and ``sin x`` and ``cos x`` for every rational ``x`` except 0; those exceptions
are answered before the loop.  So the distance to the nearest border is positive, and some ``w`` makes four units
smaller.

**Why two units.** Each function works with ``guard`` more bits and drops them at the end.  Its error is below ``5 * k +
9`` inner units for ``k`` terms of the series, as counted beside each loop.  A term is at most half the one before, so
``k <= w + guard + 3``, and with ``w >= 85`` the total stays below ``32 * w``, which :func:`_guard` keeps below
``2**guard``.  After the shift that is less than one unit, and the shift itself loses less than another.

Square roots need no loop, see :meth:`fucina.reference.softfloat.SoftFloat.sqrt`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fucina.reference.formats import F64, Kind, Number, round_to
from fucina.reference.softfloat import Soft64

__all__ = ["cos", "ln", "sin"]

FIRST = F64.precision + 32  # significant bits of the first attempt: about one argument in 2**30 needs a second
STEP = 64
CHUNK = 256  # constants are cached in precisions that are multiples of this

ZERO, ONE = Soft64.integer(0), Soft64.integer(1)
INFINITY, NAN = Soft64(Number(Kind.INFINITE, 0)), Soft64(Number(Kind.NAN, 0))


def _settle(approximate: Callable[[int], int], w: int) -> Soft64:
    """Widen until both ends of the interval round to one f64, and return it."""
    while True:
        n = approximate(w)
        sign, size = int(n < 0), abs(n)
        if size > 2:
            nearest = round_to(F64, size - 2, -w)
            if nearest == round_to(F64, size + 2, -w):
                return Soft64.rounded(sign, *nearest)
        w += STEP


def _guard(w: int) -> int:
    """Return guard bits for a series of ``w`` bits: ``2**guard > 32 * w > 5 * (w + guard + 3) + 9``."""
    return w.bit_length() + 5


# -- constants


def _series(first: int, divisor: int) -> int:
    """Return ``sum(first / divisor**i / (2 * i + 1))``, a power series of atanh or, for a negative divisor, of atan.

    Of k terms each is a floor division of the one before by 25 or more, so less than 1.1 units off (the first is less
    than 1 off); the division by the odd number adds less than 1; what follows the last term is below 3.  That is less
    than ``3 * k + 3`` in all.
    """
    total, term, i = 0, first, 1
    while term not in (0, -1):
        total += term // i
        term //= divisor
        i += 2
    return total


@lru_cache
def _ln2_wide(w: int) -> int:
    """Return ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749) in units of 2**-w, less than two off.

    The three series together are less than ``28 * (3 * k + 3)`` inner units off, with ``k < inner``; 2**16 * w is more.
    """
    inner = w + 16 + w.bit_length()
    one = 1 << inner
    total = 18 * _series(one // 26, 26**2) - 2 * _series(one // 4801, 4801**2) + 8 * _series(one // 8749, 8749**2)
    return total >> (inner - w)


@lru_cache
def _half_pi_wide(w: int) -> int:
    """Return pi/2 = 8 atan(1/5) - 2 atan(1/239) (Machin) in units of 2**-w, less than two off, for the same reason."""
    inner = w + 16 + w.bit_length()
    one = 1 << inner
    total = 8 * _series(one // 5, -(5**2)) - 2 * _series(one // 239, -(239**2))
    return total >> (inner - w)


def _constant(wide: Callable[[int], int], w: int) -> int:
    """Return a constant in units of 2**-w, less than two off: ``2 / 4`` from the wider one, 1 from the shift."""
    whole = -(-(w + 2) // CHUNK) * CHUNK
    return wide(whole) >> (whole - w)


# -- functions


def ln(x: Soft64) -> Soft64:
    """Return the natural logarithm, correctly rounded.

    Parameters
    ----------
    x : Soft64
        Any number.

    Returns
    -------
    Soft64
        +0 for 1, an infinity for zeros and for the infinity, a NaN below zero.

    Notes
    -----
    Clauses: NUM-ELEM-1
    """
    kind, sign, m, e = x.number
    if kind is Kind.NAN or (sign and not x.is_zero):
        return NAN
    if kind is Kind.INFINITE:
        return INFINITY
    if not m:
        return -INFINITY

    # x = m * 2**e = (m / one) * 2**k, with m / one in [0.7, 1.4) so that a small logarithm never is a difference
    length = m.bit_length()
    if 10 * m < 7 << length:
        length -= 1
    one, k = 1 << length, e + length
    if not k and m == one:
        return ZERO

    def approximate(w: int) -> int:
        guard = _guard(w)
        inner = w + guard
        # ln(m / one) = 2 atanh(s) = 2 (s + s**3/3 + s**5/5 + ...), s = (m - one) / (m + one), |s| < 0.18
        s = ((m - one) << inner) // (m + one)  # less than 1 off
        square = s * s >> inner  # 2 * 0.18 * 1 from s and 1 from the shift: less than 1.4 off
        # A term is off by the previous one's error times 0.04, by the square's times 0.18, and by the shift: less than
        # 1.5.  Its division adds 1, the rest after the last term is below 3, and all that counts twice: 5 * k + 6.
        total, term, i = 0, s, 1
        while term not in (0, -1):
            total += term // i
            term = term * square >> inner
            i += 2
        # |k| < 2**11, and the constant has 16 more bits: 2**11 * 2 / 2**16 and the shift, less than 2
        return 2 * total + (k * _constant(_ln2_wide, inner + 16) >> 16) >> guard

    # with k = 0 the result is about (m - one) / one: as many leading zeros as that has
    return _settle(approximate, FIRST + (0 if k else length - abs(m - one).bit_length() + 1))


def _sine(x: Soft64, turns: int) -> Soft64:
    """Return sin(x + turns * pi/2), correctly rounded, for a finite x that is not 0."""
    _, sign, m, e = x.number
    size = max(0, m.bit_length() + e)  # |x| < 2**size
    m = -m if sign else m

    def approximate(w: int) -> int:
        guard = _guard(w)
        inner = w + guard
        # x = r + j * pi/2 with |r| <= pi/4, up to a last place, and |j| <= 2**size.  The constant has size + 2 more
        # bits: j times its error is below half a unit, the shift of m below a quarter, the last shift below 1, so
        # r is less than 2 off.
        wide = inner + size + 2
        half_pi = _constant(_half_pi_wide, wide)
        r = m << (wide + e) if wide + e >= 0 else m >> -(wide + e)
        j = (2 * r // half_pi + 1) >> 1
        r = (r - j * half_pi) >> (size + 2)
        # The series of the sine for an even number of quarter turns, of the cosine for an odd one.  A term is off by
        # the previous one's error times 0.63, by the square's times at most 1 and by the shift, all that over 2 or
        # more, and by the division: less than 5, in the first step (2 * 0.63 + 5 + 1) / 2 + 1 and then ever less.
        # The rest after the last term is below 9.
        quadrant = (j + turns) & 3
        square = r * r >> inner  # 2 * 0.79 * 2 from r and 1 from the shift: less than 5 off
        term, i = (1 << inner, 1) if quadrant & 1 else (r, 2)
        total = 0
        while term not in (0, -1):
            total += term
            term = -(term * square >> inner) // (i * (i + 1))
            i += 2
        return (-total if quadrant & 2 else total) >> guard

    # a sine of a small number is as small as that
    return _settle(approximate, FIRST + (max(0, -(m.bit_length() + e)) if turns == 0 else 0))


def sin(x: Soft64) -> Soft64:
    """Return the sine of an angle in radians, correctly rounded.

    Parameters
    ----------
    x : Soft64
        Any number, of any size.

    Returns
    -------
    Soft64
        A zero for that zero, a NaN for infinities and NaN.

    Notes
    -----
    Clauses: NUM-ELEM-1
    """
    if not x.is_finite:
        return NAN
    return x if x.is_zero else _sine(x, 0)


def cos(x: Soft64) -> Soft64:
    """Return the cosine of an angle in radians, correctly rounded.

    Parameters
    ----------
    x : Soft64
        Any number, of any size.

    Returns
    -------
    Soft64
        1 for zeros, a NaN for infinities and NaN.

    Notes
    -----
    Clauses: NUM-ELEM-1
    """
    if not x.is_finite:
        return NAN
    return ONE if x.is_zero else _sine(x, 1)
