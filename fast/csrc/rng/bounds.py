"""Compute the error bounds of the gaussian and gumbel kernels, and check bounds.h against them (see BOUNDS.md).

    python bounds.py                the figures of BOUNDS.md; fails if bounds.h is below a bound, or blunt
    python bounds.py coefficients   the minimax coefficients, as doubles, whose error is then judged above

The polynomials and constants are read out of the C sources, so the figures are those of the code that is compiled.
Polynomial errors are rigorous: the difference to a Taylor polynomial with rational coefficients is moved, exactly, to
the middle of each of many intervals and bounded there by the sum of its absolute terms; the series' tail is added.
"""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from math import factorial, log, log2
from pathlib import Path
from typing import Any

import mpmath as mp

HERE = Path(__file__).parent
HEX = r"-?0x1\.[0-9a-f]+p[+-]?\d+"
U = Fraction(1, 1 << 53)  # half a unit in the last place, relative
SECOND_ORDER = 1 + Fraction(1, 1 << 30)  # covers every product of two errors
INTERVALS = 128

Polynomial = list[Fraction]  # lowest degree first


def fraction(text: str) -> Fraction:
    """Return the value of a hexadecimal constant."""
    return Fraction(float.fromhex(text))


def hex_in(file: str, start: str, end: str) -> list[Fraction]:
    """Return the hexadecimal constants between two marks of a source file."""
    text = (HERE / file).read_text()
    first = text.index(start)
    return [fraction(t) for t in re.findall(HEX, text[first : text.index(end, first)])]


def bits(value: Fraction) -> str:
    """Show an error as a power of two."""
    return f"2^{log2(value):.2f}"


def units(value: Fraction) -> str:
    """Show an error in units of u."""
    return f"{float(value / U):.2f} u"


def of_mp(value: Any) -> Fraction:
    """Return an mpf as a fraction, exactly."""
    sign, mantissa, exponent, _ = value._mpf_
    size: Fraction = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size


mp.mp.prec = 700
PI = of_mp(+mp.pi)  # good to 2^-690: far below everything it is compared with
LN_2 = of_mp(mp.log(2))


def at(p: Polynomial, x: Fraction) -> Fraction:
    """Return p(x)."""
    value = Fraction(0)
    for c in reversed(p):
        value = value * x + c
    return value


def shifted(p: Polynomial, x: Fraction) -> Polynomial:
    """Return the coefficients of p(x + t) in t."""
    c = list(p)
    for i in range(len(c)):
        for j in range(len(c) - 2, i - 1, -1):
            c[j] += x * c[j + 1]
    return c


def relative_error(p: Polynomial, series: Polynomial, tail: Fraction, top: Fraction, least: Fraction) -> Fraction:
    """Bound |p - f| / f on [0, top]: f is the series up to the tail, and at least ``least`` there."""
    top = Fraction(-int(-top * (1 << 40) // 1), 1 << 40)  # rounded up to few digits, for the speed of exact arithmetic
    n = max(len(p), len(series))
    difference = [(p[i] if i < len(p) else 0) - (series[i] if i < len(series) else Fraction(0)) for i in range(n)]
    half, worst = top / (2 * INTERVALS), Fraction(0)
    for k in range(INTERVALS):
        middle = (2 * k + 1) * half
        reach = sum((abs(c) * half**i for i, c in enumerate(shifted(difference, middle))), tail)
        value = sum((abs(c) * half**i for i, c in enumerate(shifted(series, middle)) if i), tail)
        worst = max(worst, reach / max(least, at(series, middle) - value))
    return worst


def horner_error(p: Polynomial, q: Fraction, fused: bool) -> Fraction:
    """Bound the rounding error of Horner's scheme in doubles for |argument| <= q."""
    size, error = abs(p[-1]), Fraction(0)
    for c in reversed(p[:-1]):
        product = size * q
        size = product + abs(c)
        error = error * q + U * size + (0 if fused else U * product)
    return error * SECOND_ORDER


def sensitivity(p: Polynomial, q: Fraction) -> Fraction:
    """Bound |q p'(q)|: what a relative error of q does to p, absolutely."""
    return sum((i * abs(c) * q**i for i, c in enumerate(p)), Fraction(0))


def logarithm(fused: bool) -> Fraction:
    """Bound the relative error of fv_scaled_ln."""
    *coefficients, ln_2 = hex_in("logarithm.h", "fv p = fv_fma", "#endif")
    p = [Fraction(2), *reversed(coefficients)]  # of c * 2 artanh(s) / s, c taken out: it is a power of two
    assert "0x3fe6a09e667f3bcd" in (HERE / "logarithm.h").read_text()
    sqrt_half = fraction("0x1.6a09e667f3bcdp-1")
    s = max((1 - sqrt_half) / (1 + sqrt_half), (2 * sqrt_half - 1) / (2 * sqrt_half + 1))
    q = s * s
    series = [Fraction(2, 2 * k + 1) for k in range(18)]
    tail = 2 * q**18 / 37 / (1 - q)
    approximation = relative_error(p, series, tail, q, Fraction(2))
    argument = 2 * U  # m - 1 is exact, m + 1 and the quotient are rounded
    square = sensitivity(series, q) / 2 * (2 * argument + U)
    product = approximation + argument + square + horner_error(p, q, fused) / 2
    near_one = product + U  # e = 0: the other term is a zero
    constant = abs(ln_2 / LN_2 - 1) + U
    # e != 0: |e ln 2| is at most twice the result, the series at most the result
    elsewhere = 2 * constant + product + (0 if fused else U) + U
    total = max(near_one, elsewhere) * SECOND_ORDER
    rounding = units(total - approximation)
    print(f"    logarithm: polynomial {bits(approximation)}, rounding {rounding}, in all {bits(total)}")
    return total


def reduction(fused: bool) -> Fraction:
    """Bound the relative error of the reduced angle."""
    text = (HERE / "gaussian.c").read_text()
    body = text[text.index("reduced_angle(fv k") : text.index("/* r * cos and r * sin of")]
    fma_part, plain_part = body[body.index("#if") :].split("#else")
    parts = [fraction(t) for t in re.findall(HEX, fma_part if fused else plain_part)]
    off = abs(PI / 2 - sum(parts))
    for n in range(1, 5):  # n times a leading part: exact, a multiple of 2^-53 or of a finer power that x still reaches
        for part in parts[:-1]:
            assert Fraction(float(n * part)) == n * part, "a product of the reduction is not exact"
        assert (n * parts[0] * (1 << 53)).denominator == 1, "the first difference is not exact"
    # the angle is a double, and no double is closer to n pi/2 than the nearest one
    worst = max(n * off / abs(Fraction(float(n * PI / 2)) - n * PI / 2) for n in range(1, 5))
    steps = U if fused else 2 * U * (1 + Fraction(1, 1 << 11)) + U * Fraction(1, 1 << 11)
    print(f"    reduced angle: constants {units(worst)}, in all {units(worst + steps)}")
    return worst + steps


def circle(fused: bool) -> Fraction:
    """Bound the relative error of sine and cosine, given the contract's angle."""
    constants = hex_in("gaussian.c", "const fv q = fv_mul(x, x)", "/* sin x */")
    a0, a1, b0, b1, *rest = constants
    a, b = [a0, a1, *rest[0::2]], [b0, b1, *rest[1::2]]
    sine, cosine = [Fraction(1), *reversed(a)], [Fraction(1), *reversed(b)]
    x = PI / 4 * (1 + Fraction(1, 1 << 40))
    q = x * x
    sine_series = [Fraction((-1) ** k, factorial(2 * k + 1)) for k in range(14)]
    cosine_series = [Fraction((-1) ** k, factorial(2 * k)) for k in range(14)]
    tail = q**14 / factorial(28)
    least_s, least_c = at(sine_series, q) - tail, at(cosine_series, q) - tail
    chi = reduction(fused)
    worst = Fraction(0)
    for name, p, series, least, input_factor in (
        ("sine", sine, sine_series, least_s, Fraction(1)),
        ("cosine", cosine, cosine_series, least_c, Fraction(786, 1000)),  # x tan x at pi/4
    ):
        approximation = relative_error(p, series, tail, q, least)
        inner = p[1:]
        inner_size = sum((abs(c) * q**i for i, c in enumerate(inner)), Fraction(0)) * q
        rounding = chi * input_factor + sensitivity(p, q) / least * U + horner_error(inner, q, fused) * q / least + U
        if name == "sine":
            rounding += inner_size / least * U  # x * q
        if not fused:
            rounding += inner_size / least * U
        total = (approximation + rounding) * SECOND_ORDER
        print(f"    {name}: polynomial {bits(approximation)}, rounding {units(rounding)}, in all {bits(total)}")
        worst = max(worst, total)
    return worst


def declared(name: str) -> Fraction:
    """Return a bound as bounds.h has it."""
    match = re.search(rf"#define {name} FC_PLANT\(\w+, ({HEX}),", (HERE / "bounds.h").read_text())
    assert match, f"bounds.h has no {name}"
    return fraction(match[1])


def judge(name: str, bound: Fraction) -> bool:
    """Compare a bound with the one of bounds.h."""
    constant = declared(name)
    good = bound <= constant <= bound * Fraction(102, 100)
    verdict = "ok" if good else "WRONG: below the bound, or more than 2 % above it"
    print(f"{name}: bound {float(bound).hex()} = {bits(bound)} = {units(bound)}")
    print(f"    bounds.h has {float(constant).hex()}: {verdict}")
    return good


def constants_agree() -> bool:
    """Check the fixed-point constants of the exact path."""
    text, good = (HERE / "exact_constants.h").read_text(), True
    for name, value in (("LN_2", LN_2), ("HALF_PI", PI / 2)):
        body = text[text.index(name) :]
        limbs = [int(t, 16) for t in re.findall(r"0x([0-9a-f]{16})", body[: body.index("}")])]
        same = sum(limb << 64 * i for i, limb in enumerate(limbs)) == int(value * (1 << 512))
        print(f"exact_constants.h, {name}: {'ok' if same else 'WRONG'}")
        good &= same
    return good


def report() -> bool:
    """Print every figure; return whether bounds.h and the constants hold."""
    gaussian, gumbel = Fraction(0), Fraction(0)
    for fused in (True, False):
        print(f"kernels {'with' if fused else 'without'} fma:")
        ln = logarithm(fused)
        kernel = ln / 2 + U + U + circle(fused) + U  # root, its rounding, scale, sine or cosine, product
        contract = U / 2 + U + U + U + U  # logarithm under the root, root, sine or cosine, product, scale
        gaussian = max(gaussian, (kernel + contract) * SECOND_ORDER)
        gumbel = max(gumbel, (ln + U) * SECOND_ORDER)
        print(f"    gaussian: kernel {bits(kernel)}, contract {units(contract)} from the exact value")
    for what, bound in (("gaussian", gaussian), ("gumbel, at |value| = 1", 2 * gumbel)):
        # borders are 2^29 doubles apart; the density of leading digits is taken as 1/x
        share = float(2 * bound / U / (1 << 29) / 2) / log(2)
        print(f"share of values in doubt, {what}: {share:.2g}")
    return all([judge("FC_GAUSSIAN_BOUND", gaussian), judge("FC_GUMBEL_BOUND", gumbel), constants_agree()])


def minimax(f: Any, weight: Any, top: Any, degree: int) -> list[Any]:
    """Return the polynomial with the least max |weight (p - f)| on [0, top], by Remez exchange, lowest degree first."""
    n = degree + 2
    points = [top * (1 - mp.cos(mp.pi * (2 * i + 1) / (2 * n))) / 2 for i in range(n)]
    grid = [top * (1 - mp.cos(mp.pi * i / 800)) / 2 + mp.mpf(2) ** -90 for i in range(801)]
    solution: list[Any] = []
    for _ in range(14):
        system = mp.matrix(n, n)
        for i, x in enumerate(points):
            for k in range(degree + 1):
                system[i, k] = x**k
            system[i, degree + 1] = (-1) ** i / weight(x)
        solution = list(mp.lu_solve(system, mp.matrix([f(x) for x in points])))[:-1]
        errors = [weight(x) * (mp.polyval(solution[::-1], x) - f(x)) for x in grid]
        peaks: list[int] = []  # the extremum of each run of one sign
        for i, e in enumerate(errors):
            if peaks and mp.sign(errors[peaks[-1]]) == mp.sign(e):
                if abs(e) > abs(errors[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        if len(peaks) < n:
            break
        while len(peaks) > n:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        points = [grid[i] for i in peaks]
    return solution


def coefficients() -> None:
    """Print minimax coefficients, highest degree first."""

    def ratio(q: Any) -> Any:
        return mp.atanh(mp.sqrt(q)) / mp.sqrt(q)

    quarter = (mp.pi / 4) ** 2
    for name, f, weight, top in (
        ("logarithm", lambda q: 2 * (ratio(q) - 1) / q, lambda q: q / (2 * ratio(q)), (3 - 2 * mp.sqrt(2)) ** 2),
        (
            "sine",
            lambda q: (mp.sin(mp.sqrt(q)) / mp.sqrt(q) - 1) / q,
            lambda q: q * mp.sqrt(q) / mp.sin(mp.sqrt(q)),
            quarter,
        ),
        ("cosine", lambda q: (mp.cos(mp.sqrt(q)) - 1) / q, lambda q: q / mp.cos(mp.sqrt(q)), quarter),
    ):
        print(name, ", ".join(float(c).hex() for c in reversed(minimax(f, weight, top, 4))))


if __name__ == "__main__":
    if sys.argv[1:] == ["coefficients"]:
        coefficients()
    elif not report():
        sys.exit(1)
