"""Block formats by the short way and by the long one: the same result, and the same refusal, whichever is taken.

A call with plain arguments goes straight to the kernel; the same call with its arguments by name goes through the
Python layer, which does the complete check.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fucina.fast as fast
from fucina.fast import DType
from fucina.spec.errors import FucinaError

FORMATS = [dtype for dtype in DType if fast.dtype.kind(dtype) is fast.DTypeKind.block_quantized]
INTEGERS = [np.int8, np.uint8, np.int32, np.int64, np.uint64]


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """Return what a call returned, or refused, in a form to compare."""
    try:
        made = call()
    except FucinaError as error:
        return type(error), error.clause, str(error)
    return made.dtype, made.shape, made.tobytes()


shapes = st.lists(st.integers(0, 3), min_size=0, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)


def values_of(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def in_memory(array: Any, how: str) -> Any:
    """Return an array's elements held in some way, some of which are refused."""
    if how == "misaligned":
        room = np.zeros(array.nbytes + 1, np.uint8)
        held = room[1:].view(array.dtype).reshape(array.shape) if array.size else array.copy()
        held[...] = array
        return held
    if how == "strided":
        held = np.zeros((*array.shape, 2), array.dtype)[..., 0]
        held[...] = array
        return held
    if how == "read-only":
        held = array.copy()
        held.setflags(write=False)
        return held
    return memoryview(array.copy()) if how == "view" else array.copy()


def both_ways(call: Callable[..., Any], **arguments: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a call with its arguments by position, and by name."""
    return partial(call, *arguments.values()), partial(call, **arguments)


def assert_both_ways_agree(call: Callable[..., Any], room: Any, out: str | None, **arguments: Any) -> None:
    """Compare what both ways return or refuse, and what they leave in an output of such a size and kind."""
    made = []
    for way in both_ways(call, **arguments):
        target = None if out is None else in_memory(room, out)
        made.append((outcome(partial(way, out=target)), None if target is None else np.asarray(target).tobytes()))
    assert made[0] == made[1]


HOLDERS = ["array", "misaligned", "strided", "read-only", "view"]
holders = st.sampled_from(HOLDERS)


@settings(max_examples=300)
@given(
    st.sampled_from(FORMATS),
    shapes,
    seeds,
    st.booleans(),
    holders,
    st.sampled_from([None, *HOLDERS]),
    st.integers(-1, 1),
)
def test_decoding(
    dtype: DType, shape: tuple[int, ...], seed: int, packed: bool, how: str, out: str | None, more: int
) -> None:
    form = fast.dtype.storage(dtype)
    whole = np.random.default_rng(seed).integers(0, 256, (*shape, form.itemsize), np.uint8)
    blocks = whole.view(form).reshape(shape) if packed else whole
    if shape and not packed:
        blocks = whole.reshape(*shape[:-1], shape[-1] * form.itemsize)
    count = blocks.nbytes // form.itemsize * fast.dtype.block_size(dtype)
    room = np.full(max(count + more, 0), 7, np.float32)
    assert_both_ways_agree(fast.quant.dequantize, room, out, dtype=dtype, blocks=in_memory(blocks, how))


@settings(max_examples=300)
@given(st.sampled_from(FORMATS), shapes, seeds, holders, st.sampled_from([None, *HOLDERS]), st.booleans(), st.data())
def test_encoding(
    dtype: DType, shape: tuple[int, ...], seed: int, how: str, out: str | None, packed: bool, data: st.DataObject
) -> None:
    size, form = fast.dtype.block_size(dtype), fast.dtype.storage(dtype)
    values = values_of((*shape[:-1], shape[-1] * size) if shape else (), seed)
    if values.size and data.draw(st.booleans()):  # numbers whose sums overflow, and what is no number
        odd = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 3e38]))
        values.reshape(-1)[:: data.draw(st.integers(1, 9))] = odd
    if shape and values.size and data.draw(st.booleans()):
        values = values[..., : values.shape[-1] - 1]
    count = max(values.size // size + data.draw(st.integers(-1, 1)), 0)
    bytes_ = np.full(count * form.itemsize, 7, np.uint8)
    room = bytes_.view(form) if packed else bytes_
    assert_both_ways_agree(fast.quant.quantize, room, out, dtype=dtype, values=in_memory(values, how))


@settings(max_examples=300)
@given(
    st.sampled_from(FORMATS), st.integers(1, 3), st.integers(0, 4), shapes, st.sampled_from(INTEGERS), seeds, st.data()
)
def test_rows(
    dtype: DType, row_blocks: int, count: int, shape: tuple[int, ...], integer: Any, seed: int, data: st.DataObject
) -> None:
    row_len = row_blocks * fast.dtype.block_size(dtype)
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (count, row_blocks * fast.dtype.storage(dtype).itemsize), np.uint8)
    lowest = -1 if np.issubdtype(integer, np.signedinteger) and data.draw(st.booleans()) else 0
    highest = max(count + data.draw(st.integers(0, 1)), lowest + 1)
    indices = random.integers(lowest, highest, shape).astype(integer)
    asked = row_len + data.draw(st.sampled_from([0, 0, 0, 1, -row_len, row_len]))
    held: list[Any] = [indices]
    if indices.ndim == 1 and indices.size:  # a list without elements has no dtype of integers
        held += [indices.tolist(), tuple(indices.tolist()), [np.int64(i) for i in indices.tolist()]]
    made = [
        outcome(way)
        for one in held
        for way in both_ways(fast.quant.dequantize_rows, dtype=dtype, blocks=blocks, row_len=asked, indices=one)
    ]
    assert len(set(made)) == 1


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name)
def test_what_is_given_comes_back(dtype: DType) -> None:
    values = values_of((2, fast.dtype.block_size(dtype)), 5)
    blocks = np.zeros((2, 1), fast.dtype.storage(dtype))
    assert fast.quant.quantize(dtype, values, out=blocks) is blocks
    held = blocks.view(np.uint8)
    assert fast.quant.quantize(dtype, values, out=held) is held
    target = np.zeros(values.size, np.float32)
    assert fast.quant.dequantize(dtype, blocks, out=target) is target
    assert np.array_equal(fast.quant.dequantize(dtype, held.tobytes()), target)
    rows = np.zeros((3, values.shape[1]), np.float32)
    assert fast.quant.dequantize_rows(dtype, blocks, values.shape[1], [1, 0, 1], out=rows) is rows
    assert np.array_equal(rows[[1, 0]].reshape(-1), target)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name)
def test_an_output_over_the_input_is_refused(dtype: DType) -> None:
    size, form = fast.dtype.block_size(dtype), fast.dtype.storage(dtype)
    room = np.zeros(size * 8 + form.itemsize, np.uint8)
    values, blocks = room[: size * 4].view(np.float32), room[size * 4 - 4 :][: form.itemsize]
    with pytest.raises(FucinaError, match="must not share memory"):
        fast.quant.quantize(dtype, values, out=blocks)
    with pytest.raises(FucinaError, match="must not share memory"):
        fast.quant.dequantize(dtype, blocks, out=values)
    with pytest.raises(FucinaError, match="must not share memory"):
        fast.quant.dequantize_rows(dtype, blocks, size, [0], out=values)
    indices = values.view(np.int64)[:1]
    with pytest.raises(FucinaError, match="must not share memory"):
        fast.quant.dequantize_rows(dtype, blocks.copy(), size, indices, out=values)
    assert not room.any()


def test_many_values_are_encoded_and_refused_as_few_are() -> None:
    """The short way leaves them to the Python layer."""
    values = values_of((1 << 15, 64), 3)
    assert np.array_equal(fast.quant.quantize(DType.q8_0, values)[-1:], fast.quant.quantize(DType.q8_0, values[-1:]))
    values[-1, -1] = np.nan
    with pytest.raises(FucinaError, match=r"values\[32767, 63\] = nan"):
        fast.quant.quantize(DType.q8_0, values)


def test_references_are_kept() -> None:
    """Neither way keeps what it was given, nor loses it."""
    values, indices = values_of((1, 32), 1), np.zeros(1, np.int64)
    blocks, out = fast.quant.quantize(DType.q4_0, values), np.zeros((1, 32), np.float32)
    held = [values, indices, blocks, out, blocks.dtype, out.dtype, DType.q4_0]
    bad: list[Any] = [[1], [0, None], indices + 1]
    before = [sys.getrefcount(one) for one in held]
    for _ in range(100):
        fast.quant.quantize(DType.q4_0, values, out=blocks)
        fast.quant.quantize(DType.q4_0, values)
        fast.quant.dequantize(DType.q4_0, blocks, out=out)
        fast.quant.dequantize(DType.q4_0, blocks)
        fast.quant.dequantize_rows(DType.q4_0, blocks, 32, indices, out=out)
        for refused in bad:
            with pytest.raises(FucinaError):
                fast.quant.dequantize_rows(DType.q4_0, blocks, 32, refused, out=out)
    assert [sys.getrefcount(one) for one in held] == before
