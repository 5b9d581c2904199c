"""Faults that were reported about other libraries: storage, views and interchange (one test for each, by its id)."""

from __future__ import annotations

import gc
import mmap
import resource
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.capsules import Producer, struct_of
from fucina.spec.errors import InvalidDataLength, InvalidShape, NotCopyable, Overflow, ReadOnlyStorage, UnsupportedView


@clause("TENSOR-SCALE-1", "TENSOR-ADD-1", "TENSOR-FILL-1")
def test_case_o_s01_in_place_on_a_repeating_view(impl: Any) -> None:
    x = impl.internal.RawTensor.from_slice((1,), [2])
    wide = x.broadcast_to((3,))
    for call in (
        lambda: wide.scale_in_place(2.0),
        lambda: wide.fill(7.0),
        lambda: wide.add_in_place(wide),
        lambda: wide.add_in_place(impl.internal.RawTensor.ones((3,))),
        wide.data,
    ):
        assert_raises(UnsupportedView, None, call)
        assert x.item() == 2.0
    assert not np.asarray(wide).flags.writeable


@clause("TENSOR-ADD-1")
@pytest.mark.parametrize("n", [2, 91, 200])
def test_case_o_s02_adding_the_transposed(impl: Any, n: int) -> None:
    values = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
    x = impl.internal.RawTensor.from_slice((n, n), values)
    turned = x.view_with_strides((n, n), (1, n))
    assert_raises(UnsupportedView, "TENSOR-ADD-1", lambda: x.add_in_place(turned))
    assert np.array_equal(np.asarray(x), values)
    copy = turned.clone()
    x.add_in_place(copy)
    assert np.array_equal(np.asarray(x), values + values.T)


@clause("TENSOR-NEW-3", "TENSOR-NEW-4", "TENSOR-ARRAY-1")
def test_case_o_s03_fortran_order(impl: Any) -> None:
    raw = impl.internal.RawTensor
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    for array in (np.asfortranarray(source), np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]):
        tensor = raw.from_slice(array.shape, array)
        assert np.array_equal(np.asarray(tensor), array)
        assert_raises(UnsupportedView, None, partial(lambda array: raw.from_borrowed_slice(array.shape, array), array))
    turned = raw.from_slice((2, 3), source).view_with_strides((3, 2), (1, 3))
    assert np.asarray(turned).tobytes() == source.T.copy().tobytes()
    assert turned.clone().data_const().tobytes() == source.T.copy().tobytes()


@clause("TENSOR-COPY-1", "TENSOR-COPY-2", "TENSOR-COPY-3")
def test_case_o_s04_a_repeated_row(impl: Any) -> None:
    tall = impl.internal.RawTensor.from_slice((2,), [1, 2]).broadcast_to((4, 2))
    expected = [1.0, 2.0] * 4
    out = np.zeros(8, np.float32)
    tall.copy_to(out)
    assert out.tolist() == expected
    assert tall.clone().data_const().tolist() == expected
    assert np.frombuffer(np.asarray(tall).tobytes(), np.float32).tolist() == expected
    for split in range(9):
        first, rest = np.zeros(split, np.float32), np.zeros(8 - split, np.float32)
        tall.copy_range_to(first, 0, split)
        tall.copy_range_to(rest, split, 8 - split)
        assert first.tolist() + rest.tolist() == expected


@clause("SHAPE-COUNT-1", "SHAPE-RULE-1", "TENSOR-NEW-1")
def test_case_o_s05_counts_that_wrap(impl: Any) -> None:
    internal = impl.internal
    start = internal.allocation_count()
    for kind, shape in (
        (Overflow, (1 << 32, 1 << 32)),
        (Overflow, (1 << 63, 2)),
        (InvalidShape, (2,) * 64),
        (InvalidShape, (1,) * 9),
    ):
        for make in (internal.RawTensor.zeros, internal.shape_mod.element_count):
            assert_raises(kind, None, partial(lambda make, shape: make(shape), make, shape))
    assert internal.allocation_count() == start, "SHAPE-RULE-1: something was allocated"


@clause("SHAPE-COUNT-1", "SHAPE-STRIDES-1")
def test_case_o_s06_products_of_32_bits(impl: Any) -> None:
    assert impl.internal.shape_mod.element_count((4740, 840, 840)) == 3344544000
    assert tuple(impl.internal.shape_mod.contiguous_strides((4740, 840, 840))) == (705600, 840, 1)


def _closes(mapping: mmap.mmap) -> bool:
    """Close a mapping; return whether that could be done."""
    try:
        mapping.close()
    except BufferError:
        return False
    return True


@clause("STORAGE-BORROW-1", "STORAGE-PIN-1")
def test_case_o_s07_a_mapping_closed_under_an_array(impl: Any) -> None:
    mapping = mmap.mmap(-1, 4096)
    tensor = impl.internal.RawTensor.from_borrowed_slice((1024,), mapping)
    view = tensor.view_with_strides((4,), (256,))
    array = tensor.data()
    for release in (tensor.deinit, view.deinit, None):
        assert not _closes(mapping), "a mapping under a tensor or an array was closed"
        if release:
            release()
    array[5] = 3
    assert mapping[20:24] == np.float32(3).tobytes()
    del array
    gc.collect()
    assert _closes(mapping), "a mapping was held beyond its last tensor and array"


@clause("STORAGE-READ-1", "STORAGE-BORROW-2")
def test_case_o_s08_writing_read_only_memory(impl: Any) -> None:
    raw = impl.internal.RawTensor
    frozen = np.ones(4, np.float32)
    frozen.setflags(write=False)
    mapping = mmap.mmap(-1, 4096, access=mmap.ACCESS_READ)
    sources: tuple[tuple[Any, tuple[int]], ...] = ((bytes(16), (4,)), (frozen, (4,)), (mapping, (1024,)))
    for memory, shape in sources:
        before = bytes(memoryview(memory).cast("B"))
        assert_raises(ReadOnlyStorage, None, partial(lambda m, s: raw.from_borrowed_slice(s, m), memory, shape))
        tensor = raw.from_borrowed_const_slice(shape, memory)
        for write in (
            tensor.data,
            tensor.data_checked,
            tensor.buffer.wait_mutable,
            partial(lambda t: t.fill(3.0), tensor),
            partial(lambda t: t.scale_in_place(3.0), tensor),
            partial(lambda t: t.add_in_place(t), tensor),
            partial(lambda t: t.clone_view().fill(3.0), tensor),
        ):
            assert_raises(ReadOnlyStorage, None, write)
        assert not np.asarray(tensor).flags.writeable
        assert not tensor.can_take_in_place()
        if sys.version_info >= (3, 12):
            assert memoryview(tensor).readonly
        assert bytes(memoryview(memory).cast("B")) == before
        tensor.deinit()
    gc.collect()
    assert _closes(mapping)


@clause("TENSOR-LIFE-2", "TENSOR-COPY-3")
def test_case_o_s09_a_small_view_of_a_large_base(impl: Any) -> None:
    import pickle

    view = impl.internal.RawTensor.zeros((100_000,)).view_with_strides_offset((10,), (3,), 7)
    assert_raises(NotCopyable, "TENSOR-LIFE-2", lambda: pickle.dumps(view))
    own = view.clone()
    assert (own.buffer.capacity, own.offset, own.is_contiguous()) == (10, 0, True)
    assert len(pickle.dumps(own.data_const())) < 1000


@clause("TENSOR-VIEW-1", "STORAGE-HOOK-1", "STORAGE-REF-1")
def test_case_o_s10_views_without_their_parents(impl: Any) -> None:
    raw, storage = impl.internal.RawTensor, impl.internal.storage_mod
    log: list[int] = []

    def hook(ctx: Any, given: Any) -> None:
        log.append(1)
        given.destroy()

    buffer = storage.Buffer.create_with_release(1000, storage.Release(None, hook))
    buffer.wait_mutable()[:] = np.arange(1000)
    t = raw.from_owned_buffer(buffer, (1000,))
    v = t.view_with_strides_offset((500,), (1,), 100)
    w = v.view_with_strides_offset((10,), (20,), 5)
    t.deinit()
    v.deinit()
    for _ in range(1000):
        other = raw.zeros((1000,))
        other.fill(-1.0)
        other.deinit()
    assert not log
    assert w.clone().data_const().tolist() == [105.0 + 20 * i for i in range(10)]
    w.deinit()
    assert log == [1]


@clause("TENSOR-DLPACK-1", "TENSOR-DLPACK-2", "STORAGE-PIN-1")
def test_case_o_s12_capsules_that_leak(impl: Any) -> None:
    tensor = impl.internal.RawTensor.zeros((1 << 12,))

    def rounds(n: int) -> None:
        for _ in range(n):
            tensor.__dlpack__()
            tensor.__dlpack__(max_version=(1, 0))
            np.from_dlpack(tensor)
            impl.internal.RawTensor.from_dlpack(np.from_dlpack(tensor)).deinit()

    rounds(100)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(2500)
    gc.collect()
    assert tensor.buffer.refs == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5 * 1024


@clause("TENSOR-DLPACK-2")
def test_case_o_s11_no_strides(impl: Any) -> None:
    data = np.arange(6, dtype=np.float32)
    matrix = impl.internal.RawTensor.from_dlpack(Producer(data, (2, 3), None))
    assert (tuple(matrix.shape), tuple(matrix.strides), matrix.data_const().tolist()) == ((2, 3), (3, 1), data.tolist())
    point = impl.internal.RawTensor.from_dlpack(Producer(data[4:], None, None))
    assert (tuple(point.shape), point.item()) == ((1,), 4.0)


@clause("TENSOR-DLPACK-1", "STORAGE-READ-1")
def test_case_o_s13_writability_is_exchanged(impl: Any) -> None:
    raw = impl.internal.RawTensor
    for tensor, writable in ((raw.zeros((4,)), True), (raw.from_borrowed_const_slice((4,), bytes(16)), False)):
        assert struct_of(tensor.__dlpack__(max_version=(1, 0))).flags & 1 == (not writable)
        assert np.from_dlpack(tensor).flags.writeable == writable
        if not writable:
            assert_raises(BufferError, "TENSOR-DLPACK-1", partial(tensor.__dlpack__, max_version=None))
        back = raw.from_dlpack(np.from_dlpack(tensor))
        assert back.buffer.read_only == (not writable)


@clause("TENSOR-VIEW-3")
def test_case_o_s14_strides_beyond_the_allocation(impl: Any) -> None:
    tensor = impl.internal.RawTensor.zeros((12,))
    assert tensor.view_with_strides((3, 4), (4, 1)).len() == 12
    assert tensor.view_with_strides_offset((1,), (1,), 11).item() == 0.0
    assert tensor.view_with_strides((4,), (3,)).clone().len() == 4
    for shape, strides, offset in (((3, 4), (4, 1), 1), ((4,), (4,), 0), ((1,), (1,), 12), ((2,), (12,), 0)):
        assert_raises(
            InvalidDataLength,
            "TENSOR-VIEW-3",
            partial(lambda a, b, c: tensor.view_with_strides_offset(a, b, c), shape, strides, offset),
        )


@clause("TENSOR-COPY-3", "TENSOR-VIEW-4", "TENSOR-COPY-2")
def test_case_o_s15_a_batch_axis_of_stride_zero(impl: Any) -> None:
    values = np.random.default_rng(15).standard_normal((1, 8, 8)).astype(np.float32)
    batch = impl.internal.RawTensor.from_slice((1, 8, 8), values).broadcast_to((8, 8, 8))
    expected = np.broadcast_to(values, (8, 8, 8)).tobytes()
    assert batch.clone().data_const().tobytes() == expected
    out = np.zeros(512, np.float32)
    batch.copy_range_to(out[:300], 0, 300)
    batch.copy_range_to(out[300:], 300, 212)
    assert out.tobytes() == expected == np.asarray(batch).tobytes()
