"""Allocations that fail: whichever it is, nothing is leaked and nothing has changed (STORAGE-FAULT-1)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.spec import DType
from fucina.spec.errors import InvalidBounds, InvalidInteger, OutOfMemory


def _destroy(ctx: Any, buffer: Any) -> None:
    assert buffer is not None, "STORAGE-FAULT-1: a hook ran for a storage that never was"
    buffer.destroy()


def _calls(impl: Any) -> dict[str, Callable[[], Any]]:
    raw, storage = impl.internal.RawTensor, impl.internal.storage_mod
    blocks = impl.internal.tensor_mod.TensorOf(DType.q8_0)
    source = np.arange(4, dtype=np.float32)
    hook = storage.Release(None, _destroy)
    return {
        "create": lambda: storage.Buffer.create(5),
        "create_with_release": lambda: storage.Buffer.create_with_release(5, hook),
        "Buffer.from_slice": lambda: storage.Buffer.from_slice([1.0]),
        "Buffer.from_borrowed_slice": lambda: storage.Buffer.from_borrowed_slice(source),
        "Buffer.from_borrowed_const_slice": lambda: storage.Buffer.from_borrowed_const_slice(source),
        "with_release": lambda: storage.Buffer.from_borrowed_slice_with_release(source, hook),
        "zeros": lambda: raw.zeros((2, 3)),
        "ones": lambda: raw.ones((2, 3)),
        "scalar": lambda: raw.scalar(1.0),
        "from_slice": lambda: raw.from_slice((4,), source),
        "from_storage_slice": lambda: blocks.from_storage_slice((32,), bytes(34)),
        "from_borrowed_slice": lambda: raw.from_borrowed_slice((4,), source),
        "from_borrowed_const_slice": lambda: raw.from_borrowed_const_slice((4,), source),
        "from_borrowed_storage_slice": lambda: blocks.from_borrowed_storage_slice((32,), bytearray(34)),
        "from_dlpack": lambda: raw.from_dlpack(source),
    }


CALLS = [
    *("create", "create_with_release", "Buffer.from_slice", "Buffer.from_borrowed_slice"),
    *("Buffer.from_borrowed_const_slice", "with_release", "zeros", "ones", "scalar", "from_slice"),
    *("from_storage_slice", "from_borrowed_slice", "from_borrowed_const_slice", "from_borrowed_storage_slice"),
    "from_dlpack",
]


@pytest.fixture(autouse=True)
def _disarmed(impl: Any) -> Any:
    yield
    impl.internal.fail_allocation(None)


def _survives(impl: Any, call: Callable[[], Any], state: Callable[[], object]) -> None:
    """Let each allocation of a call fail in turn, then none."""
    internal = impl.internal
    start = internal.allocation_count()
    call()
    needed = internal.allocation_count() - start
    assert needed > 0, "STORAGE-FAULT-1: the call allocates nothing"
    for n in range(1, needed + 1):
        before = state()
        internal.fail_allocation(n)
        assert_raises(OutOfMemory, None, call, what=f"allocation {n} of {needed}")
        assert state() == before, f"STORAGE-FAULT-1: allocation {n} of {needed} left something behind"
        internal.fail_allocation(None)
        call()


@clause("STORAGE-FAULT-1")
@pytest.mark.parametrize("name", CALLS)
def test_constructors(impl: Any, name: str) -> None:
    _survives(impl, _calls(impl)[name], lambda: None)


@clause("STORAGE-FAULT-1")
def test_a_borrow_that_fails_lets_go(impl: Any) -> None:
    room = bytearray(16)
    log: list[object] = []
    hook = impl.internal.storage_mod.Release(None, lambda ctx, buffer: log.append("hook"))
    for call in (
        lambda: impl.internal.RawTensor.from_borrowed_slice((4,), room),
        lambda: impl.internal.storage_mod.Buffer.from_borrowed_slice_with_release(room, hook),
    ):
        impl.internal.fail_allocation(1)
        assert_raises(OutOfMemory, None, call)
        gc.collect()  # the error knows the frames that it passed, and they the memory
        room.append(0)
        room.pop()
    assert not log, "STORAGE-FAULT-1: a hook ran for a storage that never was"


@clause("STORAGE-FAULT-1")
def test_clone(impl: Any) -> None:
    tensor = impl.internal.RawTensor.from_slice((2, 3), range(6))
    view = tensor.view_with_strides((3, 2), (1, 3))
    _survives(impl, view.clone, lambda: (tensor.buffer.refs, tensor.buffer.generation))


@clause("STORAGE-FAULT-1")
def test_owned_buffer(impl: Any) -> None:
    """It allocates nothing that can fail, or leaves the reference with the caller."""
    buffer = impl.internal.storage_mod.Buffer.create(4)
    impl.internal.fail_allocation(1)
    with contextlib.suppress(OutOfMemory):
        tensor = impl.internal.RawTensor.from_owned_buffer(buffer, (4,))
        tensor.deinit()
        assert buffer.refs == 0
        return
    assert buffer.refs == 1
    buffer.release()


@clause("STORAGE-FAULT-1")
def test_the_switch(impl: Any) -> None:
    internal = impl.internal
    assert_raises(InvalidBounds, "STORAGE-FAULT-1", lambda: internal.fail_allocation(0))
    assert_raises(InvalidBounds, "STORAGE-FAULT-1", lambda: internal.fail_allocation(-1))
    assert_raises(InvalidInteger, "STORAGE-FAULT-1", lambda: internal.fail_allocation(1.0))
    start = internal.allocation_count()
    internal.fail_allocation(1)
    internal.fail_allocation(None)
    internal.RawTensor.zeros((1,))
    internal.fail_allocation(1)
    assert_raises(OutOfMemory, None, lambda: internal.RawTensor.zeros((1,)))
    internal.RawTensor.zeros((1,))
    assert internal.allocation_count() >= start + 3
