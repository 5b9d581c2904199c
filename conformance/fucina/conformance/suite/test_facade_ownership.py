"""Who owns a tensor: every row of the ownership table, scopes, replace, blocks that end, and names that are dropped."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.blocks import FORMATS, sizes
from fucina.conformance.suite.tagged import bits, f32, held, state
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    LeakedBuffers,
    ShapeMismatch,
    UseAfterDeinit,
    UseAfterScope,
)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


SOURCE = np.ones(4, np.float32)
CONSTRUCTORS: dict[str, Callable[[Any, Any], Any]] = {
    "constant": lambda impl, ctx: impl.Tensor("d").constant(ctx, ctx.ones((4,))),
    "from_tensor": lambda impl, ctx: impl.Tensor("d").from_tensor(ctx, ctx.ones((4,))),
    "variable": lambda impl, ctx: impl.Tensor("d").variable(ctx, ctx.ones((4,))),
    "from_slice": lambda impl, ctx: impl.Tensor("d").from_slice(ctx, (4,), SOURCE),
    "variable_from_slice": lambda impl, ctx: impl.Tensor("d").variable_from_slice(ctx, (4,), SOURCE),
    "from_borrowed_slice": lambda impl, ctx: impl.Tensor("d").from_borrowed_slice(ctx, (4,), SOURCE),
    "from_borrowed_const_slice": lambda impl, ctx: impl.Tensor("d").from_borrowed_const_slice(ctx, (4,), SOURCE),
    "empty": lambda impl, ctx: impl.Tensor("d").empty(ctx, (4,)),
    "zeros": lambda impl, ctx: impl.Tensor("d").zeros(ctx, (4,)),
    "ones": lambda impl, ctx: impl.Tensor("d").ones(ctx, (4,)),
    "full": lambda impl, ctx: impl.Tensor("d").full(ctx, (4,), 2),
    "scalar": lambda impl, ctx: impl.Tensor().scalar(ctx, 2),
    "arange": lambda impl, ctx: impl.Tensor("d").arange(ctx, 0, 4),
    "linspace": lambda impl, ctx: impl.Tensor("d").linspace(ctx, 0, 4, 4),
    "eye": lambda impl, ctx: impl.Tensor("a", "b").eye(ctx, 2),
    "one_hot": lambda impl, ctx: impl.Tensor("a", "b").one_hot(ctx, [0, 1], 2),
    "rand": lambda impl, ctx: impl.Tensor("d").rand(ctx, (4,), 1),
    "uniform": lambda impl, ctx: impl.Tensor("d").uniform(ctx, (4,), 1, 0, 1),
    "randn": lambda impl, ctx: impl.Tensor("d").randn(ctx, (4,), 1),
    "normal": lambda impl, ctx: impl.Tensor("d").normal(ctx, (4,), 1, 0, 1),
    "gumbel": lambda impl, ctx: impl.Tensor("d").gumbel(ctx, (4,), 1),
    "bernoulli": lambda impl, ctx: impl.Tensor("d").bernoulli(ctx, (4,), 1, 0.5),
    "randint": lambda impl, ctx: impl.Tensor("d", dtype=DType.i64).randint(ctx, (4,), 1, 0, 9),
    "randperm": lambda impl, ctx: impl.Tensor("d", dtype=DType.i64).randperm(ctx, 4, 1),
}
"""A call of each constructor of a scalar dtype."""

OPERATIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": lambda ctx, x, y, c: x.add(ctx, y),
    "sub": lambda ctx, x, y, c: x.sub(ctx, y),
    "mul": lambda ctx, x, y, c: x.mul(ctx, y),
    "div": lambda ctx, x, y, c: x.div(ctx, y),
    "scale": lambda ctx, x, y, c: x.scale(ctx, 2.0),
    "add_scalar": lambda ctx, x, y, c: x.add_scalar(ctx, 2.0),
    "to": lambda ctx, x, y, c: x.to(ctx, DType.f32),
    "dropout": lambda ctx, x, y, c: x.dropout(ctx, 0.5, 1),
    "sum": lambda ctx, x, y, c: x.sum(ctx, "a"),
    "mean": lambda ctx, x, y, c: x.mean(ctx, "b"),
    "sum_all": lambda ctx, x, y, c: x.sum_all(ctx),
    "get_rows": lambda ctx, x, y, c: x.get_rows(ctx, [1, 0, 1]),
    "dot": lambda ctx, x, y, c: x.dot(ctx, c),
    "reshape": lambda ctx, x, y, c: x.reshape(ctx, (3, 2)),
    "flatten": lambda ctx, x, y, c: x.flatten(ctx, "f"),
    "contiguous": lambda ctx, x, y, c: x.contiguous(ctx),
    "narrow": lambda ctx, x, y, c: x.narrow(ctx, "b", 1, 2),
    "permute": lambda ctx, x, y, c: x.permute(ctx, ("b", "a")),
    "transpose": lambda ctx, x, y, c: x.transpose(ctx, "a", "b"),
    "broadcast_to": lambda ctx, x, y, c: x.broadcast_to(ctx, (2, 2, 3), ("n", "a", "b")),
    "split": lambda ctx, x, y, c: x.split(ctx, "b", (3, 1), ("p", "q")),
    "merge": lambda ctx, x, y, c: x.merge(ctx, ("a", "b"), "f"),
    "nll_loss": lambda ctx, x, y, c: x.nll_loss(ctx, [0, 2], "b"),
    "l2_normalize": lambda ctx, x, y, c: x.l2_normalize(ctx, "b"),
    "cosine_similarity": lambda ctx, x, y, c: x.cosine_similarity(ctx, y, "b"),
}
"""A call of each operation on f32 tensors: two of shape (2, 3) with tags a and b, one of (2,) with a."""


def operands(impl: Any, ctx: Any, *, grad: bool = False) -> tuple[Any, Any, Any]:
    values = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    return f32(impl, ctx, values, grad=grad), f32(impl, ctx, values[::-1]), f32(impl, ctx, values[:, 1])


def end(*tensors: Any) -> None:
    for tensor in tensors:
        tensor.deinit()


# -- the table: constructors


@clause("FACADE-OWN-1", "FACADE-OWN-2")
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_give_to_the_caller(impl: Any, ctx: Any, name: str) -> None:
    make = CONSTRUCTORS[name]
    for scoped in (False, True):
        mark = ctx.open_exec_scope() if scoped else None
        x = make(impl, ctx)
        out = ctx.rt.buffers.outstanding_buffers()
        assert (x.scope_owned, x.as_raw_tensor().buffer.refs, ctx.rt.scope_entries) == (False, 1, 0)
        assert out == (0 if "borrowed" in name else 1)
        if mark is not None:
            ctx.close_exec_scope(mark)
        assert bits(x).size > 0, "it outlives the scope"
        x.deinit()
        assert ctx.rt.buffers.outstanding_buffers() == 0
        assert_raises(UseAfterDeinit, None, x.deinit)


@clause("FACADE-OWN-2")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_constructors_of_blocks_give_to_the_caller(impl: Any, ctx: Any, dtype: DType) -> None:
    n, size = sizes(dtype)
    kind = impl.Tensor("r", "d", dtype=dtype)
    with ctx.exec_scope():
        for make in (kind.from_blocks, kind.from_borrowed_blocks):
            with make(ctx, (2, n), bytearray(2 * size)) as w:
                assert not w.scope_owned
                y = w.to(ctx, DType.f32)
                assert y.scope_owned, "f32, whatever it was made of"
                rows = w.get_rows(ctx, [1])
                assert rows.scope_owned
    assert ctx.rt.buffers.outstanding_buffers() == 0


# -- the table: operations


@clause("FACADE-OWN-1")
@pytest.mark.parametrize("name", OPERATIONS)
def test_without_a_scope_the_caller(impl: Any, ctx: Any, name: str) -> None:
    x, y, c = operands(impl, ctx)
    before = state(ctx, x, y, c)
    result = OPERATIONS[name](ctx, x, y, c)
    assert (result.scope_owned, result.requires_grad, ctx.rt.scope_entries) == (False, False, 0)
    view = result.as_raw_tensor().buffer == x.as_raw_tensor().buffer
    assert result.as_raw_tensor().buffer.refs == 1 + view
    result.deinit()
    assert state(ctx, x, y, c) == before, "FACADE-OWN-1: a deinit gives everything back"
    assert_raises(UseAfterDeinit, None, result.deinit)
    assert_raises(UseAfterDeinit, None, lambda: result.shape)
    end(x, y, c)


@clause("FACADE-OWN-2", "SCOPE-BORROW-1", "SCOPE-AFTER-1")
@pytest.mark.parametrize("grad", [False, True], ids=["constants", "leaves"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_with_a_scope_the_scope(impl: Any, ctx: Any, name: str, grad: bool) -> None:
    x, y, c = operands(impl, ctx, grad=grad)
    before = state(ctx, x, y, c)
    with ctx.exec_scope():
        result = OPERATIONS[name](ctx, x, y, c)
        assert (result.scope_owned, result.requires_grad) == (True, grad)
        assert ctx.rt.scope_entries >= 1
        wanted = bits(result).tolist()
        entries = ctx.rt.scope_entries
        for _ in range(3):
            result.deinit()
        with result:
            pass
        assert (bits(result).tolist(), result.scope_owned, ctx.rt.scope_entries) == (wanted, True, entries)
    assert_raises(UseAfterScope, None, lambda: result.shape)
    result.deinit()
    assert state(ctx, x, y, c) == before, "FACADE-OWN-2: the close gives everything back"
    end(x, y, c)


@clause("FACADE-OWN-2", "POLICY-CONST-1", "FACADE-OWN-4")
@pytest.mark.parametrize("grad", [False, True], ids=["constants", "leaves"])
def test_indices_stay_the_callers(impl: Any, ctx: Any, grad: bool) -> None:
    x, y, c = operands(impl, ctx, grad=grad)
    with ctx.exec_scope():
        ordered, best = x.sort(ctx, "b"), x.top_k(ctx, "b", 2)
        owned = [x.argmax(ctx, "b"), x.argsort(ctx, "b"), ordered.indices, best.indices]
        adopted = [ordered.values, best.values]
        assert [t.scope_owned for t in (*owned, *adopted)] == [False] * 4 + [True] * 2
        assert not any(t.requires_grad for t in (*owned, *adopted))
        ordered.deinit()
        assert_raises(UseAfterDeinit, None, lambda: ordered.indices.shape)
        assert ordered.values.shape == (2, 3), "a scope owns it"
    for t in (owned[0], owned[1], owned[3]):
        assert t.data_const().size
        t.deinit()
    for t in adopted:
        assert_raises(UseAfterScope, None, partial(bits, t))
    end(x, y, c)


@clause("FACADE-OWN-4")
@pytest.mark.parametrize("part", ["values", "indices"])
def test_a_record_of_which_a_part_has_ended(impl: Any, ctx: Any, part: str) -> None:
    """Nothing else of it ends where ``deinit`` raises; the end of its block ends what is left."""
    x, y, c = operands(impl, ctx)
    record = x.sort(ctx, "b")
    other = record.indices if part == "values" else record.values
    getattr(record, part).deinit()
    outstanding = ctx.rt.buffers.outstanding_buffers()
    assert_raises(UseAfterDeinit, "FACADE-OWN-4", record.deinit)
    assert_raises(UseAfterDeinit, None, record.__enter__)
    assert ctx.rt.buffers.outstanding_buffers() == outstanding, "FACADE-OWN-4: what raises ends none"
    assert other.shape == (2, 3)
    other.deinit()
    with x.sort(ctx, "b") as record:
        getattr(record, part).deinit()
    assert ctx.rt.buffers.outstanding_buffers() == outstanding - 1
    end(x, y, c)


@clause("FACADE-OWN-2", "AUTOGRAD-TRACK-1")
@pytest.mark.parametrize("dtype", [DType.f16, DType.bf16, DType.f64, DType.i32, DType.bool], ids=lambda d: d.name)
def test_other_dtypes_are_adopted_where_they_track(impl: Any, ctx: Any, dtype: DType) -> None:
    kind = impl.Tensor("d", dtype=dtype)
    with kind.ones(ctx, (2,)) as x:
        with ctx.exec_scope():
            made = [x.to(ctx, dtype), x.narrow(ctx, "d", 0, 1), x.get_rows(ctx, [0])]
            if dtype is not DType.bool:
                made.append(x.add(ctx, x))
            total = x.sum_all(ctx)
            assert [t.scope_owned for t in made] == [False] * len(made)
            assert total.scope_owned is (total.dtype is DType.f32)
            made += [] if total.scope_owned else [total]
        for t in made:
            assert bits(t).size
            t.deinit()
    if dtype in (DType.f16, DType.bf16):
        with kind.variable_from_slice(ctx, (2,), [1.0, 2.0]) as w, ctx.exec_scope():
            for turn in ("first", "again"):  # types that have met before may take another way
                for made_of_it in (
                    *(w.add(ctx, w), w.scale(ctx, 2.0), w.add_scalar(ctx, 1.0), w.narrow(ctx, "d", 0, 1)),
                    *(w.reshape(ctx, (1, 2), ("a", "d")), w.dropout(ctx, 0.5, 1), w.get_rows(ctx, [0]), w.dot(ctx, w)),
                    *(w.permute(ctx, ("d",)), w.broadcast_to(ctx, (3, 2), ("a", "d")), w.contiguous(ctx)),
                ):
                    assert (made_of_it.dtype, made_of_it.scope_owned) == (dtype, True), turn
            wide = w.to(ctx, DType.f64)
            assert (wide.scope_owned, wide.requires_grad) == (False, False)
            wide.deinit()


@clause("FACADE-OWN-2", "AUTOGRAD-GRAD-1", "CONTEXT-OWNER-1")
def test_gradients_and_raw_helpers_are_the_callers(impl: Any, ctx: Any) -> None:
    w, *rest = operands(impl, ctx, grad=True)
    with ctx.exec_scope():
        w.mul(ctx, w).sum_all(ctx).backward(ctx)
        entries = ctx.rt.scope_entries
        g, v, raw = w.grad(ctx), w.grad_view(ctx), ctx.add(w.as_raw_tensor(), w.as_raw_tensor())
        assert [t.scope_owned for t in (g, v, raw)] == [False] * 3
        assert ctx.rt.scope_entries == entries
    assert g.data_const().tolist() == v.data_const().tolist() == raw.data_const().tolist() == [2, 4, 6, 8, 10, 12]
    end(g, v, raw, w, *rest)
    gc.collect()
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-OWN-2", "SCOPE-NEST-1", "SCOPE-CLOSE-1")
def test_the_innermost_scope(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [3.0, 4.0]) as x:
        with ctx.exec_scope():
            outer = x.add(ctx, x)
            with ctx.exec_scope():
                inner = outer.add(ctx, outer)
                assert (ctx.rt.scope_depth, ctx.rt.scope_entries) == (2, 2)
            assert_raises(UseAfterScope, "SCOPE-AFTER-1", inner.data_const)
            assert outer.data_const().tolist() == [6.0, 8.0]
        assert_raises(UseAfterScope, "SCOPE-AFTER-1", outer.data_const)
        assert ctx.rt.buffers.outstanding_buffers() == 1


@clause("FACADE-OWN-2", "SCOPE-ERROR-1")
def test_an_error_in_the_middle_of_a_forward(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [3.0, 4.0], grad=True) as w, f32(impl, ctx, [1.0, 2.0, 3.0]) as x:
        before = held(ctx)

        def forward() -> None:
            with ctx.exec_scope():
                y = w.mul(ctx, w).scale(ctx, 2.0)
                y.add(ctx, x)

        assert_raises(ShapeMismatch, None, forward)
        assert held(ctx) == before
        assert w.grad(ctx) is None


# -- blocks that end, names that are dropped


@clause("FACADE-OWN-1")
def test_with_blocks(impl: Any, ctx: Any) -> None:
    with impl.Tensor("d").ones(ctx, (2,)) as x:
        x.deinit()  # and not again at the end of the block
    assert_raises(UseAfterDeinit, None, x.deinit)
    x = impl.Tensor("d").ones(ctx, (2,))
    assert x.__enter__() is x
    with pytest.raises(KeyError), x:
        raise KeyError
    assert_raises(UseAfterDeinit, None, x.data_const)
    with impl.Tensor("d").ones(ctx, (2,)) as y, y.add(ctx, y) as z:
        y = ctx.replace(y, y.scale(ctx, 2.0))
        assert z.data_const().tolist() == [2.0, 2.0]
        y.deinit()
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-OWN-1", "CONTEXT-TRACE-1")
def test_dropped_names(impl: Any) -> None:
    """Silent where an operation made it; a warning where a constructor did, or where the context traces."""
    for trace, warned in ((False, (True, False, False)), (True, (True, True, True))):
        with impl.ExecContext(trace=trace) as ctx, f32(impl, ctx, [[1.0, 2.0]]) as x:
            make: Any
            for make, expected in zip(
                (lambda: impl.Tensor("d").ones(ctx, (2,)), lambda: x.add(ctx, x), lambda: x.flatten(ctx, "f")),
                warned,
                strict=True,
            ):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    make()
                    gc.collect()
                found = [w for w in caught if issubclass(w.category, ResourceWarning)]
                assert len(found) == expected, f"FACADE-OWN-1: {[str(w.message) for w in caught]}"
                assert ctx.rt.buffers.outstanding_buffers() == 1


@clause("FACADE-OWN-1")
def test_no_warning_where_nothing_was_forgotten(impl: Any) -> None:
    with warnings.catch_warnings(record=True) as caught, impl.ExecContext(trace=True) as ctx:
        warnings.simplefilter("always")
        x = impl.Tensor("d").ones(ctx, (2,))
        with ctx.exec_scope():
            y = x.add(ctx, x)
        consumed = impl.Tensor("d").ones(ctx, (2,))
        with consumed.take_scale_no_grad(ctx, 2.0):
            pass
        x = ctx.replace(x, x.scale(ctx, 2.0))
        x.deinit()
        del x, y, consumed
        gc.collect()
    assert not [w for w in caught if issubclass(w.category, ResourceWarning)]


@clause("FACADE-OWN-1", "POOL-LEAK-1")
def test_what_is_out_at_the_close_is_named(impl: Any) -> None:
    ctx = impl.ExecContext()
    kept = impl.Tensor("r", "c").ones(ctx, (2, 3))
    error = assert_raises(LeakedBuffers, None, ctx.deinit)
    assert [(leak.dtype, tuple(leak.shape)) for leak in error.leaks] == [(DType.f32, (2, 3))]  # type: ignore[attr-defined]
    assert kept.data_const().tolist() == [1.0] * 6
    assert_raises(UseAfterDeinit, "CONTEXT-LIFE-2", lambda: kept.add(ctx, kept))
    kept.deinit()


@clause("FACADE-OWN-1", "FACADE-OWN-2")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_chain_of_unnamed_results_leaves_nothing(impl: Any, ctx: Any, name: str) -> None:
    gc.disable()
    try:
        x, y, c = operands(impl, ctx)
        before = ctx.rt.buffers.outstanding_buffers()
        for _ in range(20):
            OPERATIONS[name](ctx, x, y, c).sum_all(ctx).scale(ctx, 2.0).item()
            assert ctx.rt.buffers.outstanding_buffers() == before
        end(x, y, c)
    finally:
        gc.enable()


# -- replace, and the number of buffers


@clause("CONTEXT-REPLACE-1", "FACADE-OWN-1")
def test_replace(impl: Any, ctx: Any) -> None:
    x = impl.Tensor("d").ones(ctx, (4,))
    assert ctx.replace(x, x) is x
    with impl.Tensor("e").ones(ctx, (4,)) as other, ctx.ones((4,)) as raw:
        for wrong in (other, raw, None, x.to):
            assert_raises((DTypeMismatch, TypeError), None, partial(ctx.replace, x, wrong), what=repr(wrong))

    def fails() -> Any:
        return x.add_scalar(ctx, "no number")

    assert_raises(DTypeMismatch, None, partial(ctx.replace, x, fails))
    assert x.data_const().tolist() == [1.0] * 4, "on an error the old one is as before"
    y = ctx.replace(x, lambda: x.scale(ctx, 3.0))
    assert (y.data_const().tolist(), ctx.rt.buffers.outstanding_buffers()) == ([3.0] * 4, 1)
    x.deinit()
    x.deinit()
    assert_raises(UseAfterDeinit, None, x.data_const)
    with ctx.exec_scope():
        z = y.scale(ctx, 2.0)
        u = ctx.replace(z, z.scale(ctx, 2.0))
        assert (z.data_const().tolist(), u.data_const().tolist()) == ([6.0] * 4, [12.0] * 4), "a scope owns both"
    y.deinit()


@clause("CONTEXT-REPLACE-1", "FACADE-OWN-4")
def test_records(impl: Any, ctx: Any) -> None:
    x, y, c = operands(impl, ctx)
    before = held(ctx)
    make: Any
    for make in (lambda: x.sort(ctx, "b"), lambda: x.top_k(ctx, "b", 2)):
        record = make()
        values, indices = record
        assert values is record.values
        assert indices is record.indices
        record.deinit()
        for t in (values, indices):
            assert_raises(UseAfterDeinit, None, partial(bits, t))
        with make() as record:
            assert record.values.shape == record.indices.shape
        assert_raises(UseAfterDeinit, None, partial(bits, record.values))
        with make() as record:
            record.deinit()
        old = make()
        new = ctx.replace(old, make())
        assert_raises(UseAfterDeinit, None, partial(bits, old.values))
        new.deinit()
        assert held(ctx) == before
    end(x, y, c)


@clause("FACADE-OWN-3", "POOL-LIFO-1")
@pytest.mark.parametrize("grad", [False, True], ids=["constants", "leaves"])
def test_two_buffers_or_thirty_two(impl: Any, ctx: Any, grad: bool) -> None:
    with f32(impl, ctx, np.ones(8), grad=grad) as start:
        if not grad:
            x, places = start.scale(ctx, 1.0), set()
            for _ in range(32):
                x = ctx.replace(x, x.scale(ctx, 1.5))
                places.add(x.as_raw_tensor().buffer.address)
                assert ctx.rt.buffers.outstanding_buffers() == 2
            x.deinit()
            assert len(places) == 2
        with ctx.exec_scope():
            x, held = start, set()
            for step in range(32):
                x = ctx.replace(x, x.scale(ctx, 1.5)) if step else x.scale(ctx, 1.5)
                held.add(x.as_raw_tensor().buffer.address)
            assert (len(held), ctx.rt.scope_entries, ctx.rt.buffers.outstanding_buffers()) == (32, 32, 33)
        assert ctx.rt.buffers.outstanding_buffers() == 1
