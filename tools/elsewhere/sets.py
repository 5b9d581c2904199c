"""The call sets: every frozen RNG and dtype vector, and sweeps that only have to agree on all targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fucina.conformance import vectors
from fucina.conformance.suite.blocks import FORMATS, cases
from fucina.spec import DType
from tools.elsewhere.calls import Bits, Call, CallSet, Operation, Status, double_bits

__all__ = ["big_sets", "vector_sets"]

SCALARS = tuple(DType)[:13]
ITEM = dict(zip((d.name for d in SCALARS), (1, 1, 2, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1), strict=True))
FLOATS = ("f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2")
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F80_0000, "f64": 0x7FF0_0000_0000_0000}
SATURATE, SINGLE_ROUNDING = 1, 2

GUMBEL_TOP = 0x4212_F27C
"""RNG-GUMBEL-2: what the largest uniform gives; the original library has +inf there."""

HEAD, SAMPLE_EVERY = 1 << 18, 1 << 16


def _cast(source: str, target: str, given: Bits, expected: Bits | None = None, mode: int = 0, *, exact: bool) -> Call:
    codes = DType[source].index, DType[target].index, mode
    infinity = 0 if exact else INFINITY.get(target, 0)
    return Call(Operation.CAST, codes, len(given), ITEM[target], expected, given, infinity=infinity)


def _one_by_one(call: Call) -> Call:
    return replace(call, operation=Operation.CAST_BITS)


def _both(*arguments: Any, **options: Any) -> Iterator[Call]:
    call = _cast(*arguments, **options)
    yield call
    yield _one_by_one(call)


def _f8() -> Iterator[Call]:
    v = vectors.load("dtype_f8")
    codes, halves = np.arange(256, dtype=np.uint8), np.arange(65536, dtype=np.uint16)
    for f8 in ("e4m3", "e5m2"):
        yield from _both(f"f8_{f8}", "f32", codes, v[f"{f8}_decode_f32"], exact=True)
        yield from _both(f"f8_{f8}", "f64", codes, v[f"{f8}_decode_f64"], exact=False)
        yield from _both("f32", f"f8_{f8}", v["encode_input_f32"], v[f"encode_{f8}"], exact=True)
        yield from _both("f16", f"f8_{f8}", halves, v[f"f16_encode_{f8}"], exact=True)


def _bf16() -> Iterator[Call]:
    v = vectors.load("dtype_bf16")
    yield from _both("bf16", "f32", np.arange(65536, dtype=np.uint16), v["bf16_to_f32"], exact=True)
    yield from _both("f32", "bf16", v["f32_input"], v["f32_to_bf16"], exact=True)


def _f16_f64() -> Iterator[Call]:
    v = vectors.load("dtype_f16_f64")
    halves = np.arange(65536, dtype=np.uint16)
    yield from _both("f16", "f32", halves, v["f16_to_f32"], exact=False)
    yield from _both("f16", "f64", halves, v["f16_to_f64"], exact=False)
    yield from _both("f32", "f16", v["f32_input"], v["f32_to_f16"], exact=False)
    yield from _both("f64", "f16", v["f64_input"], v["f64_to_f16_castFloat"], exact=False)
    yield from _both("f64", "f16", v["f64_input"], v["f64_to_f16_fromF64"], SINGLE_ROUNDING, exact=False)
    yield from _both("f64", "f32", v["f64_input"], v["f64_to_f32"], exact=False)
    for target in ("bf16", "f8_e4m3", "f8_e5m2"):  # from_f64 goes through f32 here: BRIDGE-SCALAR-2
        for way in ("castFloat", "fromF64"):
            yield from _both("f64", target, v["f64_input2"], v[f"f64_to_{target}_{way}"], exact=False)


def _cast_scalar() -> Iterator[Call]:
    v = vectors.load("dtype_cast_scalar")
    for source in ITEM:
        for target in ITEM:
            yield from _both(source, target, v[f"in_{source}"], v[f"{source}__to__{target}"], exact=False)


def _truthy_accumulator() -> Iterator[Call]:
    v = vectors.load("dtype_truthy_accumulator")
    for name in ITEM:
        given = v[f"in_{name}"]
        yield Call(Operation.TRUTHY, (DType[name].index,), len(given), 1, expected=v[f"truthy_{name}"], given=given)
        wide = "f64" if name == "f64" else "f32" if name in FLOATS else "i64"  # u64 has the bits of i64
        yield from _both(name, wide, given, v[f"toacc_{name}"], exact=False)
        yield from _both(wide, name, v[f"acc_in_{name}"], v[f"fromacc_{name}"], exact=False)


def _splitmix() -> Iterator[Call]:
    v = vectors.load("rng_splitmix64")
    steps = np.arange(v["sequence"].shape[1], dtype=np.uint64)
    for s, seed in enumerate(v["seed"]):
        for index, expected in ((steps, v["sequence"][s]), (v["at_index"], v["at_value"][s])):
            pairs = np.stack([np.full_like(index, seed), index], axis=1).reshape(-1)
            yield Call(Operation.AT, (), len(index), 8, expected=expected, given=pairs)
    pairs = np.stack([v["inv_seed"], v["inv_index"]], axis=1).reshape(-1)
    yield Call(Operation.AT, (), len(v["inv_value"]), 8, expected=v["inv_value"], given=pairs)


def _dropout() -> Iterator[Call]:
    """RNG-DROPOUT-1 and RNG-DROPOUT-2 from the vectors' own stream words: the clause in exact rationals."""
    v = vectors.load("rng_splitmix64")
    for p in (0.0, 2.0**-149, 2.0**-25, 0.1, 0.25, 0.5, 0.9, 1 - 2.0**-24):
        p32 = np.float32(p)
        keep = np.float32(1) - p32
        yield Call(Operation.SCALE, (0, 0, double_bits(p)), 1, 4, expected=np.array([np.float32(1) / keep]).view("u4"))
        for s, seed in enumerate(v["seed"]):
            kept = [int(word) >> 11 < (1 - Fraction(float(p32))) * 2**53 for word in v["sequence"][s]]
            arguments = int(seed), 0, double_bits(p)
            yield Call(Operation.MASK, arguments, len(kept), 1, expected=np.array(kept, np.uint8))


def _finite(gumbel: Bits) -> Bits:
    """Return gumbel values with the contract's largest one in place of the original's infinity."""
    return np.where(gumbel == INFINITY["f32"], np.uint32(GUMBEL_TOP), gumbel)


def _float_call(operation: Operation, arguments: tuple[int, ...], n: int, expected: Bits | None = None) -> Call:
    """A fill of f32 values; where it makes a NaN, any NaN will do (NUM-NAN-2)."""
    return Call(operation, arguments, n, 4, expected, infinity=INFINITY["f32"], free_nan=True)


def _table(name: str, operation: Operation, *columns: str) -> Iterator[Call]:
    for call in vectors.calls(name):
        parameters = [call.parameters[c] for c in columns]
        floats = [double_bits(p) if isinstance(p, float) else p for p in parameters]
        arguments = (call.seed, call.parameters.get("first", 0), *floats)
        n, size = len(call.expected), call.expected.dtype.itemsize
        if operation is Operation.UNIFORM and not (np.isfinite(parameters).all() and parameters[0] < parameters[1]):
            yield Call(operation, arguments, n, size, status=Status.BAD_BOUNDS)  # RNG-UNIF-3
        elif size == 4:
            expected = _finite(call.expected) if operation is Operation.GUMBEL else call.expected
            yield _float_call(operation, arguments, n, expected)
        else:
            yield Call(operation, arguments, n, size, expected=call.expected)


def _fill(operation: Operation, seed: int, first: int, expected: Bits, scale: float = 1.0) -> Call:
    arguments = (seed, first, double_bits(scale)) if operation is not Operation.GUMBEL else (seed, first)
    return _float_call(operation, arguments, len(expected), expected)


def _crafted() -> Iterator[Call]:
    v = vectors.load("rng_crafted_pairs")
    gumbel = _finite(v["gumbel"])
    for row, seed in enumerate(v["seed"].tolist()):
        yield _fill(Operation.GAUSSIAN, seed, 0, v["gaussian"][row])
        yield _fill(Operation.GAUSSIAN_FAST, seed, 0, v["gaussian_fast"][row])
        yield _fill(Operation.GUMBEL, seed, 0, gumbel[row])


def _hard() -> Iterator[Call]:
    v = vectors.load("rng_hard_gaussian")
    columns = (v[c].tolist() for c in ("seed", "first"))
    scales = v["scale_bits"].view(np.float32).astype(np.float64).tolist()
    for row, (seed, first, scale) in enumerate(zip(*columns, scales, strict=True)):
        yield _fill(Operation.GAUSSIAN, seed, first, v["expected_bits"][row : row + 1], scale)
    v = vectors.load("rng_hard_gumbel")
    for row, seed in enumerate(v["seed"].tolist()):
        yield _fill(Operation.GUMBEL, seed, 0, v["expected_bits"][row : row + 1])


def _block_decode() -> Iterator[Call]:
    """Blocks with ordinary and with special scales, decoded; any NaN will do where one comes out (NUM-NAN-2)."""
    for dtype in FORMATS:
        table = vectors.load(f"block_decode_{dtype.name}")
        for kind in ("", "special_"):
            blocks, values = table[f"{kind}blocks"], table[f"{kind}values_bits"].reshape(-1)
            call = _float_call(Operation.DEQUANTIZE, (dtype.index, len(blocks)), len(values), values)
            yield replace(call, given=blocks.reshape(-1))


def _block_encode() -> Iterator[Call]:
    """The blocks whose bytes bind, encoded: blocks are independent, so those that do not bind are left out."""
    scales = vectors.load("block_encode_tq2_0")["scaled_d_bits"].view(np.float32)
    for dtype in FORMATS:
        for kind in ("blocks", "hard", "plain"):
            case = cases(dtype, kind)
            if case is not None:
                values, binds = case.rows.reshape(len(case.blocks), -1), case.binds
                if kind == "plain":  # the codes of a degenerate block do not bind
                    binds = binds & (np.abs(values).max(axis=1) >= np.float32(1e-15))
                yield _encoded(dtype, values[binds], case.blocks[binds], search=kind != "plain")
        if (scaled := cases(dtype, "scaled")) is not None:
            for row, scale in enumerate(scales.tolist()):
                one = scaled.of(np.array([row]))
                yield _encoded(dtype, one.rows.reshape(len(one.blocks), -1), one.blocks, scale=scale)


def _encoded(dtype: DType, values: Bits, blocks: Bits, *, search: bool = True, scale: float = 0.0) -> Call:
    arguments = dtype.index, len(blocks), double_bits(scale), int(search)
    given = values.reshape(-1).view(np.uint32)
    return Call(Operation.QUANTIZE, arguments, blocks.size, 1, expected=blocks.reshape(-1), given=given)


def _operands(name: str) -> Bits:
    size = ITEM[name]
    if size <= 2:
        return np.arange(2 if name == "bool" else 1 << 8 * size, dtype=f"u{size}")
    words = np.arange(1 << 14, dtype=np.uint64)
    singles = words * np.uint64(0x4_0001) + np.uint64(0x1555) * (words % np.uint64(7))
    if size == 4:
        return singles.astype(np.uint32)
    spread = words * np.uint64(0x9E37_79B9_7F4A_7C15)
    near = (singles.astype(np.uint32) & np.uint32(0x7F7F_FFFF)).view(np.float32).astype(np.float64).view(np.uint64)
    return np.concatenate([spread, near + words % np.uint64(3) - np.uint64(1)])


def _sweep_casts() -> Iterator[Call]:
    """Every pair, every mode that matters: all codes of the small formats, a spread of the wide ones."""
    for source in ITEM:
        given = _operands(source)
        for target in ITEM:
            modes = range(4) if source in FLOATS and target in FLOATS else (0,)
            for mode in modes:
                yield _cast(source, target, given, mode=mode, exact=True)


def _sweep_fills() -> Iterator[Call]:
    """Every fill at a length of many blocks, from an odd first element."""
    n, seed, first = 100_003, 0x1234_5678_9ABC_DEF1, 2**40 + 1
    for scale in (1.0, -3.3, 1e-41, 3e38):
        yield _float_call(Operation.GAUSSIAN, (seed, first, double_bits(scale)), n)
        yield _float_call(Operation.GAUSSIAN_FAST, (seed, first, double_bits(scale)), n)
        yield _float_call(Operation.NORMAL, (seed, first, double_bits(0.1), double_bits(abs(scale))), n)
    for low, high in ((-1.0, 1.0), (0.1, 0.2), (-1e-41, 1e-41), (-3e38, 3e38)):
        yield _float_call(Operation.UNIFORM, (seed, first, double_bits(low), double_bits(high)), n)
    for fan_in in (1, 23, 4096, 2**64 - 1):
        yield _float_call(Operation.KAIMING, (seed, first, fan_in), n)
    yield _float_call(Operation.GUMBEL, (seed, first), n)
    for least, beyond in ((0, 10), (-(2**63), 2**63 - 1), (-5, 2**40)):
        yield Call(Operation.RANDINT, (seed, first, least, beyond), n, 8)
    for p in (0.0, 0.1, 0.5, 0.999):
        yield Call(Operation.MASK, (seed, first, double_bits(p)), n, 1)
    for length in (0, 1, 2, 1000, n):
        yield Call(Operation.RANDPERM, (seed,), length, 8)


_BIG = {
    "gaussianFill": Operation.GAUSSIAN,
    "gaussianFillAt_first0": Operation.GAUSSIAN,
    "gaussianFillAt_offset": Operation.GAUSSIAN,
    "gaussianFillAtFast_first0": Operation.GAUSSIAN_FAST,
    "gaussianFillAtFast_offset": Operation.GAUSSIAN_FAST,
    "gumbelFill": Operation.GUMBEL,
}


def _big_call(name: str, record: dict[str, Any], skip: int, n: int, expected: Bits | None = None) -> Call:
    arguments = [record["seed"], record["first"] + skip]
    if record["scale"] is not None:
        arguments.append(double_bits(record["scale"]))
    return _float_call(_BIG[name], tuple(arguments), n, expected)


def _big_head() -> Iterator[Call]:
    """The start of each big fill, then its samples: what an emulator manages in seconds."""
    for name, record in vectors.load_json("rng_big").items():
        yield _big_call(name, record, 0, HEAD)
        for i, bits in enumerate(record["sample_bits"]):
            yield _big_call(name, record, i * record["sample_every"], 1, np.array([bits], np.uint32))


def vector_sets() -> tuple[CallSet, ...]:
    """Return the sets that every target plays."""
    kinds = {
        "dtype_f8": _f8(),
        "dtype_bf16": _bf16(),
        "dtype_f16_f64": _f16_f64(),
        "dtype_cast_scalar": _cast_scalar(),
        "dtype_truthy_accumulator": _truthy_accumulator(),
        "rng_splitmix64": _splitmix(),
        "rng_gaussian_fill": _table("rng_gaussian_fill", Operation.GAUSSIAN, "scale"),
        "rng_gaussian_fill_at": _table("rng_gaussian_fill_at", Operation.GAUSSIAN, "scale"),
        "rng_gaussian_fill_at_fast": _table("rng_gaussian_fill_at_fast", Operation.GAUSSIAN_FAST, "scale"),
        "rng_normal_fill": _table("rng_normal_fill", Operation.NORMAL, "mean", "std"),
        "rng_uniform_fill": _table("rng_uniform_fill", Operation.UNIFORM, "lo", "hi"),
        "rng_kaiming_uniform_fill": _table("rng_kaiming_uniform_fill", Operation.KAIMING, "fan_in"),
        "rng_gumbel_fill": _table("rng_gumbel_fill", Operation.GUMBEL),
        "rng_randint_fill": _table("rng_randint_fill", Operation.RANDINT, "low", "high"),
        "rng_randperm_fill": _table("rng_randperm_fill", Operation.RANDPERM),
        "rng_crafted_pairs": _crafted(),
        "rng_hard": _hard(),
        "rng_dropout": _dropout(),
        "block_decode, 27 formats": _block_decode(),
        "block_encode, 27 formats": _block_encode(),
        "rng_big, first 2^18 and samples": _big_head(),
        "sweep of casts": _sweep_casts(),
        "sweep of fills": _sweep_fills(),
    }
    return tuple(CallSet(name, tuple(calls)) for name, calls in kinds.items())


def big_sets() -> tuple[CallSet, ...]:
    """Return the fills of 2^24 values whose SHA-256 the vectors state."""
    return tuple(
        CallSet(f"rng_big {name}", (_big_call(name, record, 0, record["count"]),), record["sha256_le_f32"])
        for name, record in vectors.load_json("rng_big").items()
    )
