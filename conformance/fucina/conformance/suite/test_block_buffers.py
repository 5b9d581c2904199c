"""The buffers of the block functions: what is taken, at any address; what is refused, with nothing written."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises, sentinel
from fucina.conformance.suite.blocks import FORMATS, as_bytes, encode, gaussian, random_blocks, sizes
from fucina.spec import GEOMETRY, DType
from fucina.spec.errors import (
    DTypeMismatch,
    InvalidDataLength,
    InvalidDType,
    InvalidShape,
    NonFiniteValue,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)

Q4, Q8 = DType.q4_0, DType.q8_0
each_format = pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)


def _memory(value: Any) -> Any:
    """Return a memoryview; untyped, because numpy's stubs know no buffer before Python 3.12."""
    return memoryview(value)


def _at_odd_address(data: bytes) -> Any:
    room = np.zeros(len(data) + 64, np.uint8)
    start = 1 if room.ctypes.data % 2 == 0 else 2
    room[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return room[start : start + len(data)]


@clause("BLOCK-STRUCT-1", "DTYPE-STORAGE-2")
@each_format
def test_structs(impl: Any, dtype: DType) -> None:
    geometry = GEOMETRY[dtype]
    struct = getattr(impl.quant, str(geometry.struct_name))
    assert isinstance(struct, np.dtype)
    assert struct == impl.dtype.storage(dtype)
    assert struct.itemsize == geometry.byte_size, "BLOCK-STRUCT-1: padding"
    names = [field.name for field in geometry.fields]
    assert list(struct.names or ()) == names
    fields: Any = struct.fields
    for field in geometry.fields:
        member, offset = fields[field.name][:2]
        assert (offset, member.base) == (field.offset, np.dtype(field.format)), f"BLOCK-STRUCT-1: {field.name}"
        assert member.shape == (() if field.count == 1 else (field.count,))
    block = np.zeros(1, struct)
    block.view(np.uint8)[:] = np.arange(geometry.byte_size) & 255
    for field in geometry.fields:
        items = np.atleast_1d(block[0][field.name])
        width = np.dtype(field.format).itemsize
        stored = [int.from_bytes(np.array(item).astype(field.format).tobytes(), "little") for item in items]
        raw = bytes(i & 255 for i in range(geometry.byte_size))[field.offset : field.offset + width * field.count]
        assert stored == [int.from_bytes(raw[i : i + width], "little") for i in range(0, len(raw), width)]


@clause("BLOCK-IN-1", "BLOCK-CHUNK-1")
@each_format
def test_blocks_from_anywhere(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    rows = random_blocks(dtype, 6)
    data, expected = rows.tobytes(), impl.quant.dequantize(dtype, rows).reshape(-1)
    assert expected.shape == (6 * block,)
    assert expected.dtype == np.float32

    def check(given: Any, shape: tuple[int, ...], what: str) -> None:
        got = impl.quant.dequantize(dtype, given)
        assert got.shape == shape, f"BLOCK-IN-1: {what} has shape {got.shape}, expected {shape}"
        assert_bits(got.reshape(-1), expected[: got.size], nan="any", dtype=DType.f32, what=f"{dtype.name}, {what}")

    structs = rows.reshape(-1).view(impl.dtype.storage(dtype))
    check(structs, (6 * block,), "structs")
    check(structs.reshape(2, 3), (2, 3 * block), "structs, 2-D")
    check(structs[0:1].reshape(()), (block,), "one struct, 0-D")
    check(memoryview(structs), (6 * block,), "memoryview of structs")
    check(rows, (6, block), "bytes, 2-D")
    check(rows.reshape(2, -1), (2, 3 * block), "bytes, rows of three")
    check(data, (6 * block,), "bytes")
    check(bytearray(data), (6 * block,), "bytearray")
    check(memoryview(data), (6 * block,), "memoryview")
    check(_at_odd_address(data), (6 * block,), "odd address")
    check(_at_odd_address(data).view(impl.dtype.storage(dtype)), (6 * block,), "structs at an odd address")
    read_only = rows.copy()
    read_only.setflags(write=False)
    check(read_only, (6, block), "read-only")
    with tempfile.TemporaryFile() as file:
        file.write(b"\0" * 3 + data)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            check(view[3:], (6 * block,), "memory map, off by three")
            with view[3:] as rest, rest[size:] as others:
                assert len(others) == 5 * size


@clause("BLOCK-IN-1", "BLOCK-VALUES-1")
def test_leading_axes_may_be_empty(impl: Any) -> None:
    assert impl.quant.dequantize(Q4, np.zeros((0, 18), np.uint8)).shape == (0, 32)
    assert impl.quant.dequantize(Q4, np.zeros((0, 2), impl.quant.BlockQ4_0)).shape == (0, 64)
    assert impl.quant.quantize(Q4, np.zeros((0, 64), np.float32)).shape == (0, 2)


@clause("BLOCK-IN-1", "ERR-MSG-1")
@pytest.mark.parametrize("name", ["dequantize", "dequantize_rows", "validate"])
def test_blocks_that_are_refused(impl: Any, name: str) -> None:
    function = getattr(impl.quant, name)

    def refused(kind: type[BaseException], given: Any, *shows: object) -> None:
        more = (32, [0]) if name == "dequantize_rows" else ()
        assert_raises(kind, "BLOCK-IN-1", lambda: function(Q4, given, *more), shows=("blocks", *shows), what=name)

    structs = np.zeros(4, impl.quant.BlockQ4_0)
    refused(InvalidDataLength, bytes(17), 17, 18)
    refused(InvalidDataLength, np.zeros((18, 4), np.uint8), 18)  # the last axis counts, not the total
    refused(InvalidShape, b"")
    refused(InvalidShape, np.zeros((2, 0), np.uint8))
    refused(InvalidShape, np.zeros((2, 0), impl.quant.BlockQ4_0))
    refused(InvalidShape, np.zeros((), np.uint8))
    refused(DTypeMismatch, np.zeros(18, np.int8))
    refused(DTypeMismatch, np.zeros(18, np.float32))
    refused(DTypeMismatch, np.zeros(2, "V18"))
    refused(DTypeMismatch, np.zeros(2, "O"))
    refused(DTypeMismatch, np.zeros(4, impl.quant.BlockQ4_1), "BlockQ4_0")
    refused(DTypeMismatch, structs.astype(impl.quant.BlockQ4_0.newbyteorder(">")), "d")
    refused(
        DTypeMismatch, np.zeros(4, np.dtype({"names": ["d", "qs"], "formats": ["<u2", ("u1", 16)], "itemsize": 20}))
    )
    refused(DTypeMismatch, np.ma.masked_array(np.zeros(18, np.uint8)), "mask")
    for nothing in (None, 3, "a string", [0] * 18, object()):
        refused(DTypeMismatch, nothing)
    refused(UnsupportedView, structs[::2])
    refused(UnsupportedView, np.zeros((4, 36), np.uint8)[:, ::2])
    refused(UnsupportedView, np.asfortranarray(np.zeros((3, 18), np.uint8)))


@clause("BLOCK-IN-2")
@pytest.mark.parametrize(
    "given",
    [
        pytest.param(bytes(18), id="one block"),
        pytest.param(bytes(18 * 5), id="five blocks"),
        pytest.param(np.zeros((17, 18), np.uint8), id="rows of one block"),
        pytest.param(np.zeros(34, np.dtype([("d", "<u2"), ("qs", "u1", (16,))])), id="structs"),
    ],
)
def test_the_q2_0_of_64_elements_is_refused_with_its_name(impl: Any, given: Any) -> None:
    kinds = (InvalidDataLength, DTypeMismatch)
    assert_raises(
        kinds, "BLOCK-IN-1", lambda: impl.quant.dequantize(DType.q2_0, given), shows=("64", "42", "128", "34")
    )


@clause("BLOCK-VALUES-1", "ERR-MSG-1")
@each_format
def test_the_last_axis_of_values_counts(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    out = sentinel(size * 64, np.uint8)

    def refused(shape: tuple[int, ...], *shows: object) -> None:
        call = lambda: impl.quant.quantize(dtype, np.zeros(shape, np.float32), out=out)  # noqa: E731
        assert_raises(
            InvalidShape, "BLOCK-VALUES-1", call, shows=(block, *shows), out=out, what=f"{dtype.name} {shape}"
        )

    refused((block - 1,), block - 1)
    refused((block + 1,), block + 1)
    refused((block, block // 2), block // 2)  # the product would do
    refused((2, 0), 0)
    refused((0,), 0)
    refused(())


@clause("BLOCK-VALUES-1", "ERR-MSG-1")
def test_values_that_are_refused(impl: Any) -> None:
    out = sentinel(18, np.uint8)

    def refused(kind: type[BaseException], given: Any) -> None:
        assert_raises(
            kind, "BLOCK-VALUES-1", lambda: impl.quant.quantize(Q4, given, out=out), shows=("values",), out=out
        )

    for format in ("f8", "f2", "i4", "u4", "u1", ">f4", "O"):
        refused(DTypeMismatch, np.zeros(32, format))
    refused(DTypeMismatch, np.ma.masked_array(np.zeros(32, np.float32)))
    for nothing in (None, 1.0, "values", [0.0] * 32):
        refused(DTypeMismatch, nothing)
    refused(UnsupportedView, np.zeros(64, np.float32)[::2])
    refused(UnsupportedView, np.zeros((32, 32), np.float32).T[:1].T)


@clause("BLOCK-VALUES-1", "BLOCK-CHUNK-1")
@each_format
def test_values_from_anywhere(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    values = gaussian(3 * block)
    expected = encode(impl, dtype, values)
    assert expected.shape == (3, size)
    odd = _at_odd_address(values.tobytes()).view(np.float32)
    frozen = values.copy()
    frozen.setflags(write=False)
    for given, what in ((odd, "odd address"), (frozen, "read-only"), (_memory(values), "memoryview")):
        got = as_bytes(impl.quant.quantize(dtype, given)).reshape(-1, size)
        assert_bits(got, expected, what=f"{dtype.name}, {what}", clause="BLOCK-VALUES-1")


@clause("BLOCK-FINITE-1", "ERR-MSG-1", "ERR-STATE-1")
@each_format
@pytest.mark.parametrize("bad", [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF], ids=hex)
def test_nan_and_infinity_are_refused(impl: Any, dtype: DType, bad: int) -> None:
    block, size = sizes(dtype)
    values = np.ones((3, 2 * block), np.float32)
    values.view(np.uint32)[1, block + 3] = values.view(np.uint32)[2, 0] = bad
    out = sentinel(6 * size, np.uint8)
    call = lambda: impl.quant.quantize(dtype, values, out=out)  # noqa: E731
    assert_raises(NonFiniteValue, "BLOCK-FINITE-1", call, shows=("values", f"[1, {block + 3}]", 3 * block + 3), out=out)


@clause("BLOCK-OUT-1")
@each_format
def test_out_of_both_ways(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    values = gaussian(2 * block)
    expected = encode(impl, dtype, values)
    structs, plain = np.zeros((1, 2), impl.dtype.storage(dtype)), sentinel(2 * size, np.uint8)
    assert impl.quant.quantize(dtype, values, out=structs) is structs
    assert impl.quant.quantize(dtype, values, out=plain) is plain
    room = bytearray(2 * size + 2)
    made = impl.quant.quantize(dtype, values, out=memoryview(room)[1:-1])
    assert isinstance(made, np.ndarray)
    for got, what in ((as_bytes(structs), "structs"), (plain, "bytes"), (np.frombuffer(room, np.uint8)[1:-1], "odd")):
        assert_bits(got.reshape(-1, size), expected, what=f"{dtype.name}, out of {what}", clause="BLOCK-OUT-1")
    assert room[0] == room[-1] == 0, "BLOCK-OUT-1: written outside of out"

    floats = np.full((2, block), 7, np.float32)
    assert impl.quant.dequantize(dtype, structs, out=floats) is floats
    assert_bits(floats.reshape(1, -1), impl.quant.dequantize(dtype, structs), dtype=DType.f32, clause="BLOCK-OUT-1")


@clause("BLOCK-ENCODE-1", "BLOCK-OUT-1")
@each_format
def test_zeros_leave_nothing_of_what_out_held(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    values, out = np.zeros(2 * block, np.float32), np.full(2 * size, 0xAA, np.uint8)
    impl.quant.quantize(dtype, values, out=out)
    expected = encode(impl, dtype, values)
    assert_bits(out.reshape(-1, size), expected, what=dtype.name, clause="BLOCK-ENCODE-1")
    assert not impl.quant.dequantize(dtype, out).any()
    if dtype is DType.q8_k:
        assert not out.any(), "BLOCK-Q8K-2: a block of zeros is zero bytes, bsums too"


@clause("BLOCK-OUT-1", "ERR-STATE-1")
def test_out_that_is_refused(impl: Any) -> None:
    values, blocks = gaussian(64), random_blocks(Q8, 2) & 0x3F
    quantize, dequantize, rows = impl.quant.quantize, impl.quant.dequantize, impl.quant.dequantize_rows

    def refused(kind: type[BaseException], call: Any, out: Any) -> None:
        assert_raises(kind, "BLOCK-OUT-1", call, shows=("out",), out=out if isinstance(out, np.ndarray) else None)

    frozen = np.zeros(68, np.uint8)
    frozen.setflags(write=False)
    blocks_out: list[tuple[type[BaseException], Any]] = [
        (InvalidDataLength, sentinel(67, np.uint8)),
        (InvalidDataLength, sentinel(34 * 3, np.uint8)),
        (InvalidDataLength, np.zeros(3, impl.quant.BlockQ8_0)),
        (DTypeMismatch, np.zeros(2, impl.quant.BlockQ4_0)),
        (DTypeMismatch, np.zeros(68, np.int8)),
        (DTypeMismatch, np.zeros(17, np.float32)),
        (ReadOnlyStorage, frozen),
        (ReadOnlyStorage, bytes(68)),
        (UnsupportedView, np.zeros(136, np.uint8)[::2]),
        (DTypeMismatch, 5),
    ]
    for kind, out in blocks_out:
        refused(kind, partial(quantize, Q8, values, out=out), out)
    floats = np.zeros(64, np.float32)
    floats.setflags(write=False)
    misaligned = _at_odd_address(bytes(256)).view(np.float32)
    floats_out: list[tuple[type[BaseException], Any]] = [
        (InvalidDataLength, sentinel(63, np.float32)),
        (InvalidDataLength, sentinel(65, np.float32)),
        (DTypeMismatch, sentinel(64, np.float64)),
        (DTypeMismatch, sentinel(64, np.uint32)),
        (ReadOnlyStorage, floats),
        (UnsupportedView, np.zeros(128, np.float32)[::2]),
        (UnsupportedView, misaligned),
        (DTypeMismatch, "out"),
    ]
    for kind, out in floats_out:
        refused(kind, partial(dequantize, Q8, blocks, out=out), out)
        refused(kind, partial(rows, Q8, blocks, 32, [1, 0], out=out), out)


@clause("BLOCK-OUT-1")
def test_out_may_not_overlap_an_input(impl: Any) -> None:
    memory = np.zeros(1 << 10, np.uint8)
    values, blocks = memory[:256].view(np.float32), memory[512:580]
    for start in (0, 4, 188, 252):
        call = partial(impl.quant.quantize, Q8, values, out=memory[start : start + 68])
        assert_raises(OverlappingMemory, "BLOCK-OUT-1", call, shows=("out", "values"), out=memory)
    for start in (260, 512, 576):
        out = memory[start : start + 256].view(np.float32)
        for call in (
            partial(impl.quant.dequantize, Q8, blocks, out=out),
            partial(impl.quant.dequantize_rows, Q8, blocks, 32, [0, 1], out=out),
        ):
            assert_raises(OverlappingMemory, "BLOCK-OUT-1", call, shows=("out", "blocks"), out=memory)
    place = memory[768:784].view(np.int64)
    call = partial(impl.quant.dequantize_rows, Q8, memory[:68], 32, place, out=memory[768:1024].view(np.float32))
    assert_raises(OverlappingMemory, "BLOCK-OUT-1", call, shows=("out", "indices"), out=memory)
    weights = np.zeros(256, np.float32)
    call = partial(impl.quant.quantize, DType.iq2_xs, gaussian(256), imatrix=weights, out=weights.view(np.uint8)[9:83])
    assert_raises(OverlappingMemory, "BLOCK-OUT-1", call, shows=("out", "imatrix"), out=weights)
    impl.quant.quantize(Q8, values, out=memory[256 : 256 + 68])
    impl.quant.dequantize(Q8, blocks, out=memory[580:836].view(np.float32))


@clause("BLOCK-ARG-1", "DTYPE-ARG-1")
def test_the_dtype_is_a_block_dtype(impl: Any) -> None:
    values, blocks = np.zeros(256, np.float32), bytes(18)
    calls: dict[str, Callable[[Any], Any]] = {
        "dequantize": lambda d: impl.quant.dequantize(d, blocks),
        "quantize": lambda d: impl.quant.quantize(d, values),
        "dequantize_rows": lambda d: impl.quant.dequantize_rows(d, blocks, 32, [0]),
        "validate": lambda d: impl.quant.validate(d, blocks),
        "error": lambda d: impl.quant.error(d, values),
    }
    for name, call in calls.items():
        for dtype in (DType.f32, DType.u8, DType.f8_e4m3, DType.bool):
            assert_raises(InvalidDType, "BLOCK-ARG-1", partial(call, dtype), shows=(dtype.name,), what=name)
        for nothing in ("q4_0", None, 15, np.float32):
            assert_raises(InvalidDType, "DTYPE-ARG-1", partial(call, nothing), what=name)
