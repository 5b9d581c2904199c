"""Operations of one's own: what they are given, what they may return, and who owns it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import DType, _formulas
from fucina.fast._custom import custom_vjp
from fucina.fast.autograd import Node, backward
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidTag,
    OutOfMemory,
    SavedValueChanged,
    ShapeMismatch,
    UnsupportedView,
    UseAfterDeinit,
)

Tensor: Any = fast.Tensor


@pytest.fixture
def ctx() -> Iterator[fast.ExecContext]:
    with fast.ExecContext() as made:
        yield made


@pytest.fixture
def w(ctx: fast.ExecContext) -> Iterator[Any]:
    with Tensor("d").variable_from_slice(ctx, (2,), [2, 3]) as made:
        yield made


def cube(ctx: Any, x: Any) -> Any:
    with ctx.mul(x, x) as square:
        return ctx.mul(square, x)


def cube_backward(ctx: Any, g: Any, x: Any) -> Any:
    with ctx.mul(x, x) as square, ctx.scale(square, 3.0) as slope:
        return (ctx.mul(g, slope),)


def walk(ctx: Any, y: Any) -> None:
    shape = tuple(y.as_raw_tensor().shape)
    backward(ctx, Node((1,), (y._node,), (), _formulas.SUM, (shape, None)))


def gradient(t: Any) -> list[float]:
    return [float(v) for v in t._node.gradient.data_const()]


def copying(ctx: Any, *raws: Any) -> Any:
    return raws[0].clone_view()


def test_cube(ctx: fast.ExecContext, w: Any) -> None:
    with custom_vjp(cube, cube_backward)(ctx, w) as y:
        assert type(y) is Tensor("d")
        assert y.requires_grad
        assert y.data_const().tolist() == [8, 27]
        walk(ctx, y)
        walk(ctx, y)
    assert gradient(w) == [24, 54]


def test_without_gradients(ctx: fast.ExecContext, w: Any) -> None:
    op = custom_vjp(cube, cube_backward)
    with Tensor("d").from_slice(ctx, (2,), [1, 2]) as x, op(ctx, x) as y:
        assert not y.requires_grad
    with ctx.no_grad(), op(ctx, w) as y:
        assert not y.requires_grad


def test_both_run_without_tracking(ctx: fast.ExecContext, w: Any) -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append(ctx.grad_enabled())
        return x.clone_view()

    def back(ctx: Any, g: Any, x: Any) -> Any:
        seen.append(ctx.grad_enabled())
        return (g.clone_view(),)

    with custom_vjp(forward, back)(ctx, w) as y:
        walk(ctx, y)
    assert seen == [False, False]
    assert ctx.grad_enabled()
    assert gradient(w) == [1, 1]


def test_result_has_the_tags_that_were_given(ctx: fast.ExecContext, w: Any) -> None:
    def total(ctx: Any, x: Any) -> Any:
        return ctx.sum(x)

    op = custom_vjp(total, lambda ctx, g, x: (g.broadcast_to((2,)),))
    with op(ctx, w, tags=()) as y:
        assert type(y) is Tensor()
        walk(ctx, y)
    with op(ctx, w, tags=["only"]) as y:
        assert type(y) is Tensor("only")
    with pytest.raises(ShapeMismatch, match="AUTOGRAD-CUSTOM-1"):
        op(ctx, w, tags=("a", "b"))
    with pytest.raises(InvalidTag):
        op(ctx, w, tags="d")
    assert gradient(w) == [1, 1]


def test_what_is_lent_ends_with_the_call(ctx: fast.ExecContext, w: Any) -> None:
    kept: list[Any] = []

    def back(ctx: Any, g: Any, x: Any) -> Any:
        for t in (g, x):
            t.deinit()
            t.rank()
        kept.extend((g, x))
        return (None,)

    with custom_vjp(copying, back)(ctx, w) as y:
        walk(ctx, y)
    for t in kept:
        with pytest.raises(UseAfterDeinit):
            t.rank()
    assert w._node.gradient is None


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda ctx, x: None, DTypeMismatch),
        (lambda ctx, x: np.zeros(2, np.float32), DTypeMismatch),
        (lambda ctx, x: ctx.cast(x, DType.f64), DTypeMismatch),
        (lambda ctx, x: ctx.empty((2, 2)), ShapeMismatch),
        (lambda ctx, x: x, UnsupportedView),
    ],
)
def test_forward_returns_what_is_not_right(
    ctx: fast.ExecContext, w: Any, returned: Callable[..., Any], error: type[Exception]
) -> None:
    kept: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        kept.append(returned(ctx, x))
        return kept[-1]

    with pytest.raises(error):
        custom_vjp(forward, cube_backward)(ctx, w)
    for t in kept:
        if hasattr(t, "deinit"):
            t.deinit()
    assert ctx.rt.buffers.outstanding_buffers() == 1
    assert w.as_raw_tensor().buffer.refs == 1


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda ctx, g: None, DTypeMismatch),
        (lambda ctx, g: g.clone_view(), DTypeMismatch),
        (lambda ctx, g: (), ShapeMismatch),
        (lambda ctx, g: (None,), ShapeMismatch),
        (lambda ctx, g: (5, None), DTypeMismatch),
        (lambda ctx, g: (None, ctx.cast(g, DType.f64)), DTypeMismatch),
        (lambda ctx, g: (ctx.empty((2,)), ctx.empty((1,))), ShapeMismatch),
        (lambda ctx, g: (ctx.empty((2,)), g), UnsupportedView),
        (lambda ctx, g: (ctx.empty((2,)), None, None), ShapeMismatch),
    ],
)
def test_backward_returns_what_is_not_right(
    ctx: fast.ExecContext, w: Any, returned: Callable[..., Any], error: type[Exception]
) -> None:
    kept: list[Any] = []

    def back(ctx: Any, g: Any, *raws: Any) -> Any:
        kept.append(returned(ctx, g))
        return kept[-1]

    with custom_vjp(copying, back)(ctx, w, w) as y:
        with pytest.raises(error):
            walk(ctx, y)
        assert w._node.gradient is None
        for given in kept:
            for t in given if isinstance(given, tuple) else (given,):
                if hasattr(t, "deinit"):
                    t.deinit()
        assert ctx.rt.buffers.outstanding_buffers() == 1


def test_one_gradient_is_consumed_once(ctx: fast.ExecContext, w: Any) -> None:
    def twice(ctx: Any, g: Any, *raws: Any) -> Any:
        return (g.clone_view(),) * 2

    with custom_vjp(copying, twice)(ctx, w, w) as y, pytest.raises(UseAfterDeinit, match="AUTOGRAD-CUSTOM-1"):
        walk(ctx, y)


def test_what_was_consumed_forgives_a_deinit(ctx: fast.ExecContext, w: Any) -> None:
    kept: list[Any] = []

    def back(ctx: Any, g: Any, *raws: Any) -> Any:
        kept.append(ctx.scale(g, 5.0))
        return kept

    with custom_vjp(copying, back)(ctx, w) as y:
        walk(ctx, y)
    kept[0].deinit()
    assert gradient(w) == [5, 5]
    with pytest.raises(UseAfterDeinit):
        kept[0].rank()


def test_unwanted_gradients_end(ctx: fast.ExecContext, w: Any) -> None:
    with Tensor("d").from_slice(ctx, (2,), [1, 2]) as x:
        op = custom_vjp(lambda ctx, a, b: ctx.mul(a, b), lambda ctx, g, a, b: (ctx.mul(g, b), ctx.mul(g, a)))
        with op(ctx, x, w) as y:
            walk(ctx, y)
            assert gradient(w) == [1, 2]
            assert ctx.rt.buffers.outstanding_buffers() == 4


def test_operands_must_not_change(ctx: fast.ExecContext, w: Any) -> None:
    with custom_vjp(copying, cube_backward)(ctx, w) as y:
        w.data()[0] = 7
        with pytest.raises(SavedValueChanged):
            walk(ctx, y)


def test_what_they_raise_comes_out(ctx: fast.ExecContext, w: Any) -> None:
    def fails(*_: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        custom_vjp(fails, fails)(ctx, w)
    with custom_vjp(copying, fails)(ctx, w) as y, pytest.raises(KeyError, match="mine"):
        walk(ctx, y)
    assert ctx.grad_enabled()
    assert w.as_raw_tensor().buffer.refs == 1


def test_backward_within_backward(ctx: fast.ExecContext, w: Any) -> None:
    """A walk over the same nodes while another one is on its way."""
    inner = custom_vjp(cube, cube_backward)(ctx, w)

    def back(ctx: Any, g: Any, x: Any) -> Any:
        walk(ctx, inner)
        return (g.clone_view(),)

    with inner, custom_vjp(copying, back)(ctx, inner) as y:
        walk(ctx, y)
    assert gradient(w) == [24, 54]


def test_arguments(ctx: fast.ExecContext, w: Any) -> None:
    with pytest.raises(DTypeMismatch, match="AUTOGRAD-CUSTOM-1: forward"):
        custom_vjp(None, cube_backward)  # type: ignore[arg-type]
    with pytest.raises(DTypeMismatch, match="AUTOGRAD-CUSTOM-1: backward"):
        custom_vjp(cube, 5)  # type: ignore[arg-type]
    op = custom_vjp(cube, cube_backward)
    with pytest.raises(DTypeMismatch, match="FACADE-CTX-1"):
        op(w, w)
    with pytest.raises(DTypeMismatch, match="AUTOGRAD-CUSTOM-1"):
        op(ctx)
    with pytest.raises(DTypeMismatch, match="AUTOGRAD-CUSTOM-1"):
        op(ctx, w.as_raw_tensor())


def test_any_allocation_may_fail(ctx: fast.ExecContext, w: Any) -> None:
    ctx.rt.buffers.max_cached_bytes = 0
    op = custom_vjp(cube, cube_backward)
    failed = 0
    for n in range(1, 100):
        with ctx.exec_scope():
            before = ctx.rt.buffers.outstanding_buffers()
            fast.internal.fail_allocation(n)
            try:
                walk(ctx, op(ctx, w))
            except OutOfMemory:
                failed += 1
                assert w._node.gradient is None
                assert ctx.rt.buffers.outstanding_buffers() - before in (0, 1), "the result, where it was made"
            else:
                break
            finally:
                fast.internal.fail_allocation(None)
    assert failed > 5
    assert gradient(w) == [12, 27]
