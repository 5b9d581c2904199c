"""Operations that consume their operand: in place where that may be, else into a new one, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
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
from fucina.conformance.suite.tagged import bits, check, constant, f32, state
from fucina.spec import DType
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    DTypeMismatch,
    GradientsTracked,
    InvalidTag,
    ShapeMismatch,
    UseAfterDeinit,
)

F32 = DType.f32


@pytest.fixture(scope="module")
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


@clause("POLICY-TAKE-1", "TENSOR-TAKE-1")
def test_taken_in_place(impl: Any, ctx: Any) -> None:
    other = f32(impl, ctx, [10.0, 20.0], ("b",))
    takes: tuple[tuple[Callable[[Any], Any], list[float]], ...] = (
        (lambda x: x.take_scale_no_grad(ctx, 3.0), [3.0, 6.0, 9.0, 12.0]),
        (lambda x: x.take_add_no_grad(ctx, other), [11.0, 22.0, 13.0, 24.0]),
        (lambda x: x.take_add_no_grad(ctx, x), [2.0, 4.0, 6.0, 8.0]),
    )
    for take, wanted in takes:
        x = f32(impl, ctx, [[1.0, 2.0], [3.0, 4.0]])
        place, out = x.as_raw_tensor().buffer.address, ctx.rt.buffers.outstanding_buffers()
        y = take(x)
        assert (type(y), y.data_const().tolist()) == (type(x), wanted)
        raw = y.as_raw_tensor()
        assert (raw.buffer.address, raw.buffer.refs, ctx.rt.buffers.outstanding_buffers()) == (place, 1, out)
        for use in (
            partial(bits, x),
            partial(x.add, ctx, y),
            partial(x.take_scale_no_grad, ctx, 2.0),
            partial(y.add, ctx, x),
        ):
            assert_raises(UseAfterDeinit, None, use)
        x.deinit()
        x.deinit()
        assert y.data_const().tolist() == wanted
        y.deinit()
    other.deinit()


@clause("POLICY-TAKE-1")
def test_taken_into_a_new_one(impl: Any, ctx: Any) -> None:
    """A view, one that has views, one at an offset, one that is read-only: the storage is left as it is."""
    base = f32(impl, ctx, [[1.0, 2.0], [3.0, 4.0]])
    source = np.arange(1, 5, dtype=np.float32)
    makers: dict[str, Any] = {
        "a view": lambda: base.flatten(ctx, "f"),
        "turned": lambda: base.transpose(ctx, "a", "b"),
        "a part": lambda: base.narrow(ctx, "a", 1, 1),
        "repeated": lambda: base.broadcast_to(ctx, (2, 2, 2), ("n", "a", "b")),
        "read-only": lambda: impl.Tensor("f").from_borrowed_const_slice(ctx, (4,), source),
    }
    for name, make in makers.items():
        doubled: tuple[Callable[[Any], Any], ...] = (
            lambda x: x.take_scale_no_grad(ctx, 2.0),
            lambda x: x.take_add_no_grad(ctx, x),
        )
        for take in doubled:
            x = make()
            wanted = (np.asarray(x) * 2).tolist()
            y = take(x)
            assert np.asarray(y).tolist() == wanted, name
            assert y.as_raw_tensor().buffer != base.as_raw_tensor().buffer
            assert y.as_raw_tensor().is_contiguous()
            assert_raises(UseAfterDeinit, None, partial(getattr, x, "shape"))
            y.deinit()
            assert base.as_raw_tensor().buffer.refs == 1, f"POLICY-TAKE-1: {name} was consumed"
            assert (base.data_const().tolist(), source.tolist()) == ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    x = f32(impl, ctx, [1.0, 2.0])
    kept = np.asarray(x)
    with x.take_scale_no_grad(ctx, 2.0) as y:
        assert (kept.tolist(), y.data_const().tolist()) == ([1.0, 2.0], [2.0, 4.0]), "an array pins what it shows"
    base.deinit()
    del kept


@clause("POLICY-TAKE-1")
def test_other_shares_storage(impl: Any, ctx: Any) -> None:
    x = impl.Tensor("a", "b").from_slice(ctx, (2, 2), [1, 2, 3, 4])
    with x.transpose(ctx, "a", "b") as t, x.take_add_no_grad(ctx, t) as y:
        assert np.asarray(y).tolist() == [[2.0, 4.0], [6.0, 8.0]], "aligned by tag, t is x"
    with impl.Tensor("a", "b").from_slice(ctx, (2, 2), [1, 2, 3, 4]) as base:
        x, other = base.narrow(ctx, "a", 0, 1), base.narrow(ctx, "a", 1, 1)
        with x.take_add_no_grad(ctx, other) as y:
            assert y.data_const().tolist() == [4.0, 6.0]
            assert base.data_const().tolist() == [1.0, 2.0, 3.0, 4.0]
        other.deinit()


@clause("POLICY-TAKE-1", "ERR-STATE-1")
def test_what_cannot_be_taken(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[1.0, 2.0], [3.0, 4.0]]) as x, f32(impl, ctx, [1.0, 2.0], grad=True) as w:
        with (
            impl.Tensor("c").ones(ctx, (2,)) as c,
            impl.Tensor("a", "c").ones(ctx, (2, 1)) as ac,
            impl.Tensor("b").ones(ctx, (3,)) as b,
        ):
            before = state(ctx, x, w, c, b)
            for other, wrong in (
                (c, InvalidTag),
                (ac, InvalidTag),
                (b, ShapeMismatch),
                (w, GradientsTracked),
                (2.0, DTypeMismatch),
            ):
                assert_raises(wrong, None, partial(x.take_add_no_grad, ctx, other), what=repr(other))
            for wrong_number in ("2", None):
                assert_raises(DTypeMismatch, None, partial(x.take_scale_no_grad, ctx, wrong_number))
            assert_raises(GradientsTracked, None, partial(w.take_scale_no_grad, ctx, 2.0))
            assert_raises(GradientsTracked, None, partial(w.take_add_no_grad, ctx, w))
            assert state(ctx, x, w, c, b) == before
        with ctx.exec_scope():
            y = x.add(ctx, x)
            for call in (lambda: y.take_scale_no_grad(ctx, 2.0), lambda: y.take_add_no_grad(ctx, y)):
                assert_raises(ActiveExecScopeUnsupported, "POLICY-TAKE-1", call)
            assert (y.scope_owned, y.data_const().tolist()) == (True, [2.0, 4.0, 6.0, 8.0])
            z = f32(impl, ctx, [1.0, 2.0]).take_scale_no_grad(ctx, 2.0)
            assert z.data_const().tolist() == [2.0, 4.0]
            assert z.scope_owned, "FACADE-OWN-2: a result of f32 under a scope is the scope's"


@clause("POLICY-TAKE-1")
@given(data=st.data())
def test_taken_values(impl: Any, ctx: Any, data: st.DataObject) -> None:
    codes = data.draw(st.lists(patterns(F32), min_size=6, max_size=6))
    few = data.draw(st.lists(patterns(F32), min_size=3, max_size=3))
    number = data.draw(st.floats(allow_nan=False))
    a, b = (exact.decode(F32, v) for v in (codes, few))
    x = constant(impl, ctx, F32, codes, (2, 3))
    check(
        x.take_scale_no_grad(ctx, number), formulas.scale(F32, a.reshape(2, 3), number), "scaled", "POLICY-TAKE-1", F32
    )
    with constant(impl, ctx, F32, few, tags=("b",)) as y:
        x = constant(impl, ctx, F32, codes, (2, 3))
        check(
            x.take_add_no_grad(ctx, y),
            formulas.arithmetic("add", F32, a.reshape(2, 3), b),
            "added",
            "POLICY-TAKE-1",
            F32,
        )
