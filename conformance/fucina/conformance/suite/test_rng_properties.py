"""What holds for every fill whatever its numbers: decomposition, prefixes, seeds, ranges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import Mismatch, assert_bits, f32
from fucina.conformance.strategies import M64, chunks, finite_bounds, firsts, lengths, scales, seeds
from fucina.conformance.suite.fills import ELEMENTWISE, FILLS, Fill, by_name
from fucina.conformance.suite.pace import Note, scaled

SEQUENTIAL = tuple(fill for fill in ELEMENTWISE if fill.sequential)
PLAIN = tuple(fill for fill in FILLS if not fill.counted)
MAPPED = tuple(fill for fill in FILLS if fill.name != "randperm_fill")


@clause("RNG-CHUNK-1", "RNG-ELEMENT-1", "RNG-GAUSS-3", "RNG-FAST-2")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
@given(seed=seeds(), first=firsts(), data=st.data())
def test_any_decomposition(impl: Any, fill: Fill, seed: int, first: int, data: st.DataObject) -> None:
    n = data.draw(lengths(160))
    whole = fill(impl, seed, n, first=first)
    parts = fill.empty(n)
    cuts = data.draw(chunks(n))
    for start, stop in cuts:
        fill.into(impl, seed, parts[start:stop], first=first + start)
    assert_bits(parts, whole, what=f"{fill}, seed={seed:#x}, first={first}, pieces {cuts}", clause="RNG-CHUNK-1")


@clause("RNG-ELEMENT-1", "RNG-CHUNK-1", "RNG-GAUSS-3")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
def test_each_element_alone(impl: Any, fill: Fill) -> None:
    for first in (0, 1, 12_345):
        whole = fill(impl, 8, 70, first=first)
        alone = np.concatenate([fill(impl, 8, 1, first=first + j) for j in range(70)])
        assert_bits(alone, whole, what=f"{fill}, first={first}, one at a time", clause="RNG-ELEMENT-1")


@clause("RNG-ELEMENT-1", "RNG-CHUNK-1", "RNG-GAUSS-3")
@pytest.mark.parametrize("fill", SEQUENTIAL, ids=str)
@given(seed=seeds(), start=st.integers(0, 300), n=lengths(100))
def test_counted_form_is_a_window_of_the_plain_one(impl: Any, fill: Fill, seed: int, start: int, n: int) -> None:
    plain = by_name(fill.sequential or "")(impl, seed, start + n)
    assert_bits(fill(impl, seed, n, first=start), plain[start:], what=f"{fill}, first={start}", clause="RNG-ELEMENT-1")


@clause("RNG-GAUSS-3", "RNG-GAUSS-4", "RNG-FAST-2", "RNG-CHUNK-1")
@pytest.mark.parametrize("name", ["gaussian_fill_at", "gaussian_fill_at_fast"])
@given(seed=seeds(), first=firsts(), scale=scales(), cut=st.integers(0, 40))
def test_decomposition_with_any_scale(impl: Any, name: str, seed: int, first: int, scale: float, cut: int) -> None:
    fill = by_name(name)
    whole = fill(impl, seed, 41, scale, first=first)
    parts = [fill(impl, seed, cut, scale, first=first), fill(impl, seed, 41 - cut, scale, first=first + cut)]
    assert_bits(np.concatenate(parts), whole, nan="any", what=f"scale={scale!r}, cut at {cut}", clause="RNG-CHUNK-1")


@clause("RNG-CHUNK-1", "RNG-GAUSS-2", "RNG-CONTRACT-1")
@pytest.mark.parametrize("fill", MAPPED, ids=str)
def test_shorter_fills_are_prefixes(impl: Any, fill: Fill) -> None:
    long = fill(impl, 5, 1000)
    for n in range(81):
        assert_bits(fill(impl, 5, n), long[:n], what=f"{fill}, n={n} against n=1000", clause="RNG-CHUNK-1")


@clause("RNG-CHUNK-1")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
def test_threads_make_no_difference(impl: Any, fill: Fill, record_property: Note) -> None:
    n = scaled(impl, record_property, 100_003, 2_003, "values filled by several threads")
    whole = fill(impl, 17, n, first=3)
    for threads in (2, 3, 7):
        parts = fill.empty(n)
        ends = [n * t // threads for t in range(threads + 1)]

        def work(span: tuple[int, int], parts: Any = parts) -> None:
            fill.into(impl, 17, parts[span[0] : span[1]], first=3 + span[0])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, pairwise(ends)))
        assert_bits(parts, whole, what=f"{fill}, {threads} threads", clause="RNG-CHUNK-1")


@clause("RNG-CHUNK-1", "RNG-ELEMENT-1", "RNG-RANGE-1")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
def test_the_last_window(impl: Any, fill: Fill) -> None:
    n = 37
    whole = fill(impl, 9, n, first=M64 + 1 - n)
    alone = np.concatenate([fill(impl, 9, 1, first=M64 + 1 - n + j) for j in range(n)])
    assert_bits(alone, whole, what=f"{fill}, the elements up to 2^64 - 1", clause="RNG-RANGE-1")
    assert fill(impl, 9, 0, first=M64).size == 0


@clause("RNG-SEED-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_high_bits_of_the_seed_count(impl: Any, fill: Fill) -> None:
    n = 200 if fill.format == "?" else 24
    seen: dict[bytes, int] = {}
    for seed in (0, 1, 1 << 16, 1 << 31, 1 << 32, 1 << 35, 1 << 36, 1 << 40, 1 + (1 << 40), 1 << 53, 1 << 63, M64):
        drawn = fill(impl, seed, n).tobytes()
        if drawn in seen:
            raise Mismatch(f"RNG-SEED-1: {fill}: seeds {seen[drawn]:#x} and {seed:#x} give the same values")
        seen[drawn] = seed


@clause("RNG-ELEMENT-1")
@pytest.mark.parametrize("fill", ELEMENTWISE, ids=str)
def test_high_bits_of_first_count(impl: Any, fill: Fill) -> None:
    n = 200 if fill.format == "?" else 24
    seen: dict[bytes, int] = {}
    for first in (0, 1, 1 << 16, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 33, 1 << 53, 1 << 63, (1 << 63) + 1):
        drawn = fill(impl, 3, n, first=first).tobytes()
        if drawn in seen:
            raise Mismatch(f"RNG-ELEMENT-1: {fill}: first {seen[drawn]} and {first} give the same values")
        seen[drawn] = first


@clause("RNG-CONTRACT-1", "RNG-CHUNK-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_no_hidden_state(impl: Any, fill: Fill) -> None:
    before = fill(impl, 123, 50)
    for other in FILLS:
        other(impl, 123, 9)
    assert_bits(fill(impl, 123, 50), before, what=f"{fill} again after other calls", clause="RNG-CONTRACT-1")


@clause("RNG-PERM-1")
@given(seed=seeds(), n=lengths(300))
def test_randperm_is_a_permutation(impl: Any, seed: int, n: int) -> None:
    got = by_name("randperm_fill")(impl, seed, n)
    assert_bits(np.sort(got), np.arange(n, dtype=np.int64), what=f"seed={seed:#x}, sorted", clause="RNG-PERM-1")


@clause("RNG-UNIF-1", "RNG-UNIF-2")
@given(seed=seeds(), bounds=finite_bounds())
def test_uniform_stays_in_its_interval(impl: Any, seed: int, bounds: tuple[float, float]) -> None:
    got = by_name("uniform_fill")(impl, seed, 64, *bounds)
    if not (np.all(got >= np.float32(bounds[0])) and np.all(got < np.float32(bounds[1]))):
        raise Mismatch(f"RNG-UNIF-2: seed {seed:#x}: a value outside [{bounds[0]!r}, {bounds[1]!r})")


@clause("RNG-GUMBEL-2", "RNG-GUMBEL-1")
@given(seed=seeds())
def test_gumbel_is_finite(impl: Any, seed: int) -> None:
    got = by_name("gumbel_fill")(impl, seed, 16)
    if not np.isfinite(got).all() or got.max() > f32(0x4212F27C) or got.min() < -3.7:
        raise Mismatch(f"RNG-GUMBEL-2: seed {seed:#x}: {got!r}")


@clause("RNG-GAUSS-1", "RNG-GAUSS-4")
@given(seed=seeds())
def test_gaussian_is_finite_and_scales_by_powers_of_two(impl: Any, seed: int) -> None:
    fill = by_name("gaussian_fill")
    plain = fill(impl, seed, 16, 1.0)
    if not np.abs(plain).max() <= 8.6:  # sqrt(-2 ln 2^-53)
        raise Mismatch(f"RNG-GAUSS-1: seed {seed:#x}: {plain!r}")
    for scale in (2.0, -0.5, 2.0**20, -(2.0**40)):
        assert_bits(fill(impl, seed, 16, scale), plain * np.float32(scale), what=f"scale={scale}", clause="RNG-GAUSS-1")


@clause("RNG-GAUSS-4", "RNG-FAST-1", "NUM-NAN-2")
@pytest.mark.parametrize("name", ["gaussian_fill", "gaussian_fill_at_fast"])
def test_special_scales(impl: Any, name: str) -> None:
    fill = by_name(name)
    signs = np.signbit(fill(impl, 77, 64, 1.0))
    for scale in (0.0, -0.0):
        expected = np.where(signs ^ np.signbit(scale), np.float32(-0.0), np.float32(0.0))
        assert_bits(fill(impl, 77, 64, scale), expected, what=f"scale={scale}", clause="RNG-GAUSS-4")
    for scale in (np.inf, -np.inf):
        expected = np.where(signs ^ (scale < 0), np.float32(-np.inf), np.float32(np.inf))
        assert_bits(fill(impl, 77, 64, scale), expected, what=f"scale={scale}", clause="RNG-GAUSS-4")
    assert np.isnan(fill(impl, 77, 64, np.nan)).all(), "RNG-GAUSS-4: a NaN scale gives NaN"


@clause("RNG-GAUSS-2")
@pytest.mark.parametrize("n", [1, 3, 5, 63, 65, 257])
def test_odd_length_drops_the_last_sine(impl: Any, n: int) -> None:
    fill = by_name("gaussian_fill")
    assert_bits(fill(impl, 4, n), fill(impl, 4, n + 1)[:n], what=f"n={n}", clause="RNG-GAUSS-2")
