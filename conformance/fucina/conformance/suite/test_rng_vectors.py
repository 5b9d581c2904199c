"""Each fill against the frozen calls of the original library, and against the correctly rounded chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import assert_bits, assert_raises, f32, f32_bits
from fucina.conformance.suite.fills import by_name
from fucina.spec import DType
from fucina.spec.errors import InvalidBounds

GUMBEL_TOP = 0x4212F27C
"""What the largest uniform gives; the original has +inf in its place."""


def _finite(gumbel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Put the finite value of RNG-GUMBEL-2 in the place of the original's infinities."""
    return np.where(gumbel == f32_bits(np.inf), np.uint32(GUMBEL_TOP), gumbel)


def _check(impl: Any, file: str, name: str, parameters: tuple[str, ...]) -> int:
    fill, count = by_name(name), 0
    for call in vectors.calls(file):
        got = fill(
            impl,
            call.seed,
            len(call.expected),
            *(call.parameters[key] for key in parameters),
            first=call.parameters.get("first", 0),
        )
        if name == "gumbel_fill":
            assert_bits(got, _finite(call.expected), dtype=DType.f32, what=f"{name}, {call}", clause="RNG-GUMBEL-1")
        elif fill.format == "f4":
            assert_bits(got, call.expected, nan="any", dtype=DType.f32, what=f"{name}, {call}", clause=fill.clauses[0])
        else:
            assert_bits(got, call.expected, what=f"{name}, {call}", clause=fill.clauses[0])
        count += 1
    return count


@clause("RNG-GAUSS-1", "RNG-GAUSS-2", "RNG-GAUSS-4", "RNG-CONTRACT-1", "NUM-NAN-2")
def test_gaussian_fill(impl: Any) -> None:
    assert _check(impl, "rng_gaussian_fill", "gaussian_fill", ("scale",)) == 178


@clause("RNG-GAUSS-1", "RNG-GAUSS-3", "RNG-GAUSS-4", "RNG-ELEMENT-1", "RNG-CONTRACT-1")
def test_gaussian_fill_at(impl: Any) -> None:
    assert _check(impl, "rng_gaussian_fill_at", "gaussian_fill_at", ("scale",)) == 197


@clause("RNG-FAST-1", "RNG-FAST-2", "RNG-CONTRACT-1", "NUM-ARITH-1")
def test_gaussian_fill_at_fast(impl: Any) -> None:
    assert _check(impl, "rng_gaussian_fill_at_fast", "gaussian_fill_at_fast", ("scale",)) == 197


@clause("RNG-KAIMING-1", "RNG-CONTRACT-1")
def test_kaiming_uniform_fill(impl: Any) -> None:
    assert _check(impl, "rng_kaiming_uniform_fill", "kaiming_uniform_fill", ("fan_in",)) == 27


@clause("RNG-NORMAL-1", "RNG-CONTRACT-1")
def test_normal_fill(impl: Any) -> None:
    assert _check(impl, "rng_normal_fill", "normal_fill", ("mean", "std")) == 72


@clause("RNG-GUMBEL-1", "RNG-CONTRACT-1")
def test_gumbel_fill(impl: Any) -> None:
    assert _check(impl, "rng_gumbel_fill", "gumbel_fill", ()) == 34


@clause("RNG-INT-1", "RNG-CONTRACT-1")
def test_randint_fill(impl: Any) -> None:
    assert _check(impl, "rng_randint_fill", "randint_fill", ("low", "high")) == 124


@clause("RNG-PERM-1", "RNG-CONTRACT-1")
def test_randperm_fill(impl: Any) -> None:
    assert _check(impl, "rng_randperm_fill", "randperm_fill", ()) == 24


@clause("RNG-UNIF-1", "RNG-UNIF-2", "RNG-UNIF-3", "RNG-CONTRACT-1")
def test_uniform_fill(impl: Any) -> None:
    fill, valid, refused = by_name("uniform_fill"), 0, 0
    for call in vectors.calls("rng_uniform_fill"):
        lo, hi = call.parameters["lo"], call.parameters["hi"]
        if np.isfinite(lo) and np.isfinite(hi) and lo < hi:
            got = fill(impl, call.seed, len(call.expected), lo, hi)
            assert_bits(got, call.expected, dtype=DType.f32, what=f"uniform_fill, {call}", clause="RNG-UNIF-1")
            valid += 1
        else:  # the original answered with constants or NaN
            out = fill.empty(max(len(call.expected), 1))
            assert_raises(
                InvalidBounds, "RNG-UNIF-3", fill.bound(impl, call.seed, out, lo, hi), out=out, what=str(call)
            )
            refused += 1
    assert (valid, refused) == (128, 80)


@clause("RNG-GAUSS-1", "RNG-GAUSS-2")
def test_crafted_pairs_gaussian(impl: Any) -> None:
    table = vectors.load("rng_crafted_pairs")
    fill = by_name("gaussian_fill")
    got = np.stack([fill(impl, seed, 2, 1.0) for seed in table["seed"].tolist()])
    assert_bits(got, table["gaussian"], what="crafted pairs", clause="RNG-GAUSS-1")


@clause("RNG-FAST-1")
def test_crafted_pairs_gaussian_fast(impl: Any) -> None:
    table = vectors.load("rng_crafted_pairs")
    fill = by_name("gaussian_fill_at_fast")
    got = np.stack([fill(impl, seed, 2, 1.0) for seed in table["seed"].tolist()])
    assert_bits(got, table["gaussian_fast"], what="crafted pairs", clause="RNG-FAST-1")


@clause("RNG-GUMBEL-1", "RNG-GUMBEL-2")
def test_crafted_pairs_gumbel(impl: Any) -> None:
    table = vectors.load("rng_crafted_pairs")
    fill = by_name("gumbel_fill")
    got = np.stack([fill(impl, seed, 2) for seed in table["seed"].tolist()])
    assert np.count_nonzero(table["gumbel"] == f32_bits(np.inf)) == 3
    assert_bits(got, _finite(table["gumbel"]), what="crafted pairs", clause="RNG-GUMBEL-2")
    assert np.isfinite(got).all(), "RNG-GUMBEL-2: not finite"


@clause("NUM-ELEM-1", "RNG-GAUSS-1", "RNG-GAUSS-3")
def test_hard_gaussian(impl: Any) -> None:
    table = vectors.load("rng_hard_gaussian")
    fill = by_name("gaussian_fill_at")
    rows = zip(table["seed"].tolist(), table["first"].tolist(), table["scale_bits"].tolist(), strict=True)
    got = np.concatenate([fill(impl, seed, 1, f32(scale), first=first) for seed, first, scale in rows])
    assert_bits(got, table["expected_bits"], what="rng_hard_gaussian", clause="NUM-ELEM-1")


@clause("NUM-ELEM-1", "RNG-GUMBEL-1")
def test_hard_gumbel(impl: Any) -> None:
    table = vectors.load("rng_hard_gumbel")
    fill = by_name("gumbel_fill")
    got = np.concatenate([fill(impl, seed, 1) for seed in table["seed"].tolist()])
    assert_bits(got, table["expected_bits"], what="rng_hard_gumbel", clause="NUM-ELEM-1")


@clause("NUM-ELEM-1", "RNG-GAUSS-1", "RNG-GUMBEL-1", "RNG-CHUNK-1")
@pytest.mark.parametrize("before", [1, 2, 7, 64, 200])
def test_hard_values_inside_a_window(impl: Any, before: int) -> None:
    # a value in doubt must come out the same among neighbours, wherever it falls in a vector or a block
    table = vectors.load("rng_hard_gaussian")
    fill = by_name("gaussian_fill_at")
    picked = slice(None, None, 5)
    rows = zip(*(table[key][picked].tolist() for key in ("seed", "first", "scale_bits")), strict=True)
    got = []
    for seed, first, scale in rows:
        start = max(0, first - before)
        got.append(fill(impl, seed, first - start + 2, f32(scale), first=start)[first - start])
    assert_bits(np.array(got), table["expected_bits"][picked], what=f"{before} before", clause="RNG-CHUNK-1")
    table = vectors.load("rng_hard_gumbel")
    fill = by_name("gumbel_fill")
    picked = slice(None, None, 40)
    got = [fill(impl, seed, before + 1)[0] for seed in table["seed"][picked].tolist()]
    assert_bits(np.array(got), table["expected_bits"][picked], what=f"{before} after", clause="RNG-CHUNK-1")
