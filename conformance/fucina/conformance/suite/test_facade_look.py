"""Looking at tensors: shapes, elements, what they look like, the raw tensor below, arrays, copies, operators."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.suite.blocks import FORMATS, sizes
from fucina.conformance.suite.casts import SCALARS, STORAGE
from fucina.conformance.suite.tagged import bits, constant, f32, held, pattern_noise
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    ExportRefused,
    FucinaError,
    InvalidShape,
    InvalidTag,
    NotCopyable,
    ReadOnlyStorage,
    UnsupportedView,
    UseAfterDeinit,
    UseAfterScope,
)

each_scalar = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- shape and elements


@clause("FACADE-LOOK-1")
@each_scalar
def test_shapes_and_elements(impl: Any, ctx: Any, dtype: DType) -> None:
    codes = pattern_noise(dtype, (2, 3, 4))
    with constant(impl, ctx, dtype, codes) as x:
        assert (type(x.shape), x.shape, len(x)) == (tuple, (2, 3, 4), 2)
        assert [x.dim(tag) for tag in "abc"] == [2, 3, 4]
        assert_raises(InvalidTag, None, lambda: x.dim("d"))
        before = x.as_raw_tensor().buffer.generation
        flat = x.data_const()
        assert flat.dtype == STORAGE[dtype]
        assert flat.shape == (24,)
        assert not flat.flags.writeable
        assert_bits(flat.view(PATTERN[dtype]), codes.reshape(-1), what="data_const", clause="FACADE-LOOK-1")
        assert x.as_raw_tensor().buffer.generation == before
        writable = x.data()
        assert x.as_raw_tensor().buffer.generation == before + 1
        writable.view(PATTERN[dtype])[5] ^= 1
        codes.reshape(-1)[5] ^= 1
        assert_bits(bits(x), codes, what="after a write", clause="FACADE-LOOK-1")
        for call in (x.item, lambda: bool(x), lambda: int(x), lambda: float(x)):
            assert_raises(InvalidShape, None, call)
        with x.transpose(ctx, "a", "c") as view:
            assert_raises(UnsupportedView, None, view.data_const)
            assert_raises(UnsupportedView, None, view.data)
        del flat, writable


@clause("FACADE-LOOK-1")
def test_scalars(impl: Any, ctx: Any) -> None:
    with impl.Tensor().scalar(ctx, 2.5) as x, impl.Tensor(dtype=DType.i64).scalar(ctx, -(1 << 63)) as i:
        assert (x.shape, x.item(), float(x), int(x), bool(x)) == ((), 2.5, 2.5, 2, True)
        assert (i.item(), int(i), bool(i), float(i)) == (-(1 << 63), -(1 << 63), True, -(2.0**63))
        assert type(x.item()) is type(float(x)) is float
        assert type(i.item()) is type(int(i)) is int
        assert_raises(DTypeMismatch, None, lambda: len(x))
        assert_raises(InvalidTag, None, lambda: x.dim(0))
        assert x.data_const().tolist() == [2.5]
    for dtype, element, wanted in (
        (DType.bool, False, (False, 0, 0.0)),
        (DType.bf16, impl.Bf16.from_f32(-1.5), (True, -1, -1.5)),
        (DType.f8_e4m3, impl.F8E4M3(0x80), (False, 0, -0.0)),
        (DType.f16, 0.0, (False, 0, 0.0)),
        (DType.u8, 200, (True, 200, 200.0)),
    ):
        with impl.Tensor(dtype=dtype).scalar(ctx, element) as x:
            assert (bool(x), int(x), float(x)) == wanted
            assert type(x.item()) is type(element)
            assert x.item() == element
            assert math.copysign(1, float(x)) == math.copysign(1, wanted[2])
    with impl.Tensor().scalar(ctx, float("nan")) as x:
        assert math.isnan(x.item())
        assert bool(x)


@clause("FACADE-LOOK-1")
def test_the_only_element_of_any_layout(impl: Any, ctx: Any) -> None:
    x = f32(impl, ctx, np.arange(6).reshape(2, 3), ("r", "c"))
    with x, x.narrow(ctx, "r", 1, 1) as row, row.narrow(ctx, "c", 1, 1) as one:
        assert (one.shape, one.item(), float(one), len(one)) == ((1, 1), 4.0, 4.0, 1)


@clause("FACADE-LOOK-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_looking_at_blocks(impl: Any, ctx: Any, dtype: DType) -> None:
    n, size = sizes(dtype)
    with impl.Tensor("r", "d", dtype=dtype).from_blocks(ctx, (2, n), bytes(2 * size)) as w:
        assert (w.shape, w.dim("d"), len(w), w.requires_grad, w.scope_owned) == ((2, n), n, 2, False, False)
        assert w.data_const().shape == (2,)
        assert w.data_const().tobytes() == bytes(2 * size)
        assert np.asarray(w).shape == (2, 1)
        assert repr(type(w)) in repr(w)
        assert w.as_raw_tensor().storage_len() == 2


@clause("FACADE-LOOK-1", "FACADE-OWN-1")
def test_nothing_can_be_seen_of_what_has_ended(impl: Any, ctx: Any) -> None:
    ended = f32(impl, ctx, [1.0, 2.0])
    ended.deinit()
    with f32(impl, ctx, [1.0, 2.0]) as x, ctx.exec_scope():
        closed = x.add(ctx, x)
    looks: tuple[Any, ...] = (
        *(lambda t: t.shape, lambda t: t.dim("a"), len, lambda t: t.data(), lambda t: t.data_const()),
        *(lambda t: t.item(), bool, int, float, lambda t: t.requires_grad, np.asarray, lambda t: t.as_raw_tensor()),
        *(lambda t: t.grad(ctx), lambda t: t.grad_view(ctx), lambda t: t.zero_grad(), lambda t: t.__dlpack__()),
        *(copy.copy, pickle.dumps, lambda t: t.__enter__(), lambda t: t + t, lambda t: -t),
    )
    for look in looks:
        assert_raises(UseAfterDeinit, None, partial(look, ended))
        assert_raises(UseAfterScope, None, partial(look, closed))
    assert repr(ended) == '<Tensor("a") deinited>'
    assert repr(closed) == '<Tensor("a") scope closed>'


# -- what it looks like


@clause("FACADE-LOOK-2")
def test_what_it_looks_like(impl: Any, ctx: Any) -> None:
    kind = impl.Tensor("r", "c", dtype=DType.f16)
    with (
        kind.ones(ctx, (2, 3)) as x,
        kind.variable_from_slice(ctx, (2, 3), range(6)) as w,
        impl.Tensor().scalar(ctx, 1) as s,
    ):
        assert repr(x) == '<Tensor("r", "c", dtype=DType.f16) shape=(2, 3) owned>'
        assert repr(w) == '<Tensor("r", "c", dtype=DType.f16) shape=(2, 3) requires_grad owned>'
        assert repr(s) == "<Tensor() shape=() owned>" == str(s)
        with ctx.exec_scope():
            y, z = s.add(ctx, s), w.add(ctx, w)
            assert repr(y) == "<Tensor() shape=() scope-owned>"
            assert repr(z) == '<Tensor("r", "c", dtype=DType.f16) shape=(2, 3) requires_grad scope-owned>'
            y.deinit()
            assert repr(y) == "<Tensor() shape=() scope-owned>"
        assert repr(y) == "<Tensor() scope closed>"
    replaced, raw = impl.Tensor("d").ones(ctx, (2,)), ctx.ones((2,))
    consumed = ctx.replace(replaced, impl.Tensor("d").constant(ctx, raw))
    with consumed.take_scale_no_grad(ctx, 2.0):
        assert repr(replaced) == repr(consumed) == '<Tensor("d") replaced>'


# -- the raw tensor below


@clause("FACADE-RAW-1")
@each_scalar
def test_a_raw_tensor_that_owns_nothing(impl: Any, ctx: Any, dtype: DType) -> None:
    base = constant(impl, ctx, dtype, pattern_noise(dtype, (3, 4)))
    with base, base.transpose(ctx, "a", "b") as turned, turned.narrow(ctx, "b", 1, 2) as x:
        raw = x.as_raw_tensor()
        assert type(raw) is impl.internal.tensor_mod.TensorOf(dtype)
        assert (tuple(raw.shape), tuple(raw.strides), raw.offset) == ((2, 3), (1, 4), 1)
        assert (raw.buffer.refs, raw.scope_owned) == (3, False)
        raw.deinit()
        raw.deinit()
        assert raw.buffer.refs == base.as_raw_tensor().buffer.refs == 3
        with ctx.clone(raw) as twin:
            assert_bits(
                twin.data_const().view(PATTERN[dtype]), bits(x).reshape(-1), what="clone", clause="FACADE-RAW-1"
            )
        del raw
        gc.collect()
        assert base.as_raw_tensor().buffer.refs == 3
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-RAW-1")
def test_a_raw_tensor_ends_with_its_tensor(impl: Any, ctx: Any) -> None:
    x = f32(impl, ctx, [1.0, 2.0])
    raw = x.as_raw_tensor()
    with ctx.exec_scope():
        owned = x.add(ctx, x)
        below = owned.as_raw_tensor()
        assert below.buffer.refs == 1
        below.deinit()
        assert below.data_const().tolist() == [2.0, 4.0]
    x.deinit()
    for use in (lambda t: t.shape, lambda t: t.data_const(), lambda t: t.buffer, lambda t: ctx.add(t, t)):
        assert_raises(UseAfterDeinit, None, partial(use, raw))
        assert_raises(UseAfterScope, None, partial(use, below))
    raw.deinit()
    below.deinit()


@clause("FACADE-RAW-1")
def test_a_raw_tensor_outlives_the_name_of_its_tensor(impl: Any, ctx: Any) -> None:
    """What was collected has ended: the raw tensor either keeps it, or says so."""
    x = f32(impl, ctx, [1.0, 2.0])
    with x.scale(ctx, 2.0) as y:
        raw = y.as_raw_tensor()
        assert raw.data_const().tolist() == [2.0, 4.0]
        assert raw.buffer.refs == 1
    assert_raises(FucinaError, None, lambda: raw.shape)
    x.deinit()


# -- arrays and other libraries


@clause("FACADE-EXPORT-1", "TENSOR-ARRAY-1")
@each_scalar
def test_arrays(impl: Any, ctx: Any, dtype: DType) -> None:
    codes = pattern_noise(dtype, (3, 4))
    with (
        constant(impl, ctx, dtype, codes) as x,
        x.transpose(ctx, "a", "b") as t,
        t.broadcast_to(ctx, (2, 4, 3), ("n", "b", "a")) as r,
    ):
        for tensor, wanted in ((x, codes), (t, codes.T), (r, np.broadcast_to(codes.T, (2, 4, 3)))):
            array = np.asarray(tensor)
            assert array.shape == tensor.shape
            assert array.dtype == STORAGE[dtype]
            assert_bits(
                np.ascontiguousarray(array).view(PATTERN[dtype]), np.ascontiguousarray(wanted), clause="FACADE-EXPORT-1"
            )
            assert array.flags.writeable is (tensor is not r)
            if dtype is not DType.bool and dtype not in (DType.bf16, DType.f8_e4m3, DType.f8_e5m2):
                other: Any = np.from_dlpack(tensor)
                assert other.shape == tensor.shape
                assert other.ctypes.data == array.ctypes.data
            if sys.version_info >= (3, 12):
                view = memoryview(tensor)  # type: ignore[arg-type]  # from 3.12 on it is a buffer
                assert view.shape == tensor.shape
                del view
            assert tensor.__dlpack_device__() == (1, 0)
            other = None
        del array


@clause("FACADE-EXPORT-1")
def test_a_scalar_is_an_array_without_axes(impl: Any, ctx: Any) -> None:
    with impl.Tensor().scalar(ctx, 2.5) as x:
        array = np.asarray(x)
        assert (array.shape, array.item()) == ((), 2.5)
        assert np.from_dlpack(x).shape == ()
        array[...] = 3.5
        assert x.item() == 3.5
        del array


@clause("FACADE-EXPORT-1")
def test_an_export_pins(impl: Any, ctx: Any) -> None:
    x = f32(impl, ctx, [[1.0, 2.0], [3.0, 4.0]])
    for export in (
        np.asarray,
        lambda t: t.data(),
        lambda t: t.data_const(),
        lambda t: t.__dlpack__(max_version=(1, 0)),
    ):
        before = x.as_raw_tensor().buffer.refs
        kept = export(x)
        assert x.as_raw_tensor().buffer.refs == before + 1
        del kept
        assert x.as_raw_tensor().buffer.refs == before
    array = np.asarray(x)
    x.deinit()
    assert (array.tolist(), ctx.rt.buffers.outstanding_buffers()) == ([[1.0, 2.0], [3.0, 4.0]], 1)
    del array
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-EXPORT-1", "TENSOR-DLPACK-1")
def test_what_is_read_only_stays_so(impl: Any, ctx: Any) -> None:
    source = np.ones(2, np.float32)
    with impl.Tensor("x").from_borrowed_const_slice(ctx, (2,), source) as x:
        assert not np.asarray(x).flags.writeable
        assert_raises(ReadOnlyStorage, None, x.data)
        assert_raises(ExportRefused, None, x.__dlpack__)
        with x.narrow(ctx, "x", 0, 1) as view:
            assert_raises(ReadOnlyStorage, None, view.data)


# -- copies


@clause("FACADE-COPY-1")
@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_constants_are_copied_by_value(impl: Any, ctx: Any, dtype: DType) -> None:
    if dtype in SCALARS:
        made = constant(impl, ctx, dtype, pattern_noise(dtype, (2, 3)))
    else:
        n, size = sizes(dtype)
        made = impl.Tensor("a", "b", dtype=dtype).from_blocks(ctx, (2, n), bytes(i % 251 for i in range(2 * size)))
    before = ctx.rt.buffers.outstanding_buffers()
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(again) is type(made)
        assert again.shape == made.shape
        assert again.data_const().tobytes() == made.data_const().tobytes()
        assert again.as_raw_tensor().buffer.address != made.as_raw_tensor().buffer.address
        assert (ctx.rt.buffers.outstanding_buffers(), again.requires_grad, again.scope_owned) == (before, False, False)
        again.deinit()
        assert_raises(UseAfterDeinit, None, again.data_const)
    made.deinit()


@clause("FACADE-COPY-1")
def test_a_copy_of_a_view_is_small(impl: Any, ctx: Any) -> None:
    with (
        impl.Tensor("r", "c").zeros(ctx, (1000, 50)) as x,
        x.narrow(ctx, "r", 5, 2) as part,
        part.transpose(ctx, "r", "c") as t,
        t.narrow(ctx, "c", 7, 3) as small,
    ):
        text = pickle.dumps(small)
        assert len(text) < 1000
        with pickle.loads(text) as again:
            raw = again.as_raw_tensor()
            assert (again.shape, again.axis_tags, raw.offset, raw.is_contiguous()) == ((3, 2), ("c", "r"), 0, True)
    for scalar in (impl.Tensor().scalar(ctx, 2.5),):
        with scalar, copy.copy(scalar) as again:
            assert again.item() == 2.5


@clause("FACADE-COPY-1")
def test_what_tracks_gradients_is_not_copied(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [1.0, 2.0], grad=True) as w, ctx.exec_scope():
        before = ctx.rt.buffers.outstanding_buffers()
        for tensor in (w, w.scale(ctx, 2.0)):
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                assert_raises(NotCopyable, "FACADE-COPY-1", partial(call, tensor))
        assert ctx.rt.buffers.outstanding_buffers() == before + 1


# -- operators


@clause("FACADE-PYTHON-1")
def test_operators(impl: Any, ctx: Any) -> None:
    with f32(impl, ctx, [[6.0, 8.0], [1.0, 2.0]]) as x, f32(impl, ctx, [3.0, 4.0], ("b",)) as y, ctx.exec_scope():
        for got, wanted in (
            *((x + y, x.add(ctx, y)), (x - y, x.sub(ctx, y)), (x * y, x.mul(ctx, y)), (x / y, x.div(ctx, y))),
            *((x @ y, x.dot(ctx, y)), (x + 2, x.add_scalar(ctx, 2)), (2.5 + x, x.add_scalar(ctx, 2.5))),
            *((x - 2.5, x.add_scalar(ctx, -2.5)), (x * 3, x.scale(ctx, 3)), (0.1 * x, x.scale(ctx, 0.1))),
            *((-x, x.scale(ctx, -1.0)), (x * np.float32(3), x.scale(ctx, 3))),
        ):
            assert type(got) is type(wanted)
            assert got.scope_owned
            assert_bits(bits(got), bits(wanted), clause="FACADE-PYTHON-1")


@clause("FACADE-PYTHON-1", "POLICY-SCALAR-1")
def test_operators_with_numbers_of_numpy(impl: Any, ctx: Any) -> None:
    """The negative of an integer is that of the number, also where its own type has none."""
    kinds = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    numbers: list[Any] = [kind(value) for kind in kinds for value in (np.iinfo(kind).min, 0, 1, np.iinfo(kind).max)]
    numbers += [kind(value) for kind in (np.float16, np.float32, np.float64) for value in (-0.0, 1.5, np.inf)]
    with f32(impl, ctx, [3.0, -4.0]) as x, ctx.exec_scope():
        for number in numbers:
            plain = number.item()
            for got, wanted in (
                *((x - number, x.add_scalar(ctx, -plain)), (x + number, x.add_scalar(ctx, plain))),
                *((number + x, x.add_scalar(ctx, plain)), (x * number, x.scale(ctx, plain))),
                (number * x, x.scale(ctx, plain)),
            ):
                assert_bits(bits(got), bits(wanted), clause="FACADE-PYTHON-1")


@clause("FACADE-PYTHON-1")
def test_what_operators_do_not_do(impl: Any, ctx: Any) -> None:
    def no_context() -> Any:
        with f32(impl, ctx, [3.0]) as source:
            return copy.copy(source)

    with (
        impl.ExecContext() as another,
        f32(impl, ctx, [3.0]) as x,
        f32(impl, another, [3.0]) as stranger,
        no_context() as lone,
    ):
        before = held(ctx)
        for call in (
            *(lambda: 2.0 - x, lambda: 2.0 / x, lambda: x / 2.0, lambda: 2.0 @ x, lambda: x @ 2.0, lambda: x**2),
            *(lambda: x + "1", lambda: x * None, lambda: [1.0, *x], lambda: x + np.ones(1, np.float32), lambda: x // x),
            *(lambda: x % x, lambda: x + 1j, lambda: x < x, lambda: x + True, lambda: abs(x), lambda: +x),
            *(lambda: x + stranger, lambda: stranger * x, lambda: x @ stranger, lambda: x + lone, lambda: lone + x),
            *(lambda: lone + lone, lambda: -lone, lambda: lone * 2.0, lambda: 2.0 + lone),
        ):
            assert_raises(TypeError, None, call)
        assert held(ctx) == before
        assert x == x
        assert x != stranger
        assert hash(x) == hash(x)
        assert (x == 3.0) is False
        with f32(impl, ctx, [3.0]) as twin:
            assert x != twin
            assert len({x, twin}) == 2


@clause("FACADE-PYTHON-1", "POLICY-BRANCH-1")
def test_operators_keep_the_policy(impl: Any, ctx: Any) -> None:
    with impl.Tensor("d", dtype=DType.i32).ones(ctx, (2,)) as x:
        with x + x as y:
            assert y.data_const().tolist() == [2, 2]
        assert_raises(TypeError, None, lambda: x * 2)
        assert_raises(TypeError, None, lambda: x + 2)
        assert_raises(TypeError, None, lambda: -x)
