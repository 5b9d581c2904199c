"""Gaussian pairs: the Box-Muller transform, exact and fast.

Two words a and b of a stream give two independent normal values: a radius from a, an angle from b.  There are two
mappings from words to values, and both are contracts.  The exact one works in f64 with correctly rounded
functions.  The fast one works in f32 with short polynomials, so that a vector unit can do it in one sweep; its bits
follow from the order of the operations, which is therefore kept here to the letter.
"""

from __future__ import annotations

from functools import reduce

from fucina.reference.elementary import cos, ln, sin
from fucina.reference.softfloat import Soft32, Soft64
from fucina.reference.streams import unit_closed, unit_half_open

__all__ = ["exact_pair", "fast_pair"]

# -- the exact mapping

MINUS_TWO = Soft64.integer(-2)
TWO_PI = Soft64.from_bits(0x401921FB54442D18)


def exact_pair(a: int, b: int, scale: Soft32) -> tuple[Soft32, Soft32]:
    """Return the two values of a pair of words.

    Parameters
    ----------
    a, b : int
        The two words.
    scale : Soft32
        Factor of both values, of any kind.

    Returns
    -------
    even, odd : Soft32
        The elements with the even and the odd index.

    Notes
    -----
    Clauses: RNG-GAUSS-1, RNG-GAUSS-4, NUM-ARITH-1
    """
    r = (MINUS_TWO * ln(unit_closed(a))).sqrt()
    angle = TWO_PI * unit_half_open(b)
    wide = Soft64.nearest(scale)
    return Soft32.nearest((r * cos(angle)) * wide), Soft32.nearest((r * sin(angle)) * wide)


# -- the fast mapping


def _constants(text: str) -> tuple[Soft32, ...]:
    return tuple(Soft32.decimal(item) for item in text.split())


ONE, HALF, FOUR = _constants("1 0.5 4")
FAST_MINUS_TWO, SQRT_HALF, HALF_PI = _constants("-2 0.7071067811865476 1.5707963267948966")
LN2_HIGH, LN2_LOW = _constants("0.693359375 -2.12194440e-4")
LN = _constants(
    "7.0376836292e-2 -1.1514610310e-1 1.1676998740e-1 -1.2420140846e-1 1.4249322787e-1 "
    "-1.6668057665e-1 2.0000714765e-1 -2.4999993993e-1 3.3333331174e-1"
)
SIN = _constants("-1.9515295891e-4 8.3321608736e-3 -1.6666654611e-1")
COS = _constants("2.443315711809948e-5 -1.388731625493765e-3 4.166664568298827e-2")


def _horner(x: Soft32, coefficients: tuple[Soft32, ...]) -> Soft32:
    """Return the polynomial with these coefficients, highest power first."""
    return reduce(lambda total, coefficient: total * x + coefficient, coefficients)


def _fast_ln(x: Soft32) -> Soft32:
    """Return about ln x for a positive normal x.

    Notes
    -----
    Clauses: RNG-FAST-1
    """
    # x = m * 2**e with m in [sqrt(1/2), sqrt(2))
    bits = x.bits
    exponent = (bits >> 23) - 126
    m = Soft32.from_bits((bits & 0x7FFFFF) | 126 << 23)
    if m < SQRT_HALF:
        exponent -= 1
        m = m + m
    e = Soft32.integer(exponent)

    # ln m = f - f**2 / 2 + f**3 * p(f); e * ln 2 is added in two parts, the small one first
    f = m - ONE
    z = f * f
    y = (f * z) * _horner(f, LN)
    y = y + e * LN2_LOW
    y = y - HALF * z
    y = f + y
    return y + e * LN2_HIGH


def _fast_turn(x: Soft32) -> tuple[Soft32, Soft32]:
    """Return about the cosine and the sine of ``x`` full turns, for x in [0, 1].

    Notes
    -----
    Clauses: RNG-FAST-1
    """
    # the nearest quarter turn, and the angle left over, in [-pi/4, pi/4]
    t = x * FOUR
    j = (t + HALF).floor()
    g = (t - Soft32.integer(j)) * HALF_PI

    z = g * g
    s = g + (g * z) * _horner(z, SIN)
    c = (ONE - HALF * z) + (z * z) * _horner(z, COS)

    # turn back by j quarters
    if j & 1:
        s, c = c, s
    return -c if (j + 1) & 2 else c, -s if j & 2 else s


def fast_pair(a: int, b: int, scale: Soft32) -> tuple[Soft32, Soft32]:
    """Return the two values of a pair of words under the fast mapping.

    Parameters
    ----------
    a, b : int
        The two words.
    scale : Soft32
        Factor of both values, of any kind.

    Returns
    -------
    even, odd : Soft32
        The elements with the even and the odd index.

    Notes
    -----
    Clauses: RNG-FAST-1, RNG-GAUSS-4, NUM-ARITH-1
    """
    r = (FAST_MINUS_TWO * _fast_ln(Soft32.nearest(unit_closed(a)))).sqrt()
    c, s = _fast_turn(Soft32.nearest(unit_half_open(b)))
    return (r * c) * scale, (r * s) * scale
