"""Storage, raw tensors and the pool: threads that race, allocations that fail, long random programs against a model."""

from __future__ import annotations

import gc
import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fucina.fast as fast
from fucina.fast import BufferPool, DType, internal
from fucina.spec.errors import (
    DTypeMismatch,
    ExportRefused,
    FucinaError,
    OutOfMemory,
    OverRelease,
    UseAfterDeinit,
)

Buffer, Release, HostShadow = internal.storage_mod.Buffer, internal.storage_mod.Release, internal.storage_mod.HostShadow
TensorOf, RawTensor = internal.tensor_mod.TensorOf, internal.RawTensor
THREADS, ROUNDS = 4, 2000


def run_on_threads(work: Any) -> None:
    """Run ``work(number)`` on several threads at once; the first exception is raised here."""
    failures: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def body(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as failure:
            failures.append(failure)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]


# -- threads


def _counting(runs: list[int]) -> Callable[[Any, Any], None]:
    """Return a release hook that notes that it ran."""
    return lambda ctx, released: runs.append(1)


def test_references_race_and_the_hook_runs_once() -> None:
    """STORAGE-THREAD-1, STORAGE-HOOK-1."""
    for _ in range(20):
        runs: list[int] = []
        buffer = Buffer.create_with_release(4, Release(None, _counting(runs)))
        for _ in range(THREADS):
            buffer.retain()

        def work(number: int, buffer: Any = buffer) -> None:
            for _ in range(200):
                buffer.retain()
                buffer.release()
            buffer.release()

        run_on_threads(work)
        assert (buffer.refs, runs) == (1, [])
        buffer.release()
        assert runs == [1]


def test_exactly_one_of_racing_releases_is_the_last() -> None:
    """STORAGE-THREAD-1."""
    for _ in range(200):
        runs: list[int] = []
        buffer = Buffer.create_with_release(4, Release(None, _counting(runs)))
        refused: list[int] = []

        def work(number: int, buffer: Any = buffer, refused: list[int] = refused) -> None:
            try:
                buffer.release()
            except OverRelease:
                refused.append(number)

        run_on_threads(work)
        assert (len(refused), runs) == (THREADS - 1, [1])


def test_a_pool_serves_threads_and_its_counters_are_exact() -> None:
    """POOL-THREAD-1, POOL-COUNT-1: what is lent never overlaps."""
    pool = BufferPool()

    def work(number: int) -> None:
        draws = random.Random(number)
        held: list[tuple[Any, int]] = []
        for turn in range(ROUNDS // 4):
            if held and draws.random() < 0.5:
                buffer, mark = held.pop(draws.randrange(len(held)))
                assert (buffer.data == np.float32(mark)).all()
                buffer.release()
            else:
                buffer, mark = pool.acquire(draws.randrange(1, 3000)), number * ROUNDS + turn
                buffer.wait_mutable()[:] = mark
                held.append((buffer, mark))
        for buffer, _ in held:
            buffer.release()

    run_on_threads(work)
    assert pool.outstanding_buffers() == 0
    assert pool.cached_bytes() > 0
    pool.deinit()


def test_a_destroyed_storage_stays_while_a_copy_runs() -> None:
    """STORAGE-DESTROY-1: a kernel that works without the GIL pins what it reads."""
    out = np.empty((1000, 1000), np.float32)
    for _ in range(30):
        tensor = RawTensor.ones((1000, 1000))
        turned, buffer = tensor.view_with_strides((1000, 1000), (1, 1000)), tensor.buffer
        thread = threading.Thread(target=buffer.destroy)
        thread.start()
        try:
            turned.copy_to(out)
            assert out.sum() == 1000 * 1000
        except UseAfterDeinit:  # the other thread was first
            pass
        thread.join()


# -- allocations that fail


def _observed(pool: BufferPool, tensor: Any) -> tuple[Any, ...]:
    counters = pool.cached_buffers(), pool.cached_slabs(), pool.cached_bytes(), pool.outstanding_buffers()
    return *counters, tensor.buffer.refs, tensor.buffer.generation, tensor.clone_view().data_const().tolist()


OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "zeros": lambda pool, tensor: RawTensor.zeros((3, 4)),
    "from_slice": lambda pool, tensor: RawTensor.from_slice((3,), [1, 2, 3]),
    "borrow": lambda pool, tensor: RawTensor.from_borrowed_slice((3,), np.ones(3, np.float32)),
    "clone": lambda pool, tensor: tensor.clone(),
    "create": lambda pool, tensor: Buffer.create(100),
    "hook": lambda pool, tensor: Buffer.create_with_release(1, Release(None, lambda ctx, buffer: None)),
    "shadow": lambda pool, tensor: Buffer.create(1).set_host_shadow(HostShadow(1)),
    "acquire": lambda pool, tensor: pool.acquire(5000).release(),
    "acquire cached": lambda pool, tensor: pool.acquire(10).release(),
    "acquire typed": lambda pool, tensor: pool.acquire_typed(DType.q8_0, 5000).release(),
    "scratch": lambda pool, tensor: pool.acquire_scratch(np.int64, 3000).release(),
    "dlpack": lambda pool, tensor: RawTensor.from_dlpack(np.ones((2, 2), np.float32)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_allocation_may_fail(name: str) -> None:
    """STORAGE-FAULT-1, POOL-MEMORY-1."""
    operation = OPERATIONS[name]
    failed = 0
    for n in range(1, 50):
        pool, tensor = BufferPool(), RawTensor.from_slice((4,), [1, 2, 3, 4])
        pool.acquire(10).release()
        before, count = _observed(pool, tensor), internal.allocation_count()
        internal.fail_allocation(n)
        try:
            operation(pool, tensor)
        except OutOfMemory:
            failed += 1
        finally:
            internal.fail_allocation(None)
        done = internal.allocation_count() - count >= n
        if done:
            gc.collect()
            assert _observed(pool, tensor) == before, f"allocation {n}"
        pool.deinit()
        if not done:
            break
    assert failed == n - 1 > 0, "each allocation failed once, and there was one"


# -- long random programs against a model


class Model:
    """What a storage of the random program should be: its values, references by hand, tensors and arrays."""

    def __init__(self, values: np.ndarray[Any, Any], pooled: bool) -> None:
        self.values, self.pooled = values, pooled
        self.generation = self.refs = 0


def test_random_programs_do_what_a_model_does() -> None:
    """STORAGE-REF-1, STORAGE-GEN-1, STORAGE-PIN-1, TENSOR-VIEW-3, TENSOR-COPY-1, POOL-COUNT-1: 10^5 steps."""
    draws = random.Random(20)
    pool = BufferPool()
    live: list[tuple[Any, Model, np.ndarray[Any, Any]]] = []  # tensor, model, the same view of the model's values
    arrays: list[tuple[Any, Model, np.ndarray[Any, Any]]] = []
    models: set[Model] = set()

    def add(tensor: Any, model: Model, view: np.ndarray[Any, Any]) -> None:
        model.refs += 1
        models.add(model)
        live.append((tensor, model, view))

    def drop(model: Model) -> None:
        model.refs -= 1
        if not model.refs:
            models.discard(model)

    for step in range(100_000):
        choice = draws.random()
        if not live or (choice < 0.08 and len(live) < 40):
            shape = tuple(draws.randrange(1, 6) for _ in range(draws.randrange(1, 4)))
            values = np.array([draws.randrange(100) for _ in range(int(np.prod(shape)))], np.float32)
            if draws.random() < 0.5:
                buffer = pool.acquire(values.size)
                tensor = RawTensor.from_owned_buffer(buffer, shape)
                model = Model(np.zeros(buffer.capacity, np.float32), True)
                tensor.data()[:] = values
                model.generation = 1
                model.values[: values.size] = values
                buffer.wait_mutable()[values.size :] = 0
                model.generation += 1
            else:
                tensor, model = RawTensor.from_slice(shape, values), Model(values, False)
            add(tensor, model, model.values[: values.size].reshape(shape))
            continue
        place = draws.randrange(len(live))
        tensor, model, view = live[place]
        if choice < 0.30 and len(live) < 40:
            strides = [draws.randrange(0, 4) for _ in range(2)]
            shape = tuple(draws.randrange(1, 5) for _ in range(2))
            delta = draws.randrange(0, 4)
            start = tensor.offset + delta
            last = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            if last < model.values.size:
                seen = np.lib.stride_tricks.as_strided(model.values[start:], shape, [4 * s for s in strides])
                add(tensor.view_with_strides_offset(shape, strides, delta), model, seen)
            else:
                with pytest.raises(FucinaError, match="TENSOR-VIEW-3"):
                    tensor.view_with_strides_offset(shape, strides, delta)
        elif choice < 0.36 and len(live) < 40:
            target = (2, *view.shape)
            add(tensor.broadcast_to(target), model, np.broadcast_to(view, target))
        elif choice < 0.44:
            value = draws.randrange(100)
            if tensor.is_contiguous():
                tensor.fill(value)
                view[...] = value
                model.generation += 1
            else:
                with pytest.raises(FucinaError, match="TENSOR-FILL-1"):
                    tensor.fill(value)
        elif choice < 0.52 and tensor.is_contiguous():
            tensor.scale_in_place(0.5)
            view *= np.float32(0.5)
            model.generation += 1
        elif choice < 0.60 and len(arrays) < 10:
            array = np.asarray(tensor)
            model.generation += array.flags.writeable
            model.refs += 1
            arrays.append((array, model, view))
        elif choice < 0.68 and arrays:
            array, owner, seen = arrays.pop(draws.randrange(len(arrays)))
            assert (array == seen).all()
            del array
            drop(owner)
        elif choice < 0.80:
            out = np.empty(view.shape, np.float32)
            tensor.copy_to(out)
            assert (out == view).all()
        elif choice < 0.9:
            twin = tensor.clone()
            assert (twin.data_const().reshape(view.shape) == view).all()
            twin.deinit()
        else:
            del live[place]
            if draws.random() < 0.5:
                tensor.deinit()
                with pytest.raises(UseAfterDeinit):
                    tensor.len()
            else:
                del tensor
            drop(model)
            continue
        assert (tensor.buffer.refs, tensor.buffer.generation) == (model.refs, model.generation), step
        assert tensor.can_take_in_place() == (model.refs == 1 and tensor.offset == 0 and tensor.is_contiguous())
        if step % 16 == 0:
            assert pool.outstanding_buffers() == sum(model.pooled for model in models)
    live.clear()
    arrays.clear()
    del tensor, view
    array = np.empty(0)
    assert pool.outstanding_buffers() == 0
    pool.deinit()


# -- what is handed out


def test_dlpack_capsules_give_back_once() -> None:
    """TENSOR-DLPACK-1, TENSOR-DLPACK-2: consumed, unconsumed, refused."""
    tensor = RawTensor.from_slice((2, 3), [1, 2, 3, 4, 5, 6])
    capsule = tensor.__dlpack__()
    assert tensor.buffer.refs == 2
    del capsule
    assert tensor.buffer.refs == 1
    capsule = tensor.__dlpack__(max_version=(1, 0))
    taken = RawTensor.from_dlpack(capsule)
    assert (tensor.buffer.refs, taken.buffer.read_only) == (2, False)
    with pytest.raises(FucinaError, match="TENSOR-DLPACK-2"):
        RawTensor.from_dlpack(capsule)
    del capsule
    taken.deinit()
    assert tensor.buffer.refs == 1
    with pytest.raises(FucinaError, match="TENSOR-DLPACK-2"):
        TensorOf(DType.i32).from_dlpack(tensor)
    assert tensor.buffer.refs == 1
    with pytest.raises(FucinaError, match="TENSOR-DLPACK-2"):
        RawTensor.from_dlpack(object())


def test_a_buffer_that_cannot_be_written_is_refused() -> None:
    """TENSOR-ARRAY-1."""
    tensor = RawTensor.from_borrowed_const_slice((2,), bytes(8))
    view: Any = memoryview(tensor)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1.0
    with pytest.raises(ExportRefused, match="TENSOR-ARRAY-1"):
        RawTensor.zeros((1,)).broadcast_to((2**31, 2**32)).__array__()
    with pytest.raises(BufferError):
        memoryview(RawTensor.zeros((1,)).broadcast_to((2**31, 2**32)))


def test_hooks_that_raise_where_nobody_can_catch() -> None:
    """STORAGE-HOOK-2, STORAGE-GC-1: the exception is reported, the storage destroyed, nothing else disturbed."""

    def fail(ctx: object, buffer: object) -> None:
        raise ValueError("from the hook")

    reported: list[Any] = []
    previous, sys.unraisablehook = sys.unraisablehook, reported.append
    try:
        Buffer.create_with_release(1, Release(None, fail))
        tensor = RawTensor.from_owned_buffer(Buffer.create_with_release(1, Release(None, fail)), (1,))
        array = tensor.data_const()
        tensor.deinit()
        del array
    finally:
        sys.unraisablehook = previous
    assert [type(report.exc_value) for report in reported] == [ValueError, ValueError]
    buffer = Buffer.create_with_release(1, Release(None, fail))
    with pytest.raises(ValueError, match="from the hook"):
        buffer.release()
    with pytest.raises(UseAfterDeinit):
        buffer.destroy()


def test_a_forgotten_tensor_with_an_origin_warns() -> None:
    """TENSOR-LIFE-2."""
    tensor: Any = RawTensor.zeros((1,))
    tensor.origin = "here:1 in test"
    with pytest.warns(ResourceWarning, match="here:1 in test"):
        del tensor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RawTensor.zeros((1,))
    wrongs: tuple[Any, ...] = (5, b"here", ["here"])
    for wrong in wrongs:
        with RawTensor.zeros((1,)) as other, pytest.raises(DTypeMismatch, match="must be a str or None, got an object"):
            other.origin = wrong


def test_a_shadow_that_ends_tensors_when_it_is_dropped() -> None:
    """STORAGE-SHADOW-1: what it does comes before the access, which finds the tensors as they are then."""
    uses: list[tuple[str, Callable[[Any, Any, Any], object]]] = [
        ("self", lambda ctx, x, y: x.data()),
        ("self", lambda ctx, x, y: x.__array__()),
        ("self", lambda ctx, x, y: memoryview(x)),
        ("self", lambda ctx, x, y: x.add_in_place(y)),
        ("self", lambda ctx, x, y: x.scale_in_place(2.0)),
        ("self", lambda ctx, x, y: ctx.add(y, y, out=x)),
        ("self", lambda ctx, x, y: ctx.scale(y, 2.0, out=x)),
        ("other", lambda ctx, x, y: x.add_in_place(y)),
        ("other", lambda ctx, x, y: ctx.add(y, y, out=x)),
        ("other", lambda ctx, x, y: ctx.scale(y, 2.0, out=x)),
    ]
    with fast.ExecContext() as ctx:
        for size in (4, 1 << 16):
            for ended, use in uses:
                x, y = ctx.ones((size,)), ctx.ones((size,))
                first, second = (x, y) if ended == "self" else (y, x)
                x.buffer.set_host_shadow(HostShadow(first, lambda t: t.deinit()))
                with pytest.raises(UseAfterDeinit, match="was used after deinit"):
                    use(ctx, x, y)
                second.deinit()
                assert ctx.rt.buffers.outstanding_buffers() == 0
        with fast.Tensor("d").variable_from_slice(ctx, (2,), [1, 2]) as leaf, leaf.sum_all(ctx) as loss:
            loss.backward(ctx)
            seen: Any = leaf.grad_view(ctx)
            seen.as_raw_tensor().buffer.set_host_shadow(HostShadow(leaf, lambda t: t.zero_grad()))
            seen.deinit()
            with pytest.raises(UseAfterDeinit):
                loss.backward(ctx)
            assert leaf.grad(ctx) is None


def test_private_ways_refuse_what_lies_outside() -> None:
    """What the Python layer checks is looked at again in C: nothing reaches outside a storage."""
    tensor: Any = RawTensor.zeros((4,))
    calls: tuple[Callable[[], object], ...] = (
        lambda: tensor._view((5,), (1,), 0),
        lambda: tensor._view((4,), (1,), 1),
        lambda: tensor._view((2, 2), (1,), 0),
        lambda: tensor._pin(2, 3, True),
        lambda: fast._objects.handles.tensor_over(tensor.buffer, (5,)),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"outside|fits"):
            call()
    with pytest.raises(IndexError):
        tensor._copy(0, 3, 2)
    handles = fast._objects.handles
    kinds: tuple[Any, ...] = (type(tensor), type(tensor.buffer), handles.Tensor, handles.Storage)
    for kind in kinds:
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            kind.__new__(kind)
