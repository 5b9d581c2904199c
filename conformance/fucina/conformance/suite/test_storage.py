"""Storage: construction, references, hooks, the end, generations, shadows, threads, collection."""

from __future__ import annotations

import copy
import gc
import mmap
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    NotCopyable,
    OutOfMemory,
    Overflow,
    OverRelease,
    ReadOnlyStorage,
    UnsupportedView,
    UseAfterDeinit,
)

each_dtype = pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)


def _storage(impl: Any) -> Any:
    return impl.internal.storage_mod


@clause("STORAGE-TYPE-1")
@each_dtype
def test_types(impl: Any, dtype: DType) -> None:
    kind = _storage(impl).BufferOf(dtype)
    assert kind is _storage(impl).BufferOf(dtype)
    assert kind.dtype is dtype
    assert kind.Element == impl.dtype.storage(dtype)
    assert (kind is _storage(impl).Buffer) == (dtype is DType.f32)
    buffer = kind.create(3)
    assert (buffer.capacity, buffer.data.dtype, buffer.data.shape) == (3, kind.Element, (3,))
    buffer.release()


@clause("STORAGE-TYPE-1")
def test_types_that_there_are_not(impl: Any) -> None:
    for nothing in ("f32", 3, None, np.float32):
        assert_raises(InvalidDType, None, partial(lambda nothing: _storage(impl).BufferOf(nothing), nothing))
    assert_raises(TypeError, None, lambda: _storage(impl).Buffer(3))


@clause("STORAGE-TYPE-1")
def test_equality_is_that_of_the_storage(impl: Any) -> None:
    one, other = (impl.internal.RawTensor.zeros((2,)) for _ in range(2))
    view = one.clone_view()
    assert one.buffer == view.buffer
    assert hash(one.buffer) == hash(view.buffer)
    assert one.buffer != other.buffer


@clause("STORAGE-CREATE-1")
@pytest.mark.parametrize("length", [0, 1, 15, 1000, 100_003])
def test_created_memory(impl: Any, length: int) -> None:
    for dtype in (DType.f32, DType.u8, DType.f64, DType.q4_k):
        buffer = _storage(impl).BufferOf(dtype).create(length)
        assert (buffer.capacity, buffer.refs, buffer.generation, buffer.read_only) == (length, 1, 0, False)
        assert buffer.address % 64 == 0, "STORAGE-CREATE-1: not aligned to 64"
        buffer.wait_mutable().view(np.uint8)[:] = 7
        assert np.all(buffer.data.view(np.uint8) == 7)
        buffer.release()


@clause("STORAGE-CREATE-1")
def test_lengths_that_are_refused(impl: Any) -> None:
    for make in (_storage(impl).Buffer.create, lambda n: _storage(impl).Buffer.create_with_release(n, _hook(impl, []))):
        for bad in (1.5, "3", None, True):
            assert_raises(InvalidInteger, "STORAGE-CREATE-1", partial(lambda make, bad: make(bad), make, bad))
        assert_raises(InvalidDataLength, "STORAGE-CREATE-1", partial(lambda make: make(-1), make))
        assert_raises(Overflow, "STORAGE-CREATE-1", partial(lambda make: make(1 << 64), make))
        for huge in ((1 << 64) - 1, 1 << 62, 1 << 61, 1 << 58):
            assert_raises(OutOfMemory, "STORAGE-CREATE-1", partial(lambda make, huge: make(huge), make, huge))


@clause("STORAGE-COPY-1")
@each_dtype
def test_copies_keep_every_bit(impl: Any, dtype: DType) -> None:
    kind = _storage(impl).BufferOf(dtype)
    size = GEOMETRY[dtype].byte_size
    raw = np.random.default_rng(7).integers(0, 256, (6, size), dtype=np.uint8)
    if dtype is DType.bool:
        raw &= 1
    elements = raw.reshape(-1).view(kind.Element)
    given: list[Any] = [elements, elements.reshape(2, 3), elements[::-1][::-1]]
    if dtype is not DType.bool:
        given += [raw.tobytes(), bytearray(raw.tobytes())]
    for values in given:
        assert kind.from_slice(values).data.tobytes() == raw.tobytes()
    strided = elements.reshape(2, 3).T[:, ::-1]
    assert kind.from_slice(strided).data.tobytes() == np.ascontiguousarray(strided).tobytes()
    odd = np.zeros(raw.size + 1, np.uint8)
    odd[1:] = raw.reshape(-1)
    assert kind.from_slice(odd[1:].view(kind.Element)).data.tobytes() == raw.tobytes()


@clause("STORAGE-COPY-1", "BRIDGE-SCALAR-4")
def test_copies_of_sequences(impl: Any) -> None:
    kind = _storage(impl).BufferOf
    assert kind(DType.f16).from_slice([1, 0.1]).data.view(np.uint16).tolist() == [0x3C00, 0x2E66]
    assert kind(DType.bf16).from_slice((0x3F80,)).data.tolist() == [0x3F80]
    assert kind(DType.i8).from_slice(range(-2, 2)).data.tolist() == [-2, -1, 0, 1]
    assert kind(DType.bool).from_slice([True, False]).data.tolist() == [True, False]
    assert kind(DType.u8).from_slice([]).capacity == 0
    assert_raises(Overflow, "BRIDGE-SCALAR-4", lambda: kind(DType.u8).from_slice([256]))
    for dtype, bad in ((DType.u8, [1.5]), (DType.bool, [1]), (DType.f32, ["1"]), (DType.f32, [[1.0]])):
        assert_raises(
            DTypeMismatch, "BRIDGE-SCALAR-4", partial(lambda dtype, bad: kind(dtype).from_slice(bad), dtype, bad)
        )


@clause("STORAGE-COPY-1", "STORAGE-BORROW-2")
def test_values_that_are_refused(impl: Any) -> None:
    storage = _storage(impl)
    for name in ("from_slice", "from_borrowed_slice", "from_borrowed_const_slice"):
        for bad in (
            np.zeros(3),
            np.zeros(3, ">f4"),
            np.zeros(8, np.uint8),
            np.zeros(2, np.int32),
            np.ma.masked_array(np.zeros(3, np.float32)),
            3,
            None,
            "abcd",
            {1.0},
        ):
            assert_raises(DTypeMismatch, None, partial(lambda name, bad: getattr(storage.Buffer, name)(bad), name, bad))
        assert_raises(InvalidDataLength, None, partial(lambda name: getattr(storage.Buffer, name)(bytearray(5)), name))
        assert_raises(
            DTypeMismatch, None, partial(lambda name: getattr(storage.BufferOf(DType.bool), name)(bytes(3)), name)
        )
        other = np.zeros(2, impl.quant.BlockQ4_1)
        assert_raises(
            DTypeMismatch,
            None,
            partial(lambda name, other: getattr(storage.BufferOf(DType.q4_0), name)(other), name, other),
        )
    for name in ("from_borrowed_slice", "from_borrowed_const_slice"):
        assert_raises(
            DTypeMismatch, "STORAGE-BORROW-2", partial(lambda name: getattr(storage.Buffer, name)([1.0]), name)
        )


@clause("STORAGE-BORROW-1")
def test_borrowed_memory_is_shared(impl: Any) -> None:
    storage = _storage(impl)
    source = np.arange(4, dtype=np.float32)
    for borrow in (storage.Buffer.from_borrowed_slice, storage.Buffer.from_borrowed_const_slice):
        buffer = borrow(source)
        assert buffer.address == source.ctypes.data
        source[1] = 9
        assert buffer.data.tolist() == source.tolist()
        buffer.release()
        source[1] = 1
    buffer = storage.Buffer.from_borrowed_slice(source)
    buffer.wait_mutable()[2] = -5
    assert source[2] == -5
    buffer.release()


@clause("STORAGE-BORROW-1")
def test_a_borrow_holds_its_exporter(impl: Any) -> None:
    room = bytearray(16)
    buffer = _storage(impl).Buffer.from_borrowed_slice(room)
    with pytest.raises(BufferError):
        room.append(1)
    buffer.release()
    room.append(1)
    array = np.ones(4, np.float32)
    buffer = _storage(impl).Buffer.from_borrowed_slice(array)
    del array
    gc.collect()
    assert buffer.data.tolist() == [1.0] * 4
    buffer.release()


@clause("STORAGE-BORROW-2", "STORAGE-READ-1")
def test_what_cannot_be_borrowed(impl: Any) -> None:
    kind = _storage(impl).Buffer
    odd = np.zeros(17, np.uint8)[1:]
    frozen = np.zeros(2, np.float32)
    frozen.setflags(write=False)
    for borrow in (kind.from_borrowed_slice, kind.from_borrowed_const_slice):
        assert_raises(
            UnsupportedView, "STORAGE-BORROW-2", partial(lambda b: b(np.zeros((2, 4), np.float32)[:, ::2]), borrow)
        )
        assert_raises(UnsupportedView, "STORAGE-BORROW-2", partial(lambda b: b(np.zeros((2, 4), np.float32).T), borrow))
        assert_raises(UnsupportedView, "STORAGE-BORROW-2", partial(lambda b: b(odd.view(np.float32)), borrow))
    for memory in (frozen, bytes(8)):
        assert_raises(ReadOnlyStorage, "STORAGE-BORROW-2", partial(lambda m: kind.from_borrowed_slice(m), memory))
        buffer = kind.from_borrowed_const_slice(memory)
        assert buffer.read_only
        assert_raises(ReadOnlyStorage, "STORAGE-READ-1", buffer.wait_mutable)
        assert buffer.generation == 0, "STORAGE-GEN-1: a refused access does not count"
        buffer.release()
    blocks = _storage(impl).BufferOf(DType.q8_0)
    assert blocks.from_borrowed_slice(np.zeros(35, np.uint8)[1:].view(blocks.Element)).capacity == 1


# -- references


@clause("STORAGE-REF-1")
def test_references_are_counted(impl: Any) -> None:
    buffer = _storage(impl).Buffer.create(1)
    for n in range(1, 6):
        assert (buffer.refs, buffer.is_unique()) == (n, n == 1)
        buffer.retain()
    for n in range(5, 0, -1):
        buffer.release()
        assert buffer.refs == n
    buffer.release()
    assert buffer.refs == 0
    for _ in range(2):
        assert_raises(OverRelease, "STORAGE-REF-1", buffer.release)


@clause("STORAGE-REF-1", "STORAGE-PIN-1", "TENSOR-LIFE-1")
def test_a_reference_released_behind_a_tensors_back(impl: Any) -> None:
    tensor = impl.internal.RawTensor.zeros((4,))
    buffer = tensor.buffer
    buffer.release()
    assert_raises(OverRelease, "STORAGE-REF-1", buffer.release)
    for use in (tensor.data, tensor.clone, tensor.deinit, tensor.len, lambda: tensor.shape, tensor.clone_view):
        assert_raises(UseAfterDeinit, None, use)
    tensor = impl.internal.RawTensor.zeros((4,))
    array = tensor.data()
    buffer = tensor.buffer
    buffer.release()
    assert_raises(OverRelease, "STORAGE-REF-1", buffer.release)
    array[:] = 3
    tensor = None
    gc.collect()
    assert array.tolist() == [3.0] * 4


@clause("STORAGE-REF-2")
def test_reset(impl: Any) -> None:
    log: list[Any] = []
    buffer = _storage(impl).Buffer.create_with_release(2, _hook(impl, log))
    buffer.reset_refs()
    assert buffer.refs == 1
    buffer.retain()
    assert_raises(OverRelease, "STORAGE-REF-2", buffer.reset_refs)
    assert buffer.refs == 2
    buffer.release()
    for n in (1, 2, 3):
        buffer.release()
        assert (len(log), buffer.refs) == (n, 0)
        buffer.reset_refs()
        assert buffer.refs == 1
        buffer.wait_mutable()[:] = n
    buffer.destroy()
    assert_raises(UseAfterDeinit, "STORAGE-REF-2", buffer.reset_refs)
    assert len(log) == 3


def _hook(impl: Any, log: list[Any], ctx: object = None, *, destroy: bool = False) -> Any:
    def run(given: Any, buffer: Any) -> None:
        log.append((given, threading.get_ident()))
        if destroy:
            buffer.destroy()

    return _storage(impl).Release(ctx, run)


@clause("STORAGE-HOOK-1")
def test_the_hook_runs_once_with_what_it_was_bound_to(impl: Any) -> None:
    kind = _storage(impl).Buffer
    makers: tuple[Callable[[Any], Any], ...] = (
        partial(kind.create_with_release, 2),
        partial(kind.from_borrowed_slice_with_release, np.zeros(2, np.float32)),
    )
    contexts: tuple[Any, ...] = (None, "mine", 0, [])
    for make in makers:
        for ctx in contexts:
            log: list[Any] = []
            hook = _hook(impl, log, ctx, destroy=True)
            buffer = make(hook)
            assert buffer.release_hook == hook
            buffer.retain()
            view = buffer.data
            buffer.release()
            buffer.release()
            assert not log, "STORAGE-HOOK-1: an array still holds a reference"
            del view
            assert len(log) == 1
            assert log[0][0] is ctx if ctx is not None else log[0][0] == buffer
            assert_raises(OverRelease, None, buffer.release)
            del buffer
            gc.collect()
            assert len(log) == 1
    assert kind.create(1).release_hook == _storage(impl).Release()
    assert_raises(DTypeMismatch, "STORAGE-HOOK-1", lambda: kind.create_with_release(1, print))


@clause("STORAGE-HOOK-1", "STORAGE-THREAD-1")
def test_the_hook_runs_where_the_last_reference_goes(impl: Any) -> None:
    log: list[Any] = []
    buffer = _storage(impl).Buffer.create_with_release(2, _hook(impl, log, destroy=True))
    thread = threading.Thread(target=buffer.release)
    thread.start()
    thread.join()
    assert [where for _, where in log] == [thread.ident]


@clause("STORAGE-THREAD-1")
def test_racing_references(impl: Any) -> None:
    for _ in range(20):
        log: list[Any] = []
        buffer = _storage(impl).Buffer.create_with_release(2, _hook(impl, log, destroy=True))
        for _ in range(400):
            buffer.retain()
        gate = threading.Barrier(4)

        def work(buffer: Any = buffer, gate: threading.Barrier = gate) -> None:
            gate.wait()
            for _ in range(100):
                buffer.retain()
                buffer.release()
                buffer.release()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (buffer.refs, len(log)) == (1, 0)
        buffer.release()
        assert len(log) == 1


@clause("STORAGE-HOOK-2")
def test_a_hook_disposes_of_a_mapping(impl: Any) -> None:
    mapping = mmap.mmap(-1, 4096)
    seen: list[Any] = []

    def unmap(ctx: Any, buffer: Any) -> None:
        seen.append((buffer.capacity, buffer.refs, int(buffer.data[3]), buffer.address != 0))
        buffer.destroy_header()
        ctx.close()

    buffer = (
        _storage(impl)
        .BufferOf(DType.i32)
        .from_borrowed_slice_with_release(mapping, _storage(impl).Release(mapping, unmap))
    )
    buffer.wait_mutable()[3] = 42
    tensor = impl.internal.tensor_mod.TensorOf(DType.i32).from_owned_buffer(buffer, (4, 8))
    view = tensor.reshape((32,))
    tensor.deinit()
    with pytest.raises(BufferError):
        mapping.close()
    view.deinit()
    assert mapping.closed
    assert seen == [(1024, 0, 42, True)]
    assert_raises(UseAfterDeinit, None, buffer.destroy)


@clause("STORAGE-HOOK-2")
def test_a_hook_that_raises(impl: Any) -> None:
    def fail(ctx: Any, buffer: Any) -> None:
        raise LookupError("a hook that fails")

    source = bytearray(8)
    hook = _storage(impl).Release(None, fail)
    for end in ("release", "deinit"):
        buffer = _storage(impl).Buffer.from_borrowed_slice_with_release(source, hook)
        given = buffer
        if end == "deinit":
            given = impl.internal.RawTensor.from_owned_buffer(buffer, (2,))
        with pytest.raises(LookupError, match="a hook that fails"):
            getattr(given, end)()
        assert buffer.refs == 0
        assert_raises(UseAfterDeinit, None, buffer.destroy)
        source.append(0)
        source.pop()


# -- the end


@clause("STORAGE-DESTROY-1", "STORAGE-DEAD-1")
@pytest.mark.parametrize("end", ["destroy", "destroy_header"])
def test_destroyed(impl: Any, end: str) -> None:
    tensor = impl.internal.RawTensor.from_slice((2,), [1, 2])
    buffer, array = tensor.buffer, tensor.data_const()
    buffer.retain()
    getattr(buffer, end)()
    assert buffer.refs == 0
    assert array.tolist() == [1.0, 2.0], "STORAGE-DESTROY-1: memory went away under an array"
    for use in (buffer.retain, buffer.wait_mutable, buffer.destroy, buffer.destroy_header, tensor.data, tensor.deinit):
        assert_raises(UseAfterDeinit, None, use)
    for look in (lambda: buffer.data, lambda: buffer.address):
        assert_raises(UseAfterDeinit, "STORAGE-DEAD-1", look)
    assert_raises(OverRelease, "STORAGE-REF-1", buffer.release)
    assert (buffer.capacity, buffer.generation, buffer.read_only, buffer.host_shadow) == (2, 0, False, None)


@clause("STORAGE-DEAD-1", "STORAGE-NULL-1")
def test_released(impl: Any) -> None:
    buffer = _storage(impl).Buffer.create(2)
    buffer.release()
    for use in (
        buffer.retain,
        buffer.wait_mutable,
        buffer.wait_ready,
        buffer.wait_unused,
        buffer.has_pending,
        buffer.discard_pending,
        buffer.acquire_pending,
        lambda: buffer.set_pending_use(None),
        lambda: buffer.set_host_shadow(None),
        lambda: impl.internal.RawTensor.from_owned_buffer(buffer, (2,)),
    ):
        assert_raises(UseAfterDeinit, None, use)


@clause("STORAGE-DATA-1", "STORAGE-PIN-1")
def test_arrays(impl: Any) -> None:
    buffer = _storage(impl).Buffer.from_slice([1, 2, 3])
    looks = [buffer.data, buffer.data[1:], buffer.wait_mutable()[::2], memoryview(buffer.data)]
    assert buffer.refs == 1 + len(looks)
    assert not buffer.is_unique()
    assert [np.asarray(look).flags.writeable for look in looks] == [False, False, True, False]
    with pytest.raises(ValueError, match="read-only"):
        looks[0][0] = 1
    buffer.release()
    while len(looks) > 1:
        looks.pop(0)
        assert buffer.refs == len(looks)
    assert np.asarray(looks[0]).tolist() == [1.0, 2.0, 3.0]
    looks.clear()
    assert buffer.refs == 0


@clause("STORAGE-GEN-1")
def test_generations(impl: Any) -> None:
    tensor = impl.internal.RawTensor.zeros((2, 2))
    buffer = tensor.buffer
    steps = [
        (tensor.data, 1),
        (tensor.data_checked, 1),
        (buffer.wait_mutable, 1),
        (lambda: tensor.fill(1.0), 1),
        (lambda: tensor.scale_in_place(2.0), 1),
        (lambda: tensor.add_in_place(tensor), 1),
        (lambda: np.asarray(tensor), 1),
        (lambda: tensor.__dlpack__(), 1),
        (tensor.data_const, 0),
        (tensor.clone, 0),
        (tensor.clone_view, 0),
        (lambda: buffer.data, 0),
        (lambda: np.asarray(tensor.broadcast_to((3, 2, 2))), 0),
        (lambda: tensor.copy_to(np.zeros(4, np.float32)), 0),
        (lambda: assert_raises(UnsupportedView, None, tensor.view_with_strides((2,), (2,)).data), 0),
        (lambda: assert_raises(DTypeMismatch, None, lambda: tensor.fill("x")), 0),
    ]
    for number, (step, grows) in enumerate(steps):
        before = buffer.generation
        step()
        assert buffer.generation == before + grows, f"STORAGE-GEN-1: step {number}"


@clause("STORAGE-SHADOW-1")
def test_shadows(impl: Any) -> None:
    shadow_type = _storage(impl).HostShadow
    log: list[str] = []
    tensor = impl.internal.RawTensor.zeros((2,))
    buffer = tensor.buffer

    def keep(name: str) -> Any:
        shadow = shadow_type(name, log.append)
        buffer.set_host_shadow(shadow)
        assert buffer.host_shadow is shadow
        return shadow

    for number, drop in enumerate(
        (
            buffer.wait_mutable,
            tensor.data,
            lambda: tensor.fill(0.0),
            lambda: tensor.scale_in_place(1.0),
            lambda: tensor.add_in_place(tensor),
            lambda: buffer.set_host_shadow(None),
        )
    ):
        keep(f"shadow {number}")
        drop()
        assert (buffer.host_shadow, log) == (None, [f"shadow {i}" for i in range(number + 1)])
    log.clear()
    first = keep("first")
    buffer.set_host_shadow(first)
    tensor.data_const()
    assert not log
    keep("second")
    assert log == ["first"]
    tensor.deinit()
    assert log == ["first", "second"]
    assert shadow_type().data is None
    assert_raises(DTypeMismatch, "STORAGE-SHADOW-1", lambda: _storage(impl).Buffer.create(1).set_host_shadow("shadow"))


@clause("STORAGE-SHADOW-1")
def test_the_variable_makes_no_shadow(impl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUCINA_CPU_F32_SHADOW", "1")
    tensor = impl.internal.tensor_mod.TensorOf(DType.bf16).ones((4,))
    tensor.add_in_place(tensor)
    assert tensor.buffer.host_shadow is None


@clause("STORAGE-NULL-1")
def test_no_accelerator(impl: Any) -> None:
    storage = _storage(impl)
    buffer = storage.Buffer.create(1)
    assert storage.has_accelerator is False
    assert storage.Work().ensure_finished() is None
    for call in (buffer.wait_ready, buffer.wait_unused, buffer.discard_pending, buffer.acquire_pending):
        assert call() is None
    for work in (None, storage.Work()):
        assert buffer.set_pending_use(work) is None
    assert buffer.has_pending() is False
    assert buffer.accelerator_resource is None
    assert (buffer.refs, buffer.generation) == (1, 0)


@clause("STORAGE-GC-1")
def test_collection(impl: Any) -> None:
    log: list[Any] = []
    buffer = _storage(impl).Buffer.create_with_release(2, _hook(impl, log, "gone", destroy=True))
    buffer.retain()
    tensor = impl.internal.RawTensor.from_owned_buffer(buffer, (2,))
    view = tensor.clone_view()
    array = view.data_const()
    del buffer, tensor, view
    gc.collect()
    assert not log
    del array
    gc.collect()
    assert [ctx for ctx, _ in log] == ["gone"]


@clause("STORAGE-GC-1")
def test_collection_of_a_cycle(impl: Any) -> None:
    log: list[Any] = []

    class Cycle:
        pass

    cycle: Any = Cycle()
    cycle.me = cycle
    cycle.tensor = impl.internal.RawTensor.from_owned_buffer(
        _storage(impl).Buffer.create_with_release(2, _hook(impl, log, "gone", destroy=True)), (2,)
    )
    cycle.buffer = cycle.tensor.buffer
    del cycle
    gc.collect()
    assert [ctx for ctx, _ in log] == ["gone"]


@clause("STORAGE-GC-2", "TENSOR-LIFE-2")
def test_nothing_is_copied(impl: Any) -> None:
    tensor = impl.internal.RawTensor.zeros((2,))
    for given in (tensor, tensor.buffer):
        for refused in (copy.copy, copy.deepcopy, pickle.dumps):
            assert_raises(NotCopyable, None, partial(lambda refused, given: refused(given), refused, given))
    assert tensor.buffer.refs == 1


@clause("STORAGE-HEADER-1")
def test_the_header_is_small_where_it_can_be_seen(impl: Any) -> None:
    size = getattr(impl.internal.storage_mod, "header_size", None)
    assert size is None or 0 < size <= 64
