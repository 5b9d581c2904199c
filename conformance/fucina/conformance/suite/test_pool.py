"""The pool: life, sizes, reuse, what is out, leaks, threads."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.counters import pool_counters
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    LeakedBuffers,
    NotCopyable,
    OutOfMemory,
    Overflow,
    OverRelease,
    UseAfterDeinit,
)

NOTHING = {"cachedBuffers": 0, "cachedSlabs": 0, "cachedBytes": 0, "outstanding": 0}


@pytest.fixture
def pool(impl: Any) -> Any:
    found = impl.BufferPool()
    yield found
    if "deinited" not in repr(found):
        found.deinit()


# -- life


@clause("POOL-TYPE-1")
def test_a_pool_ends_once(impl: Any) -> None:
    pool = impl.BufferPool()
    assert pool_counters(pool) == NOTHING
    pool.acquire(10).release()
    pool.acquire_typed(DType.f16, 10).release()
    assert pool_counters(pool) == {"cachedBuffers": 1, "cachedSlabs": 1, "cachedBytes": 64 + 4096, "outstanding": 0}
    pool.deinit()
    assert pool_counters(pool) == NOTHING
    for call in (
        pool.deinit,
        lambda: pool.acquire(-1),
        lambda: pool.acquire_typed("f16", 4),
        lambda: pool.acquire_scratch(None, "x"),
    ):
        assert_raises(UseAfterDeinit, "POOL-TYPE-1", call)


@clause("POOL-TYPE-1")
def test_a_with_block_ends_it(impl: Any) -> None:
    with impl.BufferPool() as pool:
        pool.acquire(1).release()
    assert_raises(UseAfterDeinit, "POOL-TYPE-1", pool.deinit)
    with impl.BufferPool() as pool:
        pool.deinit()


@clause("POOL-TYPE-1", "POOL-SCRATCH-1")
def test_no_copies(impl: Any, pool: Any) -> None:
    with pool.acquire_scratch("u1", 1) as lease:
        for thing in (pool, lease):
            for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
                assert_raises(NotCopyable, None, partial(attempt, thing))
        assert repr(pool) == "<BufferPool cached_bytes=0 outstanding=1>"


# -- arguments


@clause("POOL-SIZE-1", "POOL-TYPED-1", "POOL-SCRATCH-1")
def test_lengths_that_are_none(pool: Any) -> None:
    calls = (
        pool.acquire,
        lambda n: pool.acquire_typed(DType.f16, n),
        lambda n: pool.acquire_typed(DType.f32, n),
        lambda n: pool.acquire_scratch("f8", n),
    )
    for call in calls:
        for value, kind in (
            (2.0, InvalidInteger),
            (True, InvalidInteger),
            (-1, InvalidDataLength),
            (1 << 64, Overflow),
        ):
            assert_raises(kind, None, partial(call, value))
    for call in (calls[0], calls[2]):
        assert_raises(InvalidShape, "POOL-SIZE-1", partial(call, 0))
    for number in (np.int8(3), np.uint64(3)):
        calls[0](number).release()
    assert_raises(InvalidDType, None, lambda: pool.acquire_typed("f16", 1))
    assert pool.outstanding_buffers() == 0


@clause("POOL-TYPED-1", "POOL-SIZE-2")
@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_every_dtype(impl: Any, pool: Any, dtype: DType) -> None:
    size = impl.dtype.storage(dtype).itemsize
    for length in (1, 7, 4096 // size, 4096 // size + 1):
        buffer = pool.acquire_typed(dtype, length)
        assert type(buffer) is impl.internal.storage_mod.BufferOf(dtype)
        assert buffer.address % pool.slab_align == 0
        if dtype is DType.f32:
            assert buffer.capacity == 1 << (length - 1).bit_length() or length == 1025
        else:
            slab = -(-length * size // pool.slab_size_quantum) * pool.slab_size_quantum
            assert buffer.capacity == slab // size
        assert buffer.data.shape == (buffer.capacity,)
        buffer.wait_mutable().view(np.uint8)[:] = 0xA5
        buffer.destroy()
        pool.max_cached_bytes = 0
    if dtype is not DType.f32:
        empty = pool.acquire_typed(dtype, 0)
        assert empty.capacity == 4096 // size
        empty.release()


@clause("POOL-CAP-1")
def test_the_cap_is_a_number(impl: Any, pool: Any) -> None:
    assert pool.max_cached_bytes == 1 << 30
    for value, kind in ((1.5, InvalidInteger), (False, InvalidInteger), (-1, InvalidBounds), (1 << 64, Overflow)):
        assert_raises(kind, "POOL-CAP-1", partial(setattr, pool, "max_cached_bytes", value))
    assert pool.max_cached_bytes == 1 << 30
    pool.max_cached_bytes = np.int16(5)
    assert pool.max_cached_bytes == 5


@clause("POOL-SCRATCH-1")
def test_elements_of_leases(pool: Any) -> None:
    triple = np.dtype([("a", "<u2"), ("b", "u1")])
    for element in (np.float64, "i2", triple, np.dtype(">f4"), "V34", "S3", bool, complex):
        with pool.acquire_scratch(element, 9) as lease:
            assert (lease.items.dtype, lease.items.shape) == (np.dtype(element), (9,))
            assert lease.items.flags.writeable
            assert lease.slab.flags.writeable
            assert (lease.slab.dtype, lease.slab.nbytes) == (np.uint8, 4096)
            assert lease.items.ctypes.data == lease.slab.ctypes.data
            assert lease.slab.ctypes.data % 64 == 0
            assert lease.pool is pool
    for wrong in ("V0", "S0", object, [("a", "O")], "nonsense", 5):
        assert_raises(DTypeMismatch, "POOL-SCRATCH-1", partial(pool.acquire_scratch, wrong, 1))
    assert pool.outstanding_buffers() == 0


# -- reuse


@clause("POOL-LIFO-1", "POOL-FIT-1")
def test_a_slab_passes_from_dtype_to_dtype(impl: Any, pool: Any) -> None:
    first = pool.acquire_typed(DType.f16, 100)
    address = first.address
    first.release()
    second = pool.acquire_typed(DType.q8_k, 3)
    assert second.address == address
    second.release()
    with pool.acquire_scratch("u1", 4096) as lease:
        assert lease.slab.ctypes.data == address


@clause("POOL-STALE-1")
def test_an_old_handle_never_sees_the_next_owner(impl: Any, pool: Any) -> None:
    storage = impl.internal.storage_mod
    old = pool.acquire(16)
    old.wait_mutable()
    old.set_host_shadow(storage.HostShadow("kept"))
    assert old.generation == 1
    old.release()
    new = pool.acquire(16)
    assert old != new
    assert (new.generation, new.refs, new.host_shadow) == (0, 1, None)
    assert old.refs == 0
    for use in (old.retain, old.wait_mutable, lambda: old.data, lambda: old.address, old.destroy):
        assert_raises(UseAfterDeinit, None, use)
    assert_raises(OverRelease, None, old.release)
    assert new.refs == 1
    assert pool.outstanding_buffers() == 1
    new.release()


@clause("POOL-STALE-1", "POOL-COUNT-1")
def test_tensors_on_a_recycled_buffer_are_dead(impl: Any, pool: Any) -> None:
    buffer = pool.acquire(4)
    tensor = impl.internal.RawTensor.from_owned_buffer(buffer, (2, 2))
    view = tensor.clone_view()
    tensor.deinit()
    assert pool.outstanding_buffers() == 1
    view.deinit()
    assert pool_counters(pool) == {"cachedBuffers": 1, "cachedSlabs": 0, "cachedBytes": 16, "outstanding": 0}
    fresh = pool.acquire(4)
    assert_raises(UseAfterDeinit, None, lambda: view.data_const())
    fresh.release()


@clause("POOL-COUNT-1", "POOL-LIFO-1")
def test_an_array_keeps_its_buffer_out(pool: Any) -> None:
    buffer = pool.acquire(100)
    array = buffer.wait_mutable()
    array[:] = 7
    part = array[10:20]
    del array
    buffer.release()
    assert pool_counters(pool) == NOTHING | {"outstanding": 1}
    other = pool.acquire(100)
    other.wait_mutable()[:] = 1
    assert part.tolist() == [7] * 10
    del part
    gc.collect()
    assert pool_counters(pool) == {"cachedBuffers": 1, "cachedSlabs": 0, "cachedBytes": 512, "outstanding": 1}
    other.release()


@clause("POOL-ENTER-1")
def test_what_is_not_from_the_pool_is_no_concern_of_it(impl: Any, pool: Any) -> None:
    storage = impl.internal.storage_mod
    buffer = pool.acquire(4)
    assert buffer.release_hook == storage.Release()
    assert not buffer.read_only
    own, borrowed = storage.Buffer.create(64), storage.Buffer.from_borrowed_slice(np.ones(64, np.float32))
    assert pool_counters(pool) == NOTHING | {"outstanding": 1}
    own.release()
    borrowed.release()
    assert pool_counters(pool) == NOTHING | {"outstanding": 1}
    buffer.release()


@clause("POOL-HUGE-1", "POOL-LIFO-1")
def test_large_blocks(pool: Any) -> None:
    large = pool.acquire((1 << 22) + 1)
    address = large.address
    assert (large.capacity, address % 64) == ((1 << 22) + 1024, 0)
    large.release()
    assert pool.cached_bytes() == 4 * ((1 << 22) + 1024)
    again = pool.acquire(1 << 22)
    assert again.address == address
    again.release()
    slab = pool.acquire_typed(DType.f64, 1 << 21)
    assert slab.address % 64 == 0
    slab.release()


# -- leases


@clause("POOL-SCRATCH-2")
def test_a_lease_is_released_once(pool: Any) -> None:
    lease = pool.acquire_scratch("u4", 3)
    lease.release()
    assert repr(lease) == "<ScratchLease released>"
    assert_raises(OverRelease, "POOL-SCRATCH-2", lease.release)
    for use in (lambda: lease.items, lambda: lease.slab):
        assert_raises(UseAfterDeinit, "POOL-SCRATCH-1", use)
    with pool.acquire_scratch("u4", 3) as lease:
        lease.release()
    assert pool_counters(pool) == NOTHING | {"cachedSlabs": 1, "cachedBytes": 4096}


@clause("POOL-SCRATCH-2")
def test_arrays_of_a_lease_keep_the_slab_out(pool: Any) -> None:
    lease = pool.acquire_scratch("u4", 3)
    items = lease.items
    items[:] = 5
    lease.release()
    assert pool.outstanding_buffers() == 1
    with pool.acquire_scratch("u4", 3) as other:
        other.slab[:] = 0
        assert items.tolist() == [5, 5, 5]
    del items
    gc.collect()
    assert pool_counters(pool) == NOTHING | {"cachedSlabs": 2, "cachedBytes": 8192}


@clause("POOL-SCRATCH-2", "POOL-COUNT-1")
def test_what_is_collected_comes_back(pool: Any) -> None:
    lease = pool.acquire_scratch("u4", 3)
    buffer = pool.acquire(8)
    assert pool.outstanding_buffers() == 2
    del lease, buffer
    gc.collect()
    assert pool_counters(pool) == {"cachedBuffers": 1, "cachedSlabs": 1, "cachedBytes": 32 + 4096, "outstanding": 0}


@clause("POOL-SCRATCH-2", "POOL-THREAD-1")
def test_released_on_another_thread(pool: Any) -> None:
    things = [pool.acquire_scratch("u4", 3), pool.acquire(5), pool.acquire_typed(DType.i8, 5)]
    thread = threading.Thread(target=lambda: [thing.release() for thing in things])
    thread.start()
    thread.join()
    assert pool_counters(pool) == {"cachedBuffers": 1, "cachedSlabs": 2, "cachedBytes": 32 + 8192, "outstanding": 0}


# -- memory and leaks


@clause("POOL-MEMORY-1", "POOL-SIZE-1")
def test_requests_that_no_memory_could_serve(pool: Any) -> None:
    pool.acquire(10).release()
    before = pool_counters(pool)
    for call in (
        lambda: pool.acquire(1 << 61),
        lambda: pool.acquire((1 << 64) - 1),
        lambda: pool.acquire_typed(DType.u8, (1 << 63) - 100),
        lambda: pool.acquire_typed(DType.q6_k, 1 << 60),
        lambda: pool.acquire_scratch("V1000", 1 << 60),
    ):
        assert_raises(OutOfMemory, None, call)
    assert pool_counters(pool) == before


@clause("POOL-MEMORY-1", "STORAGE-FAULT-1")
@pytest.mark.parametrize("warm", [False, True], ids=["nothing cached", "cached"])
@pytest.mark.parametrize("arm", ["acquire", "acquire_typed", "acquire_scratch"])
def test_each_allocation_may_fail(impl: Any, arm: str, warm: bool) -> None:
    arguments = {"acquire": (100,), "acquire_typed": (DType.i64, 100), "acquire_scratch": ("u1", 1)}[arm]
    for n in range(1, 20):
        pool = impl.BufferPool()
        if warm:
            for made in [getattr(pool, arm)(*arguments) for _ in range(3)]:
                made.release()
        before = pool_counters(pool)
        impl.internal.fail_allocation(n)
        try:
            made = getattr(pool, arm)(*arguments)
        except OutOfMemory:
            assert pool_counters(pool) == before, f"allocation {n}"
            continue
        finally:
            impl.internal.fail_allocation(None)
            made = None
            pool.deinit()
        break
    assert n < 19, "every allocation fails"
    assert warm or n > 1, "an acquisition of what is not cached allocates"


@clause("POOL-LEAK-1")
def test_leaks_have_names(impl: Any) -> None:
    pool = impl.BufferPool()
    raw, typed = impl.internal.RawTensor, impl.internal.tensor_mod.TensorOf(DType.q8_0)
    kept = [
        pool.acquire(100),
        raw.from_owned_buffer(pool.acquire(100), (3, 4)),
        typed.from_owned_buffer(pool.acquire_typed(DType.q8_0, 2), (2, 32)),
        pool.acquire_scratch("u2", 9),
    ]
    kept.append(kept[1].reshape((12,)))  # the newest tensor on the second buffer
    gone = raw.from_owned_buffer(pool.acquire(100), (2,))
    gone.deinit()
    gone_array = pool.acquire(6)  # in the memory that came back
    array = gone_array.data
    gone_array.release()
    error = assert_raises(LeakedBuffers, "POOL-LEAK-1", pool.deinit, shows=["5", "q8_0"])
    assert isinstance(error, LeakedBuffers)
    shown = [(leak.dtype, leak.shape, leak.origin) for leak in error.leaks]  # type: ignore[attr-defined]
    assert shown == [
        (DType.f32, (128,), None),
        (DType.f32, (12,), None),
        (DType.q8_0, (2, 32), None),
        (None, (9,), None),
        (DType.f32, (128,), None),
    ]
    assert {type(leak.shape) for leak in error.leaks} == {tuple}  # type: ignore[attr-defined]
    assert pool.outstanding_buffers() == 5
    assert array.shape == (128,)
    for thing in kept:
        thing.deinit() if hasattr(thing, "deinit") else thing.release()
    del array, gone_array
    gc.collect()
    assert pool_counters(pool) == NOTHING


@clause("POOL-LEAK-1")
def test_a_tracing_pool_knows_where(impl: Any) -> None:
    pool = impl.BufferPool(trace=True)
    kept = pool.acquire(3), pool.acquire_scratch("u1", 2)
    error = assert_raises(LeakedBuffers, "POOL-LEAK-1", pool.deinit, shows=["test_pool.py"])
    assert isinstance(error, LeakedBuffers)
    origins = [leak.origin for leak in error.leaks]  # type: ignore[attr-defined]
    assert all(__file__ + ":" in origin for origin in origins)
    assert all(origin.endswith(" in test_a_tracing_pool_knows_where") for origin in origins)
    for thing in kept:
        thing.release()


@clause("POOL-LEAK-1")
def test_another_exception_goes_on_and_takes_the_leaks_as_a_note(impl: Any) -> None:
    kept: list[Any] = []

    def leave() -> None:
        with impl.BufferPool() as pool:
            kept.append(pool.acquire(3))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        leave()
    assert any("POOL-LEAK-1" in note for note in caught.value.__notes__)
    kept[0].release()


# -- threads and pressure


@clause("POOL-THREAD-1", "POOL-COUNT-1")
def test_many_threads(impl: Any, pool: Any) -> None:
    pool.max_cached_bytes = 1 << 16

    def work(seed: int) -> None:
        draw = random.Random(seed)
        held: list[Any] = []
        for _ in range(150):
            if held and draw.random() < 0.5:
                held.pop(draw.randrange(len(held))).release()
            else:
                length = draw.randrange(1, 3000)
                arm = draw.randrange(3)
                if arm == 0:
                    held.append(pool.acquire(length))
                elif arm == 1:
                    held.append(pool.acquire_typed(DType.f16, length))
                else:
                    held.append(pool.acquire_scratch("u4", length))
        for thing in held:
            thing.release()

    with ThreadPoolExecutor(4) as threads:
        for job in [threads.submit(work, seed) for seed in range(4)]:
            job.result()
    assert pool.outstanding_buffers() == 0
    assert pool.cached_bytes() <= 1 << 16
    assert pool.cached_buffers() + pool.cached_slabs() > 0


@clause("POOL-CAP-1", "POOL-COUNT-1")
def test_case_o_e01_varying_sizes_stay_under_the_cap(pool: Any, impl: Any) -> None:
    assert hasattr(impl, "BufferPool")
    cap = pool.max_cached_bytes = 64 << 20
    draw = random.Random(1)
    held: list[Any] = []
    most = 0
    for _ in range(5000):
        if len(held) < 4 and draw.random() < 0.6:
            held.append(pool.acquire(draw.randrange(1, 5_000_000)))
        elif held:
            held.pop(draw.randrange(len(held))).release()
        most = max(most, pool.cached_bytes())
        assert pool.cached_bytes() <= cap
        assert pool.outstanding_buffers() == len(held)
    for buffer in held:
        buffer.release()
    assert pool.outstanding_buffers() == 0
    assert most > cap // 2, "the cap was never near"


@clause("POOL-COUNT-1", "STORAGE-PIN-1", "STORAGE-DESTROY-1")
def test_memory_under_an_array_is_not_used_again(pool: Any, impl: Any) -> None:
    assert hasattr(impl, "BufferPool")
    buffer = pool.acquire(100)
    array = buffer.wait_mutable()
    array[:] = 7
    buffer.destroy()
    assert pool.cached_buffers() == 0
    other = pool.acquire(100)
    other.wait_mutable()[:] = 1
    assert array.tolist() == [7] * 128
    other.release()
