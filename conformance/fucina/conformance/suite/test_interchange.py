"""Interchange: numpy, buffers, DLPack, memory maps."""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.capsules import Producer, Versioned, VersionedProducer, name_of, struct_of
from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import DTypeMismatch, ExportRefused, InvalidShape, ReadOnlyStorage, UnsupportedView

CODES = {"i": 0, "u": 1, "f": 2}
SPECIAL = {DType.bf16: 4, DType.bool: 6, DType.f8_e4m3: 10, DType.f8_e5m2: 12}
SCALARS = [d for d in DType if GEOMETRY[d].block_size is None]
NUMPY = [d for d in SCALARS if d not in SPECIAL or d is DType.bool]
each_scalar = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)


def _of(impl: Any, dtype: DType) -> Any:
    return impl.internal.tensor_mod.TensorOf(dtype)


# -- arrays and buffers


@clause("TENSOR-ARRAY-1", "STORAGE-PIN-1")
@each_scalar
def test_arrays(impl: Any, dtype: DType) -> None:
    kind = _of(impl, dtype)
    values = np.arange(24).astype(kind.Element)
    tensor = kind.from_slice((2, 3, 4), values)
    whole = np.asarray(tensor)
    assert (whole.dtype, whole.shape, whole.tobytes()) == (kind.Element, (2, 3, 4), values.tobytes())
    assert np.shares_memory(whole, tensor.data_const())
    turned = tensor.view_with_strides((4, 3, 2), (1, 4, 12))
    assert np.array_equal(np.asarray(turned), values.reshape(2, 3, 4).transpose())
    part = np.asarray(tensor.view_with_strides_offset((3,), (4,), 2))
    assert np.array_equal(part, values[2:11:4])
    part[...] = values[1]
    assert tensor.data_const()[6] == values[1]
    tensor.deinit()
    turned.deinit()
    assert whole.flags.writeable
    assert whole.reshape(-1)[0] == values[0]


@clause("TENSOR-ARRAY-1")
def test_copies_and_casts_on_request(impl: Any) -> None:
    tensor = impl.internal.RawTensor.from_slice((3,), [1, 2, 3])
    refs = tensor.buffer.refs
    for copy in (np.array(tensor), np.asarray(tensor, dtype=np.float64), np.array(tensor, copy=True)):
        assert copy.tolist() == [1.0, 2.0, 3.0]
        copy[0] = 9
    assert tensor.data_const().tolist() == [1.0, 2.0, 3.0]
    assert tensor.buffer.refs == refs


@clause("TENSOR-ARRAY-1", "STORAGE-READ-1", "STORAGE-GEN-1")
def test_what_is_writable(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor, frozen = raw.zeros((2, 3)), raw.from_borrowed_const_slice((2, 3), bytes(24))
    for view, writable in (
        (tensor, True),
        (tensor.view_with_strides((3, 2), (1, 3)), True),
        (tensor.view_with_strides((1, 3), (0, 1)), True),
        (tensor.broadcast_to((4, 2, 3)), False),
        (tensor.view_with_strides((2, 2), (1, 1)), False),
        (frozen, False),
        (frozen.clone(), True),
    ):
        generation = view.buffer.generation
        assert np.asarray(view).flags.writeable is writable
        assert (view.buffer.generation > generation) == writable
    if sys.version_info >= (3, 12):
        assert memoryview(frozen).readonly
        assert not memoryview(tensor).readonly


@clause("TENSOR-ARRAY-1")
def test_blocks_as_arrays(impl: Any) -> None:
    kind = _of(impl, DType.q4_0)
    data = np.arange(18 * 6, dtype=np.uint8)
    tensor = kind.from_storage_slice((2, 96), data.tobytes())
    array = np.asarray(tensor)
    assert (array.shape, array.dtype, array.tobytes()) == ((2, 3), impl.quant.BlockQ4_0, data.tobytes())
    tall = np.asarray(tensor.broadcast_to((2, 2, 96)))
    assert (tall.shape, tall.flags.writeable) == ((2, 2, 3), False)


@clause("TENSOR-ARRAY-1", "STORAGE-PIN-1")
@each_scalar
def test_memoryviews(impl: Any, dtype: DType) -> None:
    kind = _of(impl, dtype)
    tensor = kind.from_slice((2, 3), np.arange(6).astype(kind.Element))
    buffer = tensor.buffer
    # before Python 3.12 no Python class has the buffer protocol; an array of the tensor has
    exporter: Any = tensor if sys.version_info >= (3, 12) else np.asarray(tensor)
    view: Any = memoryview(exporter)
    del exporter
    assert (view.shape, view.itemsize, buffer.refs) == ((2, 3), kind.Element.itemsize, 2)
    tensor.deinit()
    assert view.tobytes() == np.arange(6).astype(kind.Element).tobytes()
    view.release()
    del view
    gc.collect()
    assert buffer.refs == 0


REQUESTS = {
    "simple": 0x0,
    "writable": 0x1,
    "strided": 0x18,
    "in C order": 0x38,
    "in Fortran order": 0x58,
    "in either": 0x98,
    "full": 0x11D,
    "full, to read": 0x11C,
}


@clause("TENSOR-ARRAY-1", "STORAGE-PIN-1", "STORAGE-GEN-1", "STORAGE-READ-1")
@pytest.mark.parametrize("request_", REQUESTS)
def test_requests_for_buffers(impl: Any, request_: str) -> None:
    """Each kind of request on each kind of layout; one that is refused changes nothing."""
    raw = impl.internal.RawTensor
    flags = REQUESTS[request_]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = raw.from_slice((2, 3), values)
    frozen = raw.from_borrowed_const_slice((2, 3), values)
    for view, array, in_c, in_fortran, writable in (
        (tensor, values, True, False, True),
        (tensor.view_with_strides((3, 2), (1, 3)), values.T, False, True, True),
        (tensor.view_with_strides_offset((2, 2), (3, 1), 1), values[:, 1:], False, False, True),
        (tensor.reshape((6,)), values.reshape(6), True, True, True),
        (tensor.broadcast_to((4, 2, 3)), np.broadcast_to(values, (4, 2, 3)), False, False, False),
        (frozen, values, True, False, False),
    ):
        granted = {
            "simple": in_c,
            "writable": in_c and writable,
            "strided": True,
            "in C order": in_c,
            "in Fortran order": in_fortran,
            "in either": in_c or in_fortran,
            "full": writable,
            "full, to read": True,
        }[request_]
        if sys.version_info < (3, 12):  # no Python class has the buffer protocol; the array shows what is granted
            array_of_it = np.asarray(view)
            assert (array_of_it.flags.c_contiguous, array_of_it.flags.f_contiguous) == (in_c, in_fortran)
            assert array_of_it.flags.writeable is writable
            continue
        buffer = view.buffer
        refs, generation = buffer.refs, buffer.generation
        if not granted:
            assert_raises(ExportRefused, "TENSOR-ARRAY-1", partial(view.__buffer__, flags))
            assert (buffer.refs, buffer.generation) == (refs, generation)
            continue
        found = view.__buffer__(flags)
        assert (found.readonly, found.nbytes, buffer.refs) == (not writable, array.nbytes, refs + 1)
        assert buffer.generation == generation + writable
        assert found.obj is not None
        if flags & REQUESTS["full, to read"] == REQUESTS["full, to read"]:
            assert (found.format, found.shape, found.strides) == ("f", array.shape, array.strides)
            assert found.tolist() == array.tolist()
        found.release()
        del found
        gc.collect()
        assert buffer.refs == refs


@clause("TENSOR-ARRAY-1", "STORAGE-PIN-1")
@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.name)
def test_formats_of_memoryviews(impl: Any, dtype: DType) -> None:
    """What a memoryview says is what that of an array of the storage form says; writes reach the tensor."""
    kind = _of(impl, dtype)
    elements = GEOMETRY[dtype].block_size or 1
    form: Any = np.zeros((2, 3), kind.Element)
    wanted = memoryview(form)
    is_block = dtype not in SCALARS
    tensor = kind.from_storage_slice((2, 3 * elements), form) if is_block else kind.from_slice((2, 3), form)
    exporter: Any = tensor if sys.version_info >= (3, 12) else np.asarray(tensor)
    found = memoryview(exporter)
    del exporter
    for name in ("format", "itemsize", "ndim", "shape", "strides", "suboffsets", "readonly", "nbytes", "c_contiguous"):
        assert getattr(found, name) == getattr(wanted, name), name
    np.asarray(found).view(np.uint8).reshape(-1)[1] = 1
    assert tensor.buffer.data.tobytes() == b"\0\1" + bytes(form.nbytes - 2)
    tensor.deinit()
    assert found.tobytes() == b"\0\1" + bytes(form.nbytes - 2)


@clause("TENSOR-NEW-3")
def test_arrays_in_any_order(impl: Any) -> None:
    source = np.arange(12, dtype=np.float32).reshape(3, 4)
    for array in (source, np.asfortranarray(source), source.T, source[::-1], source[:, ::2], source[1:, 1:].T):
        tensor = impl.internal.RawTensor.from_slice(array.shape, array)
        assert np.array_equal(np.asarray(tensor), array)


# -- DLPack


@clause("TENSOR-DLPACK-1")
@each_scalar
def test_capsules(impl: Any, dtype: DType) -> None:
    kind = _of(impl, dtype)
    tensor = kind.from_slice((2, 3), np.arange(6).astype(kind.Element))
    view = tensor.view_with_strides_offset((2, 2), (1, 3), 1)
    code = SPECIAL.get(dtype, CODES.get(kind.Element.kind))
    for version in (None, (0, 8), (1, 0), (1, 3), (2, 0)):
        capsule = view.__dlpack__(max_version=version)
        managed = struct_of(capsule)
        assert isinstance(managed, Versioned) == (version is not None and version >= (1, 0))
        found = managed.tensor
        assert (found.code, found.bits, found.lanes) == (code, 8 * kind.Element.itemsize, 1)
        assert (found.ndim, found.shape[:2], found.strides[:2]) == (2, [2, 2], [1, 3])
        assert found.data + found.byte_offset == tensor.buffer.address + kind.Element.itemsize
        assert (found.device_type, found.device_id) == view.__dlpack_device__() == (1, 0)
        if isinstance(managed, Versioned):
            assert (managed.major, managed.flags) == (1, 0)
        refs = tensor.buffer.refs
        del capsule, managed, found
        gc.collect()
        assert tensor.buffer.refs == refs - 1, "TENSOR-DLPACK-1: a capsule that nobody consumed kept its reference"


@clause("TENSOR-DLPACK-1", "TENSOR-DLPACK-2")
@pytest.mark.parametrize("dtype", NUMPY, ids=lambda d: d.name)
def test_round_trips_with_numpy(impl: Any, dtype: DType) -> None:
    kind = _of(impl, dtype)
    values = np.arange(6).astype(kind.Element)
    tensor = kind.from_slice((2, 3), values)
    array = np.from_dlpack(tensor)
    assert np.array_equal(array, values.reshape(2, 3))
    back = kind.from_dlpack(array)
    assert (tuple(back.shape), back.buffer.address) == ((2, 3), tensor.buffer.address)
    back.fill(impl.dtype.one(dtype))
    assert np.all(np.asarray(tensor) == 1)
    buffer = tensor.buffer
    tensor.deinit()
    del array
    gc.collect()
    assert back.data_const().tolist() == [1] * 6
    back.deinit()
    gc.collect()
    assert buffer.refs == 0


@clause("TENSOR-DLPACK-1", "STORAGE-READ-1")
def test_read_only_exports(impl: Any) -> None:
    raw = impl.internal.RawTensor
    tensor, frozen = raw.zeros((4,)), raw.from_borrowed_const_slice((4,), bytes(16))
    for view, flags in ((tensor, 0), (frozen, 1), (tensor.broadcast_to((2, 4)), 1)):
        assert struct_of(view.__dlpack__(max_version=(1, 0))).flags == flags
        assert struct_of(view.__dlpack__(max_version=(1, 0), copy=True)).flags == 2
        assert np.from_dlpack(view).flags.writeable == (flags == 0)
        if flags:
            for version in (None, (0, 9)):
                refused = partial(view.__dlpack__, max_version=version)
                assert_raises(BufferError, "TENSOR-DLPACK-1", refused)
                assert_raises(ExportRefused, "TENSOR-DLPACK-1", refused)
        copy = view.__dlpack__(copy=True)
        assert struct_of(copy).tensor.data != view.buffer.address
    refs = tensor.buffer.refs
    assert_raises(ExportRefused, "TENSOR-DLPACK-1", partial(tensor.__dlpack__, stream=1))
    assert_raises(ExportRefused, "TENSOR-DLPACK-1", partial(tensor.__dlpack__, dl_device=(2, 0)))
    blocks = _of(impl, DType.q8_0).from_storage_slice((32,), bytes(34))
    assert_raises(ExportRefused, "TENSOR-DLPACK-1", blocks.__dlpack__)
    gc.collect()
    assert (tensor.buffer.refs, blocks.buffer.refs) == (refs, 1)


@clause("TENSOR-DLPACK-2")
def test_imports(impl: Any) -> None:
    raw = impl.internal.RawTensor
    data = np.arange(12, dtype=np.float32)
    for shape, strides, fields in (
        ((3, 4), None, {}),
        ((3, 4), (4, 1), {}),
        ((1, 4), (99, 1), {}),
        (None, None, {}),
        ((4,), None, {"byte_offset": 16}),
        ((2, 2, 2), None, {"shift": 8}),
    ):
        producer = Producer(data, shape, strides, **fields)
        tensor = raw.from_dlpack(producer)
        start = sum(fields.values()) // 4
        wanted = shape or (1,)
        n = int(np.prod(wanted))
        assert (tuple(tensor.shape), tensor.data_const().tolist()) == (wanted, data[start : start + n].tolist())
        assert tensor.is_contiguous()
        assert not tensor.buffer.read_only
        view = tensor.clone_view()
        tensor.deinit()
        gc.collect()
        assert producer.deleted == 0
        view.deinit()
        gc.collect()
        assert producer.deleted == 1, "TENSOR-DLPACK-2: given back once, at the final release"


@clause("TENSOR-DLPACK-2")
def test_imports_that_are_refused(impl: Any) -> None:
    raw = impl.internal.RawTensor
    data = np.zeros(100, np.float32)
    for kind, shape, strides, fields in (
        (DTypeMismatch, (4,), None, {"bits": 64}),
        (DTypeMismatch, (4,), None, {"code": 0}),
        (DTypeMismatch, (4,), None, {"lanes": 2}),
        (ExportRefused, (4,), None, {"device_type": 2}),
        (InvalidShape, (4, 0), None, {}),
        (InvalidShape, (1,) * 9, None, {}),
        (UnsupportedView, (3, 4), (1, 3), {}),
        (UnsupportedView, (4,), (2,), {}),
        (UnsupportedView, (4,), (-1,), {}),
        (UnsupportedView, (4,), None, {"byte_offset": 2}),
    ):
        producer = Producer(data, shape, strides, **fields)
        capsule = producer.capsule()
        assert_raises(kind, "TENSOR-DLPACK-2", partial(lambda capsule: raw.from_dlpack(capsule), capsule))
        assert name_of(capsule) == b"dltensor", "TENSOR-DLPACK-2: what is refused is left to its owner"
        assert producer.deleted == 0
    for nothing in (None, 3, np.float32, bytes(4)):
        assert_raises(DTypeMismatch, "TENSOR-DLPACK-2", partial(lambda nothing: raw.from_dlpack(nothing), nothing))
    capsule = Producer(data, (4,), None).capsule()
    raw.from_dlpack(capsule).deinit()
    assert_raises(DTypeMismatch, "TENSOR-DLPACK-2", lambda: raw.from_dlpack(capsule))
    late = VersionedProducer(data, major=2)
    assert_raises(ExportRefused, "TENSOR-DLPACK-2", lambda: raw.from_dlpack(late))
    assert_raises(ExportRefused, None, lambda: _of(impl, DType.q8_0).from_dlpack(data))


@clause("TENSOR-DLPACK-2", "STORAGE-READ-1")
def test_read_only_imports(impl: Any) -> None:
    raw = impl.internal.RawTensor
    data = np.arange(4, dtype=np.float32)
    for flags in (0, 1, 2, 3):
        producer = VersionedProducer(data, flags)
        tensor = raw.from_dlpack(producer)
        assert tensor.buffer.read_only == bool(flags & 1)
        if flags & 1:
            assert_raises(ReadOnlyStorage, "STORAGE-READ-1", partial(tensor.fill, 1.0))
        tensor.deinit()
        gc.collect()
        assert producer.deleted == 1
    data.setflags(write=False)
    tensor = raw.from_dlpack(data)
    assert tensor.buffer.read_only
    assert_raises(ReadOnlyStorage, "STORAGE-READ-1", partial(tensor.fill, 1.0))
