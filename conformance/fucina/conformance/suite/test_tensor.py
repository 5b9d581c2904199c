"""Raw tensors: construction, geometry, views, elements, operations in place, life."""

from __future__ import annotations

import gc
import math
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import PATTERN, assert_bits, assert_raises
from fucina.conformance.suite import environment as fpenv
from fucina.spec import GEOMETRY, DType, DTypeKind
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    Overflow,
    OverlappingMemory,
    ReadOnlyStorage,
    ShapeMismatch,
    UnsupportedView,
    UseAfterDeinit,
)

SCALARS = [d for d in DType if GEOMETRY[d].kind is DTypeKind.scalar]
BLOCKS = [d for d in DType if GEOMETRY[d].kind is DTypeKind.block_quantized]
each_scalar = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
each_block = pytest.mark.parametrize("dtype", BLOCKS, ids=lambda d: d.name)
each_dtype = pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)


def _of(impl: Any, dtype: DType) -> Any:
    return impl.internal.tensor_mod.TensorOf(dtype)


def _patterns(array: Any) -> list[int]:
    found: list[int] = np.asarray(array).view(f"u{array.dtype.itemsize}").tolist()
    return found


def _random(dtype: DType, n: int) -> Any:
    """Return n elements of any pattern, NaNs included."""
    rng = np.random.default_rng(n)
    if dtype is DType.bool:
        return rng.integers(0, 2, n).astype(np.bool_)
    geometry = GEOMETRY[dtype]
    return rng.integers(0, 256, n * geometry.byte_size, dtype=np.uint8).view(_element(dtype))


def _element(dtype: DType) -> Any:
    geometry = GEOMETRY[dtype]
    return np.dtype(geometry.format) if geometry.format else np.dtype(f"V{geometry.byte_size}")


# -- types and construction


@clause("TENSOR-TYPE-1")
@each_dtype
def test_types(impl: Any, dtype: DType) -> None:
    kind = _of(impl, dtype)
    assert kind is _of(impl, dtype)
    assert (kind.dtype, kind.Element) == (dtype, impl.dtype.storage(dtype))
    assert (kind is impl.internal.RawTensor) == (dtype is DType.f32)
    assert_raises(TypeError, None, kind)
    blocks = GEOMETRY[dtype].block_size or 1
    tensor = kind.from_storage_slice((2, 3 * blocks), np.zeros(6, kind.Element))
    assert (tuple(tensor.shape), tuple(tensor.strides), tensor.offset) == ((2, 3 * blocks), (3, 1), 0)
    assert (tensor.buffer.refs, tensor.buffer.capacity, type(tensor.buffer).dtype) == (1, 6, dtype)
    tensor.deinit()


@clause("TENSOR-TYPE-1")
def test_types_that_there_are_not(impl: Any) -> None:
    for nothing in ("f32", None, np.float32, 9):
        assert_raises(InvalidDType, None, partial(lambda nothing: _of(impl, nothing), nothing))


@clause("TENSOR-NEW-2")
@each_scalar
def test_filled(impl: Any, dtype: DType) -> None:
    kind = _of(impl, dtype)
    for name, value in (("zeros", impl.dtype.zero(dtype)), ("ones", impl.dtype.one(dtype))):
        tensor = getattr(kind, name)((2, 3))
        scalar = kind.scalar(value)
        assert tuple(scalar.shape) == (1,)
        assert _patterns(tensor.data_const()) == _patterns(scalar.data_const()) * 6
        assert scalar.item() == value
        assert type(scalar.item()) is type(value)


@clause("TENSOR-NEW-2")
def test_filled_memory_is_filled_again(impl: Any) -> None:
    """Memory that was used before shows nothing of its past."""
    for _ in range(50):
        used = impl.internal.RawTensor.zeros((1000,))
        used.fill(math.nan)
        used.deinit()
        fresh = impl.internal.RawTensor.zeros((1000,))
        assert not fresh.data_const().any()
        fresh.deinit()


@clause("TENSOR-NEW-3", "TENSOR-NEW-4")
@each_dtype
def test_copies_and_borrows(impl: Any, dtype: DType) -> None:
    kind, values = _of(impl, dtype), _random(dtype, 6)
    elements = values.view(kind.Element)
    shape = (2, 3 * (GEOMETRY[dtype].block_size or 1))
    names = ["from_storage_slice", "from_borrowed_storage_slice"]
    if GEOMETRY[dtype].block_size is None:
        names += ["from_slice", "from_borrowed_slice", "from_borrowed_const_slice"]
    for name in names:
        source = elements.copy()
        tensor = getattr(kind, name)(shape, source)
        assert tensor.data_const().tobytes() == elements.tobytes()
        shares = np.shares_memory(tensor.data_const().view(np.uint8), source.view(np.uint8))
        assert shares == ("borrowed" in name)
        assert tensor.buffer.read_only == ("const" in name)
        for wrong in (elements[:5], np.zeros(7, kind.Element)):
            assert_raises(InvalidDataLength, None, partial(getattr(kind, name), shape, wrong))
        tensor.deinit()


@clause("TENSOR-NEW-1", "TENSOR-BLOCK-2")
def test_the_order_of_errors(impl: Any) -> None:
    raw, blocks = impl.internal.RawTensor, _of(impl, DType.q8_0)
    count = impl.internal.allocation_count()
    for name in ("from_slice", "from_storage_slice", "from_borrowed_slice", "from_borrowed_const_slice"):
        make = getattr(raw, name)
        assert_raises(InvalidShape, None, partial(lambda make: make((0, 1 << 63), np.zeros(3, np.float32)), make))
        assert_raises(Overflow, None, partial(lambda make: make((1 << 32, 1 << 32), np.zeros(3, np.float32)), make))
        assert_raises(InvalidDataLength, None, partial(lambda make: make((2,), bytearray(12)), make))
    for name in ("zeros", "ones"):
        assert_raises(InvalidDType, "TENSOR-NEW-2", partial(lambda name: getattr(blocks, name)((0,)), name))
    assert_raises(InvalidDType, None, lambda: blocks.scalar(1))
    for name in ("from_slice", "from_borrowed_slice", "from_borrowed_const_slice"):
        assert_raises(InvalidDType, None, partial(lambda name: getattr(blocks, name)((0,), bytes(34)), name))
    assert_raises(DTypeMismatch, "BRIDGE-SCALAR-4", lambda: raw.scalar("x"))
    assert impl.internal.allocation_count() - count <= 4, "only the borrows that were one element too long"


@clause("TENSOR-NEW-5")
def test_owned_buffers(impl: Any) -> None:
    raw, storage = impl.internal.RawTensor, impl.internal.storage_mod
    buffer = storage.Buffer.from_slice(range(9))
    for kind, shape in (
        (InvalidDataLength, (10,)),
        (InvalidShape, (0,)),
        (Overflow, (1 << 63, 2)),
        (InvalidInteger, 3),
    ):
        assert_raises(kind, None, partial(raw.from_owned_buffer, buffer, shape))
        assert buffer.refs == 1
    for other in (storage.BufferOf(DType.i32).create(9), None, np.zeros(9, np.float32), raw.zeros((9,))):
        assert_raises(DTypeMismatch, "TENSOR-NEW-5", partial(raw.from_owned_buffer, other, (2,)))
    tensor = raw.from_owned_buffer(buffer, (2, 2))
    assert (tensor.buffer, buffer.refs, tensor.data_const().tolist()) == (buffer, 1, [0.0, 1.0, 2.0, 3.0])
    slack = tensor.view_with_strides((9,), (1,))
    assert slack.data_const().tolist() == list(range(9)), "TENSOR-VIEW-3: the storage behind the tensor may be reached"
    slack.deinit()
    tensor.deinit()
    assert buffer.refs == 0


# -- geometry


@clause("TENSOR-GEOM-1", "TENSOR-GEOM-2")
def test_geometry(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor = raw.zeros((2, 3, 4))
    assert (tensor.rank(), tensor.len(), len(tensor), tensor.storage_len(), tensor.is_scalar()) == (
        3,
        24,
        24,
        24,
        False,
    )
    for call in (tensor.rows, tensor.cols):
        assert_raises(InvalidShape, "TENSOR-GEOM-1", call)
    assert raw.zeros((1, 1)).is_scalar()
    huge = raw.zeros((1,)).broadcast_to((1 << 40, 1 << 20))
    assert huge.len() == 1 << 60
    assert len(huge) == 1 << 60 or sys.maxsize < 1 << 60
    assert_raises(Overflow, None, lambda: huge.broadcast_to((1 << 20, 1 << 40, 1 << 20)))
    assert raw.zeros((1, 5)).is_contiguous()
    assert not raw.zeros((1, 5)).view_with_strides((1, 5), (9, 1)).is_contiguous(), "strict about axes of size 1"
    assert raw.zeros((6,)).view_with_strides_offset((2,), (1,), 3).is_contiguous(), "whatever the offset"


@clause("TENSOR-BLOCK-1")
@each_block
def test_block_geometry(impl: Any, dtype: DType) -> None:
    kind, size = _of(impl, dtype), GEOMETRY[dtype].block_size or 0
    tensor = kind.from_storage_slice((3, 2, 4 * size), _random(dtype, 24).tobytes())
    assert (tuple(tensor.strides), tensor.len(), tensor.storage_len()) == ((8, 4, 1), 24 * size, 24)
    assert tensor.is_contiguous()
    twin = tensor.clone()
    assert twin.data_const().tobytes() == tensor.data_const().tobytes()


@clause("TENSOR-GEOM-1", "TENSOR-BLOCK-1")
def test_a_logical_count_that_overflows(impl: Any) -> None:
    """A view of blocks whose elements are too many to count, though its blocks are not."""
    blocks = _of(impl, DType.q8_0).from_storage_slice((1, 32), bytes(34))
    assert_raises(Overflow, "TENSOR-VIEW-4", lambda: blocks.broadcast_to((1 << 60, 32)))
    assert blocks.broadcast_to((1 << 58, 32)).len() == 1 << 63


# -- views


@clause("TENSOR-VIEW-1", "TENSOR-COPY-3", "TENSOR-COPY-1", "TENSOR-VIEW-3")
@given(data=st.data())
def test_any_view_copies_as_numpy_has_it(impl: Any, data: Any) -> None:
    dtype = data.draw(st.sampled_from([DType.f32, DType.u8, DType.bf16, DType.f64, DType.bool]))
    capacity = data.draw(st.integers(1, 60))
    values = _random(dtype, capacity)
    base = _of(impl, dtype).from_slice((capacity,), values)
    rank = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(rank))
    strides = tuple(data.draw(st.integers(0, 9)) for _ in range(rank))
    offset = data.draw(st.integers(0, 9))
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    make = partial(base.view_with_strides_offset, shape, strides, offset)
    if last >= capacity:
        assert_raises(InvalidDataLength, "TENSOR-VIEW-3", make)
        assert base.buffer.refs == 1
        return
    view = make()
    patterns = values.view(PATTERN[dtype])
    size = patterns.itemsize
    expected = np.lib.stride_tricks.as_strided(patterns[offset:], shape, [s * size for s in strides]).copy().reshape(-1)
    out = np.zeros(shape, base.Element)
    view.copy_to(out)
    assert_bits(out.reshape(-1), expected, dtype=dtype, nan="exact", what=f"copy_to of {view}")
    twin = view.clone()
    assert_bits(twin.data_const(), expected, dtype=dtype, nan="exact", what=f"clone of {view}")
    assert (twin.is_contiguous(), twin.offset, twin.buffer.capacity) == (True, 0, math.prod(shape))
    split = data.draw(st.integers(0, len(expected)))
    parts = [np.zeros(split, base.Element), np.zeros(len(expected) - split, base.Element)]
    view.copy_range_to(parts[0], 0, split)
    view.copy_range_to(parts[1], split, len(expected) - split)
    assert_bits(np.concatenate(parts), expected, dtype=dtype, nan="exact", what=f"copy_range_to of {view} at {split}")
    assert np.asarray(view).tobytes() == expected.tobytes()


@clause("TENSOR-VIEW-2", "TENSOR-VIEW-3", "TENSOR-VIEW-4", "TENSOR-VIEW-1")
def test_views_that_are_refused(impl: Any) -> None:
    tensor = impl.internal.RawTensor.zeros((2, 6))
    turned = tensor.view_with_strides((6, 2), (1, 6))
    refs = tensor.buffer.refs
    view, far = tensor.view_with_strides, tensor.view_with_strides_offset
    for kind, clause_id, call in (
        (UnsupportedView, "TENSOR-VIEW-2", lambda: turned.reshape((0,))),
        (InvalidShape, "TENSOR-VIEW-2", lambda: tensor.reshape((5,))),
        (InvalidInteger, "TENSOR-VIEW-2", lambda: turned.reshape((1.0,))),
        (InvalidShape, "TENSOR-VIEW-3", lambda: view((2,), (1, 1))),
        (InvalidShape, "TENSOR-VIEW-3", lambda: view((2, 0), (1,))),
        (InvalidShape, "TENSOR-VIEW-3", lambda: view((2,), (-1,))),
        (Overflow, "TENSOR-VIEW-3", lambda: view((2, 1 << 63, 2), (1, 1, 1))),
        (Overflow, "TENSOR-VIEW-3", lambda: view((3,), (1 << 63,))),
        (Overflow, "TENSOR-VIEW-3", lambda: view((2, 2), ((1 << 64) - 1, 1))),
        (Overflow, "TENSOR-VIEW-3", lambda: view((2,), (1 << 64,))),
        (Overflow, "TENSOR-VIEW-3", lambda: far((1,), (1,), 1 << 64)),
        (InvalidDataLength, "TENSOR-VIEW-3", lambda: far((1,), (1,), (1 << 64) - 1)),
        (InvalidDataLength, "TENSOR-VIEW-3", lambda: view((2,), ((1 << 64) - 1,))),
        (InvalidDataLength, "TENSOR-VIEW-3", lambda: far((1,), (0,), 12)),
        (IndexOutOfBounds, "TENSOR-VIEW-3", lambda: far((1,), (1,), -1)),
        (InvalidInteger, "TENSOR-VIEW-3", lambda: far((1,), (1,), 1.0)),
        (ShapeMismatch, "TENSOR-VIEW-4", lambda: tensor.broadcast_to((6,))),
        (ShapeMismatch, "TENSOR-VIEW-4", lambda: tensor.broadcast_to((2, 5))),
        (InvalidShape, "TENSOR-VIEW-4", lambda: tensor.broadcast_to((0, 2, 6))),
        (Overflow, "TENSOR-VIEW-4", lambda: tensor.broadcast_to((1 << 63, 2, 6))),
        (InvalidShape, "TENSOR-VIEW-4", lambda: tensor.broadcast_to_rank(2, (3, 2, 6))),
        (InvalidShape, "TENSOR-VIEW-4", lambda: tensor.broadcast_to_rank(9, (3, 2, 6))),
    ):
        assert_raises(kind, clause_id, call)
        assert tensor.buffer.refs == refs, "TENSOR-VIEW-1: a view that was refused took a reference"
    assert view((1, 3), ((1 << 64) - 1, 1)).clone().len() == 3, "a stride along an axis of size 1 has no effect"
    assert far((1,), (1 << 63,), 11).clone().item() == 0.0


@clause("TENSOR-BLOCK-2")
@each_block
def test_block_restrictions(impl: Any, dtype: DType) -> None:
    size = GEOMETRY[dtype].block_size or 0
    tensor = _of(impl, dtype).from_storage_slice((2, 2 * size), bytes(4 * GEOMETRY[dtype].byte_size))
    same = [tensor.reshape((2, 2 * size)), tensor.view_with_strides((2, 2 * size), (2, 1)), tensor.clone_view()]
    assert tensor.buffer.refs == 4
    tall = tensor.broadcast_to((3, 2, 2 * size))
    for call in (
        lambda: tensor.reshape((4 * size,)),
        lambda: tensor.reshape(()),
        lambda: tensor.view_with_strides((2, 2 * size), (2, 2)),
        lambda: tensor.view_with_strides((2, 2 * size), (2,)),
        lambda: tensor.view_with_strides_offset((2, 2 * size), (2, 1), 1),
        tall.clone,
        tall.data_const,
        lambda: tall.copy_to(np.zeros(12, tensor.Element)),
    ):
        assert_raises(UnsupportedView, None, call)
    for refused in (
        tensor.item,
        lambda: tensor.fill(0),
        lambda: tensor.scale_in_place(1.0),
        lambda: tensor.add_in_place(tensor),
        lambda: tensor.copy_range_to(bytearray(0), 0, 0),
    ):
        assert_raises(InvalidDType, None, refused)
    assert_raises(InvalidDataLength, "TENSOR-COPY-1", lambda: tall.copy_to(np.zeros(11, tensor.Element)))
    out = bytearray(4 * tensor.Element.itemsize)
    tensor.copy_to(out)
    assert len(same) == 3


# -- elements


@clause("TENSOR-DATA-1", "TENSOR-DATA-2", "STORAGE-READ-1")
def test_access_that_is_refused(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor, frozen = raw.from_slice((2, 2), range(4)), raw.from_borrowed_const_slice((2, 2), bytes(16))
    for strided in (tensor.view_with_strides((2,), (2,)), tensor.broadcast_to((2, 2, 2))):
        for name in ("data", "data_checked", "data_const", "data_const_checked"):
            assert_raises(UnsupportedView, "TENSOR-DATA-1", getattr(strided, name))
    for view in (frozen, frozen.view_with_strides((2,), (2,))):
        for name in ("data", "data_checked"):
            assert_raises(ReadOnlyStorage, "STORAGE-READ-1", getattr(view, name))
    assert not frozen.data_const().flags.writeable
    assert_raises(InvalidShape, "TENSOR-DATA-2", tensor.item)
    assert_raises(InvalidShape, "TENSOR-DATA-2", tensor.view_with_strides((2,), (2,)).item)
    assert_raises(UnsupportedView, "TENSOR-DATA-2", tensor.view_with_strides((1,), (0,)).item)
    part = tensor.view_with_strides_offset((2,), (1,), 1)
    part.data()[:] = (7, 8)
    assert tensor.data_const().tolist() == [0.0, 7.0, 8.0, 3.0]


@clause("TENSOR-DATA-2", "BRIDGE-SCALAR-4")
def test_items_are_scalar_forms(impl: Any) -> None:
    for dtype, value in ((DType.bf16, 0x7FC1), (DType.f8_e5m2, 0xFF), (DType.i64, -(1 << 63)), (DType.f16, 0.5)):
        assert _of(impl, dtype).scalar(value).item() == value
    assert _of(impl, DType.bool).scalar(True).item() is True


@clause("TENSOR-COPY-1", "TENSOR-COPY-2")
def test_destinations_that_are_refused(impl: Any) -> None:
    tensor = impl.internal.RawTensor.from_slice((2, 3), range(6))
    frozen = np.zeros(6, np.float32)
    frozen.setflags(write=False)
    odd = np.zeros(25, np.uint8)[1:].view(np.float32)
    calls = {"TENSOR-COPY-1": tensor.copy_to, "TENSOR-COPY-2": lambda dst: tensor.copy_range_to(dst, 0, 6)}
    for clause_id, copy in calls.items():
        for kind, dst in (
            (DTypeMismatch, np.zeros(6)),
            (DTypeMismatch, [0.0] * 6),
            (DTypeMismatch, None),
            (UnsupportedView, np.zeros(12, np.float32)[::2]),
            (UnsupportedView, odd),
            (ReadOnlyStorage, frozen),
            (ReadOnlyStorage, bytes(24)),
            (InvalidDataLength, np.zeros(5, np.float32)),
            (InvalidDataLength, np.zeros(0, np.float32)),
            (OverlappingMemory, tensor.data()),
        ):
            assert_raises(kind, clause_id, partial(copy, dst), out=dst if isinstance(dst, np.ndarray) else None)
    ranges: tuple[tuple[Any, int, type[Exception]], ...] = (
        (0, 7, IndexOutOfBounds),
        (6, 1, IndexOutOfBounds),
        (7, 0, IndexOutOfBounds),
        ((1 << 64) - 1, 1, IndexOutOfBounds),
        (-1, 1, IndexOutOfBounds),
        (1 << 64, 1, Overflow),
        (0.0, 1, InvalidInteger),
    )
    for start, count, wanted in ranges:
        out = np.zeros(count, np.float32)
        assert_raises(
            wanted, "TENSOR-COPY-2", partial(lambda s, c, out: tensor.copy_range_to(out, s, c), start, count, out)
        )
    assert_raises(InvalidDataLength, "TENSOR-COPY-2", lambda: tensor.copy_range_to(np.zeros(3, np.float32), 0, -1))
    tensor.copy_range_to(np.zeros(0, np.float32), 6, 0)
    beside = impl.internal.RawTensor.from_borrowed_slice((3,), tensor.data()[3:])
    with pytest.raises(OverlappingMemory):
        beside.copy_to(tensor.data()[1:4])
    beside.copy_to(tensor.data()[:3])


# -- in place


@clause("TENSOR-TAKE-1")
def test_when_a_storage_may_be_taken(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor = raw.zeros((2, 2))
    assert tensor.can_take_in_place()
    look = tensor.rank_view(2)
    assert tensor.can_take_in_place(), "a rank view holds no reference"
    for hold in (tensor.clone_view, tensor.data, tensor.data_const, lambda: tensor.buffer.data, tensor.__dlpack__):
        held = hold()
        assert not tensor.can_take_in_place()
        del held
        gc.collect()
        assert tensor.can_take_in_place()
    part = tensor.view_with_strides_offset((3,), (1,), 1)
    turned = tensor.view_with_strides((2, 2), (1, 2))
    whole = tensor.clone_view()
    tensor.deinit()
    turned.deinit()
    whole.deinit()
    assert part.buffer.is_unique()
    assert not part.can_take_in_place(), "TENSOR-TAKE-1: it does not start at 0"
    assert not raw.from_borrowed_const_slice((1,), bytes(4)).can_take_in_place()
    assert raw.from_borrowed_slice((1,), bytearray(4)).can_take_in_place()
    assert_raises(UseAfterDeinit, None, lambda: look.shape)


@clause("TENSOR-ADD-1")
@pytest.mark.parametrize(
    "dtype", [d for d in SCALARS if d.name not in ("bool", "f8_e4m3", "f8_e5m2")], ids=lambda d: d.name
)
def test_addition(impl: Any, dtype: DType) -> None:
    """Against numpy for the dtypes that it has, and the exact sum rounded once for bf16."""
    a, b = _random(dtype, 200)[:100], _random(dtype, 200)[100:]
    tensor, other = (_of(impl, dtype).from_slice((100,), values) for values in (a, b))
    tensor.add_in_place(other)
    with np.errstate(all="ignore"):
        if dtype is DType.bf16:
            wide = (a.astype(np.uint32) << 16).view(np.float32) + (b.astype(np.uint32) << 16).view(np.float32)
            bits = wide.view(np.uint32).astype(np.uint64)
            expected = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
            expected[np.isnan(wide)] = 0x7FC0
        else:
            expected = a + b
    assert_bits(tensor.data_const(), expected, dtype=dtype, nan="any", what=f"add_in_place of {dtype.name}")
    assert other.data_const().tobytes() == b.tobytes()


@clause("TENSOR-ADD-1", "TENSOR-SCALE-1", "NUM-ENV-1", "NUM-ENV-2")
@pytest.mark.parametrize("mode", list(fpenv.EVERY))
def test_arithmetic_in_any_environment(impl: Any, mode: str) -> None:
    fpenv.needed()
    for dtype in (DType.f16, DType.bf16, DType.f32, DType.f64):
        kind, values = _of(impl, dtype), _random(dtype, 64)
        small = (values.view(PATTERN[dtype]) & 0x83FF).view(values.dtype)  # subnormals, of the wide formats also others
        for a, b in ((values, values[::-1].copy()), (small, small[::-1].copy())):
            plain, tried, other = (kind.from_slice((64,), given) for given in (a, a, b))
            plain.add_in_place(other)
            plain.scale_in_place(0.3)
            with fpenv.environment(mode):
                tried.add_in_place(other)
                tried.scale_in_place(0.3)
            what = f"{dtype.name}, {mode}"
            assert_bits(tried.data_const(), plain.data_const(), dtype=dtype, nan="any", what=what)


@clause("TENSOR-SCALE-1", "NUM-PARAM-1")
def test_scaling(impl: Any) -> None:
    factor = 0.1
    for dtype, expected in (
        (DType.f32, np.arange(50, dtype=np.float32) * np.float32(factor)),
        (DType.f64, np.arange(50, dtype=np.float64) * factor),
        (DType.f16, (np.arange(50, dtype=np.float32) * np.float32(factor)).astype(np.float16)),
    ):
        tensor = _of(impl, dtype).from_slice((50,), np.arange(50).astype(expected.dtype))
        tensor.scale_in_place(factor)
        assert_bits(tensor.data_const(), expected, dtype=dtype, what=f"scale_in_place of {dtype.name}")
    tensor = _of(impl, DType.bf16).from_slice((1,), [0x4000])
    tensor.scale_in_place(1.5)
    assert tensor.item() == 0x4040
    for dtype in SCALARS:
        if not impl.dtype.supports_forward_float_math(dtype):
            assert_raises(
                InvalidDType, "TENSOR-SCALE-1", partial(lambda d: _of(impl, d).zeros((1,)).scale_in_place(1.0), dtype)
            )


@clause("TENSOR-FILL-1")
@each_scalar
def test_filling(impl: Any, dtype: DType) -> None:
    values = _random(dtype, 20)
    tensor = _of(impl, dtype).zeros((3, 2))
    for element in values:
        value = impl.internal.tensor_mod.TensorOf(dtype).from_slice((1,), element.reshape(1)).item()
        if value == value:
            tensor.fill(value)
            assert _patterns(tensor.data_const()) == _patterns(element.reshape(1)) * 6


@clause("TENSOR-ADD-1", "TENSOR-SCALE-1", "TENSOR-FILL-1")
def test_in_place_operations_that_are_refused(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor = raw.from_slice((2, 2), [1, 2, 3, 4])
    turned = tensor.view_with_strides((2, 2), (1, 2))
    frozen = raw.from_borrowed_const_slice((2, 2), bytes(16))
    part = tensor.view_with_strides_offset((2,), (1,), 1)
    memory = np.arange(4, dtype=np.float32)
    near, far = raw.from_borrowed_slice((3,), memory[:3]), raw.from_borrowed_slice((3,), memory[1:])
    cases = [
        (DTypeMismatch, lambda: tensor.add_in_place(_of(impl, DType.f64).zeros((2, 2)))),
        (DTypeMismatch, lambda: tensor.add_in_place(np.zeros((2, 2), np.float32))),
        (DTypeMismatch, lambda: tensor.add_in_place(1.0)),
        (ShapeMismatch, lambda: tensor.add_in_place(part)),
        (ShapeMismatch, lambda: frozen.add_in_place(part)),
        (ReadOnlyStorage, lambda: frozen.add_in_place(turned)),
        (UnsupportedView, lambda: tensor.add_in_place(turned)),
        (UnsupportedView, lambda: turned.add_in_place(tensor)),
        (OverlappingMemory, lambda: part.add_in_place(tensor.view_with_strides((2,), (1,)))),
        (OverlappingMemory, lambda: near.add_in_place(far)),
        (DTypeMismatch, lambda: turned.scale_in_place("2")),
        (ReadOnlyStorage, lambda: frozen.scale_in_place(2.0)),
        (UnsupportedView, lambda: turned.scale_in_place(2.0)),
        (DTypeMismatch, lambda: turned.fill(None)),
        (ReadOnlyStorage, lambda: frozen.fill(2.0)),
        (UnsupportedView, lambda: turned.fill(2.0)),
    ]
    for name in ("bool", "f8_e4m3", "f8_e5m2"):
        odd = _of(impl, DType(name)).zeros((1,))
        cases.append((InvalidDType, partial(odd.add_in_place, odd)))
    generation = tensor.buffer.generation
    for kind, call in cases:
        assert_raises(kind, None, call)
        assert tensor.data_const().tolist() == [1.0, 2.0, 3.0, 4.0]
        assert tensor.buffer.generation == generation
    assert memory.tolist() == [0.0, 1.0, 2.0, 3.0]
    part.add_in_place(part)
    assert tensor.data_const().tolist() == [1.0, 4.0, 6.0, 4.0]


# -- rank, life


@clause("TENSOR-RANK-1")
def test_rank_views(impl: Any) -> None:
    tensor_mod, tensor = impl.internal.tensor_mod, impl.internal.RawTensor.zeros((2, 3))
    look = tensor.rank_view(2)
    assert type(look) is tensor_mod.RankedTensorOf(DType.f32, 2) is tensor_mod.RankedTensor(2)
    assert (look.shape, look.strides, look.len(), look.is_contiguous()) == ((2, 3), (3, 1), 6, True)
    assert (look.tensor is tensor, look.dim(0), look.dim(1), tensor.buffer.refs) == (True, 2, 3, 1)
    assert not tensor.view_with_strides((3, 2), (1, 3)).rank_view(2).is_contiguous()
    for axis in (2, -1):
        assert_raises(IndexOutOfBounds, "TENSOR-RANK-1", partial(lambda axis: look.dim(axis), axis))
    for rank in (1, 3, 0, 9):
        assert_raises(InvalidShape, "TENSOR-RANK-1", partial(lambda rank: tensor.rank_view(rank), rank))
    assert_raises(InvalidInteger, "TENSOR-RANK-1", lambda: tensor.rank_view("2"))
    assert_raises(InvalidDType, None, lambda: tensor_mod.RankedTensorOf("f32", 2))
    tensor.deinit()
    for use in (lambda: look.shape, lambda: look.strides, lambda: look.tensor, look.len, look.is_contiguous):
        assert_raises(UseAfterDeinit, "TENSOR-RANK-1", use)


@clause("TENSOR-LIFE-1", "TENSOR-LIFE-3")
def test_after_deinit(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor, other = raw.zeros((2, 2)), raw.zeros((2, 2))
    assert tensor.scope_owned is False
    buffer = tensor.buffer
    tensor.deinit()
    assert buffer.refs == 0
    for use in (
        *(tensor.deinit, tensor.data, tensor.data_const, tensor.item, tensor.clone, tensor.clone_view, tensor.len),
        *(tensor.rank, tensor.storage_len, tensor.rows, tensor.is_scalar, tensor.is_contiguous, tensor.__dlpack__),
        *(tensor.can_take_in_place, tensor.__enter__, lambda: np.asarray(tensor), lambda: len(tensor)),
        *(lambda: tensor.shape, lambda: tensor.strides, lambda: tensor.offset, lambda: tensor.buffer),
        *(lambda: tensor.reshape("no shape"), lambda: tensor.view_with_strides((0,), ()), lambda: tensor.fill("x")),
        *(lambda: tensor.broadcast_to(None), lambda: tensor.copy_to(None), lambda: tensor.rank_view(7)),
        *(lambda: tensor.add_in_place(other), lambda: other.add_in_place(tensor), lambda: tensor.scale_in_place(None)),
    ):
        assert_raises(UseAfterDeinit, None, use)
    assert "deinited" in repr(tensor)


@clause("TENSOR-LIFE-1")
def test_with(impl: Any) -> None:
    with impl.internal.RawTensor.zeros((2,)) as tensor:
        buffer = tensor.buffer
        with tensor.clone_view() as view:
            assert buffer.refs == 2
            view.deinit()
        assert buffer.refs == 1
    assert buffer.refs == 0
    other = impl.internal.RawTensor.zeros((2,))
    buffer = other.buffer
    with pytest.raises(LookupError), other:
        raise LookupError
    assert buffer.refs == 0


@clause("TENSOR-LIFE-2")
def test_collection_is_silent(impl: Any, recwarn: pytest.WarningsRecorder) -> None:
    tensor = impl.internal.RawTensor.zeros((2,))
    buffer = tensor.buffer
    views = [tensor.clone_view() for _ in range(3)]
    assert buffer.refs == 4
    del views
    gc.collect()
    assert buffer.refs == 1
    del tensor
    gc.collect()
    assert buffer.refs == 0
    assert not recwarn.list


@clause("TENSOR-INTERNAL-1")
def test_nothing_raw_at_the_root(impl: Any) -> None:
    for name in ("RawTensor", "TensorOf", "Buffer", "BufferOf", "Storage", "tensor_mod", "storage_mod"):
        assert not hasattr(impl, name), f"TENSOR-INTERNAL-1: {name} stands at the root"
    internal = impl.internal
    assert impl.bench_raw.RawTensor is internal.RawTensor is internal.tensor_mod.Tensor
    assert internal.tensor_mod.DType is impl.DType
    assert internal.tensor_mod.scalar(DType.bf16) == impl.dtype.scalar(DType.bf16)
    assert internal.tensor_mod.storage(DType.q4_k) == impl.dtype.storage(DType.q4_k)


@clause("TENSOR-INTERNAL-1", "TEAM-THREADS-1")
def test_one_thread_module(impl: Any) -> None:
    assert impl.internal.thread_mod is impl.thread_mod


@clause("TENSOR-GPU-1")
def test_the_null_provider(impl: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FUCINA_GPU_TRACE", "1")
    gpu = impl.internal.gpu
    assert (gpu.enabled, gpu.has_quant_gemm, gpu.has_q5_k_quant, gpu.has_tq2_0_quant) == (False,) * 4
    assert [gpu.alloc_resident_bytes(n) for n in (0, 1, 1 << 40)] == [None] * 3
    assert gpu.free_resident_bytes(b"foreign") is None
    assert gpu.trace_enabled() is False
    assert gpu.trace_reset() is None
    assert gpu.trace_dump() is None
    assert capfd.readouterr() == ("", "")
