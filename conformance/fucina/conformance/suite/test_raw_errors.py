"""Raw operations that are refused, or write where they were told to: which error, in which order, what is left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.counters import seen
from fucina.spec import DType
from fucina.spec.errors import (
    DivisionByZero,
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidDType,
    InvalidInteger,
    OutOfMemory,
    Overflow,
    OverlappingMemory,
    ReadOnlyStorage,
    ShapeMismatch,
    UnsupportedView,
    UseAfterDeinit,
)

OPERATIONS = ("add", "sub", "mul", "div")
F8 = (DType.f8_e4m3, DType.f8_e5m2)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


def refused(ctx: Any, kind: type[Exception], clause_id: str | None, call: Callable[[], Any], *tensors: Any) -> None:
    """Assert that a call raises, and changes nothing that can be seen of the context and of tensors."""
    before = seen(ctx), [(t.buffer.refs, t.buffer.generation, t.clone().data_const().tobytes()) for t in tensors]
    assert_raises(kind, clause_id, call)
    after = seen(ctx), [(t.buffer.refs, t.buffer.generation, t.clone().data_const().tobytes()) for t in tensors]
    assert after == before


# -- operands


@clause("CONTEXT-OP-1")
@pytest.mark.parametrize("name", OPERATIONS)
def test_operands_that_do_not_go_together(ctx: Any, name: str) -> None:
    call = getattr(ctx, name)
    with ctx.ones((2, 3)) as a, ctx.ones((2, 3), DType.f16) as half, ctx.ones((4,)) as other, ctx.ones((2,)) as two:
        refused(ctx, DTypeMismatch, "CONTEXT-OP-1", lambda: call(a, half), a, half)
        for wrong in (1.0, None, [1.0], np.ones((2, 3), np.float32), a.buffer):
            refused(ctx, DTypeMismatch, "CONTEXT-OP-1", partial(call, a, wrong), a)
            refused(ctx, DTypeMismatch, "CONTEXT-OP-1", partial(call, wrong, a), a)
        for shape in (other, two):
            refused(ctx, ShapeMismatch, "CONTEXT-OP-1", partial(call, a, shape), a, shape)
            refused(ctx, ShapeMismatch, "CONTEXT-OP-1", partial(call, shape, a), a, shape)
        # a dtype is looked at before shapes are
        refused(ctx, DTypeMismatch, "CONTEXT-OP-1", lambda: call(half, other), half, other)


@clause("CONTEXT-OP-1")
@pytest.mark.parametrize("dtype", [DType.bool, *F8, DType.q8_0, DType.mxfp4], ids=lambda d: d.name)
def test_dtypes_without_arithmetic(ctx: Any, dtype: DType) -> None:
    with ctx.empty((2, 32), dtype) as a, ctx.empty((7, 32), dtype) as b:
        for name in OPERATIONS:
            refused(ctx, InvalidDType, "CONTEXT-OP-1", partial(getattr(ctx, name), a, b))
        refused(ctx, InvalidDType, "CONTEXT-SCALE-1", lambda: ctx.scale(a, "no number"))
        if dtype is not DType.bool:
            refused(ctx, InvalidDType, "CONTEXT-SUM-2", lambda: ctx.sum(a))


@clause("CONTEXT-OP-1")
def test_a_tensor_that_has_ended_is_said_first(ctx: Any) -> None:
    dead, live = ctx.ones((2,)), ctx.ones((3,), DType.i8)
    dead.deinit()
    for call in (
        lambda: ctx.add(dead, 1),
        lambda: ctx.add(1, dead),
        lambda: ctx.add(live, dead),
        lambda: ctx.add(1, 2, out=dead),
        lambda: ctx.scale(dead, "x"),
        lambda: ctx.scale(live, 1.0, out=dead),
        lambda: ctx.sum(dead, 9),
        lambda: ctx.cast(dead, "x"),
        lambda: ctx.materialize(dead),
        lambda: ctx.clone(dead),
        lambda: ctx.classify(dead),
        lambda: ctx.narrow_axis(dead, "x", 0, 0),
        lambda: ctx.broadcast_to(dead, None),
        lambda: ctx.broadcast_to_rank(99, dead, None),
        lambda: ctx.contiguous_for_reshape(dead),
        lambda: ctx.prepare_contiguous(dead),
        lambda: ctx.prepare_as("x", dead),
        lambda: ctx.store_as("x", dead),
        lambda: ctx.replace(dead, 1),
        lambda: ctx.check_rhs_lifetime(dead, 1),
    ):
        refused(ctx, UseAfterDeinit, None, call)
    live.deinit()


@clause("CONTEXT-OP-1")
def test_results_that_are_too_large(ctx: Any) -> None:
    with ctx.ones((1,)) as one:
        a, b = ctx.broadcast_to(one, (1 << 40, 1)), ctx.broadcast_to(one, (1, 1 << 40))
        refused(ctx, Overflow, None, lambda: ctx.add(a, b))
        c, d = ctx.broadcast_to(one, (1 << 30, 1)), ctx.broadcast_to(one, (1, 1 << 33))
        refused(ctx, OutOfMemory, None, lambda: ctx.add(c, d))
        for view in (a, b, c, d):
            view.deinit()


@clause("CONTEXT-ARITH-2", "CONTEXT-OP-1")
def test_division_by_zero_writes_nothing(ctx: Any) -> None:
    for dtype in (DType.u8, DType.i8, DType.i64):
        with ctx.from_slice((3,), [7, 8, 9], dtype) as a, ctx.from_slice((3,), [1, 2, 0], dtype) as b:
            refused(ctx, DivisionByZero, "CONTEXT-ARITH-2", partial(ctx.div, a, b), a, b)
            refused(ctx, DivisionByZero, "CONTEXT-ARITH-2", partial(ctx.div, a, b, out=a), a, b)
            with ctx.zeros((1,), dtype) as zero:
                refused(ctx, DivisionByZero, "CONTEXT-ARITH-2", partial(ctx.div, a, zero), a)
    with ctx.ones((1,)) as x, ctx.zeros((1,)) as y, ctx.div(x, y) as z:
        assert z.item() == float("inf")


# -- out


@clause("CONTEXT-OP-2", "STORAGE-GEN-1")
@pytest.mark.parametrize("name", OPERATIONS)
def test_out(ctx: Any, name: str) -> None:
    call = getattr(ctx, name)
    with (
        ctx.from_slice((2, 2), [8, 6, 4, 2]) as a,
        ctx.from_slice((2,), [4, 2]) as b,
        ctx.full((2, 2), float("nan")) as out,
        call(a, b) as wanted,
    ):
        before = seen(ctx)
        assert call(a, b, out=out) is out
        assert (out.data_const().tobytes(), out.buffer.generation) == (wanted.data_const().tobytes(), 1)
        view = a.clone_view()  # another tensor on exactly a's elements
        assert call(a, b, out=view) is view
        assert (a.data_const().tobytes(), a.buffer.generation, b.buffer.generation) == (
            wanted.data_const().tobytes(),
            1,
            0,
        )
        view.deinit()
        assert seen(ctx) == before


@clause("CONTEXT-OP-2", "STORAGE-SHADOW-1")
def test_a_write_to_out_drops_the_shadow(impl: Any, ctx: Any) -> None:
    dropped: list[object] = []
    with ctx.ones((2,)) as a, ctx.ones((2,)) as out:
        out.buffer.set_host_shadow(impl.internal.storage_mod.HostShadow("data", dropped.append))
        ctx.add(a, a, out=out)
        assert dropped == ["data"]
        ctx.scale(out, 2.0, out=out)
        assert out.data_const().tolist() == [4, 4]


@clause("CONTEXT-OP-2", "CONTEXT-SCALE-1")
def test_outs_that_will_not_do(impl: Any, ctx: Any) -> None:
    raw = impl.internal.RawTensor
    with ctx.ones((2, 3)) as a, ctx.ones((3,)) as b, ctx.ones((2, 3), DType.f16) as half, ctx.ones((3, 2)) as turned:
        strided = turned.view_with_strides((2, 3), (1, 2))
        constant = raw.from_borrowed_const_slice((2, 3), np.ones(6, np.float32))
        repeated = ctx.broadcast_to(b, (2, 3))
        calls: list[Callable[[Any], Any]] = [
            *(lambda out, name=name: getattr(ctx, name)(a, b, out=out) for name in OPERATIONS),
            lambda out: ctx.scale(a, 2.0, out=out),
        ]
        for call in calls:
            for out, kind in (
                (3.0, DTypeMismatch),
                (np.ones((2, 3), np.float32), DTypeMismatch),
                (half, DTypeMismatch),
                (turned, ShapeMismatch),
                (b, ShapeMismatch),
                (constant, ReadOnlyStorage),
                (strided, UnsupportedView),
                (repeated, UnsupportedView),
            ):
                refused(ctx, kind, None, partial(call, out), a, b, turned)
        for view in (strided, constant, repeated):
            view.deinit()


@clause("CONTEXT-OP-2")
def test_overlaps(ctx: Any) -> None:
    with ctx.from_slice((12,), range(12)) as base:
        part = {start: base.view_with_strides_offset((4,), (1,), start) for start in (0, 1, 4)}
        spread = base.view_with_strides((4,), (2,))
        column = base.view_with_strides_offset((4, 1), (1, 1), 4)
        matrix = base.view_with_strides((4, 2), (2, 1))
        with ctx.ones((4,)) as other:
            for call in (
                lambda: ctx.add(part[1], other, out=part[0]),
                lambda: ctx.add(other, part[0], out=part[1]),
                lambda: ctx.add(part[0], part[1], out=part[0]),
                lambda: ctx.add(spread, other, out=part[4]),
                lambda: ctx.add(column, matrix, out=matrix),
                lambda: ctx.scale(part[0], 2.0, out=part[1]),
                lambda: ctx.scale(spread, 2.0, out=part[0]),
            ):
                refused(ctx, OverlappingMemory, "CONTEXT-OP-2", call, base)
            assert base.buffer.generation == 0
            ctx.add(part[0], other, out=part[4])  # beside each other is fine
            assert base.data_const().tolist() == [0, 1, 2, 3, 1, 2, 3, 4, 8, 9, 10, 11]
            ctx.add(part[4], part[4], out=part[4])
            assert base.data_const().tolist() == [0, 1, 2, 3, 2, 4, 6, 8, 8, 9, 10, 11]
        for view in (*part.values(), spread, column, matrix):
            view.deinit()


# -- scale, sum, cast


@clause("CONTEXT-SCALE-1")
def test_numbers_that_are_none(ctx: Any) -> None:
    with ctx.ones((2,)) as x, ctx.ones((2,), DType.i32) as n:
        for wrong in (None, "2", True, 1j, np.ones(1)):
            refused(ctx, DTypeMismatch, None, partial(ctx.scale, x, wrong), x)
        refused(ctx, InvalidDType, "CONTEXT-SCALE-1", lambda: ctx.scale(n, 2), n)
        for number in (2, np.int8(2), np.float16(2), np.float64(2)):
            with ctx.scale(x, number) as y:
                assert y.data_const().tolist() == [2, 2]


@clause("CONTEXT-SUM-1", "CONTEXT-SUM-2")
def test_axes_that_there_are_not(ctx: Any) -> None:
    with ctx.ones((2, 3)) as x, ctx.empty((2, 32), DType.q8_0) as blocks:
        for axis, kind in (
            (2, IndexOutOfBounds),
            (-1, IndexOutOfBounds),
            (1.0, InvalidInteger),
            (True, InvalidInteger),
        ):
            refused(ctx, kind, "CONTEXT-SUM-1", partial(ctx.sum, x, axis), x)
        refused(ctx, InvalidDType, "CONTEXT-SUM-2", lambda: ctx.sum(blocks))
        refused(ctx, DTypeMismatch, "CONTEXT-SUM-1", lambda: ctx.sum([1.0]))


@clause("CONTEXT-CAST-1")
def test_casts_that_there_are_not(ctx: Any) -> None:
    with ctx.ones((2, 32)) as x, ctx.empty((2, 32), DType.q8_0) as blocks:
        for dtype in ("f16", None, np.float16, DType.q8_0):
            refused(ctx, InvalidDType, None, partial(ctx.cast, x, dtype), x)
        refused(ctx, InvalidDType, None, lambda: ctx.cast(blocks, DType.f32))
        refused(ctx, DTypeMismatch, "CONTEXT-CAST-1", lambda: ctx.cast(np.ones(3), DType.f32))


# -- memory


MAKING: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda ctx, x: ctx.add(x, x),
    "div": lambda ctx, x: ctx.div(x, x),
    "scale": lambda ctx, x: ctx.scale(x, 2.0),
    "sum": lambda ctx, x: ctx.sum(x),
    "sum 0": lambda ctx, x: ctx.sum(x, 0),
    "cast": lambda ctx, x: ctx.cast(x, DType.f64),
    "materialize": lambda ctx, x: ctx.materialize(x),
    "zeros": lambda ctx, x: ctx.zeros((2, 3), DType.i8),
    "from_slice": lambda ctx, x: ctx.from_slice((2,), [1, 2]),
    "prepare_as": lambda ctx, x: ctx.prepare_as(DType.f16, x),
    "store_as": lambda ctx, x: ctx.store_as(DType.f16, x),
}


@clause("CONTEXT-OP-1", "CONTEXT-STORE-1", "POOL-MEMORY-1", "STORAGE-FAULT-1")
@pytest.mark.parametrize("name", MAKING)
def test_each_allocation_may_fail(impl: Any, name: str) -> None:
    for n in range(1, 30):
        with impl.ExecContext() as ctx, ctx.from_slice((2, 3), range(1, 7)) as x:
            before = seen(ctx), x.buffer.refs
            impl.internal.fail_allocation(n)
            try:
                made = MAKING[name](ctx, x)
            except OutOfMemory:
                made = None
            finally:
                impl.internal.fail_allocation(None)
            if made is not None:
                made.deinit()
                break
            assert (seen(ctx), x.buffer.refs) == before, f"allocation {n} of {name}"
            assert x.data_const().tolist() == [1, 2, 3, 4, 5, 6]
    assert 1 < n < 29
