"""A tour of everything that computes, for tests that ask what surrounds a computation rather than what it gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fucina.conformance import vectors
from fucina.conformance.suite.blocks import FORMATS, SLOW_ENCODERS, gaussian, sizes
from fucina.conformance.suite.casts import FLOAT_DTYPES, SCALARS, STORAGE
from fucina.conformance.suite.fills import FILLS, Fill, by_name
from fucina.conformance.suite.pace import quick
from fucina.conformance.suite.tagged_work import tagged
from fucina.spec import DType

__all__ = ["SMALL_PARAMETERS", "arithmetic", "calls", "pattern", "refused"]

Call = Callable[..., Any]
N = 70

# parameters whose products and sums are subnormal: what a flushing unit would lose
SMALL_PARAMETERS = {
    "gaussian_fill": (2.0**-140,),
    "gaussian_fill_at_fast": (2.0**-140,),
    "uniform_fill": (-(2.0**-130), 2.0**-128),
    "normal_fill": (2.0**-145, 2.0**-140),
    "dropout_mask": (2.0**-140,),
}


def calls(impl: Any) -> dict[str, Call]:
    """Return calls by name, with every argument made beforehand; each returns a value, an array or a tuple of these."""
    found: dict[str, Call] = {}
    for fill in FILLS:
        for kind, values in (("", fill.values), (" with subnormals", SMALL_PARAMETERS.get(fill.name))):
            if values is not None:
                found[f"{fill.name}{kind}"] = partial(_filled, impl, fill, fill.empty(N), values)
    # a parameter that is a subnormal of numpy: even reading it may flush it
    tiny, out = np.uint32(3).view(np.float32), by_name("gaussian_fill").empty(N)
    found["gaussian_fill, numpy scale"] = lambda: (impl.rng.gaussian_fill(1, out, tiny), out)
    found["dropout_scale"] = lambda: impl.rng.dropout_scale(0.1)
    table = vectors.load("dtype_cast_scalar")
    for source in SCALARS:
        inputs = table[f"in_{source.name}"].view(STORAGE[source])
        some = table[f"in_{source.name}"][::9].tolist()
        for target in SCALARS:
            pair = f"{source.name} -> {target.name}"
            found[f"cast_array {pair}"] = partial(impl.dtype.cast_array, source, target, inputs)
            found[f"cast_bits {pair}"] = partial(_cast_bits, impl, source, target, some)
    for dtype in FLOAT_DTYPES:
        found[f"scalars of {dtype.name}"] = partial(_scalars, impl, dtype, impl.dtype.one(dtype), tiny)
        narrow = table[f"in_{dtype.name}"].view(STORAGE[dtype])
        if dtype is not DType.bf16 and not impl.dtype.is_f8(dtype):  # of those the buffer's format says nothing
            found[f"convert {dtype.name}"] = partial(impl.dtype.convert, narrow, DType.f16)
    few = (1, 0x2A, 0x3F)
    for name in ("bf16", "f8e4m3", "f8e5m2"):
        decode, encode = getattr(impl.dtype, f"{name}_to_f32"), getattr(impl.dtype, f"f32_to_{name}")
        found[f"named bridges of {name}"] = partial(_bridged, decode, encode, few, (0.1, tiny, 2.0**-10 * 1.1))
    tiny64 = 5e-324
    found["truth of subnormals"] = lambda: (
        impl.dtype.is_truthy(DType.f32, tiny),
        impl.dtype.is_truthy(DType.f64, tiny64),
        impl.dtype.is_truthy(DType.f16, 2.0**-24),
        impl.dtype.is_truthy(DType.bf16, 1),
        impl.dtype.cast_scalar(DType.f32, DType.bool, tiny),
    )
    if "block" in impl.capabilities:
        found |= _block_calls(impl, tiny)
    if "tensor" in impl.capabilities:
        found |= _tensor_calls(impl, tiny)
    if "context" in impl.capabilities:
        found |= _context_calls(impl, tiny)
    found["streams"] = lambda: tuple(impl.rng.at(7, i) for i in range(9)) + tuple(map(int, impl.rng.splitmix64(7)))
    found["value types"] = lambda: (impl.Bf16(1).to_f32(), impl.F8E4M3.from_f32(0.3).bits, impl.F8E5M2(1).to_f32())
    return found


def _bridged(decode: Call, encode: Call, codes: tuple[int, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*map(decode, codes), *map(encode, values))


def _filled(impl: Any, fill: Fill, out: Any, values: tuple[Any, ...]) -> Any:
    fill.into(impl, 77, out, *values)
    return out


def _tensor_calls(impl: Any, tiny: Any) -> dict[str, Call]:
    """Return what moves elements and computes nothing; arithmetic in place may raise flags, so none of it is here."""
    found: dict[str, Call] = {}
    table = vectors.load("dtype_cast_scalar")
    for dtype in SCALARS:
        kind = impl.internal.tensor_mod.TensorOf(dtype)
        values = table[f"in_{dtype.name}"].view(STORAGE[dtype])
        found[f"raw tensors of {dtype.name}"] = partial(_moved, kind, values, np.empty((2, len(values)), kind.Element))
    raw = impl.internal.RawTensor
    found["raw tensors of scalars"] = lambda: (
        raw.from_slice((3,), [tiny, 1e-45, 0.1]).data_const(),
        raw.zeros((3,)).data_const(),
        raw.scalar(tiny).data_const(),
        raw.scalar(tiny).item(),
    )
    return found


def _context_calls(impl: Any, tiny: Any) -> dict[str, Call]:
    """Return what a context makes, moves and converts."""
    ctx, raw = impl.ExecContext(), impl.internal.RawTensor
    found: dict[str, Call] = {}
    table = vectors.load("dtype_cast_scalar")
    for dtype in SCALARS:
        kind = impl.internal.tensor_mod.TensorOf(dtype)
        values = table[f"in_{dtype.name}"].view(STORAGE[dtype])[:20]
        x = kind.from_slice((len(values),), values)
        found[f"a context's casts of {dtype.name}"] = partial(_cast, ctx, x)
    numbers = [1e-45, 0.1, 2.0**-149 * 1.5, 3.0, tiny, 1e-46]
    x = raw.from_slice((2, 3), numbers)
    borrowed = np.array([3, 1, 0x7FFFFF], np.uint32).view(np.float32)
    found["a context's tensors"] = lambda: tuple(
        made.data_const()
        for made in (
            *(ctx.from_slice((6,), numbers, dtype) for dtype in (DType.f16, DType.f32, DType.f64)),
            *(ctx.full((3,), value, dtype) for value in (tiny, 0.1) for dtype in (DType.f16, DType.f32, DType.f64)),
            ctx.scalar(tiny),
            ctx.scalar(0.1, DType.f16),
            ctx.from_borrowed_slice((3,), borrowed),
            ctx.clone(x),
            ctx.materialize(x),
            ctx.materialize(ctx.narrow_axis(x, 1, 1, 2)),
            ctx.clone(ctx.broadcast_to(x, (2, 2, 3))),
            ctx.contiguous_for_reshape(ctx.broadcast_to_rank(3, x, (2, 2, 3))),
            ctx.prepare_contiguous(ctx.narrow_axis(x, 1, 1, 2)).tensor,
        )
    )
    found["a context's constants"] = lambda: tuple(
        made((3,), dtype).data_const() for made in (ctx.zeros, ctx.ones) for dtype in SCALARS
    )
    zeros = np.zeros(36, np.uint8)
    found["a context's blocks"] = lambda: ctx.clone(ctx.from_storage_slice((64,), zeros, DType.q4_0)).data_const()
    create = impl.internal.storage_mod.BufferOf(DType.f32).from_slice
    found["storage"] = lambda: (create(numbers).data, raw.from_slice((2, 3), numbers).data_checked())
    out = np.zeros(4, np.float32)
    found["a range of a tensor"] = lambda: (x.copy_range_to(out, 1, 4), out)
    return found


def _cast(ctx: Any, x: Any) -> tuple[Any, ...]:
    wide = ctx.prepare_as(DType.f32, x).tensor
    return (
        *(ctx.cast(x, target).data_const() for target in SCALARS),
        wide.data_const(),
        ctx.store_as(x.dtype, wide).data_const(),
    )


def arithmetic(impl: Any) -> dict[str, Call]:
    """Return the arithmetic on tensors, which may raise flags (clause NUM-ENV-3); every NaN is out of the way."""
    if "context" not in impl.capabilities:
        return {}
    ctx, found = impl.ExecContext(), dict[str, Call]()
    for dtype in SCALARS:
        kind = impl.internal.tensor_mod.TensorOf(dtype)
        patterns = np.array([1, 2, 3, 5, 7, 11, 4, 1], STORAGE[dtype])
        if dtype in FLOAT_DTYPES:  # subnormals, and numbers whose sums, products and quotients are rounded
            numbers = [0.1, -0.3, 3.0, 1.7, -2.9, 0.7, 11.0, 1.1]
            rounded = [impl.dtype.cast_bits(DType.f64, dtype, int(np.float64(v).view(np.uint64))) for v in numbers]
            bits = np.dtype(f"u{STORAGE[dtype].itemsize}")
            patterns = np.array([1, 2, 3, 5, *rounded[:4], *rounded], bits).view(STORAGE[dtype])
        x, y = (kind.from_storage_slice((len(patterns),), given) for given in (patterns, patterns[::-1].copy()))
        for name in ("add", "sub", "mul", "div", "sum", "scale", "add_in_place", "scale_in_place"):
            work = partial(_computed, ctx, name, x, y)
            try:
                work()
            except (TypeError, ValueError):  # not for this dtype
                continue
            found[f"{name} of {dtype.name}"] = work
    if {"block", "facade", "policy", "autograd"} <= impl.capabilities:
        found |= tagged(impl)
    return found


def _computed(ctx: Any, name: str, x: Any, y: Any) -> Any:
    if name == "sum":
        return ctx.sum(x).data_const()
    if name == "scale":
        return ctx.scale(x, 0.1).data_const()
    if name == "add_in_place":
        mine = x.clone()
        mine.add_in_place(y)
        return mine.data_const()
    if name == "scale_in_place":
        mine = x.clone()
        mine.scale_in_place(0.3)
        return mine.data_const()
    return getattr(ctx, name)(x, y).data_const()


def _moved(kind: Any, values: Any, out: Any) -> tuple[Any, ...]:
    tensor = kind.from_slice((len(values),), values)
    wide = tensor.broadcast_to((2, len(values)))
    wide.copy_to(out)
    tensor.fill(kind.ones((1,)).item())
    return out, wide.clone().data_const(), np.asarray(tensor)


def _block_calls(impl: Any, tiny: Any) -> dict[str, Call]:
    found: dict[str, Call] = {}
    for dtype in FORMATS:
        odd = vectors.load(f"block_decode_{dtype.name}")["special_blocks"][::5].copy()
        few = gaussian(sizes(dtype)[0], scale=1.0 if dtype in SLOW_ENCODERS else 2.0**-136)
        found[f"dequantize {dtype.name}"] = partial(impl.quant.dequantize, dtype, odd)
        found[f"validate {dtype.name}"] = partial(_validated, impl, dtype, odd)
        if dtype not in SLOW_ENCODERS or dtype in (DType.q4_k, DType.iq4_xs) or quick(impl):
            found[f"quantize {dtype.name}"] = partial(impl.quant.quantize, dtype, few)
            found[f"error {dtype.name}"] = partial(_error, impl, dtype, few)
    with_scale = gaussian(256)
    found["quantize tq2_0 with a scale"] = lambda: impl.quant.quantize(DType.tq2_0, with_scale, scale=tiny)
    found["dequantize_rows"] = lambda: impl.quant.dequantize_rows(DType.q4_0, bytes(range(36)) * 3, 32, [5, 0])
    return found


def _validated(impl: Any, dtype: DType, blocks: Any) -> str:
    return str(impl.quant.validate(dtype, blocks))


def _error(impl: Any, dtype: DType, values: Any) -> tuple[float, float]:
    figures = impl.quant.error(dtype, values)
    return figures.rmse, figures.max_error


def _cast_bits(impl: Any, source: DType, target: DType, patterns: list[int]) -> tuple[int, ...]:
    return tuple(impl.dtype.cast_bits(source, target, b) for b in patterns)


def _scalars(impl: Any, dtype: DType, one: Any, tiny: Any) -> tuple[Any, ...]:
    part = impl.dtype
    return (
        part.to_f32(dtype, one),
        part.to_f64(dtype, one),
        part.from_f32(dtype, 0.1),
        part.from_f32(dtype, tiny),
        part.from_f64(dtype, 0.1),
        part.from_f64(dtype, 5e-324),
        part.cast_float(dtype, DType.f16, one),
        part.cast_scalar(DType.f64, dtype, 1e-41),
        part.to_accumulator(dtype, one),
        part.from_accumulator(dtype, 0.3),
    )


def refused(impl: Any) -> dict[str, Call]:
    """Return calls that raise after they have looked at numbers."""
    out, ints, mask = np.zeros(4, np.float32), np.zeros(4, np.int64), np.zeros(4, np.bool_)
    nan = float("nan")
    found: dict[str, Call] = {
        "uniform_fill, NaN": lambda: impl.rng.uniform_fill(1, out, nan, 1.0),
        "randint_fill": lambda: impl.rng.randint_fill(1, ints, 5, 5),
        "kaiming_uniform_fill": lambda: impl.rng.kaiming_uniform_fill(1, out, 0),
        "dropout_mask, NaN": lambda: impl.rng.dropout_mask(1, 0, mask, nan),
        "cast_array": lambda: impl.dtype.cast_array(DType.f32, DType.f64, out, out=mask),
        "from_accumulator": lambda: impl.dtype.from_accumulator(DType.u8, 256),
    }
    if "block" in impl.capabilities:
        nans, zeros, negative = (np.full(256, value, np.float32) for value in (nan, 0.0, -1e-45))
        found |= {
            "quantize, NaN": lambda: impl.quant.quantize(DType.q4_0, nans),
            "quantize, imatrix": lambda: impl.quant.quantize(DType.iq1_s, zeros, imatrix=negative),
            "quantize, scale": lambda: impl.quant.quantize(DType.tq2_0, zeros, scale=nan),
        }
    return found


def pattern(answer: Any) -> Any:
    """Freeze an answer as bytes, so that answers compare by their bits."""
    if isinstance(answer, tuple):
        return tuple(pattern(one) for one in answer)
    if isinstance(answer, np.ndarray):
        return answer.tobytes()
    if isinstance(answer, float):
        return np.float64(answer).tobytes()
    return answer
