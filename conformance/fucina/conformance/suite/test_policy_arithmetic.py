"""Element by element: arithmetic, numbers, conversions, dropout and consumed operands, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.strategies import patterns, profile_size, seeds
from fucina.conformance.suite import environment as fpenv
from fucina.conformance.suite import exact, formulas
from fucina.conformance.suite.casts import INTEGERS, SCALARS, expected
from fucina.conformance.suite.raw_arithmetic import ARITHMETIC, REAL
from fucina.conformance.suite.tagged import bits, check, constant, f32, pattern_noise, state
from fucina.spec import DType
from fucina.spec.errors import (
    DivisionByZero,
    DTypeMismatch,
    InvalidBounds,
    InvalidInteger,
    InvalidShape,
    InvalidTag,
    Overflow,
    ShapeMismatch,
)

NAMES = ("add", "sub", "mul", "div")
F32 = DType.f32
each_arithmetic = pytest.mark.parametrize("dtype", ARITHMETIC, ids=lambda d: d.name)
each_real = pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def edges(dtype: DType) -> list[int]:
    """Return patterns at the ends of a dtype: zeros, subnormals, neighbours of one, the greatest, infinities, a NaN."""
    if dtype not in REAL:
        top = 1 << (8 * PATTERN[dtype].itemsize - 1)
        return [0, 1, 2, 3, 7, top - 1, top, top + 1, 2 * top - 1, 2 * top - 7]
    values = (0.0, 1.0, 1.5, 3.0, 1 / 3, 65504.0, 1e-40, 1e-310, 1e300, 3e38)
    codes = exact.encode(dtype, np.array([exact.rounded(dtype, v) for v in values])).tolist()
    one, inf = codes[1], int(exact.encode(dtype, np.array([np.inf]))[0])
    sign = 1 << (8 * PATTERN[dtype].itemsize - 1)
    low = int(exact.encode(dtype, np.array([2.0**-14 if dtype is DType.f16 else 2.0**-126]))[0])
    codes += [1, 2, 3, low - 1, low, low + 1, one - 1, one + 1, inf - 1, inf, inf + 1]
    return sorted({code | s for code in codes for s in (0, sign)})


# -- two tensors


@clause("POLICY-ARITH-1", "CONTEXT-ARITH-1", "CONTEXT-ARITH-2", "NUM-ARITH-1", "NUM-NAN-2")
@each_arithmetic
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=profile_size(15, 500))
@given(data=st.data())
def test_values(impl: Any, ctx: Any, dtype: DType, name: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(patterns(dtype), patterns(dtype)), min_size=1, max_size=40))
    a, b = (np.array([pair[i] for pair in pairs], PATTERN[dtype]) for i in (0, 1))
    if dtype in INTEGERS and name == "div":
        b = np.where(b == 0, b.dtype.type(1), b)
    wanted = formulas.arithmetic(name, dtype, exact.decode(dtype, a), exact.decode(dtype, b))
    with constant(impl, ctx, dtype, a) as x, constant(impl, ctx, dtype, b) as y:
        check(getattr(x, name)(ctx, y), wanted, f"{name} of {dtype.name}", "POLICY-ARITH-1", dtype)


@clause("POLICY-ARITH-1")
@each_arithmetic
@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_edges(impl: Any, ctx: Any, dtype: DType, name: str) -> None:
    some = edges(dtype)
    pairs = [pair for pair in product(some, repeat=2) if dtype in REAL or name != "div" or pair[1]]
    a, b = (np.array([pair[i] for pair in pairs], PATTERN[dtype]) for i in (0, 1))
    wanted = formulas.arithmetic(name, dtype, exact.decode(dtype, a), exact.decode(dtype, b))
    with constant(impl, ctx, dtype, a) as x, constant(impl, ctx, dtype, b) as y:
        check(getattr(x, name)(ctx, y), wanted, f"{name} of {dtype.name}", "POLICY-ARITH-1", dtype)


@clause("POLICY-ARITH-1", "ERR-STATE-1")
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_division_by_zero(impl: Any, ctx: Any, dtype: DType) -> None:
    kind = impl.Tensor("a", dtype=dtype)
    with kind.ones(ctx, (40,)) as x, kind.from_slice(ctx, (40,), [1] * 39 + [0]) as y, kind.zeros(ctx, (1,)) as zero:
        before = state(ctx, x, y, zero)
        for divisor in (y, zero):
            assert_raises(DivisionByZero, None, partial(x.div, ctx, divisor))
        assert state(ctx, x, y, zero) == before


@clause("NUM-ENV-2", "POLICY-SAME-1")
@each_real
def test_the_callers_environment_changes_nothing(impl: Any, ctx: Any, dtype: DType) -> None:
    fpenv.needed()
    codes = np.array(edges(dtype), PATTERN[dtype])
    one = exact.encode(dtype, np.array([0.1]).astype(np.float16).astype(np.float64))[0]
    with constant(impl, ctx, dtype, codes) as x, constant(impl, ctx, dtype, np.full(codes.size, one)) as y:
        calls = {name: partial(getattr(x, name), ctx, y) for name in (*NAMES, "dot")}
        calls |= {
            "scale": partial(x.scale, ctx, 0.3),
            "mean": partial(x.mean, ctx),
            "add_scalar": partial(x.add_scalar, ctx, 0.3),
        }
        wanted = {}
        for name, call in calls.items():
            with call() as result:
                wanted[name] = exact.decode(result.dtype, bits(result))
        for mode in fpenv.EVERY:
            for name, call in calls.items():
                with fpenv.environment(mode):
                    result = call()
                check(result, wanted[name], f"{name} of {dtype.name}, {mode}", "NUM-ENV-2")


# -- operands aligned by tag


@clause("POLICY-TAGS-1")
@pytest.mark.parametrize("name", NAMES)
def test_alignment(impl: Any, ctx: Any, name: str) -> None:
    sizes = {"a": 2, "b": 3, "c": 4}
    for one, other in product(
        ((), ("a",), ("b", "a"), ("a", "b", "c")), ((), ("a",), ("a", "b"), ("c",), ("c", "b"), ("d",))
    ):
        for shrink in ((), ("a",), ("b",)):
            left = [1 if tag in shrink else sizes[tag] for tag in one]
            right = [sizes.get(tag, 5) for tag in other]
            tags = one + tuple(tag for tag in other if tag not in one)
            a = np.arange(10, 10 + np.prod(left, dtype=int), dtype=np.int64).reshape(left)
            b = np.arange(3, 3 + np.prod(right, dtype=int), dtype=np.int64).reshape(right)
            wide = [formulas.aligned(array, of, tags) for array, of in ((a, one), (b, other))]
            wanted = formulas.arithmetic(name, DType.i64, *(w.astype(object) for w in wide))
            with (
                constant(impl, ctx, DType.i64, a.view(np.uint64), tags=one) as x,
                constant(impl, ctx, DType.i64, b.view(np.uint64), tags=other) as y,
            ):
                for turn in ("", ", again"):  # types that have met before may take another way
                    result = getattr(x, name)(ctx, y)
                    assert (result.axis_tags, result.shape) == (tags, wanted.shape), f"POLICY-TAGS-1: {one} and {other}"
                    check(result, wanted, f"{name} {one} {left}, {other}{turn}", "POLICY-TAGS-1", DType.i64)


@clause("POLICY-TAGS-1", "CONTEXT-OP-1")
def test_alignment_without_tags(impl: Any, ctx: Any) -> None:
    for left, right in (((5,), (1,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1, 1, 2), (4, 1, 1)), ((2, 3), ()), ((), ())):
        for one, other in ((left, right), (right, left)):
            a = np.arange(10, 10 + np.prod(one, dtype=int), dtype=np.float32).reshape(one)
            b = np.arange(3, 3 + np.prod(other, dtype=int), dtype=np.float32).reshape(other)
            with (
                impl.Tensor(len(one)).from_slice(ctx, one, a) as x,
                impl.Tensor(len(other)).from_slice(ctx, other, b) as y,
                x.sub(ctx, y) as z,
                x.sub(ctx, y) as again,  # types that have met before may take another way
            ):
                assert type(z) is type(again) is impl.Tensor(max(len(one), len(other)))
                assert np.asarray(z).tolist() == np.asarray(again).tolist() == (a - b).tolist()


@clause("POLICY-TAGS-1")
def test_errors_of_alignment(impl: Any, ctx: Any) -> None:
    tags = tuple("abcdefgh")
    with (
        f32(impl, ctx, np.ones((2, 3))) as x,
        impl.Tensor(2).ones(ctx, (2, 3)) as n,
        impl.Tensor("b").ones(ctx, (2,)) as short,
        impl.Tensor(1).ones(ctx, (2,)) as m,
        impl.Tensor(*tags).ones(ctx, (1,) * 8) as full,
        impl.Tensor("i").ones(ctx, (1,)) as ninth,
    ):
        before = state(ctx, x, n, short, m, full, ninth)
        for name in NAMES:
            for one, other, wrong in (
                *((x, n, InvalidTag), (n, x, InvalidTag), (x, short, ShapeMismatch), (short, x, ShapeMismatch)),
                *((n, m, ShapeMismatch), (full, ninth, InvalidShape), (ninth, full, InvalidShape)),
            ):
                assert_raises(wrong, None, partial(getattr(one, name), ctx, other), what=f"{name} {one!r} {other!r}")
        assert state(ctx, x, n, short, m, full, ninth) == before


# -- a tensor and a number


@clause("POLICY-SCALAR-1", "NUM-PARAM-1")
@each_real
@given(data=st.data())
def test_numbers(impl: Any, ctx: Any, dtype: DType, data: st.DataObject) -> None:
    codes = data.draw(st.lists(patterns(dtype), min_size=1, max_size=40))
    number = data.draw(
        st.one_of(st.floats(allow_nan=False), st.sampled_from((0.1, 1e-46, 3e38, 1e39, -0.0, 1 + 2**-24)))
    )
    values = exact.decode(dtype, codes)
    with constant(impl, ctx, dtype, codes) as x:
        check(
            x.scale(ctx, number), formulas.scale(dtype, values, number), f"times {number!r}", "POLICY-SCALAR-1", dtype
        )
        check(
            x.add_scalar(ctx, number),
            formulas.add_scalar(dtype, values, number),
            f"plus {number!r}",
            "POLICY-SCALAR-1",
            dtype,
        )


@clause("POLICY-SCALAR-1")
@each_real
def test_numbers_at_the_edges(impl: Any, ctx: Any, dtype: DType) -> None:
    codes = edges(dtype)
    values = exact.decode(dtype, codes)
    with constant(impl, ctx, dtype, codes) as x:
        for number in (0.0, -0.0, 1.0, -1.0, 0.1, 1 + 2.0**-11, 1 + 2.0**-8, 3e38, 1e-45, float("inf"), float("nan")):
            check(x.scale(ctx, number), formulas.scale(dtype, values, number), f"times {number!r}", "POLICY-SCALAR-1")
            check(
                x.add_scalar(ctx, number),
                formulas.add_scalar(dtype, values, number),
                f"plus {number!r}",
                "POLICY-SCALAR-1",
            )
        before = state(ctx, x)
        for wrong in ("1", None, 1j, True, [1.0], x):
            for name in ("scale", "add_scalar"):
                assert_raises(DTypeMismatch, None, partial(getattr(x, name), ctx, wrong), what=repr(wrong))
        assert state(ctx, x) == before


@clause("POLICY-SCALAR-1")
def test_results_are_rounded_twice(impl: Any, ctx: Any) -> None:
    """Products and sums that, rounded to f32, are ties of the narrow dtype that they are not themselves."""
    for dtype, fraction in ((DType.f16, 10), (DType.bf16, 7)):
        one = 1 + 2.0**-fraction
        told_apart = 0
        for step in range(64):
            tie = 1.5 + (2 * step + 1) * 2.0 ** -(fraction + 1) % 0.5
            product, sum_of = exact.rounded(F32, Fraction(tie) / Fraction(one)), exact.rounded(F32, tie - 2.0**-30)
            small = exact.rounded(dtype, 2.0**-20)
            for name, x, number in (("scale", one, product), ("add_scalar", small, sum_of)):
                operation = exact.mul if name == "scale" else exact.add
                wanted = getattr(formulas, name)(dtype, np.array([x]), number)
                told_apart += exact.rounded(dtype, operation(DType.f64, x, number)) != wanted[0]
                with constant(impl, ctx, dtype, exact.encode(dtype, np.array([x]))) as tensor:
                    check(getattr(tensor, name)(ctx, number), wanted, f"{name} {number!r}", "POLICY-SCALAR-1", dtype)
        assert told_apart > 10, "the values tell nothing"


# -- another dtype


@clause("POLICY-TO-1", "BRIDGE-SCALAR-3", "NUM-NAN-1")
@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
@given(data=st.data(), target=st.sampled_from(SCALARS))
def test_conversions(impl: Any, ctx: Any, source: DType, target: DType, data: st.DataObject) -> None:
    codes = data.draw(st.lists(patterns(source), min_size=1, max_size=30))
    with constant(impl, ctx, source, codes) as x, x.to(ctx, target) as y:
        assert (y.dtype, y.axis_tags, y.as_raw_tensor().buffer == x.as_raw_tensor().buffer) == (target, ("a",), False)
        wanted = np.array([expected(source, target, code) for code in codes], PATTERN[target])
        assert_bits(bits(y), wanted, what=f"{source.name} to {target.name}", clause="POLICY-TO-1")


# -- dropout


@clause("POLICY-DROPOUT-1", "RNG-DROPOUT-1")
@pytest.mark.parametrize("dtype", [DType.f16, DType.bf16, F32], ids=lambda d: d.name)
@given(seed=seeds(), p=st.floats(0, 1, width=32, exclude_max=True), data=st.data())
def test_dropout(impl: Any, ctx: Any, dtype: DType, seed: int, p: float, data: st.DataObject) -> None:
    codes = data.draw(st.lists(patterns(dtype), min_size=1, max_size=30))
    array = np.resize(np.array(codes, PATTERN[dtype]), (2, 3, 4))
    with constant(impl, ctx, dtype, array) as x:
        wanted = formulas.dropout(dtype, exact.decode(dtype, array), p, seed)
        check(x.dropout(ctx, p, seed), wanted, f"p={p}, seed={seed}", "POLICY-DROPOUT-1", dtype)
        with x.permute(ctx, ("c", "a", "b")) as t:
            turned = formulas.dropout(dtype, exact.decode(dtype, array.transpose(2, 0, 1).copy()), p, seed)
            check(t.dropout(ctx, p, seed), turned, "of a view", "POLICY-DROPOUT-1", dtype)


@clause("POLICY-DROPOUT-1", "RNG-DROPOUT-3")
def test_errors_of_dropout(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [-1.0, np.inf, np.nan, -0.0]) as x:
        check(x.dropout(ctx, 0.0, 1), [-1.0, np.inf, np.nan, -0.0], "p = 0", "POLICY-DROPOUT-1")
        check(x.dropout(ctx, 1 - 2.0**-24, 5), [0.0] * 4, "nearly all", "POLICY-DROPOUT-1")
        before = state(ctx, x)
        for p in (1.0, -0.1, float("nan"), 1 - 2.0**-60, float("inf")):
            assert_raises(InvalidBounds, None, partial(x.dropout, ctx, p, 1), what=str(p))
        assert_raises(Overflow, None, partial(x.dropout, ctx, 0.5, -1))
        assert_raises(InvalidInteger, None, partial(x.dropout, ctx, 0.5, 1.0))
        assert_raises(DTypeMismatch, None, partial(x.dropout, ctx, "0.5", 1))
        assert state(ctx, x) == before


@clause("POLICY-SAME-1")
def test_noise_is_what_it_says(impl: Any, ctx: Any) -> None:
    """What the other tests draw survives the way in and out."""
    for dtype in SCALARS:
        codes = pattern_noise(dtype, (3, 5))
        with constant(impl, ctx, dtype, codes) as x:
            assert_bits(bits(x), codes, clause="POLICY-SAME-1")
