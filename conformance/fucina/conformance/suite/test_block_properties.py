"""What holds for every block format: independent blocks, fixed points, signs of zero, agreement with the reference."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fucina.conformance import clause
from fucina.conformance.compare import assert_bits
from fucina.conformance.strategies import profile_size
from fucina.conformance.suite.blocks import (
    FORMATS,
    MAY_REJECT,
    SLOW_ENCODERS,
    assert_blocks,
    clause_of,
    encode,
    gaussian,
    random_blocks,
    sizes,
)
from fucina.conformance.suite.pace import Note, quick, scaled
from fucina.spec import DType

each_format = pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)
each_decoder = [pytest.param(d, id=d.name, marks=clause(clause_of(d, 1))) for d in FORMATS]
each_encoder = [pytest.param(d, id=d.name, marks=clause(clause_of(d, 2))) for d in FORMATS]

FIXED_POINTS = (
    *(DType.q1_0, DType.q2_0, DType.q4_0, DType.q5_0, DType.q8_0, DType.tq1_0, DType.tq2_0, DType.mxfp4, DType.nvfp4),
)
"""Formats whose largest element always decodes to the value that gives its scale back."""


def _values(dtype: DType, blocks: int, seed: int = 1) -> Any:
    return gaussian(sizes(dtype)[0] * blocks, seed)


@clause("BLOCK-CHUNK-1", "BLOCK-DECODE-1")
@each_format
def test_a_decoded_block_depends_on_its_bytes_alone(impl: Any, dtype: DType) -> None:
    blocks = random_blocks(dtype, 37)
    whole = impl.quant.dequantize(dtype, blocks)
    for step in (1, 2, 3, 8, 11, 36):
        parts = np.concatenate([impl.quant.dequantize(dtype, blocks[i : i + step]) for i in range(0, 37, step)])
        assert_bits(
            parts, whole, nan="any", dtype=DType.f32, what=f"{dtype.name}, {step} at a time", clause="BLOCK-CHUNK-1"
        )
    order = np.random.default_rng(3).permutation(37)
    mixed = impl.quant.dequantize(dtype, blocks[order])
    assert_bits(
        mixed, whole[order], nan="any", dtype=DType.f32, what=f"{dtype.name}, another order", clause="BLOCK-CHUNK-1"
    )


@clause("BLOCK-CHUNK-1")
@each_format
def test_a_large_array_is_decoded_as_a_small_one(impl: Any, dtype: DType, record_property: Note) -> None:
    # results larger than the caches may be written in another way
    times = scaled(impl, record_property, (48 << 20) // (4 * 37 * sizes(dtype)[0]), 2, f"{dtype.name}, repeated blocks")
    blocks = random_blocks(dtype, 37)
    once = impl.quant.dequantize(dtype, blocks.reshape(-1)).view(np.uint32)
    out = np.full(times * once.size, 7, np.float32)
    impl.quant.dequantize(dtype, np.tile(blocks.reshape(-1), times), out=out)
    many = out.view(np.uint32).reshape(times, -1)
    nans = (once & 0x7FFFFFFF) > 0x7F800000
    same = ((many == once) | (nans & ((many & 0x7FFFFFFF) > 0x7F800000))).all(axis=1)
    assert same.all(), f"BLOCK-CHUNK-1: {dtype.name}, repetition {np.flatnonzero(~same)[0]} of {times} differs"


@clause("BLOCK-CHUNK-1", "BLOCK-ENCODE-1")
@each_format
def test_an_encoded_block_depends_on_its_values_alone(impl: Any, dtype: DType) -> None:
    n = 37 if quick(impl) else 3 if dtype in SLOW_ENCODERS else 11
    values = _values(dtype, n).reshape(n, -1) * np.float32(1.5) ** np.arange(n, dtype=np.float32)[:, None]
    values[1] = 0
    whole = encode(impl, dtype, values.reshape(-1))
    for step in (1, 2, 5, 8, 9, 36):
        if step < n:
            parts = [encode(impl, dtype, values[i : i + step].reshape(-1)) for i in range(0, n, step)]
            assert_blocks(np.concatenate(parts), whole, dtype, f"{step} at a time")
    order = np.random.default_rng(3).permutation(n)
    assert_blocks(encode(impl, dtype, values[order].reshape(-1)), whole[order], dtype, "another order")


@clause("BLOCK-CHUNK-1")
@each_format
def test_threads_share_nothing(impl: Any, dtype: DType) -> None:
    n = 64 if quick(impl) else 2
    values = _values(dtype, n)
    expected = encode(impl, dtype, values)
    decoded = impl.quant.dequantize(dtype, expected)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: encode(impl, dtype, values), range(4)))
        read = list(pool.map(lambda _: impl.quant.dequantize(dtype, expected), range(4)))
    for blocks, floats in zip(made, read, strict=True):
        assert_blocks(blocks, expected, dtype, "four threads at once")
        assert_bits(
            floats, decoded, nan="any", dtype=DType.f32, what=f"{dtype.name}, four threads", clause="BLOCK-CHUNK-1"
        )


@clause("BLOCK-ENCODE-1")
@pytest.mark.parametrize("dtype", FIXED_POINTS, ids=lambda d: d.name)
def test_decoded_values_encode_to_the_same_block(impl: Any, dtype: DType) -> None:
    for seed, scale in ((1, 0.02), (2, 1.0), (3, 300.0)):
        blocks = encode(impl, dtype, gaussian(sizes(dtype)[0] * 8, seed, scale))
        again = encode(impl, dtype, impl.quant.dequantize(dtype, blocks))
        assert_blocks(again, blocks.reshape(again.shape), dtype, "decoded and encoded again")


@clause("BLOCK-DECODE-1", "BLOCK-ENCODE-1")
@each_format
def test_encoding_comes_near(impl: Any, dtype: DType) -> None:
    n = 16 if quick(impl) else 1
    values = _values(dtype, n)
    decoded = impl.quant.dequantize(dtype, encode(impl, dtype, values)).reshape(-1)
    bits = 8 * sizes(dtype)[1] / sizes(dtype)[0]
    error = np.sqrt(np.mean((decoded - values) ** 2, dtype=np.float64) / np.mean(values**2, dtype=np.float64))
    # a generous bound: the distortion of an ideal quantiser of that many bits, times four
    assert error < 4 * 2.0**-bits + 0.02 or error < 0.95 / max(bits - 0.5, 1), (
        f"{dtype.name}: relative error {error:.3f}"
    )


@clause("BLOCK-DECODE-1")
@each_format
def test_a_scale_of_minus_zero_turns_every_sign(impl: Any, dtype: DType) -> None:
    if dtype in (DType.mxfp4, DType.nvfp4):
        blocks = np.zeros((1, sizes(dtype)[1]), np.uint8)
        blocks[:, -1] = 0x8F  # codes 15 and 8: a negative number times zero, and the positive zero of code 8
        patterns = impl.quant.dequantize(dtype, blocks).view(np.uint32)
        if dtype is DType.nvfp4:
            assert set(patterns.ravel()) == {0, 0x80000000}, "BLOCK-DECODE-1: -6 times +0 is -0, code 8 is +0"
        return
    found = {}
    for sign in (0, 1):
        block = np.zeros(1, impl.dtype.storage(dtype))
        if dtype is DType.iq1_m:
            block["scales"][0, 3] = sign << 15
        elif dtype is DType.q8_k:
            block["d"] = -0.0 if sign else 0.0
        else:
            block["d"] = sign << 15
        found[sign] = impl.quant.dequantize(dtype, block).view(np.uint32)
        assert not (found[sign] & 0x7FFFFFFF).any(), f"{dtype.name}: a zero scale gives {found[sign]}"
    if dtype in (DType.q4_1, DType.q5_1, DType.q2_k, DType.q4_k, DType.q5_k):
        return  # a zero minimum is added or subtracted: -0 + 0 is +0
    assert (found[0] ^ found[1] == 0x80000000).all(), f"BLOCK-DECODE-1: {dtype.name} loses the sign of a zero"


@clause("BLOCK-SCAN-1", "BLOCK-Q41-2", "BLOCK-Q51-2")
@pytest.mark.parametrize("dtype", [DType.q4_1, DType.q5_1], ids=lambda d: d.name)
def test_of_equal_zeros_the_first_is_the_minimum(impl: Any, dtype: DType) -> None:
    for first, later, bits in ((0.0, -0.0, 0x0000), (-0.0, 0.0, 0x8000)):
        for place in (1, 7, 8, 31):
            values = np.ones(32, np.float32)
            values[0], values[place] = first, later
            found = impl.quant.quantize(dtype, values)["m"][0]
            assert found == bits, f"BLOCK-SCAN-1: {dtype.name}, {first} before {later}: the minimum is {found:#06x}"


def _interesting() -> st.SearchStrategy[int]:
    normal = st.builds(
        lambda s, e, m: s << 31 | e << 23 | m, st.integers(0, 1), st.integers(100, 140), st.integers(0, 2**23 - 1)
    )
    round_ones = st.sampled_from(
        [0, 1 << 31, 0x3F800000, 0xBF800000, 0x3F000000, 0x40000000, 0x3F7FFFFF, 1, 0x00800000]
    )
    wide = st.builds(
        lambda s, e, m: s << 31 | e << 23 | m, st.integers(0, 1), st.integers(0, 150), st.integers(0, 2**23 - 1)
    )
    return st.one_of(normal, round_ones, wide)


@clause("NUM-ARITH-1", "BLOCK-ROUND-1", "BLOCK-SCAN-1")
@pytest.mark.parametrize("dtype", [p for p in each_encoder if p.values[0] not in SLOW_ENCODERS])
@given(few=st.lists(_interesting(), min_size=1, max_size=12), seed=st.integers(0, 1 << 32))
def test_encode_in_lockstep(impl: Any, judge: Any, dtype: DType, few: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice(np.array(few, np.uint32), sizes(dtype)[0]).view(np.float32)
    assert_blocks(encode(impl, dtype, values), encode(judge, dtype, values), dtype, f"values {[hex(b) for b in few]}")


@clause("NUM-ARITH-1", "BLOCK-SEARCH-1", "BLOCK-SEARCH-2", "BLOCK-SEARCH-3", "BLOCK-SEARCH-4", "BLOCK-SEARCH-5")
@clause("BLOCK-SEARCH-6", "BLOCK-SEARCH-7", "BLOCK-SEARCH-8", "BLOCK-TABLE-1")
@pytest.mark.parametrize("dtype", [p for p in each_encoder if p.values[0] in SLOW_ENCODERS])
def test_searches_in_lockstep(impl: Any, judge: Any, dtype: DType) -> None:
    block = sizes(dtype)[0]
    rng = np.random.default_rng(FORMATS.index(dtype))
    few = rng.choice(np.array([-1, -0.5, 0, 0.25, 1, 2], np.float32), block).astype(np.float32)
    steps = (np.arange(block) % 17 - 8).astype(np.float32) / 8
    values: Any
    for values, what in ((few, "few values"), (steps, "steps"))[: profile_size(1, 2)]:
        assert_blocks(encode(impl, dtype, values), encode(judge, dtype, values), dtype, what)


@clause("NUM-NAN-2", "BLOCK-DECODE-1")
@pytest.mark.parametrize("dtype", each_decoder)
@given(data=st.data())
def test_decode_in_lockstep(impl: Any, judge: Any, dtype: DType, data: st.DataObject) -> None:
    size = sizes(dtype)[1]
    block = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8)
    got, expected = (module.quant.dequantize(dtype, block) for module in (impl, judge))
    assert_bits(
        got,
        expected,
        nan="any",
        dtype=DType.f32,
        what=f"{dtype.name}, {block.tobytes().hex()}",
        clause=clause_of(dtype, 1),
    )


@clause("BLOCK-ENCODE-1", "BLOCK-REJECT-1")
@each_format
def test_any_finite_row_is_encoded_or_refused(impl: Any, dtype: DType) -> None:
    block, size = sizes(dtype)
    rng = np.random.default_rng(11)
    for k in range(200 if quick(impl) else 1 if dtype in SLOW_ENCODERS else 4):
        bits = rng.integers(0, 1 << 32, block, np.uint64).astype(np.uint32)
        if k % 2:
            bits &= 0x8FFFFFFF  # small ones only
        values = np.where((bits & 0x7F800000) == 0x7F800000, bits & 0x80FFFFFF, bits).astype(np.uint32).view(np.float32)
        try:
            assert encode(impl, dtype, values).shape == (1, size)
        except ValueError:
            assert dtype in MAY_REJECT
