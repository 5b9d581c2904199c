"""Making tensors: every constructor, its elements bit for bit, what it consumes, and its errors."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.strategies import patterns
from fucina.conformance.suite import exact
from fucina.conformance.suite.blocks import FORMATS, sizes
from fucina.conformance.suite.casts import SCALARS, STORAGE, VALUE_TYPES, scalar_form
from fucina.conformance.suite.tagged import bits, constant, held, state, type_of
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    InvalidTag,
    Overflow,
    ReadOnlyStorage,
    UnsupportedView,
    UseAfterDeinit,
)

each_scalar = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
F32 = DType.f32


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- from a raw tensor


@clause("FACADE-NEW-1")
@each_scalar
@pytest.mark.parametrize("name", ["constant", "from_tensor", "variable"])
def test_a_raw_tensor_is_consumed(impl: Any, ctx: Any, dtype: DType, name: str) -> None:
    kind = impl.Tensor("row", "col", dtype=dtype)
    raw = ctx.ones((2, 3), dtype)
    before = raw.buffer.address
    if name == "variable" and dtype not in (DType.f16, DType.bf16, F32):
        assert_raises(InvalidDType, "POLICY-BRANCH-1", partial(kind.variable, ctx, raw))
        assert raw.buffer.refs == 1
        raw.deinit()
        return
    tensor = getattr(kind, name)(ctx, raw)
    assert (type(tensor), tensor.shape, tensor.scope_owned) == (kind, (2, 3), False)
    assert tensor.requires_grad is (name == "variable")
    inside = tensor.as_raw_tensor().buffer
    assert (inside.address, inside.refs) == (before, 1)
    for use in (raw.data_const, lambda: raw.shape, lambda: raw.buffer, lambda: kind.constant(ctx, raw), raw.clone_view):
        assert_raises(UseAfterDeinit, None, use)
    raw.deinit()
    raw.deinit()
    assert (inside.refs, ctx.rt.buffers.outstanding_buffers()) == (1, 1)
    tensor.deinit()
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("FACADE-NEW-1")
def test_a_raw_tensor_of_any_layout(impl: Any, ctx: Any) -> None:
    with ctx.from_slice((4, 6), range(24)) as base:
        values = np.arange(24, dtype=np.float32)
        for shape, strides, delta in (
            ((2, 3), (1, 6), 0),
            ((3,), (0,), 5),
            ((2, 2, 2), (12, 2, 1), 1),
            ((3, 3), (1, 1), 2),
        ):
            raw = base.view_with_strides_offset(shape, strides, delta)
            with type_of(impl, F32, len(shape)).constant(ctx, raw) as tensor:
                kept = tensor.as_raw_tensor()
                assert (tuple(kept.shape), tuple(kept.strides), kept.offset) == (shape, strides, delta)
                wanted = np.lib.stride_tricks.as_strided(values[delta:], shape, tuple(4 * step for step in strides))
                assert_bits(bits(tensor), np.ascontiguousarray(wanted), what=str(strides), clause="FACADE-NEW-1")
                assert base.buffer.refs == 2
            assert base.buffer.refs == 1


@clause("FACADE-NEW-1")
def test_a_raw_tensor_that_is_refused_is_as_before(impl: Any, ctx: Any) -> None:
    kind, scalar = impl.Tensor("row", "col"), impl.Tensor()
    raw, half, ended, one = ctx.ones((2, 3)), ctx.ones((2, 3), DType.f16), ctx.ones((2, 3)), ctx.ones((1, 1))
    ended.deinit()
    with kind.ones(ctx, (2, 3)) as tensor:
        for name in ("constant", "from_tensor", "variable"):
            for wrong in (None, [[1.0]], np.ones((2, 3), np.float32), tensor, ctx):
                assert_raises(DTypeMismatch, "FACADE-NEW-1", partial(getattr(kind, name), ctx, wrong), what=repr(wrong))
            assert_raises(UseAfterDeinit, None, partial(getattr(kind, name), ctx, ended))
            assert_raises(DTypeMismatch, "FACADE-NEW-1", partial(getattr(kind, name), ctx, half))
            for other in (impl.Tensor("row"), impl.Tensor("a", "b", "c"), impl.Tensor(1), scalar):
                assert_raises(InvalidShape, "FACADE-NEW-1", partial(getattr(other, name), ctx, raw), what=repr(other))
            assert_raises(InvalidShape, "FACADE-NEW-1", partial(getattr(scalar, name), ctx, one))
            view = tensor.as_raw_tensor()
            assert_raises(UnsupportedView, "FACADE-NEW-1", partial(getattr(kind, name), ctx, view))
            assert [t.buffer.refs for t in (raw, half, one, view)] == [1, 1, 1, 1]
    with ctx.exec_scope():
        owned = ctx.ones((2, 3))
        ctx.reserve_scope_slot()
        ctx.adopt_scope_value_assume_capacity(owned, None, None)
        for name in ("constant", "from_tensor", "variable"):
            assert_raises(Exception, None, partial(getattr(kind, name), ctx, owned))
        assert (owned.buffer.refs, owned.scope_owned) == (1, True)
    for t in (raw, half, one):
        t.deinit()


@clause("FACADE-NEW-1")
def test_a_scalar_of_a_raw_tensor_of_one(impl: Any, ctx: Any) -> None:
    with impl.Tensor().constant(ctx, ctx.scalar(2.5)) as x:
        assert (x.shape, x.item()) == ((), 2.5)
    base = ctx.from_slice((3,), [1, 2, 3])
    with base, impl.Tensor().constant(ctx, base.view_with_strides_offset((1,), (1,), 2)) as x:
        assert (x.item(), base.buffer.refs) == (3.0, 2)


# -- from values


@clause("FACADE-NEW-2", "FACADE-NEW-3")
@each_scalar
def test_copies_of_patterns(impl: Any, ctx: Any, dtype: DType) -> None:
    width = 8 * PATTERN[dtype].itemsize
    codes = [0, 1, 1, 0] if dtype is DType.bool else [0, 1, (1 << width) - 1, 1 << (width - 1)]
    array = np.array(codes, PATTERN[dtype]).view(STORAGE[dtype])
    for kind, shape in ((impl.Tensor("x", dtype=dtype), (4,)), (impl.Tensor(2, dtype=dtype), (2, 2))):
        source = array.copy()
        with kind.from_slice(ctx, shape, source) as x:
            source.view(np.uint8)[:] = 0
            assert (x.shape, x.requires_grad, x.scope_owned) == (shape, False, False)
            assert x.data_const().view(PATTERN[dtype]).tolist() == codes
            raw = x.as_raw_tensor()
            assert (raw.is_contiguous(), raw.offset, raw.buffer.refs, ctx.rt.buffers.outstanding_buffers()) == (
                True,
                0,
                1,
                1,
            )
    turned = np.array(codes, PATTERN[dtype]).view(STORAGE[dtype]).reshape(2, 2).T
    with impl.Tensor(1, dtype=dtype).from_slice(ctx, (4,), turned) as x:
        assert x.data_const().view(PATTERN[dtype]).tolist() == [codes[i] for i in (0, 2, 1, 3)]


@clause("FACADE-NEW-2", "AUTOGRAD-LEAF-1")
@pytest.mark.parametrize("dtype", [DType.f16, DType.bf16, F32], ids=lambda d: d.name)
def test_leaves_of_values(impl: Any, ctx: Any, dtype: DType) -> None:
    kind = impl.Tensor("x", dtype=dtype)
    with kind.variable_from_slice(ctx, (2,), [1.5, -2.0]) as x:
        assert (x.requires_grad, x.scope_owned, x.grad(ctx)) == (True, False, None)
        assert exact.decode(dtype, bits(x)).tolist() == [1.5, -2.0]
    with ctx.exec_scope(), ctx.no_grad(), kind.variable_from_slice(ctx, (2,), [1.5, -2.0]) as x:
        assert (x.requires_grad, x.scope_owned) == (True, False), "a leaf is one whatever is open"


@clause("FACADE-NEW-2")
@each_scalar
def test_borrows(impl: Any, ctx: Any, dtype: DType) -> None:
    kind = impl.Tensor("x", "y", dtype=dtype)
    source = np.zeros(6, STORAGE[dtype])
    one = np.ones(1, np.uint8)[0] if STORAGE[dtype].kind != "f" else 1
    with kind.from_borrowed_slice(ctx, (2, 3), source) as x, kind.from_borrowed_const_slice(ctx, (2, 3), source) as y:
        assert ctx.rt.buffers.outstanding_buffers() == 0
        x.data()[4] = one
        assert source[4] == one
        assert y.data_const()[4] == one
        assert_raises(ReadOnlyStorage, None, y.data)
        assert (x.requires_grad, y.requires_grad) == (False, False)
        assert x.as_raw_tensor().buffer.address == source.ctypes.data
    room = bytearray(8)
    with impl.Tensor("x").from_borrowed_slice(ctx, (2,), memoryview(room).cast("f")):
        assert_raises(BufferError, None, partial(room.append, 0))
    gc.collect()
    room.append(0)


@clause("FACADE-NEW-2")
def test_errors_of_values(impl: Any, ctx: Any) -> None:
    kind, before = impl.Tensor("x", "y"), held(ctx)
    values = np.ones(6, np.float32)
    for name in ("from_slice", "variable_from_slice", "from_borrowed_slice", "from_borrowed_const_slice"):
        make = getattr(kind, name)
        for shape, wrong in (
            *(((6,), InvalidShape), ((), InvalidShape), ((1, 2, 3), InvalidShape), ((0, 3), InvalidShape)),
            *(((2, -3), InvalidShape), ((2.0, 3), InvalidInteger), (6, InvalidInteger), ("ab", InvalidInteger)),
            *(((1 << 33, 1 << 33), Overflow), ((2, 2), InvalidDataLength), ((2, 4), InvalidDataLength)),
        ):
            assert_raises(wrong, None, partial(make, ctx, shape, values), what=f"{name} {shape}")
        assert_raises(DTypeMismatch, None, partial(make, ctx, (2, 3), np.ones(6)), what=name)
        assert_raises(DTypeMismatch, None, partial(make, ctx, (2, 3), None), what=name)
    assert_raises(ReadOnlyStorage, None, lambda: kind.from_borrowed_slice(ctx, (1, 1), b"\0\0\0\0"))
    assert_raises(UnsupportedView, None, lambda: kind.from_borrowed_slice(ctx, (2, 3), np.ones(12, np.float32)[::2]))
    assert_raises(InvalidShape, None, lambda: impl.Tensor().from_slice(ctx, (1,), [1.0]))
    assert held(ctx) == before


# -- elements of bf16 and f8


@clause("FACADE-NEW-3", "BRIDGE-VALUE-1")
@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=lambda d: d.name)
@given(data=st.data())
def test_elements_are_values(impl: Any, dtype: DType, data: st.DataObject) -> None:
    element = getattr(impl, VALUE_TYPES[dtype])
    number = data.draw(st.one_of(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False), st.floats(width=16)))
    code = data.draw(patterns(dtype))
    once = exact.rounded(F32, number)
    wanted = element.from_f32(once).bits
    kind, scalar = impl.Tensor("x", dtype=dtype), impl.Tensor(dtype=dtype)
    with impl.ExecContext() as ctx:
        with kind.from_slice(ctx, (3,), [element(code), number, float(once)]) as x:
            got = bits(x).tolist()
            assert got[0] == code
            assert number != number or got[1:] == [wanted, wanted], f"FACADE-NEW-3: {number!r}"
            assert x.data_const().dtype == STORAGE[dtype]
            with kind.full_like(ctx, x, element(code)) as y, kind.full(ctx, (2,), element(code)) as z:
                assert set(bits(y).tolist()) == set(bits(z).tolist()) == {code}
        with scalar.scalar(ctx, element(code)) as x:
            assert (type(x.item()), x.item().bits, x.item()) == (element, code, element(code))
        if number == number:
            with scalar.scalar(ctx, number) as x, kind.full(ctx, (2,), number) as y:
                assert (x.item().bits, bits(y).tolist()) == (wanted, [wanted] * 2)


@clause("FACADE-NEW-3")
@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=lambda d: d.name)
def test_an_int_could_be_either(impl: Any, ctx: Any, dtype: DType) -> None:
    kind, other = impl.Tensor("x", dtype=dtype), impl.F8E5M2 if dtype is not DType.f8_e5m2 else impl.Bf16
    with kind.zeros(ctx, (1,)) as x:
        for wrong in (1, 0, True, np.uint8(1), np.int64(0), "1", None, 1j, other(0)):
            for call in (
                partial(kind.from_slice, ctx, (1,), [wrong]),
                partial(kind.full, ctx, (1,), wrong),
                partial(kind.full_like, ctx, x, wrong),
                partial(impl.Tensor(dtype=dtype).scalar, ctx, wrong),
            ):
                assert_raises(DTypeMismatch, None, call, what=repr(wrong))


# -- filled


@clause("FACADE-NEW-4")
@each_scalar
def test_filled(impl: Any, ctx: Any, dtype: DType) -> None:
    kind, code = impl.Tensor("x", "y", dtype=dtype), impl.dtype.one(dtype)
    one, zero = (int(np.array([v], STORAGE[dtype]).view(PATTERN[dtype])[0]) for v in (code, impl.dtype.zero(dtype)))
    value = getattr(impl, VALUE_TYPES[dtype])(one) if dtype in VALUE_TYPES else scalar_form(dtype, one)
    with impl.Tensor("x", "y").ones(ctx, (2, 3)) as other, other.transpose(ctx, "x", "y") as view:
        for make, wanted in (
            (partial(kind.zeros, ctx, (2, 3)), zero),
            (partial(kind.ones, ctx, (2, 3)), one),
            (partial(kind.full, ctx, (2, 3), value), one),
            (partial(kind.zeros_like, ctx, other), zero),
            (partial(kind.ones_like, ctx, other), one),
            (partial(kind.full_like, ctx, other, value), one),
        ):
            dirty = ctx.empty((64,), dtype)
            dirty.buffer.wait_mutable().view(np.uint8)[:] = 1 if dtype is DType.bool else 0xFF
            dirty.deinit()
            with make() as x:
                assert (type(x), x.shape, x.requires_grad, x.scope_owned) == (kind, (2, 3), False, False)
                assert bits(x).reshape(-1).tolist() == [wanted] * 6
        with kind.empty(ctx, (2, 3)) as x, kind.empty_like(ctx, other) as y:
            assert x.shape == y.shape == (2, 3)
            assert x.as_raw_tensor().is_contiguous()
        for name, rest in (("empty_like", ()), ("zeros_like", ()), ("ones_like", ()), ("full_like", (value,))):
            assert_raises(InvalidTag, "FACADE-NEW-4", partial(getattr(kind, name), ctx, view, *rest), what=name)
    scalar = impl.Tensor(dtype=dtype)
    with scalar.scalar(ctx, value) as x, scalar.ones(ctx, ()) as y, scalar.ones_like(ctx, x) as z:
        assert [bits(t).reshape(-1).tolist() for t in (x, y, z)] == [[one]] * 3
        assert tuple(x.as_raw_tensor().shape) == (1,)
    assert_raises(InvalidShape, None, partial(kind.scalar, ctx, value))


@clause("FACADE-NEW-4", "FACADE-NEW-3")
def test_values_are_rounded_once(impl: Any, ctx: Any) -> None:
    for dtype, value in (
        (DType.f16, 0.1),
        (DType.f16, 1 + 2**-11 + 2**-40),
        (F32, 0.1),
        (DType.f64, 0.1),
        (DType.f16, 7),
    ):
        with impl.Tensor("x", dtype=dtype).full(ctx, (2,), value) as x:
            assert set(exact.decode(dtype, bits(x)).tolist()) == {exact.rounded(dtype, float(value))}
    for dtype, wrong, kind in (
        *((DType.u8, 256, Overflow), (DType.i8, -129, Overflow), (DType.u8, 1.0, DTypeMismatch)),
        *(
            (DType.bool, 1, DTypeMismatch),
            (F32, True, DTypeMismatch),
            (F32, "1", DTypeMismatch),
            (F32, None, DTypeMismatch),
        ),
    ):
        assert_raises(kind, None, partial(impl.Tensor("x", dtype=dtype).full, ctx, (2,), wrong))
    assert_raises(DTypeMismatch, None, partial(impl.Tensor("x").zeros_like, ctx, np.zeros(2)))


# -- blocks


@clause("FACADE-NEW-8", "SHAPE-COUNT-2")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_blocks(impl: Any, ctx: Any, dtype: DType) -> None:
    n, size = sizes(dtype)
    kind = impl.Tensor("row", "d", dtype=dtype)
    payload = bytearray(i % 251 for i in range(6 * size))
    structs = np.frombuffer(bytes(payload), impl.dtype.storage(dtype))
    with (
        kind.from_blocks(ctx, (2, 3 * n), payload) as copied,
        kind.from_blocks(ctx, (2, 3 * n), structs) as again,
        kind.from_borrowed_blocks(ctx, (2, 3 * n), payload) as borrowed,
        kind.empty(ctx, (2, n)) as empty,
    ):
        assert copied.shape == borrowed.shape == again.shape == (2, 3 * n)
        assert ctx.rt.buffers.outstanding_buffers() == 3
        payload[0] = 255
        assert copied.data_const().tobytes()[:2] == again.data_const().tobytes()[:2] == b"\0\1"
        assert borrowed.data_const().tobytes() == bytes(payload)
        assert empty.data().size == 2
        with kind.constant(ctx, copied.as_raw_tensor().clone_view()) as shared:
            assert shared.data_const().tobytes() == copied.data_const().tobytes()
    for shape in ((2, 0), (6 * n,), *(() if n == 1 else ((2, 3 * n + 1),))):
        assert_raises(InvalidShape, None, partial(kind.from_blocks, ctx, shape, payload), what=str(shape))
    assert_raises(InvalidDataLength, None, partial(kind.from_blocks, ctx, (1, 3 * n), payload))
    assert_raises(InvalidDataLength, None, partial(kind.from_borrowed_blocks, ctx, (1, 3 * n), payload))
    gc.collect()
    payload.append(0)


# -- where it stands


@clause("FACADE-CTX-1", "FACADE-OWN-2")
def test_constructors_are_the_callers_under_a_scope(impl: Any, ctx: Any) -> None:
    with ctx.exec_scope():
        x = impl.Tensor("d").ones(ctx, (2,))
        raw = impl.Tensor("d").constant(ctx, ctx.ones((2,)))
        assert (x.scope_owned, raw.scope_owned, ctx.rt.scope_entries) == (False, False, 0)
    assert x.data_const().tolist() == raw.data_const().tolist() == [1.0, 1.0]
    before = state(ctx, x)
    assert_raises(DTypeMismatch, "FACADE-CTX-1", lambda: impl.Tensor("d").ones(None, (2,)))
    assert state(ctx, x) == before
    x.deinit()
    raw.deinit()


@clause("FACADE-NEW-2")
def test_a_constant_of_nothing_but_patterns(impl: Any, ctx: Any) -> None:
    """NaN payloads are moved bit by bit."""
    for dtype, code in ((F32, 0x7F800001), (DType.f16, 0x7C01), (DType.bf16, 0xFF81), (DType.f64, 0x7FF0000000000001)):
        with constant(impl, ctx, dtype, [code, code | 2]) as x:
            assert bits(x).tolist() == [code, code | 2]
