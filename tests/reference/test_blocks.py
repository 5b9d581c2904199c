"""Tests of what all block encoders share, of the plain formats' corners, and of what module quant accepts."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import numpy as np
import pytest

from fucina.reference import quant
from fucina.reference.blocks import CODECS, q4_0, q5_0, q8_1, tq1_0, tq2_0
from fucina.reference.blocks.findings import findings
from fucina.reference.blocks.fp4 import nearest
from fucina.reference.blocks.mxfp4 import UP
from fucina.reference.blocks.options import PLAIN, Codec, Options, Unencodable
from fucina.reference.blocks.packing import pack, unpack
from fucina.reference.blocks.rounding import (
    BEYOND,
    NAN_F16,
    away,
    chop,
    even,
    f16,
    inverse,
    peak,
    soft,
    total,
    value_range,
    wide,
)
from fucina.reference.softfloat import Soft32
from fucina.spec.errors import (
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    NonFiniteValue,
    OverlappingMemory,
    UnencodableBlock,
)
from fucina.spec.types import GEOMETRY, DType

INFINITY, NAN = Soft32.from_bits(0x7F800000), Soft32.from_bits(0x7FC00000)


def number(value: float) -> Soft32:
    return Soft32.from_float(float(value))


def pattern(value: float) -> int:
    return number(value).bits


# -- roundings


def test_even_is_the_addition_of_the_bias() -> None:
    dice = random.Random(11)
    patterns = [dice.getrandbits(32) for _ in range(2000)]
    patterns += [dice.randrange(0x3E000000, 0x4B000000) | dice.getrandbits(1) << 31 for _ in range(2000)]
    patterns += [pattern(k / 2) for k in range(-40, 41)] + [
        pattern(s * (4194303 + h / 2)) for s in (-1, 1) for h in (0, 1)
    ]
    with np.errstate(all="ignore"):
        shifted = np.array(patterns, np.uint32).view(np.float32) + np.float32(12582912)
    for bits, biased in zip(patterns, shifted.view(np.uint32).tolist(), strict=True):
        if bits & 0x7FFFFFFF <= 0x7F800000:
            assert even(Soft32.from_bits(bits)) == (biased & 0x7FFFFF) - 0x400000, hex(bits)
    assert (even(INFINITY), even(-INFINITY), even(NAN), even(-NAN)) == (-4194304, -4194304, 0, 0)


@pytest.mark.parametrize(
    ("value", "to_even", "from_zero", "to_zero"),
    [
        (0.5, 0, 1, 0),
        (-0.5, 0, -1, 0),
        (1.5, 2, 2, 1),
        (2.5, 2, 3, 2),
        (-2.5, -2, -3, -2),
        (0.49999997, 0, 0, 0),
        (-1.75, -2, -2, -1),
        (3.0, 3, 3, 3),
        (1e-45, 0, 0, 0),
    ],
)
def test_three_roundings_differ(value: float, to_even: int, from_zero: int, to_zero: int) -> None:
    v = number(value)
    assert (even(v), away(v), chop(v)) == (to_even, from_zero, to_zero)


def test_roundings_of_what_is_not_finite() -> None:
    assert (away(INFINITY), away(-INFINITY), away(NAN)) == (BEYOND, -BEYOND, 0)
    assert (chop(INFINITY), chop(-INFINITY), chop(NAN)) == (BEYOND, -BEYOND, 0)


def test_f16_agrees_with_numpy() -> None:
    dice = random.Random(12)
    patterns = [dice.randrange(0x32000000, 0x48000000) | dice.getrandbits(1) << 31 for _ in range(3000)]
    patterns += [0, 1 << 31, pattern(65519.996), pattern(65520), 0x7F7FFFFF, 0xFF800000]
    with np.errstate(over="ignore"):
        halves = np.array(patterns, np.uint32).view(np.float32).astype(np.float16)
    for bits, half in zip(patterns, halves.view(np.uint16).tolist(), strict=True):
        assert f16(Soft32.from_bits(bits)) == half
        assert (
            wide(half).bits
            == struct.unpack("<I", struct.pack("<f", struct.unpack("<e", struct.pack("<H", half))[0]))[0]
        )
    assert f16(NAN) == NAN_F16


# -- sums, scans, reciprocals


def test_total_goes_from_left_to_right() -> None:
    big, small = number(2.0**24), number(1)
    assert total([big, small, small]).bits == big.bits
    assert total([small, small, big]).bits == pattern(2.0**24 + 2)
    assert total([-number(0)]).bits == 0


def test_peak_is_the_first_of_equals() -> None:
    top, found = peak(soft([pattern(v) for v in (1, -3, 3, 2)]))
    assert (top.bits, found.bits) == (pattern(3), pattern(-3))
    top, found = peak(soft([1 << 31] * 4))
    assert (top.bits, found.bits) == (0, 0)


@pytest.mark.parametrize(("values", "sign"), [((-0.0, 0.0), 1), ((0.0, -0.0), 0)])
def test_range_keeps_the_sign_of_the_first_zero(values: tuple[float, ...], sign: int) -> None:
    low, high = value_range(soft([pattern(v) for v in values]))
    assert low.sign == high.sign == sign


@pytest.mark.parametrize("d", [0.0, -0.0, 2.0**-129, -(2.0**-149), math.inf, math.nan])
def test_inverse_is_finite(d: float) -> None:
    assert inverse(number(d)).is_zero


def test_inverse_of_the_least_that_has_one() -> None:
    assert inverse(number(2.0**-127)).bits == pattern(2.0**127)


# -- packing


@pytest.mark.parametrize(("bits", "run"), [(1, 1), (2, 1), (4, 16), (2, 32), (4, 8), (1, 32)])
def test_packing_is_a_bijection(bits: int, run: int) -> None:
    data = random.Random(bits * run).randbytes(64)
    codes = unpack(data, bits, run)
    assert pack(codes, bits, run) == data
    # the lowest bits of a run come first, the second byte right after the first
    assert codes[: min(run, 2)] == [byte & ((1 << bits) - 1) for byte in data[: min(run, 2)]]
    assert codes[run] == data[0] >> bits & ((1 << bits) - 1)


# -- corners of the formats


def zeros(codec: Codec, count: int, sign: int = 0) -> str:
    return codec.encode([sign << 31] * count, PLAIN).hex()


def test_blocks_of_zeros() -> None:
    expected = {
        DType.q1_0: "0000" + "ff" * 16,
        DType.q2_0: "0000" + "55" * 32,
        DType.q4_0: "0080" + "88" * 16,
        DType.q4_1: "00" * 20,
        DType.q5_0: "0080" + "ff" * 4 + "00" * 16,
        DType.q5_1: "00" * 24,
        DType.q8_0: "00" * 34,
        DType.q8_1: "00" * 36,
        DType.tq1_0: "80" * 48 + "7f" * 4 + "0000",
        DType.tq2_0: "55" * 64 + "0000",
        DType.mxfp4: "00" * 17,
        DType.nvfp4: "00" * 36,
    }
    for dtype, block in expected.items():
        size = GEOMETRY[dtype].block_size
        assert size
        assert zeros(CODECS[dtype], size) == block
        negative = block[:4] + "0080" + block[8:] if dtype in (DType.q4_1, DType.q5_1) else block
        assert zeros(CODECS[dtype], size, 1) == negative


def test_the_positive_peak_has_the_negative_scale() -> None:
    for codec, levels in ((q4_0, 8), (q5_0, 16)):
        block = codec.encode([pattern(levels), pattern(-levels)] + [0] * 30, PLAIN)
        assert block[:2] == b"\x00\xbc"  # -1
        # the opposite of the peak would need one level more than there is
        assert codec.decode(block)[:2] == [pattern(levels), pattern(1 - levels)]
        assert codec.decode(block)[2] == 1 << 31


def test_the_stored_sum_uses_the_scale_before_its_rounding() -> None:
    dice, differ = random.Random(13), 0
    for _ in range(20):
        top = number(1 + dice.random())
        block = q8_1.encode([*(pattern(dice.random()) for _ in range(31)), top.bits], PLAIN)
        d, codes = top / number(127), number(sum(struct.unpack("32b", block[4:])))
        assert block[:4] == struct.pack("<HH", f16(d), f16(codes * d))
        differ += f16(codes * d) != f16(codes * wide(f16(d)))
    assert differ


def test_five_digits_survive_their_byte() -> None:
    for v in range(243):
        byte = tq1_0.fraction(v)
        number_back = 0
        for digit in tq1_0.digits(byte):
            number_back = 3 * number_back + digit
        assert number_back == v


@pytest.mark.parametrize(("scale", "wanted"), [(0.5, [2, 0, 2, 1, 2]), (1e-10, [2, 0, 2, 2, 2])])
def test_a_given_scale_limits_the_codes(scale: float, wanted: list[int]) -> None:
    values = [9.0, -9.0, 3e38, 0.2, 0.25]  # the third one over the smaller scale is infinite
    block = tq2_0.encode([pattern(v) for v in values] + [0] * 251, Options(scale=pattern(scale)))
    assert unpack(block[:64], bits=2, run=32)[:6] == [*wanted, 1]
    assert block[64:] == struct.pack("<e", scale)


def test_the_logarithms_that_round_up_to_an_integer() -> None:
    # among the f32 next below 2^e, those whose logarithm is nearer to e than to the f32 below e; in units of 2^e
    for e in (2, 3, 4, 7, 8, 9, 16, 17, 32, 33, 64, 65, 127, -1, -2, -3, -4, -7, -8, -16, -63, -64, -124):
        below = e - 0.001  # where the f32 below e lie
        half_gap = 2.0 ** (math.floor(math.log2(abs(below))) - 24)
        count = math.floor((1 - 2.0**-half_gap) * 2.0**24)
        h = e - 1 if e > 0 else -e
        assert UP[h.bit_length()] == count, e


def test_nearest_takes_the_lower_code_of_equals() -> None:
    # halfway between levels 0 and 1, between -0 and +0 and on an infinite grid
    assert nearest([number(0.5), number(-0.5), number(0)], number(1)) == [0, 0, 0]
    assert nearest([number(3e38), number(-3e38)], number(3e38)) == [1, 9]
    assert nearest([number(5)], number(0)) == [0]


# -- module quant


def test_every_format_keeps_shape_and_bytes() -> None:
    for dtype in (DType.q1_0, DType.q4_0, DType.q8_0, DType.nvfp4):
        size = GEOMETRY[dtype].block_size or 0
        values = np.random.default_rng(1).standard_normal((2, 3 * size)).astype(np.float32)
        blocks = quant.quantize(dtype, values)
        assert blocks.shape == (2, 3)
        assert blocks.dtype == getattr(quant, GEOMETRY[dtype].struct_name or "")
        decoded = quant.dequantize(dtype, blocks)
        assert decoded.shape == values.shape
        unaligned = memoryview(b"x" + blocks.tobytes())[1:]
        assert quant.dequantize(dtype, unaligned).tobytes() == decoded.tobytes()
        rows = quant.dequantize_rows(dtype, blocks, 3 * size, [1, 1, 0])
        assert rows.tobytes() == decoded[[1, 1, 0]].tobytes()


def values_of(count: int = 64, **changes: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    values = np.ones((2, count), np.float32)
    for place, value in changes.items():
        values.reshape(-1)[int(place[1:])] = value
    return values


def test_nothing_is_written_on_error() -> None:
    out = np.full(72, 7, np.uint8)
    before = out.tobytes()
    with pytest.raises(NonFiniteValue, match=r"values\[1, 3\] = -inf \(element 67"):
        quant.quantize(DType.q4_0, values_of(i67=-math.inf, i90=math.nan), out=out)
    with pytest.raises(InvalidDataLength):
        quant.quantize(DType.q4_0, values_of(), out=out[:-1])
    big = np.full((1, 512), 1, np.float32)
    big[0, 256:] = 3e38
    aside = np.full(2 * 66, 7, np.uint8)
    with pytest.raises(UnencodableBlock, match=r"block \[0, 1\], elements 256 to 511"):
        quant.quantize(DType.iq2_xxs, big, out=aside)
    assert out.tobytes() == before
    assert set(aside.tolist()) == {7}


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        (b"", InvalidShape),
        (bytes(19), InvalidDataLength),
        (np.uint8(0), InvalidShape),
        (np.zeros((2, 0), quant.BlockQ4_0), InvalidShape),
        (np.zeros(2, quant.BlockQ4_0.newbyteorder()), TypeError),
        (np.zeros(2, np.dtype([("d", "<u2"), ("qs", "u1", 20)])), TypeError),
        (np.zeros(18, np.int8), TypeError),
        (None, TypeError),
    ],
)
def test_blocks_that_are_none(blocks: Any, error: type[Exception]) -> None:
    for call in (quant.dequantize, quant.validate):
        with pytest.raises(error, match=r"^BLOCK-IN-1: "):
            call(DType.q4_0, blocks)


@pytest.mark.parametrize("indices", [range(10**20), [0, -1], [2**70], np.array([[0, 6]], np.uint64)])
def test_rows_that_are_none(indices: Any) -> None:
    with pytest.raises(IndexOutOfBounds, match=r"^BLOCK-ROWS-2: indices\[.*\] must be in \[0, 6\), got "):
        quant.dequantize_rows(DType.q4_0, bytes(18 * 6), 32, indices)


@pytest.mark.parametrize("indices", [[True], [1.0], np.zeros(2), np.zeros(2, bool), ["0"]])
def test_indices_that_are_none(indices: Any) -> None:
    with pytest.raises(InvalidInteger, match=r"^BLOCK-ROWS-2: "):
        quant.dequantize_rows(DType.q4_0, bytes(18 * 6), 32, indices)


def test_out_may_be_nowhere_near_the_indices() -> None:
    memory = np.zeros(64, np.float32)
    with pytest.raises(OverlappingMemory, match="indices"):
        quant.dequantize_rows(DType.q4_0, bytes(18 * 2), 32, memory.view(np.int32)[:4:2], out=memory)


@pytest.mark.parametrize("options", [{"search": False}, {"scale": 1.0}, {"imatrix": np.ones(64, np.float32)}])
def test_options_of_other_formats(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidDType, match=r"^BLOCK-ARG-1: .*got DType.q4_0$"):
        quant.quantize(DType.q4_0, values_of(), **options)


def test_error_keeps_a_nan() -> None:
    figures = quant.error(DType.q8_0, np.full(64, 3e38, np.float32))  # the scale is beyond f16
    assert figures.rmse == figures.max_error == math.inf
    mixed = np.zeros(64, np.float32)
    mixed[0] = 3e38
    mixed[32:] = np.arange(32)
    figures = quant.error(DType.q8_0, mixed)  # inf * 0 in the first block
    assert math.isnan(figures.max_error)
    assert math.isnan(figures.rmse)


def test_one_finding_per_field_and_kind() -> None:
    block = bytes([0x7F, 0xFF, 0x85, 0x03]) + bytes(32)
    found = [(f.kind, f.item, f.count, f.bits) for f in findings(DType.nvfp4, 5, block)]
    assert found == [("nan", 0, 2, 0x7F), ("subnormal", 3, 1, 3), ("code", 2, 1, 0x85)]


def test_a_block_without_an_encoding_is_no_error_of_the_contract_yet() -> None:
    with pytest.raises(Unencodable):
        CODECS[DType.iq2_xxs].encode([pattern(3e38)] * 256, PLAIN)
