"""Sums and means: the tree, over which elements and in which order, dtypes, and which axes go."""

from __future__ import annotations

from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_raises
from fucina.conformance.strategies import patterns, profile_size
from fucina.conformance.suite import exact, formulas
from fucina.conformance.suite.casts import INTEGERS, STORAGE
from fucina.conformance.suite.pace import Note, scaled
from fucina.conformance.suite.raw_arithmetic import ARITHMETIC, REAL, accumulator
from fucina.conformance.suite.raw_arithmetic import total as fast_total
from fucina.conformance.suite.tagged import bits, check, constant, f32, pattern_noise, state
from fucina.spec import DType
from fucina.spec.errors import EmptySelection, InvalidTag

SUMMED = (*ARITHMETIC, DType.bool)
F32 = DType.f32


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def result_dtype(dtype: DType) -> DType:
    return accumulator(dtype) if dtype in REAL else DType.i64


# -- every set of axes


@clause("POLICY-SUM-1", "CONTEXT-SUM-1", "CONTEXT-SUM-2", "POLICY-RESULT-1")
@pytest.mark.parametrize("dtype", SUMMED, ids=lambda d: d.name)
def test_sums_along_every_set_of_axes(impl: Any, ctx: Any, dtype: DType) -> None:
    for shape in ((5,), (3, 7), (2, 5, 3), (7, 1, 11), (2, 3, 2, 4)):
        codes, tags = pattern_noise(dtype, shape), "abcd"[: len(shape)]
        values = exact.decode(dtype, codes)
        with constant(impl, ctx, dtype, codes) as x:
            for count in range(1, len(shape) + 1):
                for axes in combinations(range(len(shape)), count):
                    for keep in (False, True):
                        wanted = formulas.total(dtype, values, axes, keep=keep)
                        chosen = [tags[i] for i in axes]
                        got = x.sum(ctx, tags[axes[0]] if count == 1 else chosen[::-1], keep_dims=keep)
                        left = tuple(tags) if keep else tuple(t for t in tags if t not in chosen)
                        assert (got.axis_tags, got.as_raw_tensor().is_contiguous()) == (left, True)
                        check(got, wanted, f"{shape} {chosen}", "POLICY-SUM-1", result_dtype(dtype))
            wanted = formulas.total(dtype, values)
            for got in (x.sum_all(ctx), x.sum(ctx), x.sum(ctx, None)):
                assert got.shape == ()
                check(got, wanted, str(shape), "POLICY-SUM-1", result_dtype(dtype))
            if dtype in REAL:
                for some in (None, (0,), tuple(range(len(shape)))):
                    got = x.mean(ctx, None if some is None else tuple(tags[i] for i in some))
                    check(
                        got, formulas.mean(dtype, values, some), f"mean {shape}", "POLICY-MEAN-1", result_dtype(dtype)
                    )


@clause("POLICY-SUM-1")
def test_the_order_of_the_axes_that_are_named_does_not_matter(impl: Any, ctx: Any) -> None:
    """But that of the tensor's axes does: the same numbers, turned, may have another sum."""
    codes = pattern_noise(F32, (5, 7, 3), 4)
    values, told_apart = exact.decode(F32, codes), 0
    with constant(impl, ctx, F32, codes) as x:
        for axes in permutations("abc"):
            check(x.sum(ctx, axes), formulas.total(F32, values), str(axes), "POLICY-SUM-1")
            with x.permute(ctx, axes) as t:
                turned = values.transpose(["abc".index(tag) for tag in axes])
                check(t.sum_all(ctx), formulas.total(F32, turned), str(axes), "POLICY-SUM-1")
                check(
                    t.sum(ctx, ("a", "c")),
                    formulas.total(F32, turned, [axes.index("a"), axes.index("c")]),
                    str(axes),
                    "POLICY-SUM-1",
                )
                told_apart += formulas.total(F32, turned) != formulas.total(F32, values)
    assert told_apart, "the numbers tell nothing"


@clause("POLICY-SUM-1")
def test_a_sum_along_two_axes_is_one_tree(impl: Any, ctx: Any) -> None:
    """And not the sum of sums."""
    codes = pattern_noise(F32, (3, 40, 5), 1)
    values = exact.decode(F32, codes)
    twice = formulas.total(F32, formulas.total(F32, values, [2]), [1])
    wanted = formulas.total(F32, values, [1, 2])
    assert (twice != wanted).any(), "the numbers tell nothing"
    with constant(impl, ctx, F32, codes) as x:
        check(x.sum(ctx, ("b", "c")), wanted, "b and c", "POLICY-SUM-1", F32)


# -- the tree


@clause("POLICY-SUM-1", "CONTEXT-SUM-1")
@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
def test_lengths_around_the_lanes(impl: Any, ctx: Any, dtype: DType) -> None:
    for n in (1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257):
        codes = pattern_noise(dtype, (n,), n)
        with constant(impl, ctx, dtype, codes) as x:
            check(x.sum_all(ctx), formulas.total(dtype, exact.decode(dtype, codes)), f"{n}", "POLICY-SUM-1")
            check(x.mean(ctx), formulas.mean(dtype, exact.decode(dtype, codes)), f"{n}", "POLICY-MEAN-1")


@clause("POLICY-SUM-1", "CONTEXT-SUM-1")
@pytest.mark.parametrize("n", [8191, 8192, 8193, 8224, 16385, 3 * 8192 + 33])
def test_lengths_around_the_blocks(impl: Any, ctx: Any, n: int) -> None:
    codes = pattern_noise(F32, (n,), n)
    wanted = fast_total(F32, codes)
    if n < 8200:
        assert exact.encode(F32, formulas.total(F32, exact.decode(F32, codes)).reshape(1)).tolist() == wanted.tolist()
    with constant(impl, ctx, F32, codes) as x:
        check(x.sum_all(ctx), exact.decode(F32, wanted).reshape(()), f"{n}", "POLICY-SUM-1", F32)
        with x.broadcast_to(ctx, (2, n, 2), ("m", "a", "n")) as r:
            check(r.sum(ctx, "a"), np.broadcast_to(exact.decode(F32, wanted), (2, 2)), f"{n}", "POLICY-SUM-1", F32)


@clause("POLICY-SUM-1")
def test_a_sum_of_two_axes_that_is_longer_than_a_block(impl: Any, ctx: Any, record_property: Note) -> None:
    side = scaled(impl, record_property, 130, 91, "side of a square of which the columns are summed too")
    codes = pattern_noise(F32, (side, 2, side), 3)
    wanted = np.concatenate([fast_total(F32, np.ascontiguousarray(codes[:, i]).reshape(-1)) for i in (0, 1)])
    with constant(impl, ctx, F32, codes) as x:
        check(x.sum(ctx, ("a", "c")), exact.decode(F32, wanted), "a and c", "POLICY-SUM-1", F32)


@clause("POLICY-SUM-1", "NUM-NAN-2")
@pytest.mark.parametrize("dtype", SUMMED, ids=lambda d: d.name)
@settings(max_examples=profile_size(15, 500))
@given(data=st.data())
def test_sums_of_anything(impl: Any, ctx: Any, dtype: DType, data: st.DataObject) -> None:
    some = data.draw(st.lists(patterns(dtype), min_size=1, max_size=12))
    rows, columns = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 12)))
    codes = np.resize(np.array(some, PATTERN[dtype]), (rows, columns))
    values = exact.decode(dtype, codes)
    with constant(impl, ctx, dtype, codes) as x:
        for axes, tags in (((0,), "a"), ((1,), "b"), ((0, 1), None)):
            check(
                x.sum(ctx, tags),
                formulas.total(dtype, values, axes),
                f"{rows}x{columns}",
                "POLICY-SUM-1",
                result_dtype(dtype),
            )
            if dtype in REAL:
                check(
                    x.mean(ctx, tags),
                    formulas.mean(dtype, values, axes),
                    f"{rows}x{columns}",
                    "POLICY-MEAN-1",
                    result_dtype(dtype),
                )


@clause("POLICY-SUM-1")
def test_zeros_and_specials(impl: Any, ctx: Any) -> None:
    inf, nan = float("inf"), float("nan")
    for values, wanted in (
        *(([-0.0], 0.0), ([-0.0] * 40, 0.0), ([inf, 1.0], inf), ([inf, -inf], nan), ([nan, 1.0], nan)),
        *(([3.4e38] * 33, inf), ([2.0**-149] * 40, 40 * 2.0**-149)),
    ):
        with f32(impl, ctx, values) as x:
            check(x.sum_all(ctx), wanted, f"{values[:2]}", "POLICY-SUM-1")
    with impl.Tensor().scalar(ctx, -0.0) as x:
        check(x.sum_all(ctx), 0.0, "a sum of one", "POLICY-SUM-1")
        check(x.sum(ctx), 0.0, "a sum of one", "POLICY-SUM-1")
    for dtype in INTEGERS:
        top = (1 << (8 * STORAGE[dtype].itemsize - (STORAGE[dtype].kind == "i"))) - 1
        with impl.Tensor("a", dtype=dtype).full(ctx, (5,), top) as x, x.sum_all(ctx) as s:
            assert s.item() == (5 * top + (1 << 63)) % (1 << 64) - (1 << 63)


# -- means


@clause("POLICY-MEAN-1", "NUM-ARITH-1")
def test_a_mean_is_one_division(impl: Any, ctx: Any) -> None:
    """Not a product with the inverse of the count."""
    told_apart = 0
    for n in (3, 5, 7, 10, 41, 100):
        values = [exact.rounded(F32, 0.1 * i) for i in range(1, n + 1)]
        with f32(impl, ctx, values) as x:
            wanted = formulas.mean(F32, np.array(values))
            inverse = exact.div(F32, 1.0, float(n))
            told_apart += exact.mul(F32, exact.tree(F32, values), inverse) != float(wanted)
            check(x.mean(ctx), wanted, str(n), "POLICY-MEAN-1", F32)
    assert told_apart, "the numbers tell nothing"
    with f32(impl, ctx, np.ones((2, 3, 4))) as x:
        for axes, shape in ((("a", "c"), (3,)), ("b", (2, 4)), (None, ())):
            with x.mean(ctx, axes) as m:
                assert m.shape == shape
                assert set(np.asarray(m).reshape(-1).tolist()) == {1.0}


@clause("POLICY-SUM-1", "POLICY-MEAN-1", "FACADE-AXIS-1")
def test_errors(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, np.ones((2, 3))) as x, impl.Tensor().scalar(ctx, 1.0) as s:
        before = state(ctx, x, s)
        for name in ("sum", "mean"):
            call = partial(getattr(x, name), ctx)
            wrong: Any
            for wrong in ((), []):
                assert_raises(EmptySelection, None, partial(call, wrong))
                assert_raises(EmptySelection, None, partial(getattr(s, name), ctx, wrong))
            for wrong in ("c", 0, ("a", "a"), ("a", "c"), ("a", None), 1.0, {"a": 1}):
                assert_raises(InvalidTag, None, partial(call, wrong), what=repr(wrong))
            assert_raises(TypeError, None, partial(call, "a", True))
        assert state(ctx, x, s) == before
        with x.sum(ctx, ("a", "b"), keep_dims=True) as y:
            assert (y.shape, y.axis_tags) == ((1, 1), ("a", "b"))
            assert bits(y).size == 1
