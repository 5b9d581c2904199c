"""validate and error: what is odd in stored blocks, and what a format costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises, assert_same
from fucina.conformance.suite.blocks import FORMATS, SLOW_ENCODERS, encode, gaussian, random_blocks, sizes
from fucina.spec import GEOMETRY, BlockFinding, BlockReport, DType, ErrorFigures
from fucina.spec.errors import InvalidShape, NonFiniteValue

Q4 = DType.q4_0
each_format = pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
F16_SCALES = [
    (d, field.name)
    for d in FORMATS
    for field in GEOMETRY[d].fields
    if field.name in ("d", "m", "dmin", "s") and field.format == "<u2"
]


def _seen(report: BlockReport) -> list[tuple[int, str, int, int, str, int]]:
    assert isinstance(report, BlockReport)
    assert all(isinstance(f, BlockFinding) and f.reason for f in report.findings)
    return [(f.block, f.field, f.item, f.count, f.kind, f.bits) for f in report.findings]


@clause("BLOCK-VALID-1", "BLOCK-VALID-2")
@each_format
def test_what_encoders_make_is_in_order(impl: Any, dtype: DType) -> None:
    blocks = encode(impl, dtype, gaussian(sizes(dtype)[0], scale=1.0))
    report = impl.quant.validate(dtype, blocks)
    assert (report.dtype, report.blocks, report.findings, report.ok) == (dtype, 1, (), True)


@clause("BLOCK-VALID-1")
@pytest.mark.parametrize(("dtype", "field"), F16_SCALES, ids=lambda p: p if isinstance(p, str) else p.name)
def test_f16_scales(impl: Any, dtype: DType, field: str) -> None:
    struct = impl.dtype.storage(dtype)
    bits = [0x3C00, 0x7C00, 0x0001, 0x7E00, 0x83FF, 0xFC00, 0x7C01, 0x0400, 0x8000, 0xFFFF]
    blocks = np.zeros(len(bits), struct)
    if dtype is DType.tq1_0:
        blocks["qs"], blocks["qh"] = 0x80, 0x7F
    blocks[field] = bits
    kinds = {
        0x7C00: "inf",
        0xFC00: "inf",
        1: "subnormal",
        0x83FF: "subnormal",
        0x7E00: "nan",
        0x7C01: "nan",
        0xFFFF: "nan",
    }
    expected = [(i, field, 0, 1, kinds[b], b) for i, b in enumerate(bits) if b in kinds]
    report = impl.quant.validate(dtype, blocks)
    assert _seen(report) == expected
    assert not report.ok
    assert impl.quant.validate(dtype, blocks[[0, 2, 4, 7]]).ok, "BLOCK-VALID-2: subnormal scales decode exactly"


@clause("BLOCK-ROUND-1", "BLOCK-VALID-1")
@each_format
def test_a_scale_beyond_f16_is_infinite_and_found(impl: Any, dtype: DType) -> None:
    blocks = encode(impl, dtype, gaussian(sizes(dtype)[0], scale=1e10))
    seen = _seen(impl.quant.validate(dtype, blocks))
    if dtype in (DType.q8_k, DType.mxfp4, DType.nvfp4):  # an f32, an exponent of eight bits, a cap
        assert seen == []
    else:
        assert seen
        assert {(kind, bits & 0x7FFF) for *_, kind, bits in seen} == {("inf", 0x7C00)}


@clause("BLOCK-VALID-1")
def test_scales_that_are_no_f16(impl: Any) -> None:
    blocks = np.zeros(4, impl.quant.BlockQ8_K)
    blocks["d"].view("<u4")[:] = [0x7F800000, 0x00000001, 0xFFC00000, 0x3F800000]
    found = [(0, "d", 0, 1, "inf", 0x7F800000), (1, "d", 0, 1, "subnormal", 1), (2, "d", 0, 1, "nan", 0xFFC00000)]
    assert _seen(impl.quant.validate(DType.q8_k, blocks)) == found

    words = np.zeros(3, impl.quant.BlockIQ1_M)
    words["scales"] = [[0x0FFF, 0, 0, 0x7000], [0x1000, 0, 0x0C00, 0x7000], [0x0000, 0xF000, 0xC000, 0x7000]]
    found = [(0, "scales", 0, 1, "subnormal", 0x7000)]  # 0x7000 is a normal number: nothing is found there
    assembled = [0x7000, 0x7001, 0x7CF0]
    expected = [(i, "scales", 0, 1, "nan", b) for i, b in enumerate(assembled) if (b & 0x7C00) == 0x7C00 and b & 0x3FF]
    assert _seen(impl.quant.validate(DType.iq1_m, words)) == expected


@clause("BLOCK-VALID-1", "BLOCK-OCP-1", "BLOCK-OCP-2")
def test_fp4_scale_bytes(impl: Any) -> None:
    blocks = np.zeros(256, impl.quant.BlockMXFP4)
    blocks["e"] = np.arange(256)
    found = [(0, "e", 0, 1, "subnormal", 0), (1, "e", 0, 1, "subnormal", 1), (255, "e", 0, 1, "nan", 255)]
    assert _seen(impl.quant.validate(DType.mxfp4, blocks)) == found

    four = np.zeros(4, impl.quant.BlockNVFP4)
    four["d"] = [[0x38, 0x7F, 0xFF, 0x38], [0x80, 0xB8, 7, 1], [0x7E, 8, 0, 0x38], [0xFE, 0x7F, 3, 0]]
    assert _seen(impl.quant.validate(DType.nvfp4, four)) == [
        (0, "d", 1, 2, "nan", 0x7F),
        (1, "d", 2, 2, "subnormal", 7),
        (1, "d", 0, 2, "code", 0x80),
        (3, "d", 1, 1, "nan", 0x7F),
        (3, "d", 2, 1, "subnormal", 3),
        (3, "d", 0, 1, "code", 0xFE),
    ]


@clause("BLOCK-VALID-1")
def test_codes_and_sums(impl: Any) -> None:
    for dtype in (DType.q2_0, DType.tq2_0):
        blocks = np.zeros(3, impl.dtype.storage(dtype))
        blocks["qs"][1, [4, 9]] = [0x1B, 0xC0]  # 0x1b holds every code once
        assert _seen(impl.quant.validate(dtype, blocks)) == [(1, "qs", 4, 2, "code", 0x1B)]
    fives = {(256 * v + 242) // 243 for v in range(243)}
    fours = {(256 * v + 242) // 243 for v in range(0, 243, 3)}
    for byte in range(256):
        block = np.zeros(1, impl.quant.BlockTQ1_0)
        block["qs"], block["qh"] = 0x80, 0x7F
        block["qs"][0, 47] = byte
        expected = [] if byte in fives else [(0, "qs", 47, 1, "code", byte)]
        assert _seen(impl.quant.validate(DType.tq1_0, block)) == expected, f"BLOCK-VALID-1: qs {byte:#x}"
        block["qs"], block["qh"][0, 2] = 0x80, byte
        expected = [] if byte in fours else [(0, "qh", 2, 1, "code", byte)]
        assert _seen(impl.quant.validate(DType.tq1_0, block)) == expected, f"BLOCK-VALID-1: qh {byte:#x}"
    blocks = np.zeros(2, impl.quant.BlockQ8_K)
    blocks["qs"][:] = -128
    blocks["bsums"][:] = -2048
    assert impl.quant.validate(DType.q8_k, blocks).findings == ()
    blocks["bsums"][1, [3, 7]] = [-2047, 5]
    assert _seen(impl.quant.validate(DType.q8_k, blocks)) == [(1, "bsums", 3, 2, "sum", 2**16 - 2047)]


@clause("BLOCK-VALID-1", "BLOCK-VALID-2")
@each_format
def test_any_bytes_in_lockstep(impl: Any, judge: Any, dtype: DType) -> None:
    blocks = random_blocks(dtype, 300, seed=8)
    got, expected = (module.quant.validate(dtype, blocks) for module in (impl, judge))
    assert _seen(got) == _seen(expected)
    assert (got.ok, got.blocks) == (expected.ok, 300)
    assert str(got).startswith(f"{dtype.name}: 300 blocks")


@clause("BLOCK-VALID-2")
def test_findings_stand_in_order(impl: Any) -> None:
    blocks = random_blocks(DType.q2_k, 40_000, seed=2)
    found = [f.block for f in impl.quant.validate(DType.q2_k, blocks[:4000]).findings]
    assert found == sorted(found)
    assert found


@clause("BLOCK-VALID-2")
def test_blocks_are_counted_from_the_first(impl: Any) -> None:
    blocks = np.zeros(40_000, impl.quant.BlockQ4_0)
    odd = [3, 16_383, 16_384, 39_999]
    blocks["d"][odd] = 0x7C00
    assert [f.block for f in impl.quant.validate(Q4, blocks).findings] == odd


@clause("BLOCK-VALID-2")
def test_findings_of_a_block_stand_in_order(impl: Any) -> None:
    blocks = np.zeros(2, impl.quant.BlockQ2_K)
    blocks["d"], blocks["dmin"] = [0x7E00, 0x7C00], [0x7C00, 0x7E01]
    found = [(f.block, f.field, f.kind) for f in impl.quant.validate(DType.q2_k, blocks).findings]
    assert found == [(0, "d", "nan"), (0, "dmin", "inf"), (1, "d", "inf"), (1, "dmin", "nan")]


@clause("BLOCK-FIGURES-1")
@each_format
def test_figures(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    blocks = 1 if dtype in SLOW_ENCODERS else 4
    values = gaussian(blocks * block, seed=7, scale=1.0).reshape(blocks, block)
    decoded = impl.quant.dequantize(dtype, encode(impl, dtype, values)).reshape(blocks, block)
    total, largest = 0.0, 0.0
    for row, back in zip(values.tolist(), decoded.tolist(), strict=True):
        inner = 0.0
        for x, y in zip(row, back, strict=True):
            inner += (y - x) * (y - x)
            largest = max(largest, abs(y - x))
        total += inner
    figures = impl.quant.error(dtype, values)
    assert isinstance(figures, ErrorFigures)
    assert figures.dtype is dtype
    assert_same(figures.rmse, math.sqrt(total / (blocks * block)), what=f"{dtype.name}, rmse", clause="BLOCK-FIGURES-1")
    assert_same(figures.max_error, largest, what=f"{dtype.name}, max_error", clause="BLOCK-FIGURES-1")
    assert_same(figures.bits_per_weight, 8 * size / block, what=f"{dtype.name}, bits", clause="BLOCK-FIGURES-1")


@clause("BLOCK-FIGURES-1")
def test_figures_of_what_overflows(impl: Any) -> None:
    figures = impl.quant.error(DType.q8_0, np.full(32, 1e30, np.float32))
    assert figures.rmse == figures.max_error == math.inf
    mixed = np.zeros(64, np.float32)
    mixed[3] = 1e30
    figures = impl.quant.error(DType.q8_0, mixed)  # an infinite scale times code 0 is NaN
    assert math.isnan(figures.rmse)
    assert math.isnan(figures.max_error)


@clause("BLOCK-FIGURES-1", "BLOCK-FINITE-1", "BLOCK-VALUES-1")
def test_figures_that_are_refused(impl: Any) -> None:
    error = impl.quant.error
    assert_raises(InvalidShape, "BLOCK-FIGURES-1", lambda: error(DType.q4_0, np.zeros((0, 32), np.float32)))
    assert_raises(InvalidShape, "BLOCK-VALUES-1", lambda: error(DType.q4_0, np.zeros(31, np.float32)))
    assert_raises(NonFiniteValue, "BLOCK-FINITE-1", lambda: error(DType.q4_0, np.full(32, np.nan, np.float32)))
