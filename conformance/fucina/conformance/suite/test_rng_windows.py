"""What a fill holds before its last rounding, against the exact chain and the bound that its rounding test trusts.

A fill that evaluates quickly and falls back on an exact path where the last rounding is in doubt is right only if its
bound is.  No fill shows that: with a bound that is too small every checksum of millions of values still agrees.  An
implementation that works so may offer a submodule ``windows`` of the shape of :class:`fucina.spec.Windows`.
"""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import Mismatch, assert_bits, f32, f64_bits
from fucina.conformance.suite import stream
from fucina.conformance.suite.pace import Note

TWO_PI = 6.283185307179586
RANDOM = ((1, 0, 1.0, 900), (7, (1 << 62) + 5, 0.7310585975646973, 500), (0x9E3779B97F4A7C15, 12, -3.0, 400))


class _Exact:
    """The judge's elementary functions on Python floats."""

    def __init__(self, judge: Any) -> None:
        elementary = importlib.import_module(f"{judge.__name__}.elementary")
        self._wide = importlib.import_module(f"{judge.__name__}.softfloat").Soft64
        self._functions = elementary

    def _call(self, name: str, x: float) -> float:
        answer: float = getattr(self._functions, name)(self._wide.from_float(x)).to_float()
        return answer

    def ln(self, x: float) -> float:
        return self._call("ln", x)

    def sin(self, x: float) -> float:
        return self._call("sin", x)

    def cos(self, x: float) -> float:
        return self._call("cos", x)

    def gaussian(self, a: float, b: float, scale: float) -> tuple[float, float]:
        """The chain of RNG-GAUSS-1 up to its last rounding; Python's ``*`` and ``sqrt`` are operations of f64."""
        r = math.sqrt(-2.0 * self.ln(a))
        angle = TWO_PI * b
        return (r * self.cos(angle)) * scale, (r * self.sin(angle)) * scale

    def gumbel(self, u: float) -> float:
        """The chain of RNG-GUMBEL-1 up to its last rounding."""
        return -self.ln(-self.ln(u))


def _gaussian_chain(exact: _Exact, seed: int, pair: int, scale: float, n: int) -> np.ndarray[Any, Any]:
    x = stream.words(seed, 2 * pair, 2 * n)
    units = zip(stream.unit(x[0::2], 1).tolist(), stream.unit(x[1::2]).tolist(), strict=True)
    return np.array([exact.gaussian(a, b, scale) for a, b in units]).reshape(-1)


def _gumbel_chain(exact: _Exact, seed: int, first: int, n: int) -> np.ndarray[Any, Any]:
    k = (stream.words(seed, first, n) >> np.uint64(11)).astype(np.float64)
    u = np.minimum((k + 0.5) * 2.0**-53, 1 - 2.0**-53)
    return np.array([exact.gumbel(x) for x in u.tolist()])


def _hold(what: str, got: Any, chain: Any, bound: float, offset: int) -> float:
    """Hold values to the bound in rational arithmetic; return the largest part of it that was needed."""
    limit, worst = Fraction(bound), Fraction(0)
    for i, (g, c) in enumerate(zip(got.tolist(), chain.tolist(), strict=True)):
        size = offset + abs(Fraction(c))
        distance = abs(Fraction(g) - Fraction(c))
        if distance > limit * size:
            raise Mismatch(
                f"NUM-ELEM-1: {what}: index {i}: got {g!r}, the exact chain gives {c!r}: "
                f"{float(distance / size):.3g} apart, but the rounding test trusts {bound:.3g}",
                index=i,
                got=f64_bits(g),
                expected=f64_bits(c),
                count=1,
                worst=float(distance / size / limit),
            )
        if size:
            worst = max(worst, distance / (size * limit))
    return float(worst)


@clause("NUM-ELEM-1", "RNG-GAUSS-1")
def test_gaussian_stays_within_its_bound(impl: Any, judge: Any, windows: Any, record_property: Note) -> None:
    exact, bound = _Exact(judge), windows.gaussian_bound()
    assert 0 < bound < 2.0**-30
    worst = 0.0
    for seed, pair, scale, n in RANDOM:
        got = windows.gaussian_f64(seed, pair, scale, n)
        what = f"gaussian, seed={seed:#x}, pair={pair}, scale={scale}"
        worst = max(worst, _hold(what, got, _gaussian_chain(exact, seed, pair, scale, n), bound, 0))
    for seed in vectors.load("rng_crafted_pairs")["seed"].tolist():
        got = windows.gaussian_f64(seed, 0, 1.0, 1)
        chain = _gaussian_chain(exact, seed, 0, 1.0, 1)
        assert (np.signbit(got) == np.signbit(chain)).all(), f"RNG-GAUSS-1: seed {seed:#x}: the sign of a zero"
        worst = max(worst, _hold(f"gaussian, crafted seed {seed:#x}", got, chain, bound, 0))
    record_property("note", f"gaussian before its last rounding: at most {worst:.2f} of the bound {bound:.3g}")


@clause("NUM-ELEM-1", "RNG-GUMBEL-1")
def test_gumbel_stays_within_its_bound(impl: Any, judge: Any, windows: Any, record_property: Note) -> None:
    exact, bound = _Exact(judge), windows.gumbel_bound()
    assert 0 < bound < 2.0**-30
    worst = 0.0
    for seed, first, _, n in RANDOM:
        got = windows.gumbel_f64(seed, first, n)
        what = f"gumbel, seed={seed:#x}, first={first}"
        worst = max(worst, _hold(what, got, _gumbel_chain(exact, seed, first, n), bound, 1))
    for seed in vectors.load("rng_crafted_pairs")["seed"].tolist():
        what = f"gumbel, crafted seed {seed:#x}"
        worst = max(worst, _hold(what, windows.gumbel_f64(seed, 0, 2), _gumbel_chain(exact, seed, 0, 2), bound, 1))
    record_property("note", f"gumbel before its last rounding: at most {worst:.2f} of the bound {bound:.3g}")


@clause("NUM-ELEM-1", "RNG-GAUSS-1", "RNG-GUMBEL-1")
def test_the_fills_round_the_exact_chain(impl: Any, judge: Any, windows: Any) -> None:
    # the hard rows by the chain written out here: vectors, chain and fill agree on the f32
    exact = _Exact(judge)
    table = vectors.load("rng_hard_gaussian")
    rows = zip(table["seed"].tolist(), table["first"].tolist(), table["scale_bits"].tolist(), strict=True)
    chain = [_gaussian_chain(exact, seed, first // 2, f32(scale), 1)[first % 2] for seed, first, scale in rows]
    assert_bits(np.array(chain).astype(np.float32), table["expected_bits"], what="the chain", clause="RNG-GAUSS-1")
    table = vectors.load("rng_hard_gumbel")
    chain = [_gumbel_chain(exact, seed, 0, 1)[0] for seed in table["seed"].tolist()]
    assert_bits(np.array(chain).astype(np.float32), table["expected_bits"], what="the chain", clause="RNG-GUMBEL-1")


def _arguments() -> tuple[list[float], list[float]]:
    """Return arguments of the logarithm and of sine and cosine, as the formulas form them, borders included."""
    k = [
        1,
        2,
        3,
        (1 << 52) - 1,
        1 << 52,
        (1 << 52) + 1,
        (1 << 53) - 2,
        (1 << 53) - 1,
        0x16A09E667F3BCC,
        0x16A09E667F3BCD,
    ]
    k += [1 << e for e in range(0, 53, 3)] + [(1 << e) - 1 for e in range(2, 53, 5)]
    k += (stream.words(5, 0, 500) >> np.uint64(11)).tolist()
    units = [i * 2.0**-53 for i in k]
    quarters = [((j << 51) + d) * 2.0**-53 for j in range(4) for d in range(-3, 4) if (j << 51) + d >= 0]
    logarithms = [*units, *(-math.log(u) for u in units[:200] if u < 1), 1.0]
    return logarithms, [TWO_PI * u for u in (0.0, *units, *quarters) if u < 1]


@clause("NUM-ELEM-1")
@pytest.mark.parametrize("name", ["ln", "sin", "cos"])
def test_the_exact_path(impl: Any, judge: Any, windows: Any, name: str) -> None:
    exact = _Exact(judge)
    logarithms, angles = _arguments()
    arguments = logarithms if name == "ln" else angles
    got = np.array([getattr(windows, f"exact_{name}")(x) for x in arguments])
    expected = np.array([getattr(exact, name)(x) for x in arguments])
    assert_bits(got, expected, what=f"{name} of {len(arguments)} arguments", clause="NUM-ELEM-1")
