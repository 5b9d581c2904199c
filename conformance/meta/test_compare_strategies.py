"""The exact arithmetic and the strategies of the suite: its own judges are judged against numpy and the frozen data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fucina.conformance import strategies, vectors
from fucina.conformance.compare import PATTERN, assert_bits, is_nan
from fucina.conformance.suite import casts, stream
from fucina.spec import DType

CI = settings.get_profile("ci")


def test_profiles_exist() -> None:
    assert CI.derandomize
    assert CI.deadline is None
    assert settings.get_profile("nightly").max_examples > 10 * CI.max_examples


@settings(CI)
@given(word=strategies.words(), index=st.integers(0, (1 << 64) - 1))
def test_seeds_are_built_backwards(word: int, index: int) -> None:
    seed = strategies.seed_for(word, index)
    assert 0 <= seed < 1 << 64
    assert stream.words(seed, index, 1)[0] == word


def test_words_agree_with_the_frozen_stream() -> None:
    table = vectors.load("rng_splitmix64")
    for row, seed in enumerate(table["seed"].tolist()):
        assert_bits(stream.words(seed, 0, 64), table["sequence"][row])
        for index, value in zip(table["at_index"].tolist(), table["at_value"][row].tolist(), strict=True):
            assert stream.words(seed, index, 1)[0] == value


@settings(CI)
@given(data=st.data(), length=strategies.lengths())
def test_decompositions_cover_a_range_once(data: st.DataObject, length: int) -> None:
    pieces = data.draw(strategies.chunks(length))
    assert [i for start, stop in pieces for i in range(start, stop)] == list(range(length))


@settings(CI)
@given(bounds=strategies.finite_bounds(), first=strategies.firsts(), scale=strategies.scales())
def test_drawn_parameters_are_legal(bounds: tuple[float, float], first: int, scale: float) -> None:
    lo, hi = (np.float32(b) for b in bounds)
    assert (float(lo), float(hi)) == bounds
    assert lo < hi
    assert np.isfinite([lo, hi]).all()
    assert 0 <= first <= (1 << 64) - (1 << 12)
    assert np.isnan(scale) or float(np.float32(scale)) == scale


@pytest.mark.parametrize("dtype", list(PATTERN), ids=lambda d: d.name)
def test_drawn_patterns_fit(dtype: DType) -> None:
    @settings(CI)
    @given(pattern=strategies.patterns(dtype), array=strategies.pattern_arrays(dtype))
    def check(pattern: int, array: np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]) -> None:
        assert 0 <= pattern < (2 if dtype is DType.bool else 1 << 8 * PATTERN[dtype].itemsize)
        assert array.dtype == PATTERN[dtype]

    check()


def test_exact_rounding_agrees_with_numpy() -> None:
    # numpy's conversions f64 -> f32 and f32 -> f16 are roundings of the hardware or its own exact ones
    table = vectors.load("dtype_f16_f64")
    inputs = table["f64_input"][::3]
    with np.errstate(all="ignore"):
        for into, numpy_type in ((DType.f32, np.float32), (DType.f16, np.float16)):
            answers = inputs.view(np.float64).astype(numpy_type).view(PATTERN[into])
            got = [casts.two_roundings(DType.f64, into, b, single=True) for b in inputs.tolist()]
            assert_bits(np.array(got, PATTERN[into]), answers, nan="any", dtype=into)


@pytest.mark.parametrize("source", casts.SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("into", casts.SCALARS, ids=lambda d: d.name)
def test_exact_casts_agree_with_the_frozen_ones(source: DType, into: DType) -> None:
    table = vectors.load("dtype_cast_scalar")
    inputs, frozen = table[f"in_{source.name}"], table[f"{source.name}__to__{into.name}"]
    got = np.array([casts.expected(source, into, b) for b in inputs.tolist()], PATTERN[into])
    rule = "any" if into in casts.FLOAT_DTYPES else "exact"
    assert_bits(got, frozen, nan=rule, dtype=into)


def test_exact_values_of_every_small_code() -> None:
    halves = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    values = halves.view(np.float16).astype(np.float64)
    numbers = ~is_nan(halves, DType.f16)
    for code, value in zip(halves[numbers].tolist()[::17], values[numbers].tolist()[::17], strict=True):
        exact = casts.exact_value(DType.f16, code)
        assert (Fraction(value) if isinstance(exact, Fraction) else value) == exact
        assert np.signbit(value) == (exact < 0 or str(exact).startswith("-"))


def test_bounds_of_kaiming_agree_with_the_hardware() -> None:
    for fan_in in (*range(1, 400), 4096, 1_000_000_007, (1 << 53) + 1, (1 << 64) - 1):
        assert stream.kaiming_bound(fan_in) == float(np.float32(np.sqrt(np.float64(1) / np.float64(fan_in))))
