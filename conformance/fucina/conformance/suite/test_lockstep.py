"""Implementation against reference, argument by argument: the same bits, and the same errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, Mismatch, assert_bits, assert_same
from fucina.conformance.strategies import (
    dtype_pairs,
    finite_bounds,
    firsts,
    lengths,
    pattern_arrays,
    patterns,
    scales,
    seeds,
)
from fucina.conformance.suite.casts import FLOAT_DTYPES, SCALARS, cast, scalar_form
from fucina.conformance.suite.fills import FILLS, Fill, by_name
from fucina.conformance.suite.test_dtype_table import CONSTANTS, PREDICATES
from fucina.spec import DType, FloatOp
from fucina.spec.errors import FucinaError


def _parameters(fill: Fill) -> st.SearchStrategy[tuple[Any, ...]]:
    if fill.names == ("lo", "hi"):
        return finite_bounds()
    if fill.names == ("low", "high"):
        ends = st.integers(-(1 << 63), (1 << 63) - 1)
        return st.lists(ends, min_size=2, max_size=2, unique=True).map(lambda pair: tuple(sorted(pair)))
    if fill.names == ("fan_in",):
        return st.tuples(st.one_of(st.integers(1, 5000), st.integers(1, (1 << 64) - 1)))
    if fill.names == ("p",):
        return st.tuples(st.floats(0, 1, width=32, exclude_max=True))
    return st.tuples(*(scales() for _ in fill.names))


@clause(
    "RNG-GAUSS-1",
    "RNG-GAUSS-4",
    "RNG-FAST-1",
    "RNG-UNIF-1",
    "RNG-KAIMING-1",
    "RNG-NORMAL-1",
    "RNG-GUMBEL-1",
    "RNG-INT-1",
    "RNG-PERM-1",
    "RNG-DROPOUT-1",
    "RNG-ELEMENT-1",
    "NUM-ELEM-1",
    "NUM-ARITH-1",
)
@pytest.mark.parametrize("fill", FILLS, ids=str)
@given(seed=seeds(), first=firsts(), n=lengths(70), data=st.data())
def test_fills(impl: Any, judge: Any, fill: Fill, seed: int, first: int, n: int, data: st.DataObject) -> None:
    values = data.draw(_parameters(fill))
    got, expected = (fill(module, seed, n, *values, first=first) for module in (impl, judge))
    what = f"{fill}, seed={seed:#x}, first={first}, {values}"
    if fill.format == "f4":
        assert_bits(got, expected, nan="any", what=what, clause=fill.clauses[0])
    else:
        assert_bits(got, expected, what=what, clause=fill.clauses[0])


@clause("RNG-GAUSS-1", "RNG-GUMBEL-1", "RNG-FAST-1", "RNG-NORMAL-1", "NUM-ELEM-1")
@pytest.mark.parametrize("name", ["gaussian_fill_at", "gumbel_fill_at", "gaussian_fill_at_fast", "normal_fill_at"])
def test_longer_fills(impl: Any, judge: Any, name: str) -> None:
    fill = by_name(name)
    for seed, first in ((1, 0), (0x9E3779B97F4A7C15, 1), (7, (1 << 63) + 5)):
        got, expected = (fill(module, seed, 1_000, first=first) for module in (impl, judge))
        assert_bits(got, expected, what=f"{fill}, seed={seed:#x}, first={first}", clause=fill.clauses[0])


@clause("RNG-DROPOUT-2")
@given(p=st.floats(0, 1, width=32, exclude_max=True))
def test_dropout_scale(impl: Any, judge: Any, p: float) -> None:
    assert_same(impl.rng.dropout_scale(p), judge.rng.dropout_scale(p), what=f"p={p!r}", clause="RNG-DROPOUT-2")


@clause("RNG-AT-1", "RNG-STREAM-1")
@given(seed=seeds(), index=firsts())
def test_words(impl: Any, judge: Any, seed: int, index: int) -> None:
    assert_same(impl.rng.at(seed, index), judge.rng.at(seed, index), clause="RNG-AT-1")
    assert impl.rng.splitmix64(seed) == judge.rng.splitmix64(seed), "RNG-STREAM-1"


@clause("BRIDGE-ARRAY-1", "BRIDGE-SAT-1", "BRIDGE-SINGLE-1", "BRIDGE-BITS-1", "NUM-NAN-1")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
@given(data=st.data(), into=st.sampled_from(SCALARS), saturate=st.booleans(), single=st.booleans())
def test_casts(
    impl: Any, judge: Any, source: DType, data: st.DataObject, into: DType, saturate: bool, single: bool
) -> None:
    inputs = data.draw(pattern_arrays(source, 60))
    got, expected = (
        cast(module, source, into, inputs, saturate=saturate, single_rounding=single) for module in (impl, judge)
    )
    what = f"{source.name} -> {into.name}, saturate={saturate}, single_rounding={single}"
    assert_bits(got, expected, dtype=into, what=what, clause="BRIDGE-ARRAY-1")


@clause("BRIDGE-SCALAR-1", "BRIDGE-SCALAR-2", "BRIDGE-SCALAR-3", "BRIDGE-FLOAT-1", "DTYPE-ACC-2", "DTYPE-ACC-3")
@given(pair=dtype_pairs(), data=st.data())
def test_scalars(impl: Any, judge: Any, pair: tuple[DType, DType], data: st.DataObject) -> None:
    source, into = pair
    value = scalar_form(source, data.draw(patterns(source)))
    number = type(value) is float and into in FLOAT_DTYPES
    for name, arguments in (
        ("cast_scalar", (source, into, value)),
        ("is_truthy", (source, value)),
        ("to_accumulator", (source, value)),
        *((("to_f32", (source, value)), ("to_f64", (source, value))) if source in FLOAT_DTYPES else ()),
        *((("from_f32", (into, value)), ("from_f64", (into, value))) if number else ()),
        *((("cast_float", (source, into, value)),) if source in FLOAT_DTYPES and into in FLOAT_DTYPES else ()),
    ):
        got, expected = (getattr(module.dtype, name)(*arguments) for module in (impl, judge))
        what = f"{name}{arguments}"
        if expected != expected:
            assert got != got, f"{what}: {got!r} in place of a NaN"
            assert np.signbit(got) == np.signbit(expected), f"NUM-NAN-1: {what}: sign"
        else:
            assert_same(got, expected, what=what)


@clause("DTYPE-PRED-1", "DTYPE-GEOM-2", "DTYPE-STORAGE-2", "DTYPE-POLICY-2", "DTYPE-POLICY-3", "DTYPE-GEOM-4")
@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_the_table(impl: Any, judge: Any, dtype: DType) -> None:
    answers = [*PREDICATES, "kind", "logical_dtype", "block_size", "block_byte_size", "scalar_byte_size", "scalar"]
    for name in (*answers, "storage", "accumulator", "name", "zero", "one"):
        got, expected = (_outcome(partial(getattr(m.dtype, name), dtype)) for m in (impl, judge))
        assert got == expected, f"{name}({dtype!r}): {got}, expected {expected}"
    for op in FloatOp:
        for name in ("compute_dtype", "output_dtype"):
            got, expected = (_outcome(partial(getattr(m.dtype, name), op, dtype)) for m in (impl, judge))
            assert got == expected, f"{name}({op!r}, {dtype!r}): {got}, expected {expected}"
    for name in CONSTANTS:
        assert getattr(impl.dtype, name) == getattr(judge.dtype, name)


def _outcome(call: Any) -> tuple[str, Any]:
    """Return what a call gives: a value, or the name of its error and the clause that it cites."""
    try:
        return "value", call()
    except FucinaError as error:
        return type(error).__name__, error.clause


@clause("ERR-NAME-1", "ERR-MSG-1", "RNG-SEED-1", "RNG-UNIF-3", "RNG-INT-2", "RNG-DROPOUT-3", "RNG-KAIMING-2")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_errors_of_the_fills(impl: Any, judge: Any, fill: Fill) -> None:
    good: list[Any] = [3, *([5] if fill.counted else []), None, *fill.values]
    bad = (
        -1,
        1 << 64,
        1.5,
        "3",
        True,
        None,
        float("nan"),
        float("inf"),
        10**400,
        -(10**400),
        np.float32(2),
        np.int8(-3),
    )
    for place in range(len(good)):
        if good[place] is None:
            continue
        for value in bad:
            outcomes = []
            for module in (impl, judge):
                arguments = list(good)
                arguments[arguments.index(None)] = fill.empty(4)
                arguments[place] = value
                outcomes.append(_outcome(partial(getattr(module.rng, fill.name), *arguments)))
            if outcomes[0] != outcomes[1]:
                raise Mismatch(
                    f"ERR-NAME-1: {fill}, argument {place}={value!r:.20}: {outcomes[0]}, expected {outcomes[1]}"
                )


@clause("ERR-NAME-1", "ERR-MSG-1", "BRIDGE-SCALAR-4", "BRIDGE-BITS-1", "DTYPE-ACC-3")
@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_errors_of_the_scalars(impl: Any, judge: Any, dtype: DType) -> None:
    values = (-1, 0, 1, 255, 256, 1 << 16, 1 << 63, 1 << 64, -(1 << 63), 0.5, float("nan"), True, None, "1", 1j)
    for name in ("cast_scalar", "cast_float", "cast_bits"):
        for other in (DType.f32, DType.i8, DType.bool, DType.q4_0):
            for value in values:
                for arguments in ((dtype, other, value), (other, dtype, value)):
                    _same_outcome(impl, judge, name, arguments)
    for name in ("to_f32", "to_f64", "from_f32", "from_f64", "is_truthy", "to_accumulator", "from_accumulator"):
        for value in values:
            _same_outcome(impl, judge, name, (dtype, value))


def _same_outcome(impl: Any, judge: Any, name: str, arguments: tuple[Any, ...]) -> None:
    got, expected = (_outcome(partial(getattr(m.dtype, name), *arguments)) for m in (impl, judge))
    if "InvalidDType" in (got[0], expected[0]):
        # with a dtype that is not allowed and a value that is none, either may be named
        agree = (got[0] == "value") == (expected[0] == "value")
    else:
        agree = got[0] == expected[0] and (got[0] != "value" or repr(got[1]) == repr(expected[1]))
    if not agree:
        raise Mismatch(f"ERR-NAME-1: {name}{arguments}: {got}, expected {expected}")


@clause("BRIDGE-VALUE-1", "BRIDGE-VALUE-2")
@pytest.mark.parametrize("name", ["Bf16", "F8E4M3", "F8E5M2"])
def test_value_types(impl: Any, judge: Any, name: str) -> None:
    ours, theirs = getattr(impl, name), getattr(judge, name)
    assert PATTERN[ours.dtype] == PATTERN[theirs.dtype]
    for bits in range(0, 256, 3):
        assert repr(ours(bits)) == repr(theirs(bits))
        assert repr(ours(bits).to_f32()) == repr(theirs(bits).to_f32())
