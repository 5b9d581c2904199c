"""What a context makes and sees: construction, copies, borrows, layouts, preparation, replacement, lifetimes."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause, vectors
from fucina.conformance.compare import PATTERN, assert_raises
from fucina.conformance.suite.casts import SCALARS
from fucina.conformance.suite.counters import seen
from fucina.conformance.suite.raw_arithmetic import tensor_of
from fucina.spec import GEOMETRY, DType, DTypeKind
from fucina.spec.errors import (
    DTypeMismatch,
    EmptySelection,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    Overflow,
    ReadOnlyStorage,
    ShapeMismatch,
    UnsupportedView,
    UseAfterDeinit,
)

BLOCKS = [dtype for dtype in DType if GEOMETRY[dtype].kind is DTypeKind.block_quantized]
each_scalar = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)


@pytest.fixture
def ctx(impl: Any) -> Any:
    with impl.ExecContext() as found:
        yield found


# -- construction


@clause("CONTEXT-NEW-1", "CONTEXT-OWNER-1")
@each_scalar
def test_tensors_from_nothing(impl: Any, ctx: Any, dtype: DType) -> None:
    one, zero = impl.dtype.one(dtype), impl.dtype.zero(dtype)
    for make, value in (
        (partial(ctx.zeros, (2, 3), dtype), zero),
        (partial(ctx.ones, (2, 3), dtype), one),
        (partial(ctx.full, (2, 3), one, dtype), one),
        (partial(ctx.full, shape=[2, 3], value=zero, dtype=dtype), zero),
    ):
        made = make()
        assert type(made) is impl.internal.tensor_mod.TensorOf(dtype)
        assert (tuple(made.shape), made.is_contiguous(), made.offset, made.buffer.refs) == ((2, 3), True, 0, 1)
        assert made.data_const().tolist() == [value] * 6
        assert ctx.rt.buffers.outstanding_buffers() == 1
        made.deinit()
    with ctx.scalar(one, dtype) as made:
        assert (tuple(made.shape), made.item()) == ((1,), one)
    with ctx.empty((4, 2), dtype) as made:
        assert made.data().size == 8


@clause("CONTEXT-NEW-1")
def test_f32_is_what_is_meant(ctx: Any) -> None:
    source = np.ones(2, np.float32)
    for made in (
        *(ctx.empty((2,)), ctx.zeros((2,)), ctx.ones((2,)), ctx.full((2,), 1), ctx.scalar(1)),
        *(ctx.from_slice((2,), [1, 2]), ctx.from_storage_slice((2,), source)),
        *(ctx.from_borrowed_slice((2,), source), ctx.from_borrowed_storage_slice((2,), source)),
    ):
        assert made.dtype is DType.f32
        made.deinit()


@clause("CONTEXT-NEW-1", "CONTEXT-NEW-2", "CONTEXT-NEW-3", "SHAPE-COUNT-2")
@pytest.mark.parametrize("dtype", BLOCKS, ids=lambda d: d.name)
def test_blocks(impl: Any, ctx: Any, dtype: DType) -> None:
    geometry = GEOMETRY[dtype]
    n, size = geometry.block_size, geometry.byte_size
    assert n is not None
    with ctx.empty((2, 3 * n), dtype) as made:
        assert (made.storage_len(), tuple(made.strides)) == (6, (3, 1))
    payload = bytearray(i % 251 for i in range(6 * size))
    copied, borrowed = (
        ctx.from_storage_slice((2, 3 * n), payload, dtype),
        ctx.from_borrowed_storage_slice((2, 3 * n), payload, dtype),
    )
    payload[0] = 255
    assert copied.data_const().tobytes()[:2] == b"\0\1"
    assert borrowed.data_const().tobytes() == bytes(payload)
    with ctx.materialize(borrowed) as made:
        assert made.data_const().tobytes() == bytes(payload)
    copied.deinit()
    borrowed.deinit()
    for call in (
        lambda: ctx.zeros((1, n), dtype),
        lambda: ctx.ones((1, n), dtype),
        lambda: ctx.full((1, n), 1.0, dtype),
        lambda: ctx.scalar(1.0, dtype),
        lambda: ctx.from_slice((1, n), payload[:size], dtype),
        lambda: ctx.from_borrowed_slice((1, n), payload, dtype),
    ):
        assert_raises(InvalidDType, None, call)
    assert_raises(InvalidShape, None, lambda: ctx.empty((n + 1,), dtype))
    assert ctx.rt.buffers.outstanding_buffers() == 0


@clause("CONTEXT-NEW-1", "CONTEXT-NEW-2", "CONTEXT-NEW-3")
def test_the_order_of_errors(ctx: Any) -> None:
    before = seen(ctx)
    everything = {
        "empty": lambda shape, dtype: ctx.empty(shape, dtype),
        "zeros": lambda shape, dtype: ctx.zeros(shape, dtype),
        "full": lambda shape, dtype: ctx.full(shape, 1, dtype),
        "from_slice": lambda shape, dtype: ctx.from_slice(shape, None, dtype),
        "from_storage_slice": lambda shape, dtype: ctx.from_storage_slice(shape, None, dtype),
        "from_borrowed_slice": lambda shape, dtype: ctx.from_borrowed_slice(shape, None, dtype),
        "from_borrowed_storage_slice": lambda shape, dtype: ctx.from_borrowed_storage_slice(shape, None, dtype),
    }
    for name, call in everything.items():
        for dtype in ("f32", np.float32, None):
            assert_raises(InvalidDType, None, partial(call, "no shape", dtype), what=name)
        for shape, kind in (
            ("ab", InvalidInteger),
            (3, InvalidInteger),
            ((2.0,), InvalidInteger),
            ((), InvalidShape),
            ((1,) * 9, InvalidShape),
            ((2, 0), InvalidShape),
            ((2, -1), InvalidShape),
            ((1 << 62, 4), Overflow),
            ((1 << 64,), Overflow),
        ):
            assert_raises(kind, None, partial(call, shape, DType.f16), what=f"{name} {shape}")
    for wrong in ("x", None, 1j):
        assert_raises(DTypeMismatch, None, partial(ctx.full, "no shape", wrong))
    assert_raises(Overflow, None, lambda: ctx.full("no shape", 256, DType.u8))
    assert_raises(InvalidDataLength, "CONTEXT-NEW-2", lambda: ctx.from_slice((3,), [1, 2]))
    assert_raises(DTypeMismatch, None, lambda: ctx.from_slice((3,), np.ones(2)))
    assert_raises(InvalidDataLength, None, lambda: ctx.from_borrowed_slice((3,), np.ones(2, np.float32)))
    assert_raises(DTypeMismatch, None, lambda: ctx.from_borrowed_slice((2,), [1.0, 2.0]))
    assert_raises(ReadOnlyStorage, None, lambda: ctx.from_borrowed_slice((1,), b"\0\0\0\0"))
    assert_raises(UnsupportedView, None, lambda: ctx.from_borrowed_slice((2,), np.ones(4, np.float32)[::2]))
    assert seen(ctx) == before


@clause("CONTEXT-NEW-2", "CONTEXT-NEW-3", "CONTEXT-COPY-1")
@each_scalar
def test_patterns_are_kept(ctx: Any, dtype: DType) -> None:
    width = 8 * PATTERN[dtype].itemsize
    codes = [0, 1] if dtype is DType.bool else [0, 1, (1 << width) - 1, 1 << (width - 1), 0x7F81 % (1 << width)]
    if dtype is DType.f32:
        codes += [0x7F800001, 0xFFC12345]  # a signalling NaN, and one with a payload
    with (
        tensor_of(ctx, dtype, codes) as x,
        ctx.materialize(x) as copy,
        ctx.broadcast_to(x, (2, len(codes))) as view,
        ctx.clone(view) as twice,
    ):
        for tensor, wanted in ((x, codes), (copy, codes), (twice, codes * 2)):
            assert tensor.data_const().view(PATTERN[dtype]).tolist() == wanted
        assert len({t.buffer.address for t in (x, copy, twice)}) == 3


@clause("CONTEXT-NEW-3", "POOL-ENTER-1")
def test_the_documents_example_of_copies_and_borrows(ctx: Any) -> None:
    source = np.array([1, 2, 3, 4], np.float32)
    copied = ctx.from_slice((2, 2), source)
    source[0] = 99
    assert copied.data_const()[0] == 1
    borrowed = ctx.from_borrowed_slice((2, 2), source)
    assert borrowed.data_const()[0] == 99
    assert ctx.rt.buffers.outstanding_buffers() == 1
    borrowed.data()[1] = 7
    assert source.tolist() == [99, 7, 3, 4]
    borrowed.deinit()
    assert ctx.rt.buffers.outstanding_buffers() == 1
    assert source.tolist() == [99, 7, 3, 4]
    copied.deinit()


@clause("CONTEXT-NEW-3", "STORAGE-BORROW-1")
def test_a_borrow_lets_go_of_its_exporter(ctx: Any) -> None:
    room = bytearray(8)
    with ctx.from_borrowed_slice((2,), room):
        assert_raises(BufferError, None, partial(room.append, 0))
    gc.collect()
    room.append(0)


@clause("POOL-LIFO-1", "CONTEXT-OP-1", "CONTEXT-NEW-1")
def test_the_documents_example_of_recycling(ctx: Any) -> None:
    with ctx.from_slice((3,), [1, 2, 3]) as a:
        first = ctx.add(a, a)
        address = first.data_const().ctypes.data
        first.deinit()
        with ctx.add(a, a) as second:
            assert second.data_const().ctypes.data == address
            assert second.data_const().tolist() == [2, 4, 6]


@clause("CONTEXT-NEW-1", "POOL-LIFO-1")
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_case_o_e09_recycled_memory_holds_what_was_promised(impl: Any, ctx: Any, dtype: DType) -> None:
    one, zero = impl.dtype.one(dtype), impl.dtype.zero(dtype)
    for dirty in (DType.f64, dtype):
        for make, value in (
            (partial(ctx.zeros, (50,), dtype), zero),
            (partial(ctx.ones, (50,), dtype), one),
            (partial(ctx.full, (50,), one, dtype), one),
            (partial(ctx.scalar, one, dtype), one),
        ):
            old = ctx.empty((64,), dirty)
            address = old.buffer.address
            old.buffer.wait_mutable().view(np.uint8)[:] = 1 if dtype is DType.bool else 0xFF
            old.deinit()
            made = make()
            if (dirty is DType.f32) == (dtype is DType.f32):
                assert made.buffer.address == address, "the memory was not used again"
            assert set(made.data_const().tolist()) == {value}
            made.deinit()


@clause("CONTEXT-OWNER-1", "POOL-COUNT-1")
def test_case_o_e02_chains_leave_nothing_behind(ctx: Any) -> None:
    gc.disable()
    try:
        with ctx.ones((16,)) as a:
            baseline = ctx.rt.buffers.outstanding_buffers()
            for _ in range(500):
                y = ctx.sum(ctx.scale(ctx.add(a, a), 0.5))
                assert ctx.rt.buffers.outstanding_buffers() == baseline + 1
                y.deinit()
                assert ctx.rt.buffers.outstanding_buffers() == baseline
            assert ctx.rt.buffers.cached_buffers() <= 3
    finally:
        gc.enable()


# -- layouts


@clause("CONTEXT-CLASSIFY-1")
def test_classes_of_the_original(impl: Any, ctx: Any) -> None:
    cases = vectors.load_json("tensor_classify")["cases"]
    assert len(cases) == 220
    for case in cases:
        with (
            ctx.from_slice((case["buffer_len"],), np.arange(case["buffer_len"], dtype=np.float32)) as base,
            base.view_with_strides_offset(case["shape"], case["strides"], case["offset"]) as view,
        ):
            assert ctx.classify(view) is impl.LayoutClass[case["class"]], case
    assert {case["class"] for case in cases} == {member.name for member in impl.LayoutClass}


@clause("CONTEXT-CLASSIFY-1")
def test_classes_of_blocks(impl: Any, ctx: Any) -> None:
    layout = impl.LayoutClass
    with ctx.empty((1, 32), DType.q8_0) as one, ctx.broadcast_to(one, (3, 32)) as repeated:
        assert (ctx.classify(one), ctx.classify(repeated)) == (layout.contiguous, layout.tail_broadcast)
    for wrong in (1, None, np.ones(2)):
        assert_raises(DTypeMismatch, "CONTEXT-CLASSIFY-1", partial(ctx.classify, wrong))


@clause("CONTEXT-VIEW-1", "TENSOR-VIEW-4")
def test_broadcasting_views(ctx: Any) -> None:
    with ctx.from_slice((3, 1), [1, 2, 3]) as x:
        for make in (partial(ctx.broadcast_to, x, (2, 3, 4)), partial(ctx.broadcast_to_rank, 3, x, [2, 3, 4])):
            view = make()
            assert (tuple(view.shape), tuple(view.strides)) == ((2, 3, 4), (0, 1, 0))
            assert (view.buffer == x.buffer, x.buffer.refs) == (True, 2)
            with ctx.materialize(view) as copy:
                assert copy.data_const().tolist() == [1] * 4 + [2] * 4 + [3] * 4 + [1] * 4 + [2] * 4 + [3] * 4
            view.deinit()
        for call, kind in (
            (lambda: ctx.broadcast_to(x, (4,)), ShapeMismatch),
            (lambda: ctx.broadcast_to(x, (2, 4)), ShapeMismatch),
            (lambda: ctx.broadcast_to(x, (0, 1)), InvalidShape),
            (lambda: ctx.broadcast_to_rank(2, x, (2, 3, 4)), InvalidShape),
            (lambda: ctx.broadcast_to_rank(9, x, (2, 3, 4)), InvalidShape),
            (lambda: ctx.broadcast_to_rank("2", x, (3, 1)), InvalidInteger),
            (lambda: ctx.broadcast_to([1.0], (3, 1)), DTypeMismatch),
        ):
            assert_raises(kind, None, call)
        assert x.buffer.refs == 1


@clause("CONTEXT-NARROW-1")
def test_narrowing(ctx: Any) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with ctx.from_slice((2, 3, 4), values) as x:
        for axis in range(3):
            for start in range(x.shape[axis]):
                for length in range(1, x.shape[axis] - start + 1):
                    index = tuple(slice(start, start + length) if i == axis else slice(None) for i in range(3))
                    with ctx.narrow_axis(x, axis, start, length) as part, ctx.materialize(part) as copy:
                        assert (part.buffer == x.buffer, part.strides, x.buffer.refs) == (True, x.strides, 2)
                        assert copy.data_const().tolist() == values[index].reshape(-1).tolist()
        for arguments, kind in (
            ((3, 0, 1), IndexOutOfBounds),
            ((-1, 0, 1), IndexOutOfBounds),
            ((1.0, 0, 1), InvalidInteger),
            ((0, True, 1), InvalidInteger),
            ((0, -1, 1), IndexOutOfBounds),
            ((0, 0, -1), InvalidDataLength),
            ((0, 1 << 64, 1), Overflow),
            ((0, 0, 1 << 64), Overflow),
            ((0, 9, 0), EmptySelection),
            ((0, 2, 1), IndexOutOfBounds),
            ((0, 1, 2), IndexOutOfBounds),
            ((1, 0, 4), IndexOutOfBounds),
            ((2, (1 << 64) - 1, (1 << 64) - 1), IndexOutOfBounds),
        ):
            assert_raises(kind, None, partial(ctx.narrow_axis, x, *arguments), what=str(arguments))
        assert x.buffer.refs == 1


@clause("CONTEXT-NARROW-1", "TENSOR-BLOCK-2")
def test_narrowing_blocks(ctx: Any) -> None:
    with ctx.empty((2, 64), DType.q4_0) as x:
        assert_raises(InvalidDType, "CONTEXT-NARROW-1", lambda: ctx.narrow_axis(x, 1, 0, 32))
        assert_raises(InvalidDType, "CONTEXT-NARROW-1", lambda: ctx.narrow_axis(x, 1, 0, 0))
        assert_raises(EmptySelection, None, lambda: ctx.narrow_axis(x, 0, 0, 0))
        assert_raises(UnsupportedView, None, lambda: ctx.narrow_axis(x, 0, 0, 1))
        with ctx.narrow_axis(x, 0, 0, 2) as everything:
            assert (everything.shape, everything.buffer == x.buffer) == (x.shape, True)


@clause("CONTEXT-COPY-1")
def test_contiguous_for_reshape(ctx: Any) -> None:
    with (
        ctx.from_slice((2, 3), range(6)) as x,
        x.view_with_strides((3, 2), (1, 3)) as turned,
        ctx.contiguous_for_reshape(x) as same,
        ctx.contiguous_for_reshape(turned) as copy,
        copy.reshape((6,)) as flat,
    ):
        assert (same.buffer == x.buffer, copy.buffer == x.buffer) == (True, False)
        assert flat.data_const().tolist() == [0, 3, 1, 4, 2, 5]
    with ctx.empty((1, 32), DType.q8_0) as one, ctx.broadcast_to(one, (3, 32)) as repeated:
        for call in (ctx.materialize, ctx.clone, ctx.contiguous_for_reshape, ctx.prepare_contiguous):
            assert_raises(UnsupportedView, None, partial(call, repeated))


# -- preparing, storing, replacing


@clause("CONTEXT-PREPARE-1")
def test_preparing(ctx: Any) -> None:
    with ctx.from_slice((2, 3), range(6), DType.f16) as x, x.view_with_strides((3, 2), (1, 3)) as turned:
        for prepared in (ctx.prepare_contiguous(x), ctx.prepare_as(DType.f16, x)):
            assert (prepared.tensor is x, prepared.owned, x.buffer.refs) == (True, False, 2)
            for _ in range(2):
                prepared.deinit()
            assert x.data_const()[1] == 1
        for prepare, dtype in (
            (partial(ctx.prepare_contiguous, turned), DType.f16),
            (partial(ctx.prepare_as, DType.f16, turned), DType.f16),
            (partial(ctx.prepare_as, DType.f32, turned), DType.f32),
        ):
            outstanding = ctx.rt.buffers.outstanding_buffers()
            prepared = prepare()
            assert (prepared.owned, prepared.tensor.dtype, prepared.tensor.is_contiguous()) == (True, dtype, True)
            assert prepared.tensor.data_const().tolist() == [0, 3, 1, 4, 2, 5]
            prepared.deinit()
            assert ctx.rt.buffers.outstanding_buffers() == outstanding
            assert_raises(UseAfterDeinit, None, prepared.deinit)
            with prepare() as prepared:
                prepared.deinit()
        for wrong in ("f32", None, DType.q8_0):
            assert_raises(InvalidDType, None, partial(ctx.prepare_as, wrong, x))


@clause("CONTEXT-STORE-1")
def test_storing(ctx: Any) -> None:
    value = ctx.from_slice((2,), [0.1, 2.0])
    assert ctx.store_as(DType.f32, value) is value
    for wrong in ("f16", DType.q8_0, None):
        assert_raises(InvalidDType, None, partial(ctx.store_as, wrong, value))
    assert value.data_const().tolist() == [np.float32(0.1), 2]
    stored = ctx.store_as(DType.f16, value)
    assert (stored.dtype, stored.data_const().tolist()) == (DType.f16, [np.float16(0.1), 2])
    assert_raises(UseAfterDeinit, None, value.data_const)
    assert ctx.rt.buffers.outstanding_buffers() == 1
    stored.deinit()


class _Record:
    """Something that is no tensor and has a ``deinit``."""

    def __init__(self) -> None:
        self.ended = 0

    def deinit(self) -> None:
        self.ended += 1


@clause("CONTEXT-REPLACE-1")
def test_replacing(ctx: Any) -> None:
    x = first = ctx.from_slice((2,), [1, 2])
    addresses = set()
    for _ in range(6):
        x = ctx.replace(x, ctx.scale(x, 2.0))
        addresses.add(x.buffer.address)
    assert x.data_const().tolist() == [64, 128]
    assert len(addresses) == 2
    assert ctx.rt.buffers.outstanding_buffers() == 1
    assert ctx.replace(x, x) is x
    first.deinit()  # forgiven
    first.deinit()
    assert_raises(UseAfterDeinit, None, first.data_const)
    assert_raises(UseAfterDeinit, None, partial(ctx.replace, first, x))
    x.deinit()
    assert_raises(UseAfterDeinit, None, x.deinit)


@clause("CONTEXT-REPLACE-1")
def test_an_error_leaves_the_old_value(ctx: Any) -> None:
    x, half = ctx.ones((2,)), ctx.ones((2,), DType.f16)
    before = seen(ctx)
    with pytest.raises(ZeroDivisionError):
        ctx.replace(x, lambda: 1 / 0)
    for wrong in (half, 3, None, lambda: half, lambda: None):
        assert_raises(DTypeMismatch, "CONTEXT-REPLACE-1", partial(ctx.replace, x, wrong))
    for wrong in (3, None, "old"):
        assert_raises(DTypeMismatch, "CONTEXT-REPLACE-1", partial(ctx.replace, wrong, x))
    assert seen(ctx) == before
    x = ctx.replace(x, lambda: ctx.add(x, x))
    assert x.data_const().tolist() == [2, 2]
    x.deinit()
    half.deinit()


@clause("CONTEXT-REPLACE-1")
def test_replacing_other_values(ctx: Any) -> None:
    old, new = _Record(), _Record()
    assert ctx.replace(old, lambda: new) is new
    assert (old.ended, new.ended) == (1, 0)
    assert ctx.replace(new, new) is new
    assert new.ended == 0


# -- lifetimes


@clause("CONTEXT-LIFETIME-1", "CONTEXT-LIFETIME-2")
def test_lifetimes(impl: Any, ctx: Any) -> None:
    lifetime = impl.RhsLifetime
    assert [member.name for member in lifetime] == ["transient", "stable_process"]
    assert [member.is_cacheable() for member in lifetime] == [False, True]
    with ctx.ones((2,)) as pooled, ctx.from_borrowed_slice((2,), np.ones(2, np.float32)) as borrowed:
        own = impl.internal.RawTensor.zeros((2,))
        for x in (pooled, borrowed, own):
            ctx.check_rhs_lifetime(x, lifetime.transient)
        for x in (borrowed, own):
            ctx.check_rhs_lifetime(x, lifetime.stable_process)
        with pooled.reshape((2, 1)) as view:
            for x in (pooled, view):
                assert_raises(
                    InvalidBounds, "CONTEXT-LIFETIME-2", partial(ctx.check_rhs_lifetime, x, lifetime.stable_process)
                )
        for wrong in ("transient", None, 0):
            assert_raises(InvalidDType, "CONTEXT-LIFETIME-1", partial(ctx.check_rhs_lifetime, pooled, wrong))
        assert_raises(DTypeMismatch, None, partial(ctx.check_rhs_lifetime, 1, lifetime.transient))
        own.deinit()
