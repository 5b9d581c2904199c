"""The walk back and the formulas, on hand-made nodes over raw tensors."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import fucina.fast as fast
from fucina.conformance.suite import exact, raw_arithmetic
from fucina.fast import DType, _formulas
from fucina.fast.autograd import Leaf, Node, backward
from fucina.spec.errors import InvalidShape, OutOfMemory, SavedValueChanged, UseAfterDeinit

Array = np.ndarray[Any, Any]
F32 = np.float32


@pytest.fixture
def ctx() -> Iterator[fast.ExecContext]:
    with fast.ExecContext() as made:
        yield made


def raw(ctx: fast.ExecContext, values: Any, dtype: DType = DType.f32) -> Any:
    array = np.asarray(values)
    if dtype is DType.bf16:
        array = (array.astype(F32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        array = array.astype(fast.dtype.storage(dtype))
    return ctx.from_slice(array.shape or (1,), array.ravel(), dtype)


def elements(t: Any) -> Array:
    """The elements of any layout."""
    with t.clone_view() as view:
        out = np.empty(tuple(view.shape), F32)
        view.copy_to(out)
    return out


def bits(array: Any) -> list[int]:
    """The patterns, all NaNs alike."""
    a = np.asarray(array, F32).ravel().copy()
    a[np.isnan(a)] = F32("nan")
    return a.view(np.uint32).tolist()


# -- f32, literally


def tree(values: Array) -> Any:
    """CONTEXT-SUM-1."""
    return raw_arithmetic.total(DType.f32, np.ascontiguousarray(values, F32).ravel().view(np.uint32)).view(F32)[0]


def reduced(t: Array, place: Any) -> Array:
    """R(t)."""
    if place is None:
        return t
    shape, axes = place
    out = np.empty(shape, F32)
    kept = {axis: k for k, axis in enumerate(axes) if axis >= 0 and (shape[k] > 1 or t.shape[axis] == 1)}
    if len(kept) == t.ndim:
        return t.transpose(axes)
    for index in np.ndindex(*shape):
        part = t[tuple(index[kept[axis]] if axis in kept else slice(None) for axis in range(t.ndim))]
        out[index] = tree(part)
    return out


def chain(a: Array, b: Array) -> Array:
    """One chain of fma for each element."""
    return np.array([[exact.chain(DType.f32, row, column) for column in b.T.tolist()] for row in a.tolist()], F32)


def test_fma_of_the_tests() -> None:
    assert exact.fma(DType.f32, 1 + 2**-23, 1 + 2**-23, -1.0) == F32((1 + 2**-23) ** 2 - 1)
    assert exact.fma(DType.f32, 3.0, 0.5, 2.0) == 3.5


def placed(t: Array, shape: Any, axes: Any) -> Array:
    if axes is None:
        return np.broadcast_to(t.reshape((1,) * len(shape)), shape)
    order = [axis for axis in axes if axis >= 0]
    rest = t.transpose([*order, *[k for k in range(t.ndim) if k not in order]]) if t.ndim > 1 or order else t
    rest = rest.reshape([t.shape[axis] for axis in order])
    return np.broadcast_to(np.expand_dims(rest, tuple(k for k, axis in enumerate(axes) if axis < 0)), shape)


class Case(NamedTuple):
    """A formula, its operands, the forward function in f64, and the gradients, literally."""

    formula: Any
    operands: Sequence[tuple[int, ...]]
    forward: Callable[..., Array]
    constants: tuple[Any, ...]
    literal: Callable[..., Sequence[Array | None]]
    saved: Callable[..., tuple[Any, ...]] = lambda ctx, *raws: ()
    low: float = 0.5


EPS = float(F32(1e-3))
N3 = F32(3)
MASK = np.empty(12, np.bool_)
fast.rng.dropout_mask(5, 0, MASK, 0.25)
INDICES = [2, 0, 2]


def both(ctx: Any, *raws: Any) -> tuple[Any, ...]:
    return tuple(t.clone_view() for t in raws)


def aligned(ctx: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """Views for the first with axes (x, y) of (2, 3), and the second with (y, z, x) of (3, 4, 2)."""
    return a.view_with_strides((2, 3, 1), (3, 1, 0)), b.view_with_strides((2, 3, 4), (1, 8, 2))


def cosine_parts(x: Array, y: Array) -> Any:
    sx, sy, xy = (np.array([tree(v) for v in rows], F32)[:, None] for rows in (x * x, y * y, x * y))
    p = np.sqrt(sx) * np.sqrt(sy)
    d = np.maximum(p, F32(EPS))
    return sx, sy, p, d, xy / d


def cosine_literal(g: Array, x: Array, y: Array) -> Sequence[Array]:
    sx, sy, p, d, c = cosine_parts(x, y)
    g = g[:, None]
    return (
        np.where(p > F32(EPS), g * ((y / d) - ((c * x) / sx)), g * (y / d)),
        np.where(p > F32(EPS), g * ((x / d) - ((c * y) / sy)), g * (x / d)),
    )


def norm_literal(g: Array, x: Array) -> Sequence[Array]:
    sums = np.array([tree(v) for v in x * x], F32)[:, None] + F32(EPS)
    r = (1 / np.sqrt(sums.astype(np.longdouble))).astype(F32)  # 64 bits, then 24: right but for a hair of values
    y = x * r
    return (r * (g - y * np.array([tree(v) for v in g * y], F32)[:, None]),)


def nll_literal(scale: Any) -> Callable[..., Sequence[Array]]:
    h = np.eye(3, dtype=F32)[INDICES]

    def literal(g: Array, x: Array) -> Sequence[Array]:
        e = np.broadcast_to(g if scale is None else g / scale, (3,))
        return ((F32(-1) * e[:, None]) * h,)

    return literal


def narrowed(g: Array, x: Array) -> Sequence[Array]:
    out = np.zeros((3, 4), F32)
    out[:, 1:3] = g
    return (out,)


def rows_literal(g: Array, x: Array) -> Sequence[Array]:
    out = np.zeros((4, 2), F32)
    for k, index in enumerate(INDICES):
        out[index] = out[index] + g[k]
    return (out,)


def targets(ctx: Any, *raws: Any) -> tuple[Any, ...]:
    return (raw(ctx, INDICES, DType.u8),)


SAME = ((2, 3), (2, 3))
PLACES = (((2, 3), (0, 1)), ((3, 4, 2), (1, 2, 0)))
ROW = (None, ((3,), (1,)))
SCALAR = (((1,), (-1,)), None)


def arranged(a: Array, b: Array) -> tuple[Array, Array]:
    return a[:, :, None], b.transpose(2, 0, 1)


def both_of(f: Any, g: Any) -> Callable[..., Sequence[Array]]:
    def literal(grad: Array, a: Array, b: Array) -> Sequence[Array]:
        return f(grad, a, b), g(grad, a, b)

    return literal


CASES = {
    "add": Case(_formulas.ADD, SAME, lambda a, b: a + b, (), lambda g, a, b: (g, g)),
    "add a row": Case(_formulas.ADD, ((2, 3), (3,)), lambda a, b: a + b, ROW, lambda g, a, b: (g, reduced(g, ROW[1]))),
    "add to a scalar": Case(
        _formulas.ADD, ((1,), (5,)), lambda a, b: a + b, SCALAR, lambda g, a, b: (reduced(g, SCALAR[0]), g)
    ),
    "scalar to one element": Case(
        _formulas.ADD, ((1,), (1,)), lambda a, b: a + b, SCALAR, lambda g, a, b: (reduced(g, SCALAR[0]), g)
    ),
    "sub": Case(_formulas.SUB, SAME, lambda a, b: a - b, (), lambda g, a, b: (g, F32(-1) * g)),
    "sub a row": Case(
        _formulas.SUB, ((2, 3), (3,)), lambda a, b: a - b, ROW, lambda g, a, b: (g, F32(-1) * reduced(g, ROW[1]))
    ),
    "mul": Case(_formulas.MUL, SAME, lambda a, b: a * b, (), lambda g, a, b: (g * b, g * a), both),
    "mul aligned": Case(
        _formulas.MUL,
        ((2, 3), (3, 4, 2)),
        lambda a, b: np.multiply(*arranged(a, b)),
        PLACES,
        lambda g, a, b: (
            reduced(g * arranged(a, b)[1], PLACES[0]),
            reduced(g * arranged(a, b)[0], PLACES[1]),
        ),
        aligned,
    ),
    "div": Case(
        _formulas.DIV, SAME, lambda a, b: a / b, (), lambda g, a, b: (g / b, F32(-1) * ((g * a) / (b * b))), both
    ),
    "div aligned": Case(
        _formulas.DIV,
        ((2, 3), (3, 4, 2)),
        lambda a, b: np.divide(*arranged(a, b)),
        PLACES,
        lambda g, a, b: (
            reduced(g / arranged(a, b)[1], PLACES[0]),
            F32(-1) * reduced((g * arranged(a, b)[0]) / (arranged(a, b)[1] * arranged(a, b)[1]), PLACES[1]),
        ),
        aligned,
    ),
    "scale": Case(_formulas.SCALE, [(2, 3)], lambda a: a * float(F32(0.3)), (0.3,), lambda g, a: (g * F32(0.3),)),
    "add_scalar": Case(_formulas.ADD_SCALAR, [(2, 3)], lambda a: a + 2, (), lambda g, a: (g,)),
    "sum": Case(
        _formulas.SUM,
        [(2, 3, 4)],
        lambda a: a.sum(1),
        ((2, 3, 4), (0, -1, 1)),
        lambda g, a: (placed(g, (2, 3, 4), (0, -1, 1)),),
    ),
    "sum kept": Case(
        _formulas.SUM,
        [(2, 3)],
        lambda a: a.sum(1, keepdims=True),
        ((2, 3), (0, -1)),
        lambda g, a: (np.broadcast_to(g, (2, 3)),),
    ),
    "sum_all": Case(
        _formulas.SUM,
        [(2, 3)],
        lambda a: a.sum().reshape(1),
        ((2, 3), None),
        lambda g, a: (np.broadcast_to(g, (2, 3)),),
    ),
    "mean": Case(
        _formulas.MEAN,
        [(3, 2)],
        lambda a: a.mean(0),
        ((3, 2), (-1, 0), 3),
        lambda g, a: (np.broadcast_to(g / N3, (3, 2)),),
    ),
    "reshape": Case(_formulas.RESHAPE, [(2, 6)], lambda a: a.reshape(3, 4), ((2, 6),), lambda g, a: (g.reshape(2, 6),)),
    "permute": Case(
        _formulas.PERMUTE,
        [(2, 3, 4)],
        lambda a: a.transpose(2, 0, 1),
        ((2, 3, 4), (1, 2, 0)),
        lambda g, a: (g.transpose(1, 2, 0),),
    ),
    "narrow": Case(_formulas.NARROW, [(3, 4)], lambda a: a[:, 1:3], ((3, 4), 1, 1), narrowed),
    "broadcast": Case(
        _formulas.BROADCAST,
        [(3, 1)],
        lambda a: np.broadcast_to(a.T[:, None, :], (2, 5, 3)),
        (((3, 1), (2, 0)),),
        lambda g, a: (reduced(g, ((3, 1), (2, 0))),),
    ),
    "to": Case(_formulas.TO, [(2, 3)], lambda a: a * 1, (), lambda g, a: (g,)),
    "dropout": Case(
        _formulas.DROPOUT,
        [(3, 4)],
        lambda a: a * MASK.reshape(3, 4) * fast.rng.dropout_scale(0.25),
        (5, 0.25),
        lambda g, a: (np.where(MASK.reshape(3, 4), g * F32(fast.rng.dropout_scale(0.25)), F32(0)),),
    ),
    "get_rows": Case(_formulas.ROWS, [(4, 2)], lambda a: a[INDICES], ((4, 2),), rows_literal, targets),
    "dot": Case(
        _formulas.DOT,
        ((2, 3), (3, 4)),
        lambda a, b: a @ b,
        ((2, 3), (3, 4), 1, 0),
        lambda g, a, b: (chain(g, b.T), chain(a.T, g)),
        both,
    ),
    "dot of vectors": Case(
        _formulas.DOT,
        ((3,), (3,)),
        lambda a, b: (a @ b).reshape(1),
        ((3,), (3,), 0, 0),
        lambda g, a, b: (
            chain(g.reshape(1, 1), b.reshape(1, 3)).ravel(),
            chain(a.reshape(3, 1), g.reshape(1, 1)).ravel(),
        ),
        both,
    ),
    "dot within": Case(
        _formulas.DOT,
        ((2, 3, 4), (5, 3)),
        lambda a, b: np.einsum("ikj,nk->ijn", a, b),
        ((2, 3, 4), (5, 3), 1, 1),
        lambda g, a, b: (
            chain(g.reshape(8, 5), b).reshape(2, 4, 3).transpose(0, 2, 1),
            chain(a.transpose(1, 0, 2).reshape(3, 8), g.reshape(8, 5)).T,
        ),
        both,
    ),
    "nll": Case(
        _formulas.NLL,
        [(3, 3)],
        lambda x: -x[np.arange(3), INDICES],
        ((3, 3), (0, -1), None, 1),
        nll_literal(None),
        targets,
    ),
    "nll summed": Case(
        _formulas.NLL,
        [(3, 3)],
        lambda x: -x[np.arange(3), INDICES].sum().reshape(1),
        ((3, 3), None, None, 1),
        nll_literal(None),
        targets,
    ),
    "nll mean": Case(
        _formulas.NLL,
        [(3, 3)],
        lambda x: -x[np.arange(3), INDICES].mean().reshape(1),
        ((3, 3), None, 3, 1),
        nll_literal(N3),
        targets,
    ),
    "l2_normalize": Case(
        _formulas.NORM,
        [(3, 5)],
        lambda x: x / np.sqrt((x * x).sum(1, keepdims=True) + EPS),
        (1, EPS),
        norm_literal,
        both,
    ),
    "cosine_similarity": Case(
        _formulas.COSINE,
        ((2, 5), (2, 5)),
        lambda x, y: (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1)),
        (1, EPS),
        cosine_literal,
        both,
    ),
}
HALVES = {
    name: case for name, case in CASES.items() if case.saved in (both, aligned) and name[:3] in ("mul", "div", "dot")
}


def drawn(case: Case, seed: int = 1) -> tuple[list[Array], Array]:
    generator = np.random.default_rng(seed)
    operands = [generator.uniform(0.5, 2, shape).astype(F32) for shape in case.operands]
    result = case.forward(*[a.astype(np.float64) for a in operands])
    return operands, generator.uniform(-1, 1, np.shape(result)).astype(F32)


def gradients(
    ctx: fast.ExecContext, case: Case, operands: Sequence[Array], g: Array, dtype: DType = DType.f32, wanted: Any = None
) -> list[Array | None]:
    """What the formula gives, which leaves nothing behind."""
    before = ctx.rt.buffers.outstanding_buffers()
    raws = [raw(ctx, a, dtype) for a in operands]
    saved = case.saved(ctx, *raws)
    with raw(ctx, g) as arrived:
        given = case.formula(ctx, arrived, saved, case.constants, wanted or (True,) * len(operands))
    out = [None if t is None else elements(t) for t in given]
    for t in (*given, *saved, *raws):
        if t is not None:
            t.deinit()
    assert ctx.rt.buffers.outstanding_buffers() == before
    return out


@pytest.mark.parametrize("name", CASES)
def test_formula_is_what_it_says(ctx: fast.ExecContext, name: str) -> None:
    case = CASES[name]
    for seed in range(3):
        operands, g = drawn(case, seed)
        if seed == 2:
            g.ravel()[0] = -0.0
        found = gradients(ctx, case, operands, g)
        for given, literal, operand in zip(found, case.literal(g, *operands), operands, strict=True):
            assert given is not None
            assert given.shape == operand.shape
            assert bits(given) == bits(literal)


@pytest.mark.parametrize("name", CASES)
def test_formula_is_the_slope(ctx: fast.ExecContext, name: str) -> None:
    case = CASES[name]
    operands, g = drawn(case)
    found = gradients(ctx, case, operands, g)
    wide = [a.astype(np.float64) for a in operands]
    for k, given in enumerate(found):
        assert given is not None
        for index in np.ndindex(*operands[k].shape):
            step, losses = 1e-5, []
            for sign in (1, -1):
                moved = [a.copy() for a in wide]
                moved[k][index] += sign * step
                losses.append(float((case.forward(*moved) * g).sum()))
            assert given[index] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("dtype", [DType.f16, DType.bf16])
@pytest.mark.parametrize("name", HALVES)
def test_narrow_operands_stand_for_their_values(ctx: fast.ExecContext, name: str, dtype: DType) -> None:
    case = CASES[name]
    operands, g = drawn(case)
    mask = np.uint32(0xFFFFE000 if dtype is DType.f16 else 0xFFFF0000)
    operands = [(a.view(np.uint32) & mask).view(F32) for a in operands]
    assert [bits(a) for a in gradients(ctx, case, operands, g, dtype)] == [
        bits(a) for a in gradients(ctx, case, operands, g)
    ]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case.operands) == 2])
def test_only_what_is_wanted(ctx: fast.ExecContext, name: str) -> None:
    case = CASES[name]
    operands, g = drawn(case)
    left, right = gradients(ctx, case, operands, g)
    only_left = gradients(ctx, case, operands, g, wanted=(True, False))
    only_right = gradients(ctx, case, operands, g, wanted=(False, True))
    assert only_left[1] is None
    assert only_right[0] is None
    assert bits(only_left[0]) == bits(left)
    assert bits(only_right[1]) == bits(right)


def test_cosine_below_eps(ctx: fast.ExecContext) -> None:
    case = CASES["cosine_similarity"]
    x = np.array([[1e-3, 0, 0, 0, 0], [1, 2, 3, 4, 5]], F32)
    y = np.array([[0, 1e-3, 0, 0, 0], [5, 4, 3, 2, 1]], F32)
    g = np.array([3, 5], F32)
    for given, literal in zip(gradients(ctx, case, [x, y], g), cosine_literal(g, x, y), strict=True):
        assert bits(given) == bits(literal)


def test_formulas_of_views_of_any_layout(ctx: fast.ExecContext) -> None:
    for name, case in CASES.items():
        operands, g = drawn(case)
        straight = gradients(ctx, case, operands, np.full(g.shape, 0.7, F32))
        raws = [raw(ctx, a) for a in operands]
        saved = case.saved(ctx, *raws)
        with raw(ctx, [0.7]) as one, one.broadcast_to(g.shape) as repeated:
            given = case.formula(ctx, repeated, saved, case.constants, (True,) * len(operands))
        assert [bits(elements(t)) for t in given] == [bits(a) for a in straight], name
        for t in (*given, *saved, *raws):
            t.deinit()


# -- the walk


def leaf(shape: tuple[int, ...]) -> Leaf:
    return Leaf(shape, DType.f32)


def total(node: Node) -> Node:
    return Node((1,), (node,), (), _formulas.SUM, (node.shape, None))


def value(node: Leaf) -> list[float]:
    assert node.gradient is not None
    return [float(v) for v in node.gradient.data_const()]


def giving(*values: Any) -> Callable[..., Any]:
    """A formula whose gradients have given values, whatever arrives."""

    def formula(ctx: Any, g: Any, saved: Any, constants: Any, wanted: Any) -> Any:
        return tuple(None if v is None else raw(ctx, v) for v in values)

    return formula


def test_square(ctx: fast.ExecContext) -> None:
    with raw(ctx, [1, 2, 3]) as w:
        at = leaf((3,))
        loss = total(Node((3,), (at, at), (w.clone_view(), w.clone_view()), _formulas.MUL))
        assert at.gradient is None
        backward(ctx, loss)
        assert value(at) == [2, 4, 6]
        backward(ctx, loss)
        assert value(at) == [4, 8, 12]
        at.zero()
        assert at.gradient is None
        del loss
        gc.collect()
        assert ctx.rt.buffers.outstanding_buffers() == 1


def test_start(ctx: fast.ExecContext) -> None:
    at = Leaf((1, 1), DType.f16)
    backward(ctx, at)
    backward(ctx, at)
    assert value(at) == [2]
    assert tuple(at.gradient.shape) == (1, 1)  # type: ignore[union-attr]
    with pytest.raises(InvalidShape, match="AUTOGRAD-BACK-1"):
        backward(ctx, leaf((2,)))
    at.destroy()
    with pytest.raises(UseAfterDeinit, match="AUTOGRAD-LIFE-1"):
        backward(ctx, at)


def test_visits_and_arrivals_in_order(ctx: fast.ExecContext) -> None:
    """A diamond whose arms were made first and last: the latest is visited first, operands from left to right."""
    seen = []

    def noting(name: str, *values: Any) -> Callable[..., Any]:
        def formula(ctx: Any, g: Any, saved: Any, constants: Any, wanted: Any) -> Any:
            seen.append((name, elements(g).tolist(), wanted))
            return tuple(raw(ctx, [v]) for v in values)

        return formula

    a = leaf((1,))
    first = Node((1,), (a,), (), noting("first", 1))
    second = Node((1,), (first, a), (), noting("second", 2, 3))
    third = Node((1,), (None, second, first), (), noting("third", 0, 5, 7))
    backward(ctx, Node((1,), (first, third, second), (), noting("last", 11, 13, 17)))
    assert seen == [
        ("last", [1], (True, True, True)),
        ("third", [13], (False, True, True)),
        ("second", [17 + 5], (True, True)),
        ("first", [11 + 7 + 2], (True,)),
    ]
    assert value(a) == [4]


def test_sums_are_made_as_gradients_arrive(ctx: fast.ExecContext) -> None:
    """Big, small, small: the order of the additions shows in the bits, on nodes and on leaves."""
    big, small = F32(2**24), F32(1)
    a = leaf((1,))
    node = Node((1,), (a,), (), lambda ctx, g, *_: (g.clone_view(),))
    backward(ctx, Node((1,), (node, node, node), (), giving([big], [small], [small])))
    assert value(a) == [2**24]
    backward(ctx, Node((1,), (a, a), (), giving([small], [small])))
    assert value(a) == [2**24]
    a.zero()
    backward(ctx, Node((1,), (a, a, a), (), giving([small], [small], [big])))
    assert value(a) == [2**24 + 2]


def test_none_gives_nothing(ctx: fast.ExecContext) -> None:
    a, b = leaf((1,)), leaf((1,))
    node = Node((1,), (b,), (), giving([1]))
    backward(ctx, Node((1,), (a, node), (), giving([2], None)))
    assert value(a) == [2]
    assert b.gradient is None


def test_leaves_do_not_share(ctx: fast.ExecContext) -> None:
    a, b = leaf((3,)), leaf((3,))
    backward(ctx, total(Node((3,), (a, b), (), _formulas.ADD)))
    for at in (a, b):
        assert at.gradient is not None
        assert at.gradient.is_contiguous()
        assert at.gradient.can_take_in_place()
    a.gradient.data()[0] = 7  # type: ignore[union-attr]
    assert value(b) == [1, 1, 1]


def test_what_is_shown_stays(ctx: fast.ExecContext) -> None:
    a = leaf((3,))
    loss = total(Node((3,), (a,), (), _formulas.SCALE, (2.0,)))
    backward(ctx, loss)
    assert a.gradient is not None
    with a.gradient.clone_view() as view:
        backward(ctx, loss)
        assert view.data_const().tolist() == [2, 2, 2]
        assert value(a) == [4, 4, 4]
    array = a.gradient.data_const()
    backward(ctx, loss)
    assert array.tolist() == [4, 4, 4]
    assert value(a) == [6, 6, 6]
    del array
    place = a.gradient.buffer.address
    backward(ctx, loss)
    assert value(a) == [8, 8, 8]
    assert a.gradient.buffer.address == place, "nobody else held it"


def test_large_gradients_in_place(ctx: fast.ExecContext) -> None:
    n = 20_000
    values = np.arange(n, dtype=F32)
    with raw(ctx, values) as w:
        at = leaf((n,))
        loss = total(Node((n,), (at, at), (w.clone_view(), w.clone_view()), _formulas.MUL))
        for times in (1, 2):
            backward(ctx, loss)
            assert at.gradient is not None
            assert np.array_equal(at.gradient.data_const(), 2 * times * values)


def test_saved_values_must_not_change(ctx: fast.ExecContext) -> None:
    with raw(ctx, [1, 2]) as w:
        a = leaf((2,))
        square = Node((2,), (a, a), (w.clone_view(), w.clone_view()), _formulas.MUL)
        loss = total(square)
        backward(ctx, loss)
        w.data()[0] = 7
        with pytest.raises(SavedValueChanged, match="AUTOGRAD-SAVED-1"):
            backward(ctx, loss)
        assert value(a) == [2, 4]
        later = total(Node((2,), (a, None), (None, w.clone_view()), _formulas.MUL))
        w.scale_in_place(2.0)
        with pytest.raises(SavedValueChanged):
            backward(ctx, later)
        assert value(a) == [2, 4]


def test_targets_are_read_only(ctx: fast.ExecContext) -> None:
    """Backward counts nothing on what was saved: it can run again."""
    for name in ("nll", "get_rows"):
        case = CASES[name]
        _, g = drawn(case)
        a = leaf(case.operands[0])
        node = Node(g.shape, (a,), case.saved(ctx), case.formula, case.constants)
        loss = total(node)
        for _ in range(3):
            backward(ctx, loss)


def test_dead_nodes(ctx: fast.ExecContext) -> None:
    a, b = leaf((3,)), leaf((3,))
    with raw(ctx, [1, 2, 3]) as w:
        square = Node((3,), (a, b), (w.clone_view(), w.clone_view()), _formulas.MUL)
        loss = total(square)
        assert w.buffer.refs == 3
        backward(ctx, loss)
        b.destroy()
        with pytest.raises(UseAfterDeinit, match="AUTOGRAD-LIFE-1"):
            backward(ctx, loss)
        square.destroy()
        square.destroy()
        assert w.buffer.refs == 1
        assert square.saved == ()
        with pytest.raises(UseAfterDeinit, match="AUTOGRAD-LIFE-1"):
            backward(ctx, loss)
        assert value(a) == [1, 2, 3]
        a.destroy()
        assert ctx.rt.buffers.outstanding_buffers() == 1


def test_collected_nodes_give_everything_back(ctx: fast.ExecContext) -> None:
    with raw(ctx, [1, 2, 3]) as w:
        gc.disable()
        try:
            a = leaf((3,))
            loss = total(Node((3,), (a, a), (w.clone_view(), w.clone_view()), _formulas.MUL))
            backward(ctx, loss)
            assert ctx.rt.buffers.outstanding_buffers() == 2
            assert w.buffer.refs == 3
            del loss, a
            assert w.buffer.refs == 1
            assert ctx.rt.buffers.outstanding_buffers() == 1
        finally:
            gc.enable()


def test_cycles_through_a_formula_are_collected(ctx: fast.ExecContext) -> None:
    with raw(ctx, [1, 2, 3]) as w:
        held: list[Any] = []
        formula: Any = held.append  # a method holds its list
        held.append(Node((3,), (None,), (w.clone_view(),), formula))
        del held, formula
        assert w.buffer.refs == 2
        gc.collect()
        assert w.buffer.refs == 1


@pytest.mark.parametrize("how", ["collected", "destroyed", "walked"])
def test_deep_chains(ctx: fast.ExecContext, how: str) -> None:
    a = leaf((1,))
    nodes: list[Node] = [a]
    for _ in range(100_000):
        nodes.append(Node((1,), (nodes[-1],), (), _formulas.ADD_SCALAR))
    last = nodes[-1]
    if how == "walked":
        backward(ctx, last)
        assert value(a) == [1]
    if how == "destroyed":
        while nodes:
            nodes.pop().destroy()
    nodes.clear()
    del last
    if how != "collected":
        gc.collect()


def test_deep_diamonds_are_walked_once(ctx: fast.ExecContext) -> None:
    a = leaf((1,))
    node: Node = a
    for _ in range(60):
        node = Node((1,), (node, node), (), _formulas.ADD)
    backward(ctx, node)
    assert value(a) == [2.0**60]


def test_wide_graphs(ctx: fast.ExecContext) -> None:
    """More nodes wait than there is room for at first, and they come in no order."""
    a = leaf((1,))
    arms = [Node((1,), (a,), (), giving([k])) for k in range(300)]
    order = np.random.default_rng(3).permutation(300)
    root = Node((1,), tuple(arms[k] for k in order), (), giving(*[[k] for k in order]))
    assert all(arm.serial < root.serial for arm in arms)
    backward(ctx, root)
    assert value(a) == [sum(range(300))]


def many(ctx: fast.ExecContext) -> Iterator[tuple[Node, list[Leaf]]]:
    """Graphs with every formula: each operand also counts twice."""
    for case in CASES.values():
        operands, g = drawn(case)
        raws = [raw(ctx, a) for a in operands]
        leaves = [leaf(a.shape) for a in operands]
        middle = [Node(a.shape, (at, at), (), _formulas.ADD) for a, at in zip(operands, leaves, strict=True)]
        node = Node(g.shape, tuple(middle), case.saved(ctx, *raws), case.formula, case.constants)
        for t in raws:
            t.deinit()
        yield total(node), leaves
        del node, middle, leaves


@pytest.mark.parametrize("before", [0, 1], ids=["at first", "again"])
def test_any_allocation_may_fail(ctx: fast.ExecContext, before: int) -> None:
    pool = ctx.rt.buffers
    pool.max_cached_bytes = 0
    for loss, leaves in many(ctx):
        for _ in range(before):
            backward(ctx, loss)
        held = [at.gradient.clone_view() if at.gradient is not None else None for at in leaves]
        shown = [None if t is None else elements(t).tolist() for t in held]
        outstanding = pool.outstanding_buffers()
        for n in itertools.count(1):
            fast.internal.fail_allocation(n)
            try:
                with pytest.raises(OutOfMemory) as caught:  # the traceback holds frames, which may hold nothing alive
                    backward(ctx, loss)
            except pytest.fail.Exception:
                break
            finally:
                fast.internal.fail_allocation(None)
            assert caught.value is not None
            assert pool.outstanding_buffers() == outstanding
            now = [None if at.gradient is None else elements(at.gradient).tolist() for at in leaves]
            assert now == shown
        assert n > 1
        for t in held:
            if t is not None:
                t.deinit()


def test_formulas_that_raise(ctx: fast.ExecContext) -> None:
    a, b = leaf((2,)), leaf((2,))

    def late(ctx: Any, g: Any, *_: Any) -> Any:
        raise KeyError("mine")

    node = Node((2,), (b,), (), late)
    loss = total(Node((2,), (a, node), (), _formulas.ADD))
    outstanding = ctx.rt.buffers.outstanding_buffers()
    with pytest.raises(KeyError, match="mine"):
        backward(ctx, loss)
    assert a.gradient is None
    assert ctx.rt.buffers.outstanding_buffers() == outstanding
    formulas: list[Any] = [lambda *_: (), lambda *_: 5, lambda *_: (1,), lambda ctx, *_: (raw(ctx, [1, 2], DType.f64),)]
    for wrong in formulas:
        with pytest.raises((ValueError, TypeError)):
            backward(ctx, total(Node((2,), (a,), (), wrong)))
        gc.collect()
        assert ctx.rt.buffers.outstanding_buffers() == outstanding


def test_traced_contexts_do_not_warn() -> None:
    def walk(traced: fast.ExecContext) -> None:
        for loss, leaves in many(traced):
            backward(traced, loss)
            backward(traced, loss)
            assert all(at.gradient is not None for at in leaves)

    with fast.ExecContext(trace=True) as traced:
        walk(traced)
        assert traced.rt.buffers.outstanding_buffers() == 0


def test_long_runs_do_not_grow(ctx: fast.ExecContext) -> None:
    with raw(ctx, [1, 2, 3]) as w:
        a = leaf((3,))

        def step() -> None:
            backward(ctx, total(Node((3,), (a, a), (w.clone_view(), w.clone_view()), _formulas.MUL)))
            a.zero()

        gc.disable()
        try:
            for _ in range(100):
                step()
            blocks, buffers = sys.getallocatedblocks(), ctx.rt.buffers.outstanding_buffers()
            for _ in range(5000):
                step()
            assert sys.getallocatedblocks() - blocks < 50
            assert ctx.rt.buffers.outstanding_buffers() == buffers
        finally:
            gc.enable()
