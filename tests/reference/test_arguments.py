"""Tests of what arguments, elements and buffers may be, and of what messages say."""

from __future__ import annotations

import array
import ctypes
import random
from typing import Any

import numpy as np
import pytest

import fucina.reference as reference
from fucina.reference.arguments import f32_argument, integer, number_shown, shown
from fucina.reference.buffers import readable, refuse_overlap, require_count, writable
from fucina.reference.formats import F32, F64, decode, float_of
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidInteger,
    Overflow,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)
from fucina.spec.types import DType


@pytest.mark.parametrize("value", [0, 7, np.uint64(2**64 - 1), np.int8(5), 2**64 - 1])
def test_integers(value: Any) -> None:
    assert integer("n", value, 0, 1 << 64, "RNG-SEED-1") == int(value)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float32(1), "1", None, b"1", [1]])
def test_no_integers(value: Any) -> None:
    with pytest.raises(InvalidInteger, match=r"^RNG-SEED-1: n must be an integer, got "):
        integer("n", value, 0, 1 << 64, "RNG-SEED-1")


@pytest.mark.parametrize(("value", "text"), [(-1, "-1"), (2**64, str(2**64)), (10**100, "an integer of 333 bits")])
def test_integers_out_of_range(value: int, text: str) -> None:
    with pytest.raises(Overflow) as raised:
        integer("n", value, 0, 1 << 64, "RNG-SEED-1")
    assert str(raised.value) == f"RNG-SEED-1: n must be in [0, 2^64), got {text}"


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (0.1, 0x3DCCCCCD),
        (1e39, 0x7F800000),
        (-1e39, 0xFF800000),
        (2.0**-150, 0),
        (-(2.0**-149) * 0.75, 0x80000001),
        (3, 0x40400000),
        (np.int64(-3), 0xC0400000),
        (10**400, 0x7F800000),
        (-(10**400), 0xFF800000),
        (2**60 + 2**36 + 1, 0x5D800000),  # an int is an f64 first, and that is the tie that stays below
        (np.float16(0.5), 0x3F000000),
        (np.float32(1e-45), 1),
        (float("nan"), 0x7FC00000),
        (float("-inf"), 0xFF800000),
    ],
)
def test_f32_parameters(value: Any, bits: int) -> None:
    assert f32_argument("p", value).bits == bits


@pytest.mark.parametrize(
    "value", [True, np.False_, "1", 1j, None, np.zeros(1, np.float32), np.array(1.0), np.complex64(1)]
)
def test_no_f32_parameters(value: Any) -> None:
    with pytest.raises(DTypeMismatch, match=r"^NUM-PARAM-1: p must be a float or an integer, got "):
        f32_argument("p", value)


def test_numbers_in_messages_read_back_as_the_same_number() -> None:
    dice = random.Random(1)
    for _ in range(3000):
        bits = dice.getrandbits(64)
        value = float_of(bits)
        if value == value:
            assert float(shown(value)) == value
        single = np.array([bits & 0xFFFFFFFF], np.uint32).view(np.float32)[0]
        if single == single:
            assert np.float32(number_shown(decode(F32, bits & 0xFFFFFFFF))) == single
    assert [number_shown(decode(F64, bits), 17) for bits in (0, 1 << 63, 0x7FF8 << 48, 0xFFF0 << 48)] == [
        "0.0",
        "-0.0",
        "nan",
        "-inf",
    ]
    assert [shown(x) for x in (1.0, 0.5, 1e-7, 1e300, None, "f16", [1.5])] == [
        "1.0",
        "0.5",
        "9.9999999999999995e-8",
        "1.0000000000000001e300",
        "None",
        "'f16'",
        "an object of type list",
    ]


# -- elements


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DType.bool, 1),
        (DType.u8, True),
        (DType.i32, 1.0),
        (DType.bf16, 1.0),
        (DType.f8_e4m3, "1"),
        (DType.f32, True),
        (DType.f16, None),
        (DType.f64, 1j),
    ],
)
def test_no_elements(dtype: DType, value: Any) -> None:
    with pytest.raises(DTypeMismatch, match=r"^BRIDGE-SCALAR-4: [a-z]"):
        reference.dtype.cast_scalar(dtype, DType.f32, value)


@pytest.mark.parametrize(("dtype", "value"), [(DType.u8, 256), (DType.i8, 128), (DType.bf16, -1), (DType.f8_e5m2, 256)])
def test_elements_out_of_range(dtype: DType, value: int) -> None:
    with pytest.raises(Overflow, match=r"^BRIDGE-SCALAR-4: "):
        reference.dtype.cast_scalar(dtype, DType.f32, value)


# -- buffers


@pytest.mark.parametrize(
    ("buffer", "dtype"),
    [
        (b"\x00\x01", DType.u8),
        (bytearray(3), DType.f8_e4m3),
        (array.array("f", [1.0]), DType.f32),
        (array.array("l", [1]), DType.i64),
        ((ctypes.c_float * 3)(), DType.f32),
        (np.zeros((2, 3), np.uint16), DType.bf16),
        (np.zeros((), np.float16), DType.f16),
        (np.zeros(3, np.longlong), DType.i64),
        (np.zeros(0, np.float64), DType.f64),
        (np.zeros(9, np.uint8)[1:].view(np.float32), DType.f32),
        (np.zeros((4, 4), np.int32)[1:3], DType.i32),
        (np.float32(1), DType.f32),
        (memoryview(b"ab"), DType.u8),
    ],
)
def test_readable(buffer: Any, dtype: DType) -> None:
    memory = readable("array", buffer, dtype)
    expected = np.asarray(memoryview(buffer))
    assert memory.shape == expected.shape
    assert memory.patterns.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "buffer",
    [
        [1.0],
        None,
        3.0,
        "text",
        np.zeros(3),
        np.zeros(3, ">f4"),
        np.zeros(3, np.int32),
        np.zeros(3, np.complex64),
        np.zeros(3, "V4"),
        np.zeros(3, object),
        np.ma.masked_array(np.zeros(3, np.float32)),
        np.zeros(3, "M8[s]"),
    ],
)
def test_not_readable(buffer: Any) -> None:
    with pytest.raises(DTypeMismatch, match=r"^BRIDGE-ARRAY-2: array must "):
        readable("array", buffer, DType.f32)


@pytest.mark.parametrize(
    "buffer", [np.zeros((3, 3), np.float32)[:, 1], np.zeros((3, 3), np.float32).T, np.zeros(6, np.float32)[::-1]]
)
def test_not_contiguous(buffer: Any) -> None:
    with pytest.raises(UnsupportedView, match="C-contiguous"):
        readable("array", buffer, DType.f32)


def test_writable() -> None:
    with pytest.raises(ReadOnlyStorage):
        writable("out", b"abc", DType.u8, "RNG-OUT-1")
    with pytest.raises(UnsupportedView, match="aligned"):
        writable("out", np.zeros(9, np.uint8)[1:].view(np.float32), DType.f32, "RNG-OUT-1")
    memory = writable("out", target := np.zeros(3, np.float32), DType.f32, "RNG-OUT-1")
    memory.write([1, 2, 0x3F800000])
    assert target.view(np.uint32).tolist() == [1, 2, 0x3F800000]
    with pytest.raises(InvalidDataLength, match="must hold 4 elements, got 3"):
        require_count("out", memory, 4, "BRIDGE-ARRAY-3")


@pytest.mark.parametrize(("a", "b", "bytes_"), [((0, 4), (3, 8), 1), ((2, 6), (0, 3), 1), ((0, 8), (2, 4), 2)])
def test_overlap(a: tuple[int, int], b: tuple[int, int], bytes_: int) -> None:
    memory = bytearray(8)
    first = readable("array", memoryview(memory)[slice(*a)], DType.u8)
    second = readable("out", memoryview(memory)[slice(*b)], DType.u8)
    with pytest.raises(OverlappingMemory, match=f"overlap by {bytes_} bytes"):
        refuse_overlap(first, second, "BRIDGE-ARRAY-3")


def test_neighbours_and_empty_buffers_do_not_overlap() -> None:
    memory = bytearray(8)
    whole = readable("array", memory, DType.u8)
    left, right = (readable("out", memoryview(memory)[s], DType.u8) for s in (slice(0, 4), slice(4, 8)))
    refuse_overlap(left, right, "BRIDGE-ARRAY-3")
    refuse_overlap(right, left, "BRIDGE-ARRAY-3")
    refuse_overlap(whole, readable("out", memoryview(memory)[3:3], DType.u8), "BRIDGE-ARRAY-3")
