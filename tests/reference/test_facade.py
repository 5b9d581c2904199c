"""Tensors with tags, where the suite does not look: memory that fails anywhere, hostile arguments, who holds what."""

from __future__ import annotations

import contextlib
import copy
import gc
import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fucina.reference as fucina
from fucina.spec.errors import (
    ActiveExecScopeUnsupported,
    DTypeMismatch,
    FucinaError,
    GradientsTracked,
    InvalidDType,
    InvalidShape,
    InvalidTag,
    NotCopyable,
    OutOfMemory,
    Overflow,
    SavedValueChanged,
    ScopeOrder,
    ShapeMismatch,
    UnsupportedView,
    UseAfterDeinit,
    UseAfterScope,
)

DType = fucina.DType
T: Any = fucina.Tensor
Step = Callable[[Any, Any, Any], Any]


@pytest.fixture
def ctx() -> Iterator[fucina.ExecContext]:
    with fucina.ExecContext() as found:
        yield found


def made(ctx: Any, *, tracked: bool = False) -> Any:
    kind = T("r", "c")
    return (kind.variable_from_slice if tracked else kind.from_slice)(ctx, (2, 3), [1, -2, 3, 0.5, 4, -1])


def out(ctx: Any) -> int:
    return int(ctx.rt.buffers.outstanding_buffers())


def cube_backward(ctx: Any, g: Any, x: Any) -> Any:
    with ctx.mul(x, x) as square, ctx.scale(square, 3.0) as slope:
        return (ctx.mul(g, slope),)


def cube(ctx: Any, x: Any) -> Any:
    with ctx.mul(x, x) as square:
        return ctx.mul(square, x)


STEPS: dict[str, Step] = {
    "add": lambda ctx, x, y: x.add(ctx, y),
    "div": lambda ctx, x, y: x.div(ctx, y),
    "scale": lambda ctx, x, y: x.scale(ctx, 2.0),
    "to": lambda ctx, x, y: x.to(ctx, DType.f16),
    "dropout": lambda ctx, x, y: x.dropout(ctx, 0.5, 3),
    "sum": lambda ctx, x, y: x.sum(ctx, "r"),
    "mean": lambda ctx, x, y: x.mean(ctx),
    "reshape": lambda ctx, x, y: x.reshape(ctx, (3, 2)),
    "copy": lambda ctx, x, y: x.transpose(ctx, "r", "c").flatten(ctx, "all"),
    "broadcast": lambda ctx, x, y: x.broadcast_to(ctx, (2, 3, 2), ("r", "c", "n")),
    "argmax": lambda ctx, x, y: x.argmax(ctx, "c"),
    "sort": lambda ctx, x, y: x.sort(ctx, "c"),
    "top_k": lambda ctx, x, y: x.top_k(ctx, "c", 2),
    "get_rows": lambda ctx, x, y: x.get_rows(ctx, [1, 1, 0]),
    "dot": lambda ctx, x, y: x.dot(ctx, y.permute(ctx, ("c", "r")).reshape(ctx, (3, 2), ("c", "k"))),
    "nll_loss": lambda ctx, x, y: x.nll_loss(ctx, [0, 2], "c"),
    "l2_normalize": lambda ctx, x, y: x.l2_normalize(ctx, "c"),
    "cosine": lambda ctx, x, y: x.cosine_similarity(ctx, y, "c"),
    "custom": lambda ctx, x, y: fucina.custom_vjp(cube, cube_backward)(ctx, x),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_no_memory_at_any_allocation(ctx: fucina.ExecContext, name: str, tracked: bool) -> None:
    with made(ctx, tracked=tracked) as x, made(ctx) as y, ctx.exec_scope():
        for n in range(1, 40):
            before = out(ctx), ctx.rt.scope_entries, x.raw.buffer.refs, y.raw.buffer.refs
            with ctx.exec_scope():
                fucina.internal.fail_allocation(n)
                try:
                    result = STEPS[name](ctx, x, y)
                except OutOfMemory:
                    result = None
                else:
                    fucina.internal.fail_allocation(None)
                    result.deinit()
            assert (out(ctx), ctx.rt.scope_entries, x.raw.buffer.refs, y.raw.buffer.refs) == before, n
            if result is not None:
                return
    raise AssertionError("it never succeeded")


@pytest.mark.parametrize("name", STEPS)
def test_what_failed_holds_no_slot(ctx: fucina.ExecContext, name: str) -> None:
    with made(ctx) as x, made(ctx) as y, ctx.exec_scope():
        fucina.internal.fail_allocation(2)  # the first one, a slot, succeeds
        with contextlib.suppress(OutOfMemory):
            STEPS[name](ctx, x, y)
        fucina.internal.fail_allocation(None)
        raw = ctx.zeros((1,))
        with pytest.raises(ScopeOrder):
            ctx.adopt_scope_value_assume_capacity(raw, None, None)
        raw.deinit()


def test_backward_without_memory_changes_no_gradient(ctx: fucina.ExecContext) -> None:
    with made(ctx, tracked=True) as v, made(ctx, tracked=True) as w, ctx.exec_scope():
        loss = v.mul(ctx, w).sum_all(ctx)
        loss.backward(ctx)
        before = out(ctx)
        for n in range(1, 20):
            fucina.internal.fail_allocation(n)
            try:
                loss.backward(ctx)
            except OutOfMemory:
                assert out(ctx) == before
                with v.grad(ctx) as g, w.grad(ctx) as h:
                    assert np.array_equal(g.data_const(), w.data_const())
                    assert np.array_equal(h.data_const(), v.data_const())
            else:
                break
        fucina.internal.fail_allocation(None)
        assert n > 2
        with v.grad(ctx) as g:
            assert np.array_equal(g.data_const(), 2 * w.data_const())


def test_gradients_arrive_in_the_reverse_order_of_creation(ctx: fucina.ExecContext) -> None:
    # 1 arrives first, then 2^-24 and 2^-24: one by one both are lost; together they would not be
    with T().variable_from_slice(ctx, (), [1]) as w, ctx.exec_scope():
        small = [w.scale(ctx, 2.0**-24) for _ in range(2)]
        big = w.scale(ctx, 1.0)
        loss = small[0].add(ctx, small[1]).add(ctx, big)
        loss.backward(ctx)
        with w.grad(ctx) as g:
            assert g.item() == 1.0
        w.zero_grad()
        loss = big.add(ctx, small[0].add(ctx, small[1]))
        loss.backward(ctx)
        with w.grad(ctx) as g:
            assert g.item() == 1.0


def test_gradients_within_the_graph_are_added_before_they_go_on(ctx: fucina.ExecContext) -> None:
    with T().variable_from_slice(ctx, (), [1]) as w, ctx.exec_scope():
        inner = w.scale(ctx, 1.0)
        loss = inner.scale(ctx, 2.0**-24).add(ctx, inner.scale(ctx, 2.0**-24)).add(ctx, inner)
        loss.backward(ctx)
        with w.grad(ctx) as g:
            assert g.item() == 1.0  # 1 arrives first
        w.zero_grad()
        big = inner.scale(ctx, 1.0)
        small = [inner.scale(ctx, 2.0**-24) for _ in range(2)]
        big.add(ctx, small[0].add(ctx, small[1])).backward(ctx)
        with w.grad(ctx) as g:
            assert g.item() == 1 + 2.0**-23  # 1 arrives last


def test_a_gradient_of_a_broadcast_operand_is_one_tree(ctx: fucina.ExecContext) -> None:
    one = T("c")
    with one.variable_from_slice(ctx, (1,), [-0.0]) as w, T().from_slice(ctx, (), [-0.0]) as s, ctx.exec_scope():
        w.mul(ctx, s).sum_all(ctx).backward(ctx)
        with w.grad(ctx) as g:
            assert np.signbit(g.data_const()[0])  # no axis is repeated, so nothing is summed up
    with T().variable_from_slice(ctx, (), [1]) as w, one.from_slice(ctx, (1,), [-0.0]) as x, ctx.exec_scope():
        w.mul(ctx, x).sum_all(ctx).backward(ctx)
        with w.grad(ctx) as g:
            assert not np.signbit(g.item())  # an axis that the operand has not: a tree from +0


def test_only_what_a_formula_needs_is_saved(ctx: fucina.ExecContext) -> None:
    with made(ctx, tracked=True) as w, made(ctx) as x, ctx.exec_scope():
        w.add(ctx, x)
        assert (w.raw.buffer.refs, x.raw.buffer.refs) == (1, 1)
        w.mul(ctx, x)
        assert (w.raw.buffer.refs, x.raw.buffer.refs) == (1, 2)
        w.div(ctx, x)
        assert (w.raw.buffer.refs, x.raw.buffer.refs) == (1, 3)
        x.div(ctx, w)
        assert (w.raw.buffer.refs, x.raw.buffer.refs) == (2, 4)
        w.l2_normalize(ctx, "c")
        assert w.raw.buffer.refs == 3
        with ctx.no_grad():
            w.mul(ctx, w)
        assert w.raw.buffer.refs == 3


def test_a_graph_goes_with_the_names_that_hold_it(ctx: fucina.ExecContext) -> None:
    with made(ctx, tracked=True) as w:
        loss = w.mul(ctx, w).scale(ctx, 2.0).sum_all(ctx)
        assert w.raw.buffer.refs == 3
        assert out(ctx) == 2
        del loss
        assert w.raw.buffer.refs == 1
        assert out(ctx) == 1


def test_a_long_chain_ends_without_recursion(ctx: fucina.ExecContext) -> None:
    with T().variable_from_slice(ctx, (), [1]) as w:
        x = w.scale(ctx, 1.0)
        for _ in range(20000):
            x = x.add_scalar(ctx, 0.0)
        x.backward(ctx)
        with w.grad(ctx) as g:
            assert g.item() == 1.0
        del x
        assert out(ctx) == 2


def test_what_backward_needs(ctx: fucina.ExecContext) -> None:
    with made(ctx, tracked=True) as w:
        square = w.mul(ctx, w)
        loss = square.sum_all(ctx)
        square.deinit()
        with pytest.raises(UseAfterDeinit, match="AUTOGRAD-LIFE-1"):
            loss.backward(ctx)
        assert w.grad(ctx) is None
        loss.deinit()
        with pytest.raises(UseAfterDeinit):
            _ = loss.shape
        with ctx.exec_scope():
            kept = w.mul(ctx, w)
            node = kept.node
        with pytest.raises(UseAfterScope):
            _ = kept.requires_grad
        assert node is not None
        with pytest.raises(UseAfterDeinit):
            node.require_usable()
    assert out(ctx) == 0


def test_a_saved_value_that_changed_stops_everything(ctx: fucina.ExecContext) -> None:
    with made(ctx, tracked=True) as w, made(ctx, tracked=True) as v, ctx.exec_scope():
        loss = v.scale(ctx, 3.0).add(ctx, w.mul(ctx, w)).sum_all(ctx)
        w.as_raw_tensor().scale_in_place(1.0)
        with pytest.raises(SavedValueChanged):
            loss.backward(ctx)
        assert v.grad(ctx) is None
        assert w.grad(ctx) is None


def test_indices_are_saved_as_they_are(ctx: fucina.ExecContext) -> None:
    index = T("i", dtype=DType.i64)
    with made(ctx, tracked=True) as w, index.from_slice(ctx, (2,), [1, 0]) as i, ctx.exec_scope():
        loss = w.get_rows(ctx, i).sum_all(ctx)
        assert i.raw.buffer.refs == 2
        i.data()[0] = 0
        with pytest.raises(SavedValueChanged):
            loss.backward(ctx)
        given = [1, 0]
        loss = w.get_rows(ctx, given).sum_all(ctx)
        given[:] = [9, 9]
        loss.backward(ctx)


def test_a_backward_of_ones_own_that_misbehaves(ctx: fucina.ExecContext) -> None:
    def backward(answer: Any) -> Any:
        return fucina.custom_vjp(cube, lambda ctx, g, x: answer(ctx, g, x))

    wrong: tuple[tuple[Any, type[Exception]], ...] = (
        (lambda ctx, g, x: None, DTypeMismatch),
        (lambda ctx, g, x: (), ShapeMismatch),
        (lambda ctx, g, x: (1.0,), DTypeMismatch),
        (lambda ctx, g, x: (g,), UnsupportedView),
        (lambda ctx, g, x: 1 // 0, ZeroDivisionError),
    )
    with made(ctx, tracked=True) as w:
        for answer, error in wrong:
            with ctx.exec_scope():
                loss = backward(answer)(ctx, w).sum_all(ctx)
                before = out(ctx)
                with pytest.raises(error):
                    loss.backward(ctx)
                assert out(ctx) == before
                assert ctx.grad_enabled()
            assert w.grad(ctx) is None
        kept: list[Any] = []

        def reads(ctx: Any, g: Any, x: Any) -> Any:
            kept.extend((g, x))
            return (ctx.scale(g, 1.0),)

        with ctx.exec_scope():
            backward(reads)(ctx, w).sum_all(ctx).backward(ctx)
        for raw in kept:
            with pytest.raises(UseAfterDeinit):
                raw.data_const()
    assert out(ctx) == 0


def test_a_forward_of_ones_own_that_misbehaves(ctx: fucina.ExecContext) -> None:
    wrong: tuple[tuple[Any, type[Exception]], ...] = (
        (lambda ctx, x: None, DTypeMismatch),
        (lambda ctx, x: x, UnsupportedView),
        (lambda ctx, x: ctx.cast(x, DType.f64), DTypeMismatch),
        (lambda ctx, x: ctx.sum(x), ShapeMismatch),
    )
    with made(ctx) as x:
        for forward, error in wrong:
            with pytest.raises(error):
                fucina.custom_vjp(forward, cube_backward)(ctx, x)
            gc.collect()
            assert out(ctx) == 1
        with pytest.raises(DTypeMismatch):
            fucina.custom_vjp(cube, cube_backward)(ctx)
        with pytest.raises(DTypeMismatch):
            fucina.custom_vjp(None, cube_backward)  # type: ignore[arg-type]


def test_a_borrowed_raw_tensor_owns_nothing(ctx: fucina.ExecContext) -> None:
    with made(ctx) as x:
        raw = x.as_raw_tensor()
        raw.deinit()
        raw.deinit()
        with raw:
            pass
        assert x.raw.buffer.refs == 1
        with pytest.raises(UnsupportedView):
            T("r", "c").constant(ctx, raw)
        with ctx.exec_scope():
            ctx.reserve_scope_slot()
            with pytest.raises(UnsupportedView):
                ctx.adopt_scope_value_assume_capacity(raw, None, None)
        with ctx.add(raw, raw) as total, raw.clone_view() as view:
            assert total.data_const()[0] == 2
            assert view.buffer.refs == 2
        assert repr(raw) == repr(x.raw)
        moved = x.take_scale_no_grad(ctx, 2.0)
        with pytest.raises(UseAfterDeinit):
            raw.data_const()
        moved.deinit()
    assert repr(raw) == repr(x.raw)
    with T("r").ones(ctx, (2,)) as x:
        lost = x.scale(ctx, 1.0).as_raw_tensor()
    gc.collect()
    with pytest.raises(UseAfterDeinit):
        lost.data_const()


def test_taking_leaves_everything_where_it_raises(ctx: fucina.ExecContext) -> None:
    with made(ctx) as x, made(ctx, tracked=True) as w, T("z").ones(ctx, (2,)) as z:
        refused: tuple[tuple[type[Exception], Callable[[], object]], ...] = (
            (GradientsTracked, lambda: x.take_add_no_grad(ctx, w)),
            (GradientsTracked, lambda: w.take_scale_no_grad(ctx, 2.0)),
            (InvalidTag, lambda: x.take_add_no_grad(ctx, z)),
            (DTypeMismatch, lambda: x.take_scale_no_grad(ctx, True)),
        )
        for error, give in refused:
            with pytest.raises(error):
                give()
        with ctx.exec_scope():
            y = x.scale(ctx, 1.0)
            with pytest.raises(ActiveExecScopeUnsupported):
                y.take_scale_no_grad(ctx, 2.0)
            fucina.internal.fail_allocation(1)
            with pytest.raises(OutOfMemory):
                x.take_scale_no_grad(ctx, 2.0)
        assert x.raw.buffer.generation == 0
        assert x.data_const()[0] == 1
        view = x.reshape(ctx, (3, 2))
        doubled = x.take_scale_no_grad(ctx, 2.0)  # a view sees the storage, so it is a new one
        assert view.data_const()[0] == 1
        assert doubled.data_const()[0] == 2
        x.deinit()
        view.deinit()
        doubled.deinit()
    assert out(ctx) == 0


def test_warnings_name_what_a_constructor_made() -> None:
    with fucina.ExecContext() as ctx, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        x = T("d").ones(ctx, (2,))
        x.scale(ctx, 1.0)
        assert not said
        del x
        assert [w.category for w in said] == [ResourceWarning]
        consumed = T("d").constant(ctx, ctx.ones((2,)))
        consumed.take_scale_no_grad(ctx, 2.0)
        del consumed
        assert len(said) == 1
    with fucina.ExecContext(trace=True) as ctx, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with T("d").variable_from_slice(ctx, (2,), [1, 2]) as w:
            w.scale(ctx, 1.0)
            w.sum_all(ctx).backward(ctx)
        assert len(said) == 2
        assert __file__ in str(said[0].message)


def test_records(ctx: fucina.ExecContext) -> None:
    with made(ctx) as x:
        record = x.sort(ctx, "c")
        values, indices = record
        again = ctx.replace(record, lambda: x.sort(ctx, "c", True))
        record.deinit()
        with pytest.raises(UseAfterDeinit):
            _ = values.shape
        with again:
            assert again.indices.dtype is DType.i64
        with pytest.raises(UseAfterDeinit):
            again.deinit()
        with ctx.exec_scope(), x.top_k(ctx, "c", 1) as best:
            assert best.values.scope_owned
            assert not best.indices.scope_owned
    assert out(ctx) == 0
    with pytest.raises(UseAfterDeinit):
        _ = indices.shape


def test_copies(ctx: fucina.ExecContext) -> None:
    with made(ctx) as x, x.transpose(ctx, "r", "c") as turned, made(ctx, tracked=True) as w:
        for twin in (copy.copy(turned), copy.deepcopy(turned), pickle.loads(pickle.dumps(turned))):
            assert type(twin) is type(turned)
            assert np.array_equal(np.asarray(twin), np.asarray(turned))
            assert twin.data_const().tolist() == [1, 0.5, -2, 4, 3, -1]
            with pytest.raises(TypeError):
                twin + twin
        with pytest.raises(NotCopyable):
            copy.copy(w)
    for kind in (T, T("a"), T(3, dtype=DType.q8_0), T()):
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert copy.deepcopy(kind) is kind
    assert out(ctx) == 0


class Claims(str):
    """A str that says it is another one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def __str__(self) -> str:
        return "r"


@pytest.mark.parametrize("tag", [None, 1.5, b"r", "", "not a tag", "1", True, object(), ["r"], Claims("zz")])
def test_hostile_tags(ctx: fucina.ExecContext, tag: Any) -> None:
    with made(ctx) as x:
        if type(tag) is not Claims:
            with pytest.raises(InvalidTag):
                T("a", tag)
        for use in (x.dim, lambda t: x.argmax(ctx, t), lambda t: x.sum(ctx, (t,)), lambda t: x.permute(ctx, (t, "c"))):
            with pytest.raises(InvalidTag):
                use(tag)
    with T(2).ones(ctx, (2, 2)) as plain, pytest.raises(InvalidTag):
        plain.sum(ctx, tag if tag is not None else "r")


def test_hostile_specifications() -> None:
    for wrong, error in (
        ((-1,), InvalidShape),
        ((9,), InvalidShape),
        (tuple("abcdefghi"), InvalidShape),
        ((1, 2), InvalidTag),
        (("a", 1), InvalidTag),
        ((True,), InvalidTag),
        ((2.0,), InvalidTag),
    ):
        with pytest.raises(error):
            T(*wrong)
    with pytest.raises(InvalidDType):
        T("a", dtype=np.float32)
    with pytest.raises(DTypeMismatch):
        T("a")()
    assert T(np.int64(2)) is T(2)


def test_hostile_contexts(ctx: fucina.ExecContext) -> None:
    with made(ctx) as x:
        for wrong in (None, x, "ctx", ctx.rt):
            with pytest.raises(DTypeMismatch, match="FACADE-CTX-1"):
                x.sum_all(wrong)
            with pytest.raises(DTypeMismatch, match="FACADE-CTX-1"):
                T("d").zeros(wrong, (2,))
        with pytest.raises(DTypeMismatch, match="FACADE-TYPE-2"):
            T.zeros(ctx, (2,))
        for raw in (ctx.zeros((2, 3)), None, 3.0, [1, 2]):
            with pytest.raises(DTypeMismatch):
                x.add(ctx, raw)
        with pytest.raises(DTypeMismatch):
            ctx.add(x, x)


@pytest.mark.parametrize("other", [True, None, "1", 1j, [1.0], np.ones(3, np.float32), np.float32, object()])
def test_operators_refuse(ctx: fucina.ExecContext, other: Any) -> None:
    with made(ctx) as x:
        refused: tuple[Callable[[], object], ...] = (
            lambda: x + other,
            lambda: other + x,
            lambda: x * other,
            lambda: other * x,
            lambda: x - other,
            lambda: other - x,
            lambda: x / other,
            lambda: x @ other,
            lambda: 2.0 - x,
            lambda: x / 2.0,
        )
        for operate in refused:
            with pytest.raises(TypeError):
                operate()
    gc.collect()
    assert out(ctx) == 0


def test_operators_of_numpy_scalars(ctx: fucina.ExecContext) -> None:
    with made(ctx) as x, ctx.exec_scope():
        for number in (np.float32(2), np.int64(2), np.float16(2), 2, 2.0):
            assert (number * x).data_const()[0] == 2
            assert (x - number).data_const()[0] == -1


def test_every_error_is_ours_and_changes_nothing(ctx: fucina.ExecContext) -> None:
    junk: tuple[Any, ...] = (None, -1, 2.5, "r", (), (0, 1), [[]], object(), 1 << 70, float("nan"))
    with made(ctx, tracked=True) as x:
        names = [n for n in dir(type(x)) if not n.startswith("_") and n not in ("deinit", "deinit_replaced", "live")]
        before = x.raw.buffer.refs, x.raw.buffer.generation, out(ctx)
        for name in names:
            method = getattr(x, name)
            if not callable(method) or name in ("data", "holding", "kin", "raw", "node", "context"):
                continue
            for a in junk:
                for arguments in ((ctx, a), (ctx, a, a), (ctx, (2, 2), a), (ctx, "r", a)):
                    with contextlib.suppress(FucinaError):
                        try:
                            inspect.signature(method).bind(*arguments)
                        except TypeError:
                            continue
                        result = method(*arguments)
                        if result is not None:
                            result.deinit()
                        result = None
        gc.collect()
        assert (x.raw.buffer.refs, x.raw.buffer.generation, out(ctx)) == before


def test_sizes_beyond_all_memory(ctx: fucina.ExecContext) -> None:
    huge = (1 << 33, 1 << 33)
    with made(ctx) as x, T(1).ones(ctx, (1,)) as one:
        steps: tuple[Callable[[], object], ...] = (
            lambda: x.reshape(ctx, huge),
            lambda: x.split(ctx, "r", huge, ("a", "b")),
            lambda: one.broadcast_to(ctx, huge),
            lambda: T(2).empty(ctx, huge),
        )
        for step in steps:
            with pytest.raises(Overflow):
                step()
        with one.broadcast_to(ctx, (1 << 62,)) as view:
            assert view.shape == (1 << 62,)
