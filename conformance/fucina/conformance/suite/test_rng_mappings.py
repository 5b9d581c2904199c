"""Each mapping against its formula, written out in numpy's operations and in integers (see ``stream``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fucina.conformance import clause, vectors
from fucina.conformance.compare import assert_bits, assert_same, f32, f32_bits
from fucina.conformance.strategies import GAMMA, M64, finite_bounds, firsts, lengths, scales, seed_for, seeds
from fucina.conformance.suite import stream
from fucina.conformance.suite.fills import by_name
from fucina.conformance.suite.pace import Note, scaled
from fucina.spec import DType

FAN_INS = (1, 2, 3, 23, 30, 39, 49, 50, 64, 768, 4096, 1_000_000_007, (1 << 53) - 1, (1 << 53) + 1, 1 << 63, M64)
LAST_WORD = M64
FAST_DISTANCE = 2.0**-12 + 2.0**-20
"""Largest distance of the two gaussians at scale 1: ua within 2^-25 of 1 rounds to 1 in f32 and the radius vanishes."""
PROBABILITIES = (0.0, -0.0, 0.1, 0.25, 0.5, 0.9, 2.0**-149, 2.0**-24, 1 - 2.0**-24, f32(f32_bits(0.1) + 1))
# 1 - p of these needs more than the 53 bits of an f64, and is a tie
TIED = (2.0**-54, 2.0**-31 * (1 + 2.0**-23), 2.0**-31 * (1 + 3 * 2.0**-23))


@clause("RNG-UNIF-1", "RNG-UNIF-2", "RNG-UNIT-1", "RNG-ELEMENT-1", "NUM-ARITH-1")
@given(seed=seeds(), first=firsts(), n=lengths(140), bounds=finite_bounds())
def test_uniform(impl: Any, seed: int, first: int, n: int, bounds: tuple[float, float]) -> None:
    got = by_name("uniform_fill_at")(impl, seed, n, *bounds, first=first)
    assert_bits(got, stream.uniform(seed, first, n, *bounds), what=f"{bounds}", clause="RNG-UNIF-1")


@clause("RNG-UNIF-1", "RNG-UNIF-2", "NUM-ARITH-1")
@pytest.mark.parametrize(
    "bounds",
    [(0.0, 1.0), (-1.0, 1.0), (0.0, 3.0), (1.0, f32(0x3F800001)), (-3.4e38, 3.4e38), (-(2.0**-149), 0.0), (0.1, 0.3)],
)
def test_uniform_long(impl: Any, bounds: tuple[float, float], record_property: Note) -> None:
    n = scaled(impl, record_property, 500_000, 5_000, "uniform values against numpy's operations")
    lo, hi = (f32(f32_bits(x)) for x in bounds)
    got = by_name("uniform_fill")(impl, 99, n, lo, hi)
    assert_bits(got, stream.uniform(99, 0, n, lo, hi), what=f"{bounds}", clause="RNG-UNIF-1")
    if not (np.all(got >= np.float32(lo)) and np.all(got < np.float32(hi))):
        raise AssertionError(f"RNG-UNIF-2: a value outside [{lo!r}, {hi!r})")


@clause("RNG-UNIF-2")
def test_uniform_clamps_below_hi(impl: Any) -> None:
    fill, seed = by_name("uniform_fill"), seed_for(LAST_WORD, 0)
    for lo, hi, last in (
        (0.0, 1.0, 0x3F7FFFFF),
        (-1.0, 1.0, 0x3F7FFFFF),
        (-(2.0**-149), 0.0, 0x80000001),
        (-(2.0**-149), -0.0, 0x80000001),
        (-2.0, -1.0, 0xBF800001),
        (0.0, 2.0**-149, 0),
        (0.0, 3.0, 0x403FFFFF),
    ):
        got = fill(impl, seed, 1, lo, hi)
        assert_bits(got, np.array([last], dtype=np.uint32), what=f"all-ones word in [{lo}, {hi})", clause="RNG-UNIF-2")


@clause("RNG-KAIMING-1", "NUM-ELEM-1")
@pytest.mark.parametrize("fan_in", FAN_INS)
def test_kaiming_is_uniform_over_its_bound(impl: Any, fan_in: int) -> None:
    bound = stream.kaiming_bound(fan_in)
    for first in (0, 1000):
        got = by_name("kaiming_uniform_fill_at")(impl, 3, 70, fan_in, first=first)
        expected = stream.uniform(3, first, 70, -bound, bound)
        assert_bits(got, expected, what=f"fan_in={fan_in}", clause="RNG-KAIMING-1")


@clause("RNG-NORMAL-1", "RNG-ELEMENT-1", "NUM-ARITH-1", "NUM-NAN-2")
@given(seed=seeds(), first=firsts(), n=lengths(40), mean=scales(), std_dev=scales())
def test_normal_is_gaussian_plus_mean(impl: Any, seed: int, first: int, n: int, mean: float, std_dev: float) -> None:
    got = by_name("normal_fill_at")(impl, seed, n, mean, std_dev, first=first)
    plain = by_name("gaussian_fill_at")(impl, seed, n, std_dev, first=first)
    with np.errstate(all="ignore"):
        expected = plain if mean == 0 else plain + np.float32(mean)
    assert_bits(got, expected, nan="any", what=f"mean={mean!r}, std_dev={std_dev!r}", clause="RNG-NORMAL-1")


@clause("RNG-NORMAL-1")
def test_normal_skips_a_zero_mean(impl: Any) -> None:
    # -0 + 0 would be +0: an addition that is carried out shows in the sign
    seed = seed_for(LAST_WORD, 0)  # ua = 1: both members of the pair are zeros, the first one negative
    for mean in (0.0, -0.0):
        got = by_name("normal_fill")(impl, seed, 2, mean, 1.0)
        assert_bits(got, by_name("gaussian_fill")(impl, seed, 2, 1.0), what=f"mean={mean}", clause="RNG-NORMAL-1")
    assert f32_bits(got[0]) == 0x80000000 or f32_bits(got[1]) == 0x80000000


@clause("RNG-INT-1", "RNG-ELEMENT-1")
@given(seed=seeds(), first=firsts(), n=lengths(60), data=st.data())
def test_randint(impl: Any, seed: int, first: int, n: int, data: st.DataObject) -> None:
    special = st.sampled_from([-(1 << 63), -1, 0, 1, 1 << 32, (1 << 63) - 1])
    ends = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), special)
    low, high = sorted(data.draw(st.lists(ends, min_size=2, max_size=2, unique=True)))
    got = by_name("randint_fill_at")(impl, seed, n, low, high, first=first)
    assert_bits(got, stream.randint(seed, first, n, low, high), what=f"[{low}, {high})", clause="RNG-INT-1")


@clause("RNG-INT-1")
@pytest.mark.parametrize("span", [1, 2, 3, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 63, (1 << 64) - 1])
def test_randint_reaches_both_ends(impl: Any, span: int) -> None:
    low = max(-(1 << 63), -span // 2)
    high = low + span
    for word, expected in ((0, low), (LAST_WORD, high - 1)):
        got = by_name("randint_fill")(impl, seed_for(word, 0), 1, low, high)
        assert_bits(got, np.array([expected]), what=f"word {word:#x} in [{low}, {high})", clause="RNG-INT-1")


@clause("RNG-PERM-1")
@given(seed=seeds(), n=lengths(300))
def test_randperm(impl: Any, seed: int, n: int) -> None:
    got = by_name("randperm_fill")(impl, seed, n)
    assert_bits(got, stream.randperm(seed, n), what=f"n={n}", clause="RNG-PERM-1")


@clause("RNG-PERM-1")
def test_randperm_long(impl: Any, record_property: Note) -> None:
    n = scaled(impl, record_property, 100_000, 3_000, "elements of a permutation")
    assert_bits(by_name("randperm_fill")(impl, 6, n), stream.randperm(6, n), what=f"n={n}", clause="RNG-PERM-1")


@clause("RNG-DROPOUT-1", "RNG-ELEMENT-1", "RNG-UNIT-1")
@given(
    seed=seeds(),
    first=firsts(),
    n=lengths(100),
    p=st.one_of(st.sampled_from(PROBABILITIES), st.floats(0, 1, width=32, exclude_max=True)),
)
def test_dropout_mask(impl: Any, seed: int, first: int, n: int, p: float) -> None:
    got = by_name("dropout_mask")(impl, seed, n, p, first=first)
    assert_bits(got, stream.dropout(seed, first, n, f32(f32_bits(p))), what=f"p={p!r}", clause="RNG-DROPOUT-1")


@clause("RNG-DROPOUT-1")
@pytest.mark.parametrize("p", [*PROBABILITIES, *TIED])
def test_dropout_threshold(impl: Any, p: float) -> None:
    # the words on both sides of the threshold; the 11 low bits make no difference
    p = f32(f32_bits(p))
    threshold = int((1.0 - p) * 2.0**53)
    for kept in (threshold - 1, threshold):
        if 0 <= kept < 1 << 53:
            for tail in (0, 0x7FF):
                got = by_name("dropout_mask")(impl, seed_for(kept << 11 | tail, 5), 1, p, first=5)
                what = f"p={p!r}, word {kept << 11 | tail:#x}"
                assert_bits(got, np.array([kept < threshold]), what=what, clause="RNG-DROPOUT-1")


@clause("RNG-DROPOUT-2")
@given(p=st.one_of(st.sampled_from(PROBABILITIES), st.floats(0, 1, width=32, exclude_max=True)))
@example(0.04)  # here and below, one rounding of the quotient in f64 would differ
@example(0.15)
@example(0.29)
def test_dropout_scale(impl: Any, p: float) -> None:
    p = f32(f32_bits(p))
    assert_same(impl.rng.dropout_scale(p), stream.dropout_scale(p), what=f"p={p!r}", clause="RNG-DROPOUT-2")


@clause("RNG-FAST-1", "RNG-ELEMENT-1", "NUM-ARITH-1", "NUM-NAN-2")
@given(seed=seeds(), first=firsts(), n=lengths(140), scale=scales())
def test_fast_gaussian(impl: Any, seed: int, first: int, n: int, scale: float) -> None:
    got = by_name("gaussian_fill_at_fast")(impl, seed, n, scale, first=first)
    expected = stream.fast_gaussian(seed, first, n, scale)
    assert_bits(got, expected, nan="any", dtype=DType.f32, what=f"scale={scale!r}", clause="RNG-FAST-1")


@clause("RNG-FAST-1", "NUM-ARITH-1")
def test_fast_gaussian_long(impl: Any, record_property: Note) -> None:
    n = scaled(impl, record_property, 400_000, 6_000, "fast gaussian values against numpy's operations")
    got = by_name("gaussian_fill_at_fast")(impl, GAMMA, n, 1.0, first=12345)
    assert_bits(got, stream.fast_gaussian(GAMMA, 12345, n, 1.0), clause="RNG-FAST-1")


@clause("RNG-FAST-3")
def test_fast_gaussian_distance_from_the_exact_one(impl: Any, record_property: Note) -> None:
    n = scaled(impl, record_property, 1_000_000, 12_000, "values of both gaussians side by side")
    fast = by_name("gaussian_fill_at_fast")(impl, 31, n, 1.0).astype(np.float64)
    exact = by_name("gaussian_fill_at")(impl, 31, n, 1.0)
    distance = np.abs(fast - exact)
    steps = distance / np.spacing(np.abs(exact)).astype(np.float64)
    usual = np.mean(distance <= 1.6e-5)
    if usual < 1 - 5e-6 or np.median(steps) > 1.0 or not 0.10 < np.mean(steps > 4) < 0.14:
        raise AssertionError(
            f"RNG-FAST-3: {100 * usual:.5f} % within 1.6e-5, median {np.median(steps):.3g} steps, "
            f"{100 * np.mean(steps > 4):.1f} % above four steps"
        )
    if distance.max() > FAST_DISTANCE:
        raise AssertionError(f"RNG-FAST-3: largest distance {distance.max():.3g}")


@clause("RNG-FAST-3", "RNG-FAST-1")
def test_fast_gaussian_is_farthest_where_ua_rounds_to_one(impl: Any) -> None:
    # the frozen pairs reach nearly the whole distance: there the exact radius is just below 2^-12 and the fast one 0
    seeds_of_pairs = vectors.load("rng_crafted_pairs")["seed"].tolist()
    exact, fast = (
        np.concatenate([by_name(name)(impl, seed, 2, 1.0) for seed in seeds_of_pairs]).astype(np.float64)
        for name in ("gaussian_fill_at", "gaussian_fill_at_fast")
    )
    assert 2e-4 < np.abs(exact - fast).max() <= FAST_DISTANCE
