"""Saved values must not change: which writes are seen, which matter, and that nothing has changed after the error."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.tagged import f32, gradient
from fucina.spec import DType
from fucina.spec.errors import SavedValueChanged


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


@clause("AUTOGRAD-SAVED-1", "STORAGE-GEN-1")
def test_a_saved_value_that_was_written(impl: Any, ctx: Any) -> None:
    writes: tuple[Any, ...] = (
        *(lambda t: t.data(), lambda t: t.as_raw_tensor().fill(1.0), lambda t: t.as_raw_tensor().scale_in_place(2.0)),
        *(np.asarray, lambda t: t.as_raw_tensor().add_in_place(t.as_raw_tensor()), lambda t: t.as_raw_tensor().data()),
        lambda t: ctx.scale(t.as_raw_tensor(), 2.0, out=t.as_raw_tensor()),
    )
    for write in writes:
        with f32(impl, ctx, [1.0, 2.0], grad=True) as w, f32(impl, ctx, [3.0, 4.0], grad=True) as v, ctx.exec_scope():
            v.scale(ctx, 5.0).sum_all(ctx).backward(ctx)
            loss = w.mul(ctx, v).add(ctx, v).sum_all(ctx)
            write(w)
            assert_raises(SavedValueChanged, "AUTOGRAD-SAVED-1", partial(loss.backward, ctx))
            assert (w.grad(ctx), gradient(ctx, v)) == (None, [5.0, 5.0]), "no gradient has changed"


@clause("AUTOGRAD-SAVED-1")
def test_what_may_be_written(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, f32(impl, ctx, [3.0, 4.0]) as x, ctx.exec_scope():
        loss = w.mul(ctx, x).sum_all(ctx)  # needs x, and not w
        w.data()[...] = 9.0
        x.data_const()
        loss.backward(ctx)
        assert gradient(ctx, w) == [3.0, 4.0]
        kept = x.data()
        loss = w.mul(ctx, x).sum_all(ctx)
        kept[0] = 7.0  # an array from before: not seen
        w.zero_grad()
        loss.backward(ctx)
        assert gradient(ctx, w) == [7.0, 4.0]
        other = w.scale(ctx, 2.0).sum_all(ctx)
        x.data()[...] = 0.0
        w.zero_grad()
        other.backward(ctx)
        assert gradient(ctx, w) == [2.0, 2.0]
        assert_raises(SavedValueChanged, "AUTOGRAD-SAVED-1", lambda: loss.backward(ctx))
        del kept


@clause("AUTOGRAD-SAVED-1")
def test_a_write_through_another_view(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, f32(impl, ctx, [3.0, 4.0, 5.0]) as base, ctx.exec_scope():
        x = base.narrow(ctx, "a", 0, 2)
        loss = w.mul(ctx, x).sum_all(ctx)
        base.data()[2] = 9.0  # elsewhere, but in the same storage
        assert_raises(SavedValueChanged, "AUTOGRAD-SAVED-1", lambda: loss.backward(ctx))
        assert w.grad(ctx) is None


@clause("AUTOGRAD-SAVED-1", "AUTOGRAD-TRACK-1")
def test_saved_indices_and_composed_operands(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0]], grad=True) as w, impl.Tensor("a", dtype=DType.i64).zeros(ctx, (1,)) as i:
        make: Any
        for make, written in (
            *((lambda: w.get_rows(ctx, i).sum_all(ctx), i), (lambda: w.nll_loss(ctx, i, "b"), i)),
            *(
                (lambda: w.l2_normalize(ctx, "b").sum_all(ctx), w),
                (lambda: w.cosine_similarity(ctx, w, "b").sum_all(ctx), w),
            ),
        ):
            with ctx.exec_scope():
                loss = make()
                loss.backward(ctx)
                w.zero_grad()
                written.data()
                assert_raises(SavedValueChanged, "AUTOGRAD-SAVED-1", partial(loss.backward, ctx))
                assert w.grad(ctx) is None
