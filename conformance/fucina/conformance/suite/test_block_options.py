"""Options of the encoders, and the gather of rows: what they do, and what is outside their domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits, assert_raises, sentinel
from fucina.conformance.suite.blocks import (
    FORMATS,
    MAY_REJECT,
    WITH_IMPORTANCE,
    as_bytes,
    assert_blocks,
    encode,
    gaussian,
    misaligned,
    random_blocks,
    sizes,
)
from fucina.conformance.suite.hostile import Acting
from fucina.conformance.suite.pace import quick
from fucina.spec import DType
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidInteger,
    InvalidShape,
    NonFiniteValue,
    UnencodableBlock,
    UnsupportedView,
)

Q4 = DType.q4_0
with_importance = pytest.mark.parametrize("dtype", WITH_IMPORTANCE, ids=lambda d: d.name)


@clause("BLOCK-ARG-1", "ERR-STATE-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_options_that_a_format_does_not_have(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    values, out = gaussian(block), sentinel(size, np.uint8)

    def refused(**options: Any) -> None:
        call = lambda: impl.quant.quantize(dtype, values, out=out, **options)  # noqa: E731
        assert_raises(InvalidDType, "BLOCK-ARG-1", call, shows=(dtype.name, *options), out=out)

    if dtype not in WITH_IMPORTANCE:
        refused(imatrix=np.ones(block, np.float32))
    if dtype is not DType.iq4_nl:
        refused(search=False)
    if dtype is not DType.tq2_0:
        refused(scale=1.0)
    for wrong in (None, 1, 0, "no"):
        call = lambda wrong=wrong: impl.quant.quantize(dtype, values, out=out, search=wrong)  # noqa: E731
        assert_raises(DTypeMismatch, "BLOCK-ARG-1", call, shows=("search",), out=out)


@clause("BLOCK-IMATRIX-1")
@with_importance
def test_an_importance_of_ones_is_the_default(impl: Any, dtype: DType) -> None:
    values = gaussian(512).reshape(1, 512)
    expected = encode(impl, dtype, values)
    assert_blocks(encode(impl, dtype, values, imatrix=np.ones(512, np.float32)), expected, dtype, "imatrix of ones")


@clause("BLOCK-IMATRIX-1", "BLOCK-CHUNK-1")
@with_importance
def test_importance_belongs_to_the_columns(impl: Any, dtype: DType) -> None:
    values, weights = gaussian(1024).reshape(2, 512), np.abs(gaussian(512, seed=9, scale=1)) + np.float32(0.01)
    whole = encode(impl, dtype, values, imatrix=weights)
    assert (whole != encode(impl, dtype, values)).any(), "BLOCK-IMATRIX-1: the importance changes nothing"
    apart = [
        encode(impl, dtype, values[r, 256 * b :][:256], imatrix=weights[256 * b :][:256])
        for r in (0, 1)
        for b in (0, 1)
    ]
    assert_blocks(whole, np.concatenate(apart), dtype, "imatrix, block by block")


@clause("BLOCK-IMATRIX-1", "BLOCK-CHUNK-1")
@with_importance
def test_importance_belongs_to_the_columns_at_any_address(impl: Any, dtype: DType) -> None:
    # values may be looked at or copied piece by piece, and a piece need not end where a row does
    rows = 7 if quick(impl) else 1
    values, weights = gaussian(768 * rows).reshape(rows, 768), np.abs(gaussian(768, seed=9, scale=1))
    expected = np.concatenate([encode(impl, dtype, row, imatrix=weights) for row in values])
    assert_blocks(encode(impl, dtype, values, imatrix=weights), expected, dtype, "imatrix, rows at once")
    got = encode(impl, dtype, misaligned(values), imatrix=misaligned(weights))
    assert_blocks(got, expected, dtype, "imatrix, misaligned values")


@clause("BLOCK-IMATRIX-1", "BLOCK-SEARCH-6", "BLOCK-SEARCH-8", "NUM-ARITH-1")
@with_importance
@pytest.mark.parametrize("kind", ["random", "zero", "sparse", "huge", "tiny"])
def test_importance_in_lockstep(impl: Any, judge: Any, dtype: DType, kind: str) -> None:
    weights = {
        "random": np.abs(gaussian(256, seed=4, scale=1)),
        "zero": np.zeros(256, np.float32),
        "sparse": np.where(np.arange(256) % 5 == 0, 1, 0).astype(np.float32),
        "huge": np.full(256, 2.0**100, np.float32) * (1 + np.arange(256, dtype=np.float32) % 7),
        "tiny": np.full(256, 2.0**-140, np.float32),
    }[kind]
    values = gaussian(256, seed=5)
    assert_blocks(
        encode(impl, dtype, values, imatrix=weights),
        encode(judge, dtype, values, imatrix=weights),
        dtype,
        f"importance: {kind}",
    )


@clause("BLOCK-IMATRIX-1", "ERR-STATE-1")
@with_importance
def test_importance_that_is_refused(impl: Any, dtype: DType) -> None:
    values, out = gaussian(512).reshape(2, 256), sentinel(2 * sizes(dtype)[1], np.uint8)

    def refused(kind: type[BaseException], weights: Any, *shows: object) -> None:
        call = lambda: impl.quant.quantize(dtype, values, out=out, imatrix=weights)  # noqa: E731
        assert_raises(kind, "BLOCK-IMATRIX-1", call, shows=("imatrix", *shows), out=out)

    refused(InvalidDataLength, np.ones(255, np.float32), 255, 256)
    refused(InvalidDataLength, np.ones(512, np.float32), 512)
    refused(InvalidDataLength, np.ones((1, 256), np.float32))
    refused(DTypeMismatch, np.ones(256))
    refused(DTypeMismatch, [1.0] * 256)
    refused(UnsupportedView, np.ones(512, np.float32)[::2])
    for bad, kind in ((np.nan, NonFiniteValue), (np.inf, NonFiniteValue), (-1e-45, InvalidBounds), (-3, InvalidBounds)):
        weights = np.ones(256, np.float32)
        weights[77] = weights[200] = bad
        refused(kind, weights, "[77]")
    signed_zero = np.ones(256, np.float32)
    signed_zero[3] = -0.0
    impl.quant.quantize(dtype, values, imatrix=signed_zero)


@clause("BLOCK-SCALE-1")
def test_the_scale_of_tq2_0(impl: Any) -> None:
    values = gaussian(256, scale=1)
    for scale in (0.5, np.float32(0.1), 1, np.float64(3e38), 2.0**-149, 1e-30):
        blocks = impl.quant.quantize(DType.tq2_0, values, scale=scale)
        with np.errstate(over="ignore"):
            assert blocks["d"].view(np.float16)[0] == np.float16(np.float32(scale)), f"BLOCK-SCALE-1: {scale!r}"
    out = sentinel(66, np.uint8)
    for scale in (0, 0.0, -1.0, float("nan"), float("inf"), 1e39, 1e-60, 10**400):
        call = lambda scale=scale: impl.quant.quantize(DType.tq2_0, values, out=out, scale=scale)  # noqa: E731
        assert_raises(InvalidBounds, "BLOCK-SCALE-1", call, shows=("scale",), out=out)
    wrong: list[Any] = ["1", True, 1j, [1.0]]
    for scale in wrong:
        call = lambda scale=scale: impl.quant.quantize(DType.tq2_0, values, out=out, scale=scale)  # noqa: E731
        assert_raises(DTypeMismatch, "NUM-PARAM-1", call, shows=("scale",), out=out)


@clause("BLOCK-REJECT-1", "ERR-STATE-1")
@pytest.mark.parametrize("dtype", MAY_REJECT, ids=lambda d: d.name)
def test_the_first_block_without_an_answer_is_named(impl: Any, dtype: DType) -> None:
    out, plain = sentinel(3 * sizes(dtype)[1], np.uint8), gaussian(256)
    for scale in (1e15, 1e18, 1e20, 1e25, 1e30):
        large = gaussian(256, seed=2, scale=scale)
        try:
            encode(impl, dtype, large)
        except UnencodableBlock:
            values = np.stack([plain, large, large])
            call = lambda values=values: impl.quant.quantize(dtype, values, out=out)  # noqa: E731
            assert_raises(UnencodableBlock, "BLOCK-REJECT-1", call, shows=(dtype.name, "block [1, 0]"), out=out)
            return
    # the sums of iq1 overflow too, and the block still has bytes
    assert dtype in (DType.iq1_s, DType.iq1_m), f"BLOCK-REJECT-1: {dtype.name} encodes values of 1e30"


@clause("BLOCK-REJECT-1", "ERR-STATE-1")
def test_the_block_without_an_answer_is_named_at_any_address(impl: Any) -> None:
    values = np.zeros((40, 256), np.float32)
    values[37:] = gaussian(768, seed=2, scale=1e30).reshape(3, 256)
    out = sentinel(40 * sizes(DType.iq3_s)[1], np.uint8)
    call = lambda: impl.quant.quantize(DType.iq3_s, misaligned(values), out=out)  # noqa: E731
    assert_raises(UnencodableBlock, "BLOCK-REJECT-1", call, shows=("iq3_s", "block [37, 0]"), out=out)


@clause("BLOCK-ROWS-1")
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
def test_rows_are_slices(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    blocks = random_blocks(dtype, 10)
    table = impl.quant.dequantize(dtype, blocks.reshape(5, 2 * size))
    for indices in (
        [4, 0, 0, 3],
        (1,),
        range(5),
        np.array([[2, 1], [0, 4]]),
        np.array([3], np.uint8),
        np.array([1, 2], ">i4"),
        np.arange(5, dtype=np.uint64)[::-2],
        np.array(2),
        [],
        np.zeros((3, 0), np.int16),
        [np.int64(1), Acting(int, 2)],
    ):
        got = impl.quant.dequantize_rows(dtype, blocks, 2 * block, indices)
        wanted = np.array([int(getattr(i, "value", i)) for i in np.asarray(indices, object).ravel()], np.int64)
        shape = indices.shape if isinstance(indices, np.ndarray) else (len(indices),)
        expected = table[wanted].reshape(*shape, 2 * block)
        what = f"{dtype.name}, rows {indices!r}"
        assert_bits(got, expected, nan="any", dtype=DType.f32, what=what, clause="BLOCK-ROWS-1")
        out = np.empty(expected.size, np.float32)
        assert impl.quant.dequantize_rows(dtype, blocks, 2 * block, indices, out=out) is out
        assert_bits(out.reshape(expected.shape), expected, nan="any", dtype=DType.f32, what=what)


@clause("BLOCK-ROWS-1", "BLOCK-ROWS-2", "ERR-STATE-1")
def test_rows_that_are_refused(impl: Any) -> None:
    blocks, out = random_blocks(Q4, 12), sentinel(128, np.float32)

    def refused(kind: Any, clauses: Any, row_len: Any, indices: Any, *shows: object) -> None:
        call = lambda: impl.quant.dequantize_rows(Q4, blocks, row_len, indices, out=out)  # noqa: E731
        assert_raises(kind, clauses, call, shows=shows, out=out, what=f"row_len={row_len!r}, indices={indices!r}")

    for indices, place, value in (
        ([0, 6], "[1]", 6),
        ([5, -1, 99], "[1]", -1),
        (np.array([[0, 1], [7, 1 << 40]]), "[1, 0]", 7),
        ([1 << 70, 0], "[0]", 1 << 70),
        (np.array([0, (1 << 64) - 1], np.uint64), "[1]", (1 << 64) - 1),
        (np.array([5, -1]), "[1]", -1),
        ([-(1 << 63)], "[0]", -(1 << 63)),
    ):
        refused(IndexOutOfBounds, "BLOCK-ROWS-2", 64, indices, "indices", place, value, 6)
    for row_len in (0, -64, 33, 16, 1 << 70 | 1):
        refused(InvalidShape, "BLOCK-ROWS-1", row_len, [0], "row_len", 32)
    no_integers: list[Any] = [64.0, "64", None, True]
    for row_len in no_integers:
        refused(InvalidInteger, "BLOCK-ROWS-1", row_len, [0], "row_len")
    refused(InvalidDataLength, "BLOCK-ROWS-1", 32 * 5, [0], 12)
    refused(InvalidDataLength, "BLOCK-ROWS-1", 1 << 70, [0])
    no_indices: list[Any] = [
        [0.0],
        [True],
        ["0"],
        [None],
        np.array([0.0]),
        np.array([True]),
        np.array(["0"]),
        np.array([0], object),
        *(None, 3, "0", 1.5, {0}, np.ma.masked_array([0])),
    ]
    for indices in no_indices:
        refused((InvalidInteger, DTypeMismatch), "BLOCK-ROWS-2", 64, indices, "indices")


@clause("BLOCK-ROWS-2")
def test_indices_are_read_once(impl: Any) -> None:
    blocks = random_blocks(Q4, 4)
    indices = np.array([0, 1, 2, 3])
    size = Acting(lambda: indices.fill(99), 32)  # the row length's __index__ runs before the indices are looked at
    try:
        got = impl.quant.dequantize_rows(Q4, blocks, size, indices)
    except IndexOutOfBounds:
        return
    assert_bits(as_bytes(got), as_bytes(impl.quant.dequantize(Q4, blocks)), what="rows")
