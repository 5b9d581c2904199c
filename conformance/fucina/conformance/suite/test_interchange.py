"""Interchange: numpy, buffers, DLPack, memory maps."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import DTypeMismatch, ExportRefused, InvalidShape, ReadOnlyStorage, UnsupportedView

CODES = {"i": 0, "u": 1, "f": 2}
SPECIAL = {DType.bf16: 4, DType.bool: 6, DType.f8_e4m3: 10, DType.f8_e5m2: 12}
SCALARS = [d for d in DType if GEOMETRY[d].block_size is None]
NUMPY = [d for d in SCALARS if d not in SPECIAL or d is DType.bool]
each_scalar = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)


def _of(impl: Any, dtype: DType) -> Any:
    return impl.internal.tensor_mod.TensorOf(dtype)


# -- the structs of DLPack, written apart from any implementation


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_api = ctypes.pythonapi
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _struct(capsule: object) -> Any:
    name = _name(capsule)
    kind = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}[name]
    return kind.from_address(_pointer(capsule, name))


class _Producer:
    """Something of another library, with whatever geometry a test wants."""

    NAME = b"dltensor"

    def __init__(
        self, data: Any, shape: tuple[int, ...] | None, strides: tuple[int, ...] | None, **fields: int
    ) -> None:
        self.data, self.deleted = data, 0
        self.shape = (ctypes.c_int64 * len(shape))(*shape) if shape else None
        self.strides = (ctypes.c_int64 * len(strides))(*strides) if strides else None
        self.deleter = _DELETER(self._delete)
        address = data.ctypes.data + fields.pop("shift", 0)
        values = {"device_type": 1, "device_id": 0, "ndim": len(shape or ()), "code": 2, "bits": 32, "lanes": 1}
        values |= {"byte_offset": 0} | fields
        self.tensor = _Tensor(data=address, shape=self.shape, strides=self.strides, **values)
        self.managed: Any = _Managed(self.tensor, None, ctypes.cast(self.deleter, ctypes.c_void_p))

    def _delete(self, address: int) -> None:
        self.deleted += 1

    def capsule(self) -> object:
        return _new(ctypes.addressof(self.managed), self.NAME, None)

    def __dlpack__(self) -> object:
        return self.capsule()


class _VersionedProducer(_Producer):
    NAME = b"dltensor_versioned"

    def __init__(self, data: Any, flags: int = 0, major: int = 1) -> None:
        super().__init__(data, (4,), None)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        self.managed = _Versioned(major, 0, None, deleter, flags, self.tensor)

    def __dlpack__(self, *, max_version: tuple[int, int]) -> object:  # type: ignore[override]
        return self.capsule()


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
        managed = _struct(capsule)
        assert isinstance(managed, _Versioned) == (version is not None and version >= (1, 0))
        found = managed.tensor
        assert (found.code, found.bits, found.lanes) == (code, 8 * kind.Element.itemsize, 1)
        assert (found.ndim, found.shape[:2], found.strides[:2]) == (2, [2, 2], [1, 3])
        assert found.data + found.byte_offset == tensor.buffer.address + kind.Element.itemsize
        assert (found.device_type, found.device_id) == view.__dlpack_device__() == (1, 0)
        if isinstance(managed, _Versioned):
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
        assert _struct(view.__dlpack__(max_version=(1, 0))).flags == flags
        assert _struct(view.__dlpack__(max_version=(1, 0), copy=True)).flags == 2
        assert np.from_dlpack(view).flags.writeable == (flags == 0)
        if flags:
            for version in (None, (0, 9)):
                refused = partial(view.__dlpack__, max_version=version)
                assert_raises(BufferError, "TENSOR-DLPACK-1", refused)
                assert_raises(ExportRefused, "TENSOR-DLPACK-1", refused)
        copy = view.__dlpack__(copy=True)
        assert _struct(copy).tensor.data != view.buffer.address
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
        producer = _Producer(data, shape, strides, **fields)
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
        producer = _Producer(data, shape, strides, **fields)
        capsule = producer.capsule()
        assert_raises(kind, "TENSOR-DLPACK-2", partial(lambda capsule: raw.from_dlpack(capsule), capsule))
        assert _name(capsule) == b"dltensor", "TENSOR-DLPACK-2: what is refused is left to its owner"
        assert producer.deleted == 0
    for nothing in (None, 3, np.float32, bytes(4)):
        assert_raises(DTypeMismatch, "TENSOR-DLPACK-2", partial(lambda nothing: raw.from_dlpack(nothing), nothing))
    capsule = _Producer(data, (4,), None).capsule()
    raw.from_dlpack(capsule).deinit()
    assert_raises(DTypeMismatch, "TENSOR-DLPACK-2", lambda: raw.from_dlpack(capsule))
    late = _VersionedProducer(data, major=2)
    assert_raises(ExportRefused, "TENSOR-DLPACK-2", lambda: raw.from_dlpack(late))
    assert_raises(ExportRefused, None, lambda: _of(impl, DType.q8_0).from_dlpack(data))


@clause("TENSOR-DLPACK-2", "STORAGE-READ-1")
def test_read_only_imports(impl: Any) -> None:
    raw = impl.internal.RawTensor
    data = np.arange(4, dtype=np.float32)
    for flags in (0, 1, 2, 3):
        producer = _VersionedProducer(data, flags)
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
