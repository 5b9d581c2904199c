"""The output of a fill: which buffers are taken, which are refused, and that nothing else is written."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises, sentinel
from fucina.conformance.suite.fills import FILLS, Fill
from fucina.spec.errors import DTypeMismatch, Overflow, ReadOnlyStorage, UnsupportedView

N = 20
TYPECODES: dict[str, Any] = {"f4": "f", "i8": "q", "?": "?"}
COUNTED = tuple(fill for fill in FILLS if fill.counted)


@clause("RNG-OUT-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_any_buffer_of_the_right_format(impl: Any, fill: Fill) -> None:
    expected = fill(impl, 11, N)
    if fill.format != "?":  # array.array has no bool
        typed = array.array(TYPECODES[fill.format], [0] * N)
        fill.into(impl, 11, typed)
        assert_bits(np.frombuffer(typed, dtype=fill.format), expected, what="array.array", clause="RNG-OUT-1")
    memory = memoryview(bytearray(N * np.dtype(fill.format).itemsize)).cast(TYPECODES[fill.format])
    fill.into(impl, 11, memory)
    assert_bits(np.frombuffer(memory, dtype=fill.format), expected, what="memoryview", clause="RNG-OUT-1")
    table = fill.empty(N).reshape(4, 5)
    fill.into(impl, 11, table)
    assert_bits(table.reshape(-1), expected, what="a 4 x 5 array in row-major order", clause="RNG-OUT-1")
    single = fill.empty(N).reshape(1, N, 1)
    fill.into(impl, 11, single)
    assert_bits(single.reshape(-1), expected, what="a 1 x n x 1 array", clause="RNG-OUT-1")


@clause("RNG-OUT-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_an_empty_output_is_fine(impl: Any, fill: Fill) -> None:
    fill.into(impl, 11, fill.empty(0))
    fill.into(impl, 11, fill.empty(0).reshape(3, 0))
    # a slice would not do: numpy lets an empty one begin at its base
    raw = np.zeros(16, np.uint8)
    fill.into(impl, 11, np.ndarray((0,), fill.format, raw, (1 - raw.ctypes.data) % 8))


@clause("RNG-OUT-1", "RNG-CHUNK-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_only_the_output_is_written(impl: Any, fill: Fill) -> None:
    for n in (*range(0, 20), 31, 32, 33, 63, 64, 65, 127, 129, 257):
        expected = fill(impl, 12, n)
        for lead in (0, 1, 3, 8):
            whole = sentinel(lead + n + 9, fill.format)
            around = whole.copy()
            fill.into(impl, 12, whole[lead : lead + n])
            around[lead : lead + n] = expected
            # as bytes: a sentinel is no valid bool
            assert_bits(
                whole.view(np.uint8), around.view(np.uint8), what=f"{fill}, n={n} after {lead}", clause="RNG-OUT-1"
            )


@clause("RNG-OUT-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_wrong_format(impl: Any, fill: Fill) -> None:
    for format in ("?", "u1", "i1", "i2", "f2", "i4", "u4", "f4", "f8", "i8", "u8", "c8", "V4", "S4", "M8[s]"):
        if format == fill.format:
            continue
        out = sentinel(N, format)
        assert_raises(DTypeMismatch, "RNG-OUT-1", fill.bound(impl, 1, out), out=out, what=f"{fill}, format {format}")


@clause("RNG-OUT-1", "RNG-OUT-2", "ERR-STATE-1")
@pytest.mark.parametrize("fill", [fill for fill in FILLS if fill.format != "?"], ids=str)
def test_wrong_byte_order(impl: Any, fill: Fill) -> None:
    out = sentinel(N, np.dtype(fill.format).newbyteorder("S"))
    assert_raises(DTypeMismatch, "RNG-OUT-1", fill.bound(impl, 1, out), out=out, what=f"{fill}, swapped bytes")


@clause("RNG-OUT-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_no_buffer_at_all(impl: Any, fill: Fill) -> None:
    for out in (np.ma.masked_array(fill.empty(N)), None, 3, 1.5, "text", [0.0] * N, object(), np.array([None] * N)):
        assert_raises(DTypeMismatch, "RNG-OUT-1", fill.bound(impl, 1, out), what=f"{fill}, out={out!r:.30}")


@clause("RNG-OUT-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_read_only(impl: Any, fill: Fill) -> None:
    out = sentinel(N, fill.format)
    out.setflags(write=False)
    assert_raises(ReadOnlyStorage, "RNG-OUT-1", fill.bound(impl, 1, out), out=out, what=f"{fill}, read-only array")
    frozen = memoryview(bytes(N * out.itemsize)).cast(TYPECODES[fill.format])
    assert_raises(ReadOnlyStorage, "RNG-OUT-1", fill.bound(impl, 1, frozen), what=f"{fill}, bytes")


@clause("RNG-OUT-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_not_contiguous(impl: Any, fill: Fill) -> None:
    whole = sentinel(4 * N, fill.format)
    for what, view in (
        ("every second element", whole[::2]),
        ("backwards", whole[::-1]),
        ("columns", whole.reshape(4, N).T),
        ("a slice of rows", whole.reshape(4, N)[:, :5]),
        ("one element repeated", np.lib.stride_tricks.as_strided(whole, (N,), (0,), writeable=True)),
    ):
        assert_raises(UnsupportedView, "RNG-OUT-1", fill.bound(impl, 1, view), out=whole, what=f"{fill}, {what}")


@clause("RNG-OUT-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", [fill for fill in FILLS if fill.format != "?"], ids=str)
def test_not_aligned(impl: Any, fill: Fill) -> None:
    size = np.dtype(fill.format).itemsize
    for off in (1, size // 2, size - 1):
        whole = sentinel((N + 2) * size, "u1")
        start = off - whole.ctypes.data % size
        view = whole[start % size + size : start % size + size * (N + 1)].view(fill.format)
        assert view.ctypes.data % size == off
        what = f"{fill}, {off} bytes off"
        assert_raises(UnsupportedView, "RNG-OUT-1", fill.bound(impl, 1, view), out=whole, what=what)
        memory = whole.data[start % size + size : start % size + size * (N + 1)].cast(TYPECODES[fill.format])
        what += ", a memoryview"
        assert_raises(UnsupportedView, "RNG-OUT-1", fill.bound(impl, 1, memory), out=whole, what=what)


@clause("RNG-RANGE-1", "RNG-OUT-2", "ERR-STATE-1", "ERR-MSG-1")
@pytest.mark.parametrize("fill", COUNTED, ids=str)
def test_window_past_the_end_of_the_stream(impl: Any, fill: Fill) -> None:
    for first, n in (((1 << 64) - 1, 2), ((1 << 64) - N + 1, N), ((1 << 64) - 1, N)):
        out = sentinel(n, fill.format)
        call = fill.bound(impl, 1, out, first=first)
        assert_raises(
            Overflow, "RNG-RANGE-1", call, shows=("first", "2^64"), out=out, what=f"{fill}, first={first}, n={n}"
        )
    for first, n in (((1 << 64) - 1, 1), ((1 << 64) - N, N), ((1 << 64) - 1, 0)):
        fill.into(impl, 1, fill.empty(n), first=first)
