"""Operations of one's own: what their functions get, what they may return, and what stays whose."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises
from fucina.conformance.suite.tagged import f32, gradient, leaf, pattern_noise, state
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    OutOfMemory,
    SavedValueChanged,
    ShapeMismatch,
    UseAfterDeinit,
)

SMALL = (DType.f16, DType.bf16, DType.f32)
each_small = pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def cube(ctx: Any, x: Any) -> Any:
    with ctx.mul(x, x) as square:
        return ctx.mul(square, x)


def cube_backward(ctx: Any, g: Any, x: Any) -> Any:
    with ctx.mul(x, x) as square, ctx.scale(square, 3.0) as slope:
        return (ctx.mul(g, slope),)


@clause("AUTOGRAD-CUSTOM-1")
def test_an_operation_of_ones_own(impl: Any, ctx: Any) -> None:
    op = impl.custom_vjp(cube, cube_backward)
    with f32(impl, ctx, [2.0, 3.0], grad=True) as w, f32(impl, ctx, [2.0, 3.0]) as x:
        with op(ctx, x) as y:
            assert (y.data_const().tolist(), y.requires_grad, y.scope_owned, y.axis_tags) == (
                [8.0, 27.0],
                False,
                False,
                ("a",),
            )
        with ctx.exec_scope():
            y = op(ctx, w, tags=("q",))
            assert (y.requires_grad, y.scope_owned, y.axis_tags) == (True, True, ("q",))
            y.sum_all(ctx).backward(ctx)
            assert gradient(ctx, w) == [12.0, 27.0]
            with ctx.no_grad():
                assert not op(ctx, w).requires_grad
            assert w.as_raw_tensor().buffer.refs == 2, "one view is saved, and none under no_grad"
            assert op(ctx, x).scope_owned
        with op(ctx, w) as y:
            assert y.requires_grad
            assert not y.scope_owned
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("AUTOGRAD-CUSTOM-1")
def test_what_the_functions_get(impl: Any, ctx: Any) -> None:
    log: list[Any] = []

    def forward(inner: Any, a: Any, b: Any) -> Any:
        log.append(
            ("forward", inner is ctx, inner.grad_enabled(), a.scope_owned, tuple(a.shape), a.data_const().tolist())
        )
        a.deinit()
        log.extend((a, b))
        return inner.add(a, b)

    def backward(inner: Any, g: Any, a: Any, b: Any) -> Any:
        log.append(
            ("backward", inner is ctx, inner.grad_enabled(), g.dtype, g.data_const().tolist(), b.data_const().tolist())
        )
        log.extend((g, b))
        return None, inner.scale(g, 2.0)

    op = impl.custom_vjp(forward, backward)
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, f32(impl, ctx, [3.0, 4.0], grad=True) as v, ctx.exec_scope():
        op(ctx, w, v).scale(ctx, 5.0).sum_all(ctx).backward(ctx)
        assert log[0] == ("forward", True, False, False, (2,), [1.0, 2.0])
        assert log[3] == ("backward", True, False, DType.f32, [5.0, 5.0], [3.0, 4.0])
        assert (w.grad(ctx), gradient(ctx, v)) == (None, [10.0, 10.0])
        assert_raises(UseAfterDeinit, None, lambda: log[4].shape)
        assert ctx.grad_enabled()
        log.clear()
        gc.collect()


@clause("AUTOGRAD-CUSTOM-1")
def test_what_the_functions_return(impl: Any, ctx: Any) -> None:
    given: list[Any] = []

    def give(raw: Any) -> Any:
        given.append(raw)
        return raw

    def fails(*_: Any) -> Any:
        raise KeyError("mine")

    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        before = state(ctx, w)
        make: Any
        wrong: Any
        for make, wrong in (
            *((lambda c, x: None, DTypeMismatch), (lambda c, x: give(c.ones((2,), DType.f64)), DTypeMismatch)),
            *((lambda c, x: np.ones(2), DTypeMismatch), (lambda c, x: give(c.ones((2,), DType.i32)), DTypeMismatch)),
            *((lambda c, x: give(c.ones((2, 2))), (ShapeMismatch, DTypeMismatch)), (fails, KeyError)),
        ):
            op = impl.custom_vjp(make, cube_backward)
            assert_raises(wrong, None, partial(op, ctx, w))
            for raw in given:
                assert raw.buffer.refs == 1, "AUTOGRAD-CUSTOM-1: it stays the caller's"
                raw.deinit()
            given.clear()
            assert state(ctx, w) == before
        for make, wrong in (
            *(
                (lambda c, g, x: None, (DTypeMismatch, ShapeMismatch)),
                (lambda c, g, x: (), (DTypeMismatch, ShapeMismatch)),
            ),
            *(
                (lambda c, g, x: (give(c.ones((3,))),), ShapeMismatch),
                (lambda c, g, x: (give(c.ones((2,), DType.f16)),), DTypeMismatch),
            ),
            *(
                (lambda c, g, x: (np.ones(2),), DTypeMismatch),
                (lambda c, g, x: (None, None), (DTypeMismatch, ShapeMismatch)),
                (fails, KeyError),
            ),
        ):
            mark = ctx.open_exec_scope()
            loss = impl.custom_vjp(cube, make)(ctx, w).sum_all(ctx)
            assert_raises(wrong, None, partial(loss.backward, ctx))
            for raw in given:
                assert raw.buffer.refs == 1, "AUTOGRAD-CUSTOM-1: it stays the caller's"
                raw.deinit()
            given.clear()
            assert w.grad(ctx) is None
            assert ctx.grad_enabled()
            ctx.close_exec_scope(mark)
            gc.collect()
            assert state(ctx, w) == before
        for wrong_function in (None, 3, "f"):
            assert_raises(TypeError, None, partial(impl.custom_vjp, wrong_function, cube_backward))
        op = impl.custom_vjp(cube, cube_backward)
        for arguments in ((), (2.0,), (w.as_raw_tensor(),)):
            assert_raises(TypeError, None, partial(op, ctx, *arguments))


@clause("AUTOGRAD-CUSTOM-1")
def test_one_gradient_for_two_operands(impl: Any, ctx: Any) -> None:
    """It is consumed once; a view of it is another tensor."""
    given: list[Any] = []

    def same(inner: Any, g: Any, x: Any, y: Any) -> Any:
        given.append(inner.scale(g, 2.0))
        return given[0], given[0]

    def two_views(inner: Any, g: Any, x: Any, y: Any) -> Any:
        with inner.scale(g, 2.0) as made:
            return made.clone_view(), made.clone_view()

    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, f32(impl, ctx, [3.0, 4.0], grad=True) as v, ctx.exec_scope():
        loss = impl.custom_vjp(lambda inner, x, y: inner.mul(x, y), same)(ctx, w, v).sum_all(ctx)
        assert_raises(UseAfterDeinit, None, partial(loss.backward, ctx))
        assert (w.grad(ctx), v.grad(ctx)) == (None, None)
        assert given[0].data_const().tolist() == [2.0, 2.0], "AUTOGRAD-CUSTOM-1: it stays the caller's"
        given[0].deinit()
        impl.custom_vjp(lambda inner, x, y: inner.mul(x, y), two_views)(ctx, w, v).sum_all(ctx).backward(ctx)
        assert (gradient(ctx, w), gradient(ctx, v)) == ([2.0, 2.0], [2.0, 2.0])


@clause("AUTOGRAD-CUSTOM-1", "SCOPE-RESERVE-1", "STORAGE-FAULT-1")
@pytest.mark.parametrize("grad", [False, True], ids=["constants", "leaves"])
@pytest.mark.parametrize("scoped", [False, True], ids=["alone", "scope"])
def test_what_forward_returned_without_memory(impl: Any, ctx: Any, grad: bool, scoped: bool) -> None:
    """Whichever allocation fails, what forward had returned by then is still the caller's, as it was."""
    returned = []

    def forward(inner: Any, x: Any) -> Any:
        returned.append(inner.scale(x, 2.0))
        return returned[-1]

    op, failed = impl.custom_vjp(forward, lambda inner, g, x: (inner.scale(g, 2.0),)), 0
    with f32(impl, ctx, [1.0, 2.0], grad=grad) as w:
        mark = ctx.open_exec_scope() if scoped else None
        for n in range(1, 9):
            before = state(ctx, w)
            impl.internal.fail_allocation(n)
            try:
                result = op(ctx, w)
            except OutOfMemory:
                failed += 1
                result = None
            finally:
                impl.internal.fail_allocation(None)
            if result is not None:
                assert_raises(UseAfterDeinit, None, returned.pop().data_const)
                result.deinit()
                break
            for raw in returned:
                assert raw.data_const().tolist() == [2.0, 4.0], "AUTOGRAD-CUSTOM-1: it stays the caller's"
                raw.deinit()
            returned.clear()
            gc.collect()
            assert state(ctx, w) == before
        assert failed >= (2 if scoped else 1)
        if mark is not None:
            ctx.close_exec_scope(mark)


@clause("AUTOGRAD-CUSTOM-1", "AUTOGRAD-SAVED-1")
def test_ones_own_operands_are_saved(impl: Any, ctx: Any) -> None:
    op = impl.custom_vjp(cube, cube_backward)
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        loss = op(ctx, w).sum_all(ctx)
        w.data()[0] = 3.0
        assert_raises(SavedValueChanged, "AUTOGRAD-SAVED-1", lambda: loss.backward(ctx))


@clause("AUTOGRAD-CUSTOM-1")
@each_small
def test_ones_own_on_every_dtype_that_tracks(impl: Any, ctx: Any, dtype: DType) -> None:
    """The gradient that arrives and the one that is returned are f32 whatever the operand is."""
    seen_dtypes = []

    def backward(inner: Any, g: Any, x: Any) -> Any:
        seen_dtypes.append((g.dtype, x.dtype))
        return (inner.scale(g, 3.0),)

    op = impl.custom_vjp(lambda inner, x: inner.scale(x, 3.0), backward)
    with leaf(impl, ctx, dtype, pattern_noise(dtype, (2, 2))) as w, ctx.exec_scope():
        op(ctx, w).to(ctx, DType.f32).sum_all(ctx).backward(ctx)
        assert seen_dtypes == [(DType.f32, dtype)]
        with w.grad(ctx) as g:
            assert_bits(g.data_const(), np.full(4, 3.0, np.float32), clause="AUTOGRAD-CUSTOM-1")


@clause("AUTOGRAD-CUSTOM-1", "AUTOGRAD-BACK-2")
@pytest.mark.parametrize("before", [False, True])
def test_a_backward_may_change_the_gradients_it_is_on_the_way_to(impl: Any, ctx: Any, before: bool) -> None:
    """What arrives is added to what is there when the walk is done, and nothing is lost."""
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        total = w.sum_all(ctx)
        had = 1.0 if before else 0.0
        for act, wanted in ((partial(total.backward, ctx), had + 4.0), (w.zero_grad, 3.0)):
            if before:
                total.backward(ctx)

            def backward(inner: Any, g: Any, x: Any, act: Any = act) -> Any:
                act()
                return (inner.scale(g, 1.0),)

            own = impl.custom_vjp(lambda inner, x: inner.scale(x, 1.0), backward)(ctx, w).sum_all(ctx)
            own.add(ctx, w.sum_all(ctx)).add(ctx, w.sum_all(ctx)).backward(ctx)
            assert gradient(ctx, w) == [wanted, wanted], "AUTOGRAD-BACK-2: a gradient was lost, or kept"
            w.zero_grad()


@clause("AUTOGRAD-CUSTOM-1", "AUTOGRAD-LIFE-1")
def test_a_backward_may_end_what_it_came_from(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w:

        def backward(inner: Any, g: Any, x: Any) -> Any:
            loss.deinit()
            own.deinit()
            return (inner.scale(g, 2.0),)

        own = impl.custom_vjp(lambda inner, x: inner.scale(x, 2.0), backward)(ctx, w)
        loss = own.sum_all(ctx)
        loss.backward(ctx)
        assert gradient(ctx, w) == [2.0, 2.0]
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():

        def ending(inner: Any, g: Any, x: Any) -> Any:
            w.deinit()
            return (inner.scale(g, 2.0),)

        own = impl.custom_vjp(lambda inner, x: inner.scale(x, 2.0), ending)(ctx, w).sum_all(ctx)
        assert_raises(UseAfterDeinit, "AUTOGRAD-LIFE-1", partial(own.add(ctx, w.sum_all(ctx)).backward, ctx))
    gc.collect()
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("AUTOGRAD-CUSTOM-1")
def test_one_raw_tensor_is_not_two_gradients(impl: Any, ctx: Any) -> None:
    given: list[Any] = []

    def backward(inner: Any, g: Any, x: Any, y: Any) -> Any:
        given.append(inner.scale(g, 2.0))
        return (given[0], given[0])

    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        loss = impl.custom_vjp(lambda inner, x, y: inner.add(x, y), backward)(ctx, w, w).sum_all(ctx)
        assert_raises(UseAfterDeinit, None, partial(loss.backward, ctx))
        assert w.grad(ctx) is None
        given[0].deinit()
    gc.collect()
    assert ctx.rt.buffers.outstanding_buffers() == 0
