"""Each gradient bit for bit by its formula, against finite differences in f64, and in lockstep with the judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits
from fucina.conformance.strategies import patterns, profile_size
from fucina.conformance.suite import exact, formulas
from fucina.conformance.suite.tagged import bits, check, constant, f32, leaf, pattern_noise
from fucina.spec import DType

F32 = DType.f32
SMALL = (DType.f16, DType.bf16, F32)
each_small = pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
SPECIAL = (0.0, -0.0, 1.0, -2.0, 3e38, 1e-42, float("inf"), float("nan"))


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def pull(impl: Any, ctx: Any, result: Any, g: Any) -> None:
    """Run backward so that exactly these patterns arrive at a result: 1 * g, after conversions, which are exact."""
    wide = result if result.dtype is F32 else result.to(ctx, F32)
    with constant(impl, ctx, F32, g, result.shape, tags=result.axis_tags) as factor:
        wide.mul(ctx, factor).sum_all(ctx).backward(ctx)


def gradients(impl: Any, ctx: Any, call: Callable[..., Any], leaves: Sequence[Any], g: Any) -> list[Any]:
    """Return the gradients that arrive at leaves when g arrives at the result of a call."""
    with ctx.exec_scope():
        pull(impl, ctx, call(*leaves), g)
    found = [w.grad(ctx) for w in leaves]
    for w in leaves:
        w.zero_grad()
    return found


def drawn(data: st.DataObject, dtype: DType, shape: Sequence[int]) -> Any:
    """Draw patterns of a shape: ordinary, special, anything."""
    special = exact.encode(dtype, np.array([exact.rounded(dtype, v) for v in SPECIAL])).tolist()
    ordinary = pattern_noise(dtype, (8,)).tolist()
    some = data.draw(st.lists(st.one_of(st.sampled_from(special + ordinary), patterns(dtype)), min_size=1, max_size=9))
    return np.resize(np.array(some, PATTERN[dtype]), tuple(shape))


# -- arithmetic

ALIGNED = (
    (("a",), (4,), ("a",), (4,)),
    (("a", "b"), (2, 3), ("b",), (3,)),
    (("a",), (2,), ("b", "a"), (3, 1)),
    (("b", "a"), (3, 2), ("a", "b"), (2, 1)),
    ((), (), ("a", "b"), (2, 40)),
    (("a", "b", "c"), (2, 1, 3), ("c", "d"), (3, 2)),
    ((), (), (), ()),
    (("a", "b"), (1, 3), ("b", "a"), (1, 2)),
)


@clause("AUTOGRAD-VJP-1", "AUTOGRAD-BACK-1", "POLICY-TAGS-1")
@each_small
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@settings(max_examples=profile_size(20, 500))
@given(data=st.data(), aligned=st.sampled_from(ALIGNED))
def test_arithmetic(impl: Any, ctx: Any, dtype: DType, name: str, data: st.DataObject, aligned: Any) -> None:
    one, left, other, right = aligned
    a, b = drawn(data, dtype, left), drawn(data, dtype, right)
    tags = one + tuple(tag for tag in other if tag not in one)
    places = [[tags.index(tag) for tag in names] for names in (one, other)]
    values = [exact.decode(dtype, codes) for codes in (a, b)]
    spread = [formulas.aligned(v, names, tags) for v, names in zip(values, (one, other), strict=True)]
    shape = np.broadcast_shapes(*(s.shape for s in spread))
    g = drawn(data, F32, shape)
    x, y = leaf(impl, ctx, dtype, a, tags=one), leaf(impl, ctx, dtype, b, tags=other)
    found = gradients(impl, ctx, lambda p, q: getattr(p, name)(ctx, q), (x, y), g)
    wanted = formulas.vjp(
        name,
        exact.decode(F32, g),
        np.broadcast_to(spread[0], shape),
        np.broadcast_to(spread[1], shape),
        lambda t: formulas.repeated_sum(t, left, places[0]),
        lambda t: formulas.repeated_sum(t, right, places[1]),
    )
    for got, expected, what in zip(found, wanted, ("left", "right"), strict=True):
        check(got, expected, f"{name} of {dtype.name}, {aligned}, {what}", "AUTOGRAD-VJP-1", F32)
    x.deinit()
    y.deinit()


@clause("AUTOGRAD-VJP-1")
@each_small
@given(data=st.data(), number=st.floats(allow_nan=False))
def test_numbers(impl: Any, ctx: Any, dtype: DType, data: st.DataObject, number: float) -> None:
    a, g = drawn(data, dtype, (2, 3)), drawn(data, F32, (2, 3))
    factor = exact.rounded(F32, number)
    with leaf(impl, ctx, dtype, a) as x:
        (got,) = gradients(impl, ctx, lambda p: p.scale(ctx, number), (x,), g)
        wanted = formulas.each(lambda v: exact.mul(F32, v, factor), exact.decode(F32, g))
        check(got, wanted, f"times {number}", "AUTOGRAD-VJP-1", F32)
        (got,) = gradients(impl, ctx, lambda p: p.add_scalar(ctx, number), (x,), g)
        check(got, exact.decode(F32, g), f"plus {number}", "AUTOGRAD-VJP-1", F32)


@clause("AUTOGRAD-VJP-1", "CONTEXT-SUM-1")
def test_a_repeated_operand_gets_one_tree(impl: Any, ctx: Any) -> None:
    """Of a length at which the order shows, over several axes of the result at once."""
    g, values = pattern_noise(F32, (5, 40, 7), 3), pattern_noise(F32, (40,), 4)
    with leaf(impl, ctx, F32, values, tags=("b",)) as w, impl.Tensor("a", "b", "c").ones(ctx, (5, 40, 7)) as x:
        (got,) = gradients(impl, ctx, lambda p: x.add(ctx, p), (w,), g)
        wanted = formulas.repeated_sum(exact.decode(F32, g), (40,), (1,))
        twice = formulas.total(F32, formulas.total(F32, exact.decode(F32, g), [2]), [0])
        assert (twice != wanted).any(), "the numbers tell nothing"
        check(got, wanted, "a and c", "AUTOGRAD-VJP-1", F32)


@clause("AUTOGRAD-VJP-1", "AUTOGRAD-VJP-3")
def test_a_sum_over_an_axis_of_one_is_a_tree_too(impl: Any, ctx: Any) -> None:
    """An operand that has not the axis: lanes start at +0, so -0 becomes +0.  One that has it gets -0 itself."""
    g = np.array([[1 << 31]], np.uint32)
    with f32(impl, ctx, [1.0], ("b",), grad=True) as w, f32(impl, ctx, [[1.0]], grad=True) as v:
        found = gradients(impl, ctx, lambda p, q: q.add(ctx, p), (w, v), g)
        assert [bits(t).reshape(-1).tolist() for t in found] == [[0], [1 << 31]]
        for t in found:
            t.deinit()


# -- reductions, views, conversions


@clause("AUTOGRAD-VJP-2")
@each_small
@settings(max_examples=profile_size(10, 500))
@given(data=st.data(), keep=st.booleans())
def test_reductions(impl: Any, ctx: Any, dtype: DType, data: st.DataObject, keep: bool) -> None:
    shape = (2, 3, 4)
    a = drawn(data, dtype, shape)
    with leaf(impl, ctx, dtype, a) as x:
        for tags in ("a", "b", ("a", "c"), ("c", "b", "a"), None):
            axes = [i for i, tag in enumerate("abc") if tags is None or tag in tags]
            left = [1 if i in axes else n for i, n in enumerate(shape)]
            g = drawn(data, F32, [n for i, n in enumerate(left) if keep or i not in axes])
            spread = np.broadcast_to(exact.decode(F32, g).reshape(left), shape)
            count = float(np.prod([shape[i] for i in axes]))
            (got,) = gradients(impl, ctx, lambda p, t=tags: p.sum(ctx, t, keep_dims=keep), (x,), g)
            check(got, spread, f"sum {tags}", "AUTOGRAD-VJP-2", F32)
            (got,) = gradients(impl, ctx, lambda p, t=tags: p.mean(ctx, t, keep_dims=keep), (x,), g)
            wanted = formulas.each(lambda v, n=count: exact.div(F32, v, n), spread)
            check(got, wanted, f"mean {tags}", "AUTOGRAD-VJP-2", F32)
        g = drawn(data, F32, ())
        (got,) = gradients(impl, ctx, lambda p: p.sum_all(ctx), (x,), g)
        check(got, np.broadcast_to(exact.decode(F32, g), shape), "sum_all", "AUTOGRAD-VJP-2", F32)


VIEWS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reshape": (lambda x, c: x.reshape(c, (3, 2), ("p", "q")), lambda v: v.reshape(3, 2), lambda g: g.reshape(2, 3)),
    "flatten": (lambda x, c: x.flatten(c, "f"), lambda v: v.reshape(6), lambda g: g.reshape(2, 3)),
    "contiguous": (lambda x, c: x.contiguous(c), lambda v: v, lambda g: g),
    "contiguous copy": (lambda x, c: x.transpose(c, "a", "b").contiguous(c), lambda v: v.T, lambda g: g.T),
    "reshape copy": (
        lambda x, c: x.transpose(c, "a", "b").reshape(c, (2, 3)),
        lambda v: v.T.reshape(2, 3),
        lambda g: g.reshape(3, 2).T,
    ),
    "permute": (lambda x, c: x.permute(c, ("b", "a")), lambda v: v.T, lambda g: g.T),
    "transpose": (lambda x, c: x.transpose(c, "b", "a"), lambda v: v.T, lambda g: g.T),
    "split": (
        lambda x, c: x.split(c, "b", (1, 3), ("p", "q")),
        lambda v: v.reshape(2, 1, 3),
        lambda g: g.reshape(2, 3),
    ),
    "merge": (lambda x, c: x.merge(c, ("a", "b"), "f"), lambda v: v.reshape(6), lambda g: g.reshape(2, 3)),
    "merge copy": (
        lambda x, c: x.transpose(c, "a", "b").merge(c, ("b", "a"), "f"),
        lambda v: v.T.reshape(6),
        lambda g: g.reshape(3, 2).T,
    ),
    "narrow": (
        lambda x, c: x.narrow(c, "b", 1, 2),
        lambda v: v[:, 1:],
        lambda g: np.concatenate([np.zeros((2, 1)), g], 1),
    ),
    "to f16": (lambda x, c: x.to(c, DType.f16), lambda v: v, lambda g: g),
    "to bf16": (lambda x, c: x.to(c, DType.bf16), lambda v: v, lambda g: g),
    "to f32": (lambda x, c: x.to(c, F32), lambda v: v, lambda g: g),
}


@clause("AUTOGRAD-VJP-3")
@each_small
@pytest.mark.parametrize("name", VIEWS)
@settings(max_examples=profile_size(10, 500))
@given(data=st.data())
def test_views_and_conversions(impl: Any, ctx: Any, dtype: DType, name: str, data: st.DataObject) -> None:
    forward, shape_of, back = VIEWS[name]
    a = drawn(data, dtype, (2, 3))
    g = drawn(data, F32, shape_of(np.zeros((2, 3))).shape)
    with leaf(impl, ctx, dtype, a) as x:
        (got,) = gradients(impl, ctx, lambda p: forward(p, ctx), (x,), g)
        assert got.as_raw_tensor().is_contiguous()
        check(got, back(exact.decode(F32, g)), name, "AUTOGRAD-VJP-3", F32)


@clause("AUTOGRAD-VJP-3")
@given(data=st.data())
def test_broadcast_to(impl: Any, ctx: Any, data: st.DataObject) -> None:
    for shape, tags, places in (
        *(((4, 3), ("a", "b"), (0, 1)), ((3, 5), ("b", "a"), (1, 0)), ((2, 3, 2, 1), ("n", "b", "a", "m"), (2, 1))),
        ((1, 3), ("a", "b"), (0, 1)),
    ):
        a, g = drawn(data, F32, (1, 3)), drawn(data, F32, shape)
        with leaf(impl, ctx, F32, a) as x:
            (got,) = gradients(impl, ctx, lambda p, s=shape, t=tags: p.broadcast_to(ctx, s, t), (x,), g)
            check(got, formulas.repeated_sum(exact.decode(F32, g), (1, 3), places), str(shape), "AUTOGRAD-VJP-3", F32)


# -- dropout, rows, products


@clause("AUTOGRAD-VJP-4")
@each_small
@given(data=st.data(), p=st.floats(0, 1, width=32, exclude_max=True), seed=st.integers(0, (1 << 64) - 1))
def test_dropout(impl: Any, ctx: Any, dtype: DType, data: st.DataObject, p: float, seed: int) -> None:
    a, g = drawn(data, dtype, (4, 5)), drawn(data, F32, (4, 5))
    with leaf(impl, ctx, dtype, a) as x:
        (got,) = gradients(impl, ctx, lambda t: t.dropout(ctx, p, seed), (x,), g)
        check(got, formulas.dropout(F32, exact.decode(F32, g), p, seed), f"p={p}", "AUTOGRAD-VJP-4", F32)


@clause("AUTOGRAD-VJP-5")
@each_small
@given(data=st.data())
def test_rows(impl: Any, ctx: Any, dtype: DType, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(((3, 2), (3,), (3, 1, 2))))
    indices = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=8))
    a, g = drawn(data, dtype, shape), drawn(data, F32, (len(indices), *shape[1:]))
    wanted = formulas.row_gradient(exact.decode(F32, g), indices, shape)
    with (
        leaf(impl, ctx, dtype, a) as x,
        impl.Tensor("i", "j", dtype=DType.u8).from_slice(ctx, (1, len(indices)), indices) as t,
    ):
        (got,) = gradients(impl, ctx, lambda p: p.get_rows(ctx, indices), (x,), g)
        check(got, wanted, str(indices), "AUTOGRAD-VJP-5", F32)
        (got,) = gradients(impl, ctx, lambda p: p.get_rows(ctx, t), (x,), g.reshape(1, *g.shape))
        check(got, wanted, str(indices), "AUTOGRAD-VJP-5", F32)


@clause("AUTOGRAD-VJP-5")
def test_rows_are_added_in_ascending_order(impl: Any, ctx: Any) -> None:
    """Each to +0, one after the other, and not by a tree."""
    g = pattern_noise(F32, (100, 1), 8)
    with f32(impl, ctx, [[1.0], [2.0]], grad=True) as w:
        indices = [0] * 100
        wanted = formulas.row_gradient(exact.decode(F32, g), indices, (2, 1))
        backwards = formulas.row_gradient(exact.decode(F32, g)[::-1], indices, (2, 1))
        assert wanted[0, 0] != backwards[0, 0] != exact.tree(F32, exact.decode(F32, g)[:, 0].tolist()), "nothing told"
        (got,) = gradients(impl, ctx, lambda p: p.get_rows(ctx, indices), (w,), g)
        check(got, wanted, "100 times", "AUTOGRAD-VJP-5", F32)


@clause("AUTOGRAD-VJP-6", "POLICY-DOT-1")
@each_small
@given(
    data=st.data(),
    tags=st.sampled_from(
        (("ak", "kb"), ("ka", "bk"), ("k", "kb"), ("ak", "k"), ("k", "k"), ("akc", "bk"), ("ak", "dkb"))
    ),
)
def test_products(impl: Any, ctx: Any, dtype: DType, data: st.DataObject, tags: tuple[str, str]) -> None:
    sizes = {"a": 2, "b": 3, "c": 2, "d": 2, "k": 4}
    a, b = (drawn(data, dtype, [sizes[t] for t in names]) for names in tags)
    g = drawn(data, F32, [sizes[t] for t in (tags[0] + tags[1]).replace("k", "")])
    x, y = leaf(impl, ctx, dtype, a, tags=tuple(tags[0])), leaf(impl, ctx, dtype, b, tags=tuple(tags[1]))
    found = gradients(impl, ctx, lambda p, q: p.dot(ctx, q), (x, y), g)
    i, j = tags[0].index("k"), tags[1].index("k")
    wanted = formulas.dot_gradients(exact.decode(F32, g), exact.decode(dtype, a), exact.decode(dtype, b), i, j)
    for got, expected, what in zip(found, wanted, ("left", "right"), strict=True):
        check(got, expected, f"{tags} {what}", "AUTOGRAD-VJP-6", F32)
    x.deinit()
    y.deinit()


@clause("AUTOGRAD-VJP-6")
def test_products_of_a_length_at_which_the_order_shows(impl: Any, ctx: Any) -> None:
    a, b, g = pattern_noise(F32, (40, 3), 1), pattern_noise(F32, (3, 35), 2), pattern_noise(F32, (40, 35), 3)
    x, y = leaf(impl, ctx, F32, a, tags=("m", "k")), leaf(impl, ctx, F32, b, tags=("k", "n"))
    found = gradients(impl, ctx, lambda p, q: p.dot(ctx, q), (x, y), g)
    values = [exact.decode(F32, v) for v in (g, a, b)]
    for got, expected in zip(found, formulas.dot_gradients(values[0], values[1], values[2], 1, 0), strict=True):
        check(got, expected, "40x3x35", "AUTOGRAD-VJP-6", F32)
    x.deinit()
    y.deinit()


# -- composed operations


@clause("AUTOGRAD-VJP-7", "POLICY-NLL-1")
@given(data=st.data(), reduction=st.sampled_from(("mean", "sum", "none")), axis=st.integers(0, 1))
def test_likelihood(impl: Any, ctx: Any, data: st.DataObject, reduction: str, axis: int) -> None:
    a = drawn(data, F32, (3, 3))
    targets = np.array(data.draw(st.lists(st.integers(0, 2), min_size=3, max_size=3)))
    g = drawn(data, F32, (3,) if reduction == "none" else ())
    with leaf(impl, ctx, F32, a) as x:
        (got,) = gradients(impl, ctx, lambda p: p.nll_loss(ctx, targets, "ab"[axis], reduction=reduction), (x,), g)
        wanted = formulas.nll_gradient(exact.decode(F32, a), targets, axis, reduction, exact.decode(F32, g))
        check(got, wanted, f"{reduction} {axis}", "AUTOGRAD-VJP-7", F32)


@clause("AUTOGRAD-VJP-7", "POLICY-NORM-1")
@given(data=st.data(), axis=st.integers(0, 1), eps=st.sampled_from((1e-12, 0.0, 0.5)))
def test_unit_length(impl: Any, ctx: Any, data: st.DataObject, axis: int, eps: float) -> None:
    a, g = drawn(data, F32, (2, 3)), drawn(data, F32, (2, 3))
    with leaf(impl, ctx, F32, a) as x:
        (got,) = gradients(impl, ctx, lambda p: p.l2_normalize(ctx, "ab"[axis], eps), (x,), g)
        wanted = formulas.normalize_gradient(exact.decode(F32, a), axis, eps, exact.decode(F32, g))
        check(got, wanted, f"{axis} {eps}", "AUTOGRAD-VJP-7", F32)


@clause("AUTOGRAD-VJP-7", "POLICY-COSINE-1")
@given(data=st.data(), axis=st.integers(0, 1), eps=st.sampled_from((1e-8, 0.0, 2.0, 1e3)))
def test_cosine(impl: Any, ctx: Any, data: st.DataObject, axis: int, eps: float) -> None:
    a, b = drawn(data, F32, (2, 3)), drawn(data, F32, (2, 3))
    g = drawn(data, F32, ((3, 2)[axis],))
    with leaf(impl, ctx, F32, a) as x, leaf(impl, ctx, F32, b) as y:
        found = gradients(impl, ctx, lambda p, q: p.cosine_similarity(ctx, q, "ab"[axis], eps), (x, y), g)
        one, other = exact.decode(F32, a), exact.decode(F32, b)
        wanted = formulas.cosine_gradients(one, other, axis, eps, exact.decode(F32, g))
        for got, expected, what in zip(found, wanted, ("x", "y"), strict=True):
            check(got, expected, f"{axis} {eps} {what}", "AUTOGRAD-VJP-7", F32)


@clause("AUTOGRAD-VJP-7", "POLICY-COSINE-1")
@pytest.mark.parametrize(
    "eps", [50.0, np.nextafter(np.float32(50), np.float32(0)).item(), 0.0, -1.0, math.inf, math.nan], ids=repr
)
def test_cosine_where_the_lengths_are_eps(impl: Any, ctx: Any, eps: float) -> None:
    """The product of the lengths is eps itself, the float above it, 0, infinite, no number."""
    a = np.array([[3, 4], [3, 4], [0, 0], [math.inf, 1], [math.nan, 1], [-0.0, 2**-149]], np.float32).view(np.uint32)
    b = np.array([[6, 8], [6, 8.000001], [0, 0], [2, 1], [2, 1], [1, 1]], np.float32).view(np.uint32)
    g = np.array([2, -3, 1, 1, 1, 1], np.float32).view(np.uint32)
    with leaf(impl, ctx, F32, a) as x, leaf(impl, ctx, F32, b) as y:
        found = gradients(impl, ctx, lambda p, q: p.cosine_similarity(ctx, q, "b", eps), (x, y), g)
        wanted = formulas.cosine_gradients(exact.decode(F32, a), exact.decode(F32, b), 1, eps, exact.decode(F32, g))
        for got, expected, what in zip(found, wanted, ("x", "y"), strict=True):
            check(got, expected, f"{eps} {what}", "AUTOGRAD-VJP-7", F32)


# -- finite differences

Case = tuple[tuple[tuple[int, ...], ...], Callable[..., Any], Callable[..., Any]]
KEPT = formulas.kept(5, 6, 0.25).reshape(2, 3) * (1 / 0.75)
TURNED = np.array([2, 0, 2, 1])


def _unit(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(1, keepdims=True) + 1e-12)


CASES: dict[str, Case] = {
    "add": (((2, 3), (2, 1)), lambda c, x, y: x.add(c, y), lambda x, y: x + y),
    "sub": (((2, 3), (1, 3)), lambda c, x, y: x.sub(c, y), lambda x, y: x - y),
    "mul": (((2, 3), (2, 1)), lambda c, x, y: x.mul(c, y), lambda x, y: x * y),
    "div": (((2, 3), (1, 3)), lambda c, x, y: x.div(c, y), lambda x, y: x / y),
    "scale": (((2, 3),), lambda c, x: x.scale(c, 1.5), lambda x: x * 1.5),
    "add_scalar": (((2, 3),), lambda c, x: x.add_scalar(c, 1.5), lambda x: x + 1.5),
    "sum": (((2, 3, 2),), lambda c, x: x.sum(c, ("a", "c")), lambda x: x.sum((0, 2))),
    "mean": (((2, 3, 2),), lambda c, x: x.mean(c, "b", keep_dims=True), lambda x: x.mean(1, keepdims=True)),
    "sum_all": (((2, 3),), lambda c, x: x.sum_all(c), lambda x: x.sum()),
    "reshape": (((2, 3),), lambda c, x: x.reshape(c, (3, 2)), lambda x: x.reshape(3, 2)),
    "narrow": (((2, 3),), lambda c, x: x.narrow(c, "b", 1, 2), lambda x: x[:, 1:]),
    "permute": (((2, 3, 2),), lambda c, x: x.permute(c, ("c", "a", "b")), lambda x: x.transpose(2, 0, 1)),
    "broadcast_to": (
        ((2, 1),),
        lambda c, x: x.broadcast_to(c, (3, 2, 2), ("n", "b", "a")),
        lambda x: np.broadcast_to(x.T, (2, 2)) + np.zeros((3, 1, 1)),
    ),
    "dropout": (((2, 3),), lambda c, x: x.dropout(c, 0.25, 5), lambda x: x * KEPT),
    "get_rows": (((3, 2),), lambda c, x: x.get_rows(c, TURNED), lambda x: x[TURNED]),
    "dot": (
        ((2, 3), (4,)),
        lambda c, x, y: x.dot(c, y.reshape(c, (2, 2), ("a", "n"))),
        lambda x, y: x.T @ y.reshape(2, 2),
    ),
    "nll mean": (((2, 3),), lambda c, x: x.nll_loss(c, [2, 0], "b"), lambda x: -(x[0, 2] + x[1, 0]) / 2),
    "nll none": (
        ((2, 3),),
        lambda c, x: x.nll_loss(c, [1, 0, 1], "a", reduction="none"),
        lambda x: -np.array([x[1, 0], x[0, 1], x[1, 2]]),
    ),
    "l2_normalize": (((2, 3),), lambda c, x: x.l2_normalize(c, "b"), _unit),
    "cosine": (
        ((2, 3), (2, 3)),
        lambda c, x, y: x.cosine_similarity(c, y, "b"),
        lambda x, y: (_unit(x) * _unit(y)).sum(1),
    ),
    "cosine below eps": (
        ((2, 3), (2, 3)),
        lambda c, x, y: x.cosine_similarity(c, y, "b", 1e4),
        lambda x, y: (x * y).sum(1) / 1e4,
    ),
    "a composition": (
        ((2, 3), (2, 3)),
        lambda c, x, y: x.mul(c, y).l2_normalize(c, "b").add(c, x).div(c, y.mul(c, y).add_scalar(c, 1.0)).mean(c, "a"),
        lambda x, y: ((_unit(x * y) + x) / (y * y + 1)).mean(0),
    ),
}


@clause("AUTOGRAD-VJP-1", "AUTOGRAD-VJP-2", "AUTOGRAD-VJP-3", "AUTOGRAD-VJP-4", "AUTOGRAD-VJP-5", "AUTOGRAD-VJP-6")
@clause("AUTOGRAD-VJP-7", "AUTOGRAD-BACK-1")
@pytest.mark.parametrize("name", CASES)
def test_finite_differences(impl: Any, ctx: Any, name: str) -> None:
    """The slope of the function that the formula is of, computed by numpy in f64."""
    shapes, call, function = CASES[name]
    draw = np.random.Generator(np.random.PCG64(11))
    arrays = [draw.uniform(0.5, 2.0, shape).astype(np.float32).astype(np.float64) for shape in shapes]
    weights = np.asarray(draw.uniform(-1, 1, np.shape(function(*arrays)))).astype(np.float32)
    leaves = [f32(impl, ctx, array, grad=True) for array in arrays]
    found = gradients(impl, ctx, lambda *tensors: call(ctx, *tensors), leaves, weights.view(np.uint32))
    for k, got in enumerate(found):
        slopes = np.zeros(arrays[k].shape)
        for at in np.ndindex(*arrays[k].shape):
            sides = []
            for h in (2.0**-16, -(2.0**-16)):
                moved = [array.copy() for array in arrays]
                moved[k][at] += h
                sides.append(float((function(*moved) * weights.astype(np.float64)).sum()))
            slopes[at] = (sides[0] - sides[1]) * 2.0**15
        with got:
            np.testing.assert_allclose(np.asarray(got), slopes, rtol=2e-5, atol=2e-6, err_msg=f"{name}, operand {k}")
    for w in leaves:
        w.deinit()


# -- in lockstep


@clause("AUTOGRAD-VJP-1", "AUTOGRAD-VJP-2", "AUTOGRAD-VJP-3", "AUTOGRAD-VJP-4", "AUTOGRAD-VJP-5", "AUTOGRAD-VJP-6")
@clause("AUTOGRAD-VJP-7", "POLICY-SAME-1")
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=profile_size(12, 500))
@given(data=st.data())
def test_gradients_in_lockstep(impl: Any, judge: Any, name: str, data: st.DataObject) -> None:
    shapes, call, function = CASES[name]
    arrays = [drawn(data, F32, shape) for shape in shapes]
    with np.errstate(all="ignore"):
        shape = np.shape(function(*(exact.decode(F32, array) for array in arrays)))
    g = drawn(data, F32, shape)
    outcomes = []
    for module in (impl, judge):
        with module.ExecContext() as ctx:
            leaves = [leaf(module, ctx, F32, array) for array in arrays]
            with ctx.no_grad():
                results = [call(ctx, *leaves)]
            results += gradients(module, ctx, lambda *tensors, c=ctx: call(c, *tensors), leaves, g)
            outcomes.append([bits(t) for t in results])
            for t in (*results, *leaves):
                t.deinit()
    for got, wanted in zip(*outcomes, strict=True):
        assert_bits(got, wanted, nan="any", dtype=F32, what=name, clause="POLICY-SAME-1")
