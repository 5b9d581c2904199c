"""Buffers of elements: an array is what its memory is, and a buffer what its format and its length say."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises, sentinel
from fucina.conformance.suite.blocks import random_blocks
from fucina.conformance.suite.hostile import renamed
from fucina.spec import DType
from fucina.spec.errors import DTypeMismatch

Q8 = DType.q8_0


class Packed(ctypes.LittleEndianStructure):
    """Three bytes that Python 3.11 calls one."""

    _pack_ = 1
    _fields_ = (("a", ctypes.c_uint8), ("b", ctypes.c_uint16))


def _takers(impl: Any, dtype: DType, count: int) -> dict[str, Callable[[Any], object]]:
    kind, tensor = impl.internal.storage_mod.BufferOf(dtype), impl.internal.tensor_mod.TensorOf(dtype)
    shape = (count * (impl.dtype.block_size(dtype) if impl.dtype.is_block_quantized(dtype) else 1),)
    return {
        "from_slice": kind.from_slice,
        "from_borrowed_slice": kind.from_borrowed_slice,
        "from_borrowed_const_slice": kind.from_borrowed_const_slice,
        "from_storage_slice": partial(tensor.from_storage_slice, shape),
        "from_borrowed_storage_slice": partial(tensor.from_borrowed_storage_slice, shape),
    }


@clause("STORAGE-COPY-1", "STORAGE-BORROW-2")
@pytest.mark.parametrize("dtype", [Q8, DType.f32, DType.u16], ids=lambda d: d.name)
def test_an_array_is_what_its_memory_is(impl: Any, dtype: DType) -> None:
    claimed = impl.dtype.storage(dtype)
    for memory in (
        np.zeros(2 * claimed.itemsize, np.int16),
        np.zeros(2, f"V{claimed.itemsize}"),
        np.zeros(34, np.int64),
    ):
        for name, take in _takers(impl, dtype, 2).items():
            what = f"{name} of {memory.dtype} that claims {dtype.name}"
            assert_raises(DTypeMismatch, None, partial(take, renamed(memory, claimed)), shows=("values",), what=what)


@clause("TENSOR-COPY-1")
def test_a_destination_is_what_its_memory_is(impl: Any) -> None:
    tensor, out = impl.internal.RawTensor.zeros((4,)), sentinel(8, np.uint16)
    call = partial(tensor.copy_to, renamed(out, np.dtype(np.float32)))
    assert_raises(DTypeMismatch, "TENSOR-COPY-1", call, shows=("dst",), out=out)


@clause("STORAGE-COPY-1", "STORAGE-BORROW-1", "STORAGE-BORROW-2")
def test_a_view_of_structs_is_structs(impl: Any) -> None:
    structs: Any = random_blocks(Q8, 2).reshape(-1).view(impl.dtype.storage(Q8))
    for name, take in _takers(impl, Q8, 2).items():
        for given in (memoryview(structs), structs, renamed(structs, np.dtype(np.float32))):
            made: Any = take(given)
            held = getattr(made, "buffer", made).data
            assert held.tobytes() == structs.tobytes(), f"{name} of {type(given).__name__}"
    twice: Any = np.repeat(structs, 2)
    every_other = memoryview(twice)[::2]
    assert impl.internal.storage_mod.BufferOf(Q8).from_slice(every_other).data.tobytes() == structs.tobytes()


@clause("STORAGE-COPY-1", "STORAGE-BORROW-2")
def test_structs_are_not_bytes_whatever_their_format_says(impl: Any) -> None:
    structs = (Packed * 4)()  # twelve bytes: whole elements of u16 and f32, if they were bytes
    for dtype in (DType.u16, DType.f32, DType.u8):
        for name, take in _takers(impl, dtype, 12 // impl.dtype.scalar_byte_size(dtype)).items():
            assert_raises(DTypeMismatch, None, partial(take, structs), shows=("values",), what=f"{name}, {dtype.name}")
