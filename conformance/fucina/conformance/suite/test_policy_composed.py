"""Composed operations: negative log-likelihood, unit length, cosine, each by its formula."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.strategies import patterns
from fucina.conformance.suite import exact, formulas
from fucina.conformance.suite.tagged import check, constant, f32, pattern_noise, state
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDType,
    InvalidInteger,
    InvalidTag,
    ShapeMismatch,
)

F32 = DType.f32
SHAPES = ((4,), (2, 3), (3, 1, 5), (1, 1))
SPECIAL = (0.0, -0.0, 1.0, -1.0, 3e38, 1e-30, 1e-45, float("inf"), float("-inf"), float("nan"))


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


@st.composite
def operands(draw: st.DrawFn, count: int = 1) -> tuple[Any, ...]:
    """A shape, an axis of it, and arrays of patterns: ordinary ones, special ones, anything."""
    shape = draw(st.sampled_from(SHAPES))
    special = exact.encode(F32, np.array([exact.rounded(F32, v) for v in SPECIAL])).tolist()
    one = st.one_of(st.sampled_from(special), patterns(F32), st.integers(0x3F000000, 0x40800000))
    arrays = [np.resize(np.array(draw(st.lists(one, min_size=1, max_size=10)), np.uint32), shape) for _ in range(count)]
    return draw(st.integers(0, len(shape) - 1)), *arrays


# -- unit length


@clause("POLICY-NORM-1", "NUM-ELEM-1", "NUM-NAN-2")
@given(drawn=operands(), eps=st.sampled_from((None, 0.0, -0.0, 1e-3, 1.0, -1.0, 1e-60)))
def test_unit_length(impl: Any, ctx: Any, drawn: tuple[Any, ...], eps: float | None) -> None:
    axis, codes = drawn
    options = () if eps is None else (eps,)
    with constant(impl, ctx, F32, codes) as x:
        wanted = formulas.normalize(exact.decode(F32, codes), axis, 1e-12 if eps is None else eps)
        got = x.l2_normalize(ctx, "abc"[axis], *options)
        assert (got.axis_tags, got.as_raw_tensor().is_contiguous()) == (x.axis_tags, True)
        check(got, wanted, f"axis {axis}, eps {eps}", "POLICY-NORM-1", F32)


@clause("POLICY-NORM-1")
def test_the_inverse_root_is_rounded_once(impl: Any, ctx: Any) -> None:
    """Not the quotient of 1 and a rounded root."""
    told_apart = 0
    draw = np.random.Generator(np.random.PCG64(2))
    values = [exact.rounded(F32, v) for v in draw.uniform(0.5, 4, 400).tolist()]
    for v in values:
        square = exact.mul(F32, v, v)
        told_apart += exact.div(F32, 1.0, exact.root(F32, square)) != exact.inverse_root(F32, square)
    assert told_apart, "the numbers tell nothing"
    with f32(impl, ctx, np.array(values).reshape(400, 1)) as x:
        wanted = formulas.normalize(np.array(values).reshape(400, 1), 1, 0.0)
        check(x.l2_normalize(ctx, "b", 0.0), wanted, "roots", "POLICY-NORM-1", F32)
        check(
            x.l2_normalize(ctx, "a", eps=0.5),
            formulas.normalize(np.array(values).reshape(400, 1), 0, 0.5),
            "roots",
            "POLICY-NORM-1",
        )


@clause("POLICY-NORM-1")
def test_zeros_of_unit_length(impl: Any, ctx: Any) -> None:
    with impl.Tensor("a").zeros(ctx, (3,)) as x:
        check(x.l2_normalize(ctx, "a"), [0.0] * 3, "zeros", "POLICY-NORM-1")
        check(x.l2_normalize(ctx, "a", 0.0), [float("nan")] * 3, "0 * inf", "POLICY-NORM-1")


# -- cosine


@clause("POLICY-COSINE-1", "NUM-ELEM-1", "NUM-NAN-2")
@given(drawn=operands(2), eps=st.sampled_from((None, 0.0, 1e-3, 10.0, -1.0, float("nan"))))
def test_cosine(impl: Any, ctx: Any, drawn: tuple[Any, ...], eps: float | None) -> None:
    axis, one, other = drawn
    options = () if eps is None else (eps,)
    with constant(impl, ctx, F32, one) as x, constant(impl, ctx, F32, other) as y:
        wanted = formulas.cosine(exact.decode(F32, one), exact.decode(F32, other), axis, 1e-8 if eps is None else eps)
        got = x.cosine_similarity(ctx, y, "abc"[axis], *options)
        tags = tuple(tag for tag in x.axis_tags if tag != "abc"[axis])
        assert (got.axis_tags, got.as_raw_tensor().is_contiguous()) == (tags, True)
        check(got, wanted, f"axis {axis}, eps {eps}", "POLICY-COSINE-1", F32)
        check(
            x.cosine_similarity(ctx, x, "abc"[axis]),
            formulas.cosine(exact.decode(F32, one), exact.decode(F32, one), axis, 1e-8),
            "with itself",
            "POLICY-COSINE-1",
        )


# -- negative log-likelihood


@clause("POLICY-NLL-1", "NUM-NAN-2")
@given(drawn=operands(), data=st.data())
def test_likelihood(impl: Any, ctx: Any, drawn: tuple[Any, ...], data: st.DataObject) -> None:
    axis, codes = drawn
    rest = codes.shape[:axis] + codes.shape[axis + 1 :]
    count = int(np.prod(rest))
    index = st.integers(0, codes.shape[axis] - 1)
    targets = np.array(data.draw(st.lists(index, min_size=count, max_size=count))).reshape(rest)
    tags = tuple(tag for tag in "abc"[: codes.ndim] if tag != "abc"[axis])
    with (
        constant(impl, ctx, F32, codes) as x,
        impl.Tensor(*tags, dtype=DType.i32).from_slice(ctx, rest, targets.astype(np.int32)) as t,
    ):
        for reduction in ("mean", "sum", "none"):
            wanted = formulas.nll(exact.decode(F32, codes), targets, axis, reduction)
            given_as = [t] if len(rest) != 1 else [t, targets.tolist(), tuple(targets.tolist()), targets]
            given_as += [int(targets), [int(targets)]] if not rest else []
            for form in given_as:
                got = x.nll_loss(ctx, form, "abc"[axis], reduction=reduction)
                assert got.axis_tags == (tags if reduction == "none" else ())
                check(got, wanted, f"axis {axis}, {reduction}, {form!r}", "POLICY-NLL-1", F32)
        check(
            x.nll_loss(ctx, t, "abc"[axis]),
            formulas.nll(exact.decode(F32, codes), targets, axis, "mean"),
            "default",
            "POLICY-NLL-1",
        )


@clause("POLICY-NLL-1")
def test_likelihood_of_many(impl: Any, ctx: Any) -> None:
    codes = pattern_noise(F32, (70, 5), 3)
    targets = np.arange(70) * 3 % 5
    with constant(impl, ctx, F32, codes) as x:
        for reduction in ("mean", "sum"):
            wanted = formulas.nll(exact.decode(F32, codes), targets, 1, reduction)
            check(x.nll_loss(ctx, targets, "b", reduction=reduction), wanted, reduction, "POLICY-NLL-1", F32)


# -- errors


@clause("POLICY-NLL-1", "POLICY-NORM-1", "POLICY-COSINE-1")
def test_errors(impl: Any, ctx: Any) -> None:
    with (
        f32(impl, ctx, np.ones((2, 3))) as x,
        f32(impl, ctx, np.ones((3, 2)), ("b", "a")) as turned,
        f32(impl, ctx, np.ones((2, 1))) as thin,
        impl.Tensor(2).ones(ctx, (2, 3)) as n,
        impl.Tensor("b", dtype=DType.i64).zeros(ctx, (2,)) as along,
        impl.Tensor("a", dtype=DType.i64).zeros(ctx, (3,)) as long,
        impl.Tensor("a").zeros(ctx, (2,)) as floats,
    ):
        tensors = x, turned, thin, n, along, long, floats
        with impl.Tensor("a", "b", "c").ones(ctx, (2, 3, 2)) as cube:
            for few in ([0, 0], [0] * 4, 0):
                assert_raises(ShapeMismatch, "POLICY-NLL-1", partial(cube.nll_loss, ctx, few, "b"), what=repr(few))
        before = state(ctx, *tensors)
        for call, wrong in (
            *(
                (lambda: x.cosine_similarity(ctx, turned, "b"), InvalidTag),
                (lambda: x.cosine_similarity(ctx, n, "b"), InvalidTag),
            ),
            *(
                (lambda: x.cosine_similarity(ctx, thin, "b"), ShapeMismatch),
                (lambda: x.cosine_similarity(ctx, x, "c"), InvalidTag),
            ),
            *(
                (lambda: x.cosine_similarity(ctx, None, "b"), DTypeMismatch),
                (lambda: x.cosine_similarity(ctx, x, "b", "1"), DTypeMismatch),
            ),
            *((lambda: x.l2_normalize(ctx, "c"), InvalidTag), (lambda: x.l2_normalize(ctx, "a", None), DTypeMismatch)),
            *((lambda: x.nll_loss(ctx, [0, 0], "c"), InvalidTag), (lambda: x.nll_loss(ctx, along, "b"), InvalidTag)),
            *(
                (lambda: x.nll_loss(ctx, long, "b"), ShapeMismatch),
                (lambda: x.nll_loss(ctx, [0, 0, 0], "b"), ShapeMismatch),
            ),
            *(
                (lambda: x.nll_loss(ctx, [0, 3], "b"), IndexOutOfBounds),
                (lambda: x.nll_loss(ctx, [0, -1], "b"), IndexOutOfBounds),
            ),
            *(
                (lambda: x.nll_loss(ctx, floats, "b"), (InvalidDType, DTypeMismatch)),
                (lambda: x.nll_loss(ctx, [0.5, 0], "b"), (InvalidInteger, DTypeMismatch)),
            ),
            *(
                (lambda: x.nll_loss(ctx, [0, 0], "b", reduction="max"), InvalidBounds),
                (lambda: x.nll_loss(ctx, [0, 0], "b", reduction=None), InvalidBounds),
            ),
        ):
            assert_raises(wrong, None, call)
        assert_raises(TypeError, None, partial(x.nll_loss, ctx, [0, 0], "b", "mean"))
        assert state(ctx, *tensors) == before
