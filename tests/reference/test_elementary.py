"""Tests of ln, sin and cos: against mpmath, and of the two claims of the proof."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

from fucina.reference import elementary
from fucina.reference.formats import float_of
from fucina.reference.softfloat import Soft64

BITS = 1400  # enough for an argument of any size

HARD = [
    6381956970095103.0 * 2.0**797,  # the f64 nearest to a multiple of pi/2
    float_of(0x3FF921FB54442D18),  # pi/2
    float_of(0x401921FB54442D18),  # 2 pi
    float_of(0x400921FB54442D18),  # pi
    1.0 + 2.0**-52,
    1.0 - 2.0**-53,
    2.0**-1074,
    2.0**-1022,
    1.7976931348623157e308,
    2.0**-27,
    0.7,
    1.4,
    1e22,
]


def arguments(count: int, seed: int) -> list[float]:
    """Positive floats: of every size, near 1, near multiples of pi/2, and as the streams make them."""
    dice = random.Random(seed)
    found = list(HARD)
    while len(found) < count:
        kind = dice.randrange(5)
        if kind == 0:
            x = float_of(dice.getrandbits(62) % 0x7FF0000000000000)
        elif kind == 1:
            x = 1.0 + dice.choice((-1, 1)) * dice.random() * 2.0 ** -dice.randrange(2, 52)
        elif kind == 2:
            x = dice.randrange(1, 100000) * 1.5707963267948966
        elif kind == 3:
            x = (dice.getrandbits(53) + 1) * 2.0**-53
        else:
            x = dice.getrandbits(53) * 2.0**-53 * 6.283185307179586
        if x > 0.0 and x != 1.0:
            found.append(x)
    return found


FUNCTIONS: list[tuple[Callable[[Soft64], Soft64], Callable[[mpmath.mpf], mpmath.mpf]]] = [
    (elementary.ln, mpmath.log),
    (elementary.sin, mpmath.sin),
    (elementary.cos, mpmath.cos),
]


def exact(function: Callable[[mpmath.mpf], mpmath.mpf], x: float) -> Fraction:
    """The value to more than a thousand bits."""
    with mpmath.workprec(BITS):
        value = function(mpmath.mpf(x))
        mantissa, exponent = (int(part) for part in abs(value).man_exp)
    size = Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))
    return -size if value < 0 else size


@pytest.mark.parametrize(("ours", "theirs"), FUNCTIONS, ids=["ln", "sin", "cos"])
def test_correctly_rounded(ours: Callable[[Soft64], Soft64], theirs: Callable[[mpmath.mpf], mpmath.mpf]) -> None:
    for x in arguments(1200, 1):
        wanted = exact(theirs, x)
        nearest = Soft64.ratio(int(wanted < 0), abs(wanted.numerator), wanted.denominator)
        assert ours(Soft64.from_float(x)).bits == nearest.bits, x.hex()


@pytest.mark.parametrize(("ours", "theirs"), FUNCTIONS, ids=["ln", "sin", "cos"])
def test_approximations_are_less_than_two_units_off(
    ours: Callable[[Soft64], Soft64], theirs: Callable[[mpmath.mpf], mpmath.mpf], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def watched(approximate: Callable[[int], int], start: int) -> Soft64:
        seen.extend((w, approximate(w)) for w in (start, start + 1, start + 64, start + 300))
        return elementary.ZERO

    monkeypatch.setattr(elementary, "_settle", watched)
    for x in (x for x in arguments(400, 2) if 2.0**-200 < x < 2.0**200):
        seen.clear()
        ours(Soft64.from_float(x))
        wanted = exact(theirs, x)
        for w, n in seen:
            assert abs(n - wanted * 2**w) < 2, (x.hex(), w)


@pytest.mark.parametrize("w", [1, 85, 254, 255, 256, 257, 700])
def test_constants_are_less_than_two_units_off(w: int) -> None:
    with mpmath.workprec(BITS):
        for wide, value in ((elementary._ln2_wide, mpmath.log(2)), (elementary._half_pi_wide, mpmath.pi / 2)):
            assert abs(elementary._constant(wide, w) - value * mpmath.mpf(2) ** w) < 2


def test_the_loop_widens_until_the_rounding_is_decided() -> None:
    # just above and just below the border between 1 and the next f64, too close for the first attempts
    border = Fraction(2**53 + 1, 2**53)
    for offset, wanted in ((Fraction(1, 2**400), 1.0 + 2.0**-52), (-Fraction(1, 2**400), 1.0)):
        tried: list[int] = []

        def approximate(w: int, exact: Fraction = border + offset, tried: list[int] = tried) -> int:
            tried.append(w)
            return int(exact * 2**w)

        assert elementary._settle(approximate, 85).to_float() == wanted
        assert len(tried) > 3
        assert tried[-1] >= 399


def test_special_arguments() -> None:
    zero, minus_zero, one = Soft64.integer(0), -Soft64.integer(0), Soft64.integer(1)
    infinity, nan = elementary.INFINITY, elementary.NAN
    assert elementary.ln(one).bits == 0
    assert elementary.ln(zero).bits == elementary.ln(minus_zero).bits == (-infinity).bits
    assert elementary.ln(infinity).bits == infinity.bits
    assert elementary.ln(-one).bits == elementary.ln(nan).bits == elementary.ln(-infinity).bits == nan.bits
    assert elementary.sin(minus_zero).bits == 1 << 63
    assert elementary.cos(minus_zero).bits == one.bits
    for x in (infinity, -infinity, nan):
        assert elementary.sin(x).bits == elementary.cos(x).bits == nan.bits


def test_sine_is_odd_and_cosine_even() -> None:
    for x in arguments(200, 3):
        soft = Soft64.from_float(x)
        assert elementary.sin(-soft).bits == (-elementary.sin(soft)).bits
        assert elementary.cos(-soft).bits == elementary.cos(soft).bits
