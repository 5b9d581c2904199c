"""Gradients: what is tracked, how long a graph lives, the order of what arrives, and what backward refuses."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.counters import seen
from fucina.conformance.suite.tagged import bits, f32, gradient, leaf, pattern_noise, state
from fucina.spec import DType
from fucina.spec.errors import (
    ActiveExecScopeRequired,
    GradientsNotTracked,
    InvalidShape,
    UseAfterDeinit,
    UseAfterScope,
)

SMALL = (DType.f16, DType.bf16, DType.f32)
each_small = pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- leaves, and what tracks


@clause("AUTOGRAD-LEAF-1", "AUTOGRAD-GRAD-1", "AUTOGRAD-BACK-2")
@each_small
def test_leaves(impl: Any, ctx: Any, dtype: DType) -> None:
    kind = impl.Tensor("a", "b", dtype=dtype)
    with kind.variable(ctx, ctx.ones((2, 3), dtype)) as w, kind.ones(ctx, (2, 3)) as x:
        assert (w.requires_grad, x.requires_grad) == (True, False)
        for t in (w, x):
            assert t.grad(ctx) is None
            assert t.grad_view(ctx) is None
            t.zero_grad()
        with ctx.exec_scope():
            w.to(ctx, DType.f32).sum_all(ctx).backward(ctx)
        with w.grad(ctx) as g, w.grad_view(ctx) as v:
            for found in (g, v):
                assert (found.dtype, found.axis_tags, found.shape) == (DType.f32, ("a", "b"), (2, 3))
                assert (found.requires_grad, found.scope_owned) == (False, False)
                assert found.as_raw_tensor().is_contiguous()
                assert found.data_const().tolist() == [1.0] * 6
            assert g.as_raw_tensor().buffer != v.as_raw_tensor().buffer
        assert x.grad(ctx) is None
        assert x.grad_view(ctx) is None
        w.zero_grad()
        w.zero_grad()
        assert w.grad(ctx) is None
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("AUTOGRAD-TRACK-1")
def test_which_results_track(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]], grad=True) as w, f32(impl, ctx, [[3.0, 4.0]]) as x, ctx.exec_scope():
        for tracked in (
            *(
                w.add(ctx, x),
                x.add(ctx, w),
                w.add(ctx, w),
                x.sub(ctx, w),
                x.mul(ctx, w),
                x.div(ctx, w),
                w.scale(ctx, 2.0),
            ),
            *(
                w.add_scalar(ctx, 1),
                w.sum(ctx, "a"),
                w.mean(ctx),
                w.sum_all(ctx),
                w.to(ctx, DType.f16),
                w.dropout(ctx, 0.5, 1),
            ),
            *(w.get_rows(ctx, [0]), x.dot(ctx, w.flatten(ctx, "b")), w.narrow(ctx, "a", 0, 1), w.to(ctx, DType.bf16)),
            *(w.transpose(ctx, "a", "b"), w.broadcast_to(ctx, (2, 2)), w.split(ctx, "a", (1, 1), ("p", "q"))),
            *(w.nll_loss(ctx, [0], "b"), w.l2_normalize(ctx, "b"), x.cosine_similarity(ctx, w, "b"), w.contiguous(ctx)),
        ):
            assert (tracked.requires_grad, tracked.scope_owned) == (True, True), repr(tracked)
        for constant in (x.add(ctx, x), x.scale(ctx, 2.0), x.l2_normalize(ctx, "b")):
            assert not constant.requires_grad
        for target in (DType.f64, DType.i32, DType.bool, DType.f8_e4m3):
            with w.to(ctx, target) as constant:
                assert not constant.requires_grad
                with constant.to(ctx, DType.f32) as again:
                    assert not again.requires_grad


@clause("AUTOGRAD-TRACK-1", "AUTOGRAD-LIFE-1", "STORAGE-REF-1")
def test_what_is_saved(impl: Any, ctx: Any) -> None:
    """Views of the values that the formula needs: only of those, and only for operands that track."""

    def refs(t: Any) -> int:
        return int(t.as_raw_tensor().buffer.refs)

    with (
        f32(impl, ctx, [[1.0, 2.0]], grad=True) as w,
        f32(impl, ctx, [[3.0, 4.0]], grad=True) as v,
        f32(impl, ctx, [[5.0, 6.0]]) as x,
    ):
        indices = impl.Tensor("i", dtype=DType.i64).zeros(ctx, (1,))
        call: Any
        for call, wanted in (
            *(
                (lambda: w.add(ctx, v), (1, 1, 1)),
                (lambda: w.sub(ctx, v), (1, 1, 1)),
                (lambda: w.scale(ctx, 2.0), (1, 1, 1)),
            ),
            *(
                (lambda: w.mul(ctx, v), (2, 2, 1)),
                (lambda: w.mul(ctx, x), (1, 1, 2)),
                (lambda: x.mul(ctx, w), (1, 1, 2)),
            ),
            *(
                (lambda: w.mul(ctx, w), (3, 1, 1)),
                (lambda: w.div(ctx, x), (1, 1, 2)),
                (lambda: w.div(ctx, v), (2, 2, 1)),
            ),
            *(
                (lambda: w.add_scalar(ctx, 1.0), (1, 1, 1)),
                (lambda: w.sum_all(ctx), (1, 1, 1)),
                (lambda: w.mean(ctx, "a"), (1, 1, 1)),
            ),
            *(
                (lambda: w.to(ctx, DType.f16), (1, 1, 1)),
                (lambda: w.dropout(ctx, 0.5, 1), (1, 1, 1)),
                (lambda: w.get_rows(ctx, [0]), (1, 1, 1)),
            ),
            *((lambda: x.add(ctx, x), (1, 1, 1)), (lambda: x.mul(ctx, x), (1, 1, 1))),
        ):
            mark = ctx.open_exec_scope()
            call()
            assert (refs(w), refs(v), refs(x)) == wanted, f"AUTOGRAD-TRACK-1: {wanted}"
            ctx.close_exec_scope(mark)
            assert (refs(w), refs(v), refs(x)) == (1, 1, 1), "AUTOGRAD-LIFE-1: the close lets go"
        with x.div(ctx, w) as y:
            assert (y.requires_grad, refs(w), refs(x)) == (True, 2, 2), "the gradient of w needs both"
        with w.mul(ctx, x):
            assert (refs(w), refs(x)) == (1, 2)
        assert (refs(w), refs(x)) == (1, 1), "AUTOGRAD-LIFE-1: deinit lets go"
        with w.get_rows(ctx, indices):
            assert indices.as_raw_tensor().buffer.refs == 2
        assert indices.as_raw_tensor().buffer.refs == 1
        indices.deinit()


@clause("AUTOGRAD-NOGRAD-1", "FACADE-OWN-2")
def test_no_grad(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w:
        assert ctx.grad_enabled() is True
        with ctx.exec_scope():
            loss = w.mul(ctx, w).sum_all(ctx)
            with ctx.no_grad():
                assert ctx.grad_enabled() is False
                with ctx.no_grad():
                    y = w.mul(ctx, w)
                    assert not y.requires_grad
                    assert y.scope_owned
                    assert w.as_raw_tensor().buffer.refs == 3, "two views of the product before, none of this"
                assert ctx.grad_enabled() is False
                with f32(impl, ctx, [1.0], grad=True) as v:
                    assert v.requires_grad, "a leaf is made as ever"
                assert w.requires_grad
                assert loss.requires_grad
                loss.backward(ctx)
            assert ctx.grad_enabled() is True
            assert gradient(ctx, w) == [2.0, 4.0]
            assert w.scale(ctx, 2.0).requires_grad
            with pytest.raises(KeyError), ctx.no_grad():
                raise KeyError
            assert ctx.grad_enabled() is True
            with ctx.no_grad():
                w.l2_normalize(ctx, "a")
        with ctx.no_grad(), w.l2_normalize(ctx, "a") as y:
            assert not y.requires_grad


# -- how long a graph lives


@clause("AUTOGRAD-LIFE-1")
def test_dropped_names_break_nothing(impl: Any, ctx: Any) -> None:
    for scoped in (False, True):
        with f32(impl, ctx, [1.0, 2.0, 3.0], grad=True) as w:
            mark = ctx.open_exec_scope() if scoped else None
            loss = w.mul(ctx, w).scale(ctx, 3.0).add(ctx, w.mul(ctx, w)).sum_all(ctx)
            gc.collect()
            loss.backward(ctx)
            assert gradient(ctx, w) == [8.0, 16.0, 24.0]
            if mark is not None:
                ctx.close_exec_scope(mark)
            del loss
            gc.collect()
            assert w.as_raw_tensor().buffer.refs == 1


@clause("AUTOGRAD-LIFE-1")
def test_a_deinit_destroys_a_node(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w:
        square = w.mul(ctx, w)
        loss = square.sum_all(ctx)
        square.deinit()
        assert w.as_raw_tensor().buffer.refs == 1
        assert_raises(UseAfterDeinit, "AUTOGRAD-LIFE-1", lambda: loss.backward(ctx))
        assert w.grad(ctx) is None
        loss.deinit()
        with w.mul(ctx, w).sum_all(ctx) as loss:
            loss.backward(ctx)
        assert gradient(ctx, w) == [2.0, 4.0], "what has nothing to do with it still works"


@clause("AUTOGRAD-LIFE-1", "CONTEXT-REPLACE-1")
def test_replace_and_the_end_of_a_block_destroy_a_node(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w:
        x = w.mul(ctx, w)
        x = ctx.replace(x, x.scale(ctx, 2.0))
        with x.sum_all(ctx) as loss:
            assert_raises(UseAfterDeinit, "AUTOGRAD-LIFE-1", lambda: loss.backward(ctx))
        x.deinit()
        with ctx.exec_scope():
            x = w.mul(ctx, w)
            for _ in range(3):
                x = ctx.replace(x, x.scale(ctx, 2.0))
            x.sum_all(ctx).backward(ctx)
        assert gradient(ctx, w) == [16.0, 32.0], "a scope keeps what replace moves on from"


@clause("AUTOGRAD-LIFE-1", "SCOPE-AFTER-1")
def test_a_close_destroys_nodes(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w:
        with ctx.exec_scope():
            loss = w.mul(ctx, w).sum_all(ctx)
        assert_raises(UseAfterScope, None, lambda: loss.backward(ctx))
        with ctx.exec_scope():
            with ctx.exec_scope():
                inner = w.mul(ctx, w)
            assert_raises(UseAfterScope, None, lambda: inner.sum_all(ctx))
        assert w.as_raw_tensor().buffer.refs == 1
        assert w.grad(ctx) is None


@clause("AUTOGRAD-LIFE-1")
def test_a_leaf_that_ends_first(impl: Any, ctx: Any) -> None:
    w, v = f32(impl, ctx, [1.0, 2.0], grad=True), f32(impl, ctx, [3.0, 4.0], grad=True)
    with w.mul(ctx, v).sum_all(ctx) as loss:
        w.deinit()
        assert_raises(UseAfterDeinit, "AUTOGRAD-LIFE-1", lambda: loss.backward(ctx))
        assert v.grad(ctx) is None
    v.deinit()
    gc.collect()  # the error knows the frames that it passed
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("AUTOGRAD-LIFE-1", "AUTOGRAD-GRAD-1")
def test_nothing_grows(impl: Any, ctx: Any) -> None:
    gc.disable()
    try:
        with f32(impl, ctx, np.ones(8), grad=True) as w:
            counts = set()
            for step in range(50):
                with ctx.exec_scope():
                    loss = w.mul(ctx, w).l2_normalize(ctx, "a").sum_all(ctx)
                    loss.backward(ctx)
                if step % 10 == 9:
                    w.zero_grad()
                if step % 10 == 5:
                    with w.grad(ctx), w.grad_view(ctx):
                        pass
                    counts.add((w.as_raw_tensor().buffer.refs, *seen(ctx).values()))
            assert len(counts) == 1, counts
            del loss
        assert ctx.rt.buffers.outstanding_buffers() == 0
    finally:
        gc.enable()


# -- scopes


@clause("AUTOGRAD-SCOPE-1")
def test_composed_operations_need_a_scope(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[3.0, 4.0]], grad=True) as w, f32(impl, ctx, [[3.0, 4.0]]) as x:
        before = state(ctx, w, x)
        calls: tuple[Any, ...] = (
            *(lambda: w.nll_loss(ctx, [0], "b"), lambda: w.l2_normalize(ctx, "b")),
            *(lambda: w.cosine_similarity(ctx, x, "b"), lambda: x.cosine_similarity(ctx, w, "b")),
        )
        for call in calls:
            assert_raises(ActiveExecScopeRequired, "AUTOGRAD-SCOPE-1", call)
            assert state(ctx, w, x) == before
            with ctx.no_grad(), call() as y:
                assert not y.requires_grad
            with ctx.exec_scope():
                assert call().requires_grad
            assert state(ctx, w, x) == before
        for unscoped in (x.l2_normalize(ctx, "b"), x.nll_loss(ctx, [0], "b"), x.cosine_similarity(ctx, x, "b")):
            unscoped.deinit()


# -- backward


@clause("AUTOGRAD-BACK-1")
def test_from_where_backward_starts(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[3.0, 4.0]], grad=True) as w, f32(impl, ctx, [[3.0]]) as x, ctx.exec_scope():
        for wrong in (w, w.scale(ctx, 2.0), w.transpose(ctx, "a", "b")):
            assert_raises(InvalidShape, "AUTOGRAD-BACK-1", partial(wrong.backward, ctx))
        assert_raises(GradientsNotTracked, "AUTOGRAD-BACK-1", partial(x.backward, ctx))
        assert w.grad(ctx) is None
        assert x.grad(ctx) is None
        w.narrow(ctx, "b", 1, 1).backward(ctx)
        assert gradient(ctx, w) == [0.0, 1.0], "of any number of axes"
    with impl.Tensor().variable_from_slice(ctx, (), [3.0]) as s:
        s.backward(ctx)
        s.backward(ctx)
        assert gradient(ctx, s) == [2.0], "a leaf is where it may start"
    with leaf(impl, ctx, DType.f16, [0x3C00]) as h, h.scale(ctx, 3.0) as y:
        y.backward(ctx)
        assert gradient(ctx, h) == [3.0]


@clause("AUTOGRAD-BACK-2", "AUTOGRAD-BACK-1")
def test_it_adds_up(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        one, other = w.mul(ctx, w).sum_all(ctx), w.scale(ctx, 10.0).sum_all(ctx)
        for loss, wanted in ((one, [2.0, 4.0]), (one, [4.0, 8.0]), (other, [14.0, 18.0]), (one, [16.0, 22.0])):
            loss.backward(ctx)
            assert gradient(ctx, w) == wanted
        w.zero_grad()
        one.backward(ctx)
        assert gradient(ctx, w) == [2.0, 4.0]


BIG = 2.0**25


@clause("AUTOGRAD-BACK-1", "NUM-ARITH-1")
def test_nodes_are_visited_in_reverse_order_of_creation(impl: Any, ctx: Any) -> None:
    """1, 2^25 and -2^25 have the sum 0, 1 or 2, as the order has it; a node's gradient and a leaf's."""
    with impl.Tensor().variable_from_slice(ctx, (), [1.0]) as w:
        for inner in (False, True):
            for factors in ((1.0, BIG, -BIG), (BIG, 1.0, -BIG), (-BIG, BIG, 1.0), (1.0, -BIG, BIG), (BIG, -BIG, 1.0)):
                with ctx.exec_scope():
                    start = w.scale(ctx, 1.0) if inner else w
                    branches = [start.scale(ctx, factor) for factor in factors]
                    # added from the last to the first: the order in which they are used says nothing
                    loss = branches[1].add(ctx, branches[2].add(ctx, branches[0]))
                    loss.backward(ctx)
                acc = np.float32(factors[2])
                for factor in factors[1::-1]:
                    acc = np.float32(acc + np.float32(factor))
                assert gradient(ctx, w) == [float(acc)], f"AUTOGRAD-BACK-1: {factors}"
                w.zero_grad()


@clause("AUTOGRAD-BACK-1", "AUTOGRAD-BACK-2")
def test_operands_from_left_to_right_each_on_its_own(impl: Any, ctx: Any) -> None:
    """To 1.5 first 2^25 and then -2^25: 0. The other way round: 2. Their sum: 1.5."""
    for dtype in SMALL:
        with impl.Tensor(dtype=dtype).variable_from_slice(ctx, (), [1.0]) as w, ctx.exec_scope():
            w.scale(ctx, 1.5).backward(ctx)
            w.to(ctx, DType.f32).sub(ctx, w.to(ctx, DType.f32)).scale(ctx, BIG).backward(ctx)
            first = gradient(ctx, w)
            w.zero_grad()
            w.scale(ctx, 1.5).backward(ctx)
            w.sub(ctx, w).to(ctx, DType.f32).scale(ctx, BIG).backward(ctx)
            assert gradient(ctx, w) == [0.0], "AUTOGRAD-BACK-1: the minuend comes first"
            assert first == [2.0], "AUTOGRAD-BACK-1: the second conversion was made later, so it gives first"


@clause("AUTOGRAD-BACK-1")
def test_a_first_gradient_is_stored_and_not_added(impl: Any, ctx: Any) -> None:
    """-0 stays -0: it was not added to a zero."""
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        w.scale(ctx, 1.0).scale(ctx, -0.0).sum_all(ctx).backward(ctx)
        with w.grad(ctx) as g:
            assert bits(g).tolist() == [0x80000000] * 2, "AUTOGRAD-BACK-1"
        w.scale(ctx, 0.0).sum_all(ctx).backward(ctx)
        with w.grad(ctx) as g:
            assert bits(g).tolist() == [0] * 2


@clause("AUTOGRAD-BACK-1")
def test_deep_and_wide_graphs(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0], grad=True) as w, ctx.exec_scope():
        y = w
        for _ in range(3000):
            y = y.add_scalar(ctx, 1.0)
        y.backward(ctx)
        assert gradient(ctx, w) == [1.0]
        w.zero_grad()
        total = w
        for _ in range(40):
            total = total.add(ctx, total)  # 2^40 paths, 40 nodes
        total.backward(ctx)
        assert gradient(ctx, w) == [2.0**40]


@clause("AUTOGRAD-BACK-2", "AUTOGRAD-BACK-1")
def test_only_what_the_loss_depends_on(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0], grad=True) as w, f32(impl, ctx, [2.0], grad=True) as v, f32(impl, ctx, [3.0]) as x:
        with ctx.exec_scope():
            v.mul(ctx, v)
            w.mul(ctx, x).backward(ctx)
        assert (gradient(ctx, w), v.grad(ctx), x.grad(ctx)) == ([3.0], None, None)
        with ctx.exec_scope(), ctx.no_grad():
            hidden = v.scale(ctx, 2.0)
        with ctx.exec_scope():
            with ctx.no_grad():
                hidden = v.scale(ctx, 2.0)
            w.mul(ctx, hidden).backward(ctx)
        assert (gradient(ctx, w), v.grad(ctx)) == ([7.0], None)


# -- fetching


@clause("AUTOGRAD-GRAD-1")
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_view_keeps_what_it_shows(impl: Any, ctx: Any, times: int) -> None:
    """Whether a later backward brings the leaf one gradient or several."""
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        first = w.mul(ctx, w).sum_all(ctx)
        first.backward(ctx)
        copied, view = w.grad(ctx), w.grad_view(ctx)
        again = w.grad_view(ctx)
        assert view.as_raw_tensor().buffer == again.as_raw_tensor().buffer != copied.as_raw_tensor().buffer
        array = np.asarray(view)
        view.deinit()
        sums = [w.scale(ctx, 2.0).sum_all(ctx) for _ in range(times)]
        while len(sums) > 1:
            sums.append(sums.pop().add(ctx, sums.pop()))
        (loss,) = sums
        for turn in (1, 2):
            loss.backward(ctx)
            assert (copied.data_const().tolist(), again.data_const().tolist(), array.tolist()) == ([2.0, 4.0],) * 3
            assert gradient(ctx, w) == [2.0 + 2 * times * turn, 4.0 + 2 * times * turn]
            with w.grad_view(ctx) as newer:
                assert newer.data_const().tolist() == gradient(ctx, w)
        w.zero_grad()
        assert again.data_const().tolist() == [2.0, 4.0]
        again.deinit()
        copied.deinit()
        del array
        results = [w.mul(ctx, w), loss]
        assert all(t.grad(ctx) is None and t.grad_view(ctx) is None for t in results)


@clause("AUTOGRAD-GRAD-1", "AUTOGRAD-BACK-1")
@each_small
def test_gradients_are_f32(impl: Any, ctx: Any, dtype: DType) -> None:
    """A gradient that the leaf's dtype cannot hold."""
    with leaf(impl, ctx, dtype, [[0x3F80, 0x3F80]] if dtype is DType.bf16 else pattern_noise(dtype, (1, 2))) as w:
        with ctx.exec_scope():
            w.scale(ctx, 1 + 2.0**-20).sum_all(ctx).backward(ctx)
        with w.grad(ctx) as g:
            assert g.data_const().tolist() == [1 + 2.0**-20] * 2
