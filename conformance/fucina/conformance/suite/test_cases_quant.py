"""Faults that people reported in public about quantizers and loaders; each test carries the case's id."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises, f32, sentinel
from fucina.conformance.suite.blocks import FORMATS, SLOW_ENCODERS, encode, gaussian, random_blocks, sizes
from fucina.conformance.suite.pace import Note, quick, scaled
from fucina.spec import DType
from fucina.spec.errors import FucinaError, InvalidShape

each_format = pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.name)


def _block(impl: Any, dtype: DType, **fields: Any) -> Any:
    made = np.zeros(1, impl.dtype.storage(dtype))
    for name, value in fields.items():
        made[name] = value
    return made


@clause("BLOCK-ENCODE-1", "BLOCK-DECODE-1")
@each_format
def test_case_o_q01_a_block_of_zeros(impl: Any, dtype: DType) -> None:
    block, _ = sizes(dtype)
    known = {DType.q8_0: bytes(34), DType.q4_1: bytes(20), DType.q5_1: bytes(24), DType.mxfp4: bytes(17)}
    known[DType.tq2_0] = b"\x55" * 64 + bytes(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = encode(impl, dtype, np.zeros(block, np.float32))
        decoded = impl.quant.dequantize(dtype, made)
    assert made.tobytes() == known.get(dtype, made.tobytes()), f"O-Q01: {dtype.name} {made.tobytes().hex()}"
    assert not decoded.any(), f"O-Q01: {dtype.name} decodes zeros to {decoded}"
    assert impl.quant.validate(dtype, made).ok


@clause("BLOCK-Q6K-2", "BLOCK-VALID-1")
@pytest.mark.parametrize("dtype", [DType.q2_k, DType.q3_k, DType.q4_k, DType.q5_k, DType.q6_k], ids=lambda d: d.name)
def test_case_o_q02_no_nan_scale(impl: Any, dtype: DType) -> None:
    made = impl.quant.quantize(dtype, np.zeros(256, np.float32))
    for field in {"d", "dmin"} & set(made.dtype.names):
        assert made[field][0] == 0, f"O-Q02: {dtype.name}.{field} is {made[field][0]:#x}"
    made["d"] = 0x7E00
    (found,) = impl.quant.validate(dtype, made).findings
    assert (found.block, found.field, found.kind) == (0, "d", "nan")


@clause("BLOCK-VALUES-1")
@pytest.mark.parametrize("dtype", [DType.q3_k, DType.q4_k], ids=lambda d: d.name)
def test_case_o_q03_the_last_axis_has_to_divide(impl: Any, dtype: DType, record_property: Note) -> None:
    wrong = np.zeros((4096, 14464), np.float32)
    assert_raises(InvalidShape, "BLOCK-VALUES-1", lambda: impl.quant.quantize(dtype, wrong), shows=(14464, 256))
    rows = scaled(impl, record_property, 14464, 2, "O-Q03, rows of zeros")
    assert impl.quant.quantize(dtype, np.zeros((rows, 4096), np.float32)).shape == (rows, 16)


@clause("BLOCK-VALUES-1", "ERR-STATE-1")
def test_case_o_q04_nothing_is_written_before_an_error(impl: Any) -> None:
    values, out = gaussian(896), sentinel(28 * 34, np.uint8)
    for target in (out, out[: 3 * 144]):
        call = lambda target=target: impl.quant.quantize(DType.q4_k, values, out=target)  # noqa: E731
        assert_raises(InvalidShape, "BLOCK-VALUES-1", call, shows=(896, 256), out=out)
    impl.quant.quantize(DType.q8_0, values, out=out)
    assert impl.quant.quantize(DType.q8_0, values).tobytes() == out.tobytes()


@clause("BLOCK-Q41-1", "BLOCK-Q50-1")
def test_case_o_q05_the_minimum_is_added(impl: Any) -> None:
    got = impl.quant.dequantize(DType.q4_1, _block(impl, DType.q4_1, d=0x3800, m=0xBC00, qs=0x21))
    assert got.tolist() == [-0.5] * 16 + [0.0] * 16, "O-Q05"
    got = impl.quant.dequantize(DType.q5_0, _block(impl, DType.q5_0, d=0x3C00, qh=[0, 0, 1, 0]))
    assert got.tolist() == [-16.0] * 16 + [0.0] + [-16.0] * 15, "O-Q05"


@clause("BLOCK-MXFP4-1")
def test_case_o_q06_levels_are_doubled_and_the_scale_halved(impl: Any) -> None:
    levels = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]
    low = _block(impl, DType.mxfp4, e=127, qs=np.arange(16))
    high = _block(impl, DType.mxfp4, e=127, qs=np.arange(16) << 4)
    assert impl.quant.dequantize(DType.mxfp4, low).tolist() == levels + [0.0] * 16, "O-Q06"
    assert impl.quant.dequantize(DType.mxfp4, high).tolist() == [0.0] * 16 + levels, "O-Q06"


@clause("BLOCK-MXFP4-2")
def test_case_o_q07_the_exponent_of_the_largest_value(impl: Any) -> None:
    for value, byte, decoded in (
        *((2.7, 126, 3.0), (5.5, 127, 6.0), (1.2, 125, 1.0), (6.0, 127, 6.0)),
        *((4.0, 127, 4.0), (7.9, 127, 6.0), (0.75, 124, 0.75)),
    ):
        values = np.zeros(32, np.float32)
        values[13] = value
        made = impl.quant.quantize(DType.mxfp4, values)
        assert made["e"][0] == byte, f"O-Q07: {value} has the exponent byte {made['e'][0]}, not {byte}"
        assert impl.quant.dequantize(DType.mxfp4, made)[13] == decoded, f"O-Q07: {value}"


_ABSURD = """
import importlib, sys
import numpy as np
impl = importlib.import_module(sys.argv[1])
D = impl.DType
calls = []
for d in D:
    for n in (0, 1, 17, 18, 31, 255, 257, 1 << 20 | 1):
        calls.append((impl.quant.dequantize, (d, bytes(n))))
        calls.append((impl.quant.quantize, (d, np.zeros(n, np.float32))))
        calls.append((impl.quant.validate, (d, bytes(n))))
    for row in (0, -1, 2**63, 2**64, 2**200):
        calls.append((impl.quant.dequantize_rows, (d, bytes(8 * 1044), row, [0])))
    for index in (-1, 2**63, 2**64, 2**200):
        calls.append((impl.quant.dequantize_rows, (d, bytes(32 * 18), 32, [index])))
huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 55,), (0,))
for d in ("q4_0", 2, -1, 99, None):
    calls.append((impl.quant.quantize, (d, np.zeros(32, np.float32))))
calls.append((impl.quant.quantize, (D.q4_0, huge)))
for d in D:
    calls.append((impl.quant.dequantize, (d, np.zeros((0, 1 << 62), np.uint8))))
codes, n = set(), 0
for f, a in calls:
    try:
        f(*a)
    except Exception as e:
        codes.add(type(e).__name__)
        n += 1
print(n > 500, *sorted(codes))
"""


@clause("BLOCK-IN-1", "BLOCK-VALUES-1", "BLOCK-ROWS-1", "BLOCK-ROWS-2", "BLOCK-ARG-1")
def test_case_o_q08_absurd_sizes_raise(target: Any) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _ABSURD, target.module_name], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, f"O-Q08: the process died: {run.stderr[-400:]}"
    many, *kinds = run.stdout.split()
    assert many == "True"
    documented = {one.__name__ for one in FucinaError.__subclasses__() for one in (one, *one.__subclasses__())}
    assert set(kinds) <= documented, f"O-Q08: {sorted(set(kinds) - documented)}"


@clause("BLOCK-Q40-2", "NUM-ARITH-1")
def test_case_o_q09_no_fused_multiply_add(impl: Any) -> None:
    values = np.zeros(32, np.float32)
    values[:2] = f32(0x40064993), f32(0x3FDA378F)
    made = impl.quant.quantize(DType.q4_0, np.tile(values, 9)).view(np.uint8).reshape(9, 18)
    for block in made:
        assert block[:4].tobytes() == bytes.fromhex("32b48082"), f"O-Q09: {block[:4].tobytes().hex()}"


@clause("BLOCK-TQ20-2", "BLOCK-TQ10-2", "BLOCK-Q80-2", "BLOCK-ROUND-1")
def test_case_o_q10_half_away_from_zero(impl: Any) -> None:
    below = f32(0x3EFFFFFF)
    for dtype in (DType.tq2_0, DType.tq1_0):
        for given, wanted in (([1, below, -below], [1, 0, 0]), ([1, 0.5, -0.5, 0.25], [1, 1, -1, 0])):
            values = np.zeros(256, np.float32)
            values[: len(given)] = given
            got = impl.quant.dequantize(dtype, impl.quant.quantize(dtype, values))
            assert got[: len(wanted)].tolist() == wanted, f"O-Q10: {dtype.name} {given}"
            assert not got[len(wanted) :].any()
    values = np.zeros(32, np.float32)
    values[:6] = [127, 2.5, -2.5, 0.5, -0.5, 3.5]
    assert impl.quant.quantize(DType.q8_0, values)["qs"][0, :6].tolist() == [127, 3, -3, 1, -1, 4], "O-Q10"


@clause("BLOCK-CHUNK-1", "DTYPE-GEOM-2")
@each_format
def test_case_o_q11_every_block_is_decoded(impl: Any, dtype: DType) -> None:
    blocks = random_blocks(dtype, 3, seed=5)
    whole = impl.quant.dequantize(dtype, blocks.tobytes()).view(np.uint32).reshape(3, -1)
    for i, block in enumerate(blocks):
        alone = impl.quant.dequantize(dtype, block)
        same = (alone.view(np.uint32) == whole[i]) | (np.isnan(alone) & np.isnan(whole[i].view(np.float32)))
        assert same.all(), f"O-Q11: block {i} of three {dtype.name} blocks"


@clause("BLOCK-MXFP4-1")
def test_case_o_q12_the_scale_byte_is_an_exponent(impl: Any) -> None:
    for e in (1, 64, 120, 127, 130, 250):
        got = impl.quant.dequantize(DType.mxfp4, _block(impl, DType.mxfp4, e=e, qs=0x02))
        assert got[0] == 2.0 ** (e - 127), f"O-Q12: e = {e} gives {got[0]}"


@clause("BLOCK-NVFP4-2")
def test_case_o_q13_no_nan_scale_byte(impl: Any) -> None:
    values = np.zeros(64, np.float32)
    values[5] = 1e6
    made = impl.quant.quantize(DType.nvfp4, values)
    assert made["d"][0].tolist() == [0x7E, 0, 0, 0], "O-Q13"
    assert np.isfinite(impl.quant.dequantize(DType.nvfp4, made)).all(), "O-Q13"


@clause("BLOCK-STRUCT-1", "BLOCK-Q80-2")
def test_case_o_q14_fields_are_little_endian(impl: Any) -> None:
    made = impl.quant.quantize(DType.q8_0, np.full(32, 127, np.float32))
    assert made.tobytes()[:2] == b"\x00\x3c", f"O-Q14: {made.tobytes()[:2].hex()}"
    for dtype in FORMATS:
        struct = impl.dtype.storage(dtype)
        wide = [struct[name].base for name in struct.names if struct[name].base.itemsize > 1]
        assert all(member == member.newbyteorder("<") for member in wide), f"O-Q14: {dtype.name}"


@clause("BLOCK-MXFP4-1", "BLOCK-OCP-1", "BLOCK-VALID-1")
def test_case_o_q15_the_exponent_byte_255(impl: Any) -> None:
    block = _block(impl, DType.mxfp4, e=255, qs=[0x00, 0x01, 0x07] + [0] * 13)
    assert impl.quant.dequantize(DType.mxfp4, block)[:3].tolist() == [0.0, 2.0**127, float("inf")], "O-Q15"
    assert [f.kind for f in impl.quant.validate(DType.mxfp4, block).findings] == ["nan"], "O-Q15: not flagged"


@clause("BLOCK-NVFP4-1", "BLOCK-OCP-2")
def test_case_o_q16_the_scale_bytes_of_nvfp4(impl: Any) -> None:
    block = _block(impl, DType.nvfp4, d=[0x00, 0x01, 0x38, 0x7F], qs=0x77)
    got = impl.quant.dequantize(DType.nvfp4, block).reshape(4, 16)
    assert (got == [[0.0], [0.01171875], [6.0], [0.0]]).all(), f"O-Q16: {got[:, 0]}"
    block["d"] = [0xFF, 0x80, 0x81, 0xB8]
    got = impl.quant.dequantize(DType.nvfp4, block).reshape(4, 16)
    assert (got == [[6 * 480.0], [0.0], [0.01171875], [6.0]]).all(), f"O-Q16: {got[:, 0]}"


@clause("BLOCK-ENCODE-1", "NUM-ARITH-1")
@each_format
def test_the_kind_behind_o_q01_to_o_q13(impl: Any, dtype: DType) -> None:
    """Few values, zeros among them, and single outliers: no scale that the validator would flag."""
    block, _ = sizes(dtype)
    rng = np.random.default_rng(4)
    for k in range(40 if quick(impl) else 1 if dtype in SLOW_ENCODERS else 6):
        values = np.zeros(block, np.float32)
        values[rng.integers(0, block, 1 + k % 5)] = np.float32(rng.standard_normal(1 + k % 5)) * np.float32(
            10.0 ** (k % 7 - 3)
        )
        made = encode(impl, dtype, values)
        assert impl.quant.validate(dtype, made).ok, f"{dtype.name}: {impl.quant.validate(dtype, made)}"
        assert np.isfinite(impl.quant.dequantize(dtype, made)).all()
