"""Bulk calls that are large enough to be shared out: streams, conversions, blocks and raw tensors.

Each maker returns calls by name, with every argument made beforehand; a call returns arrays that are nobody else's.
They are for tests that ask what surrounds a computation, a team or a floating-point environment, rather than what it
gives.  For an implementation that is not quick the same calls are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.suite.blocks import SLOW_ENCODERS, WITH_IMPORTANCE, as_bytes, gaussian, sizes
from fucina.conformance.suite.casts import FLOAT_DTYPES, INTEGERS, SCALARS, STORAGE
from fucina.conformance.suite.fills import FILLS, Fill
from fucina.conformance.suite.pace import quick
from fucina.conformance.suite.raw_arithmetic import ARITHMETIC, REAL
from fucina.conformance.suite.work import SMALL_PARAMETERS
from fucina.spec import DType

__all__ = ["Call", "block_calls", "cast_calls", "fill_calls", "numbers", "raw_calls", "shape_of", "streamed_calls"]

Call = Callable[[], Any]
Array = npt.NDArray[Any]

NARROW = (DType.f16, DType.bf16, DType.f8_e4m3, DType.f8_e5m2)
LEAST_EXPONENT = {DType.f16: -24, DType.bf16: -133, DType.f32: -149, DType.f64: -1074}


def numbers(impl: Any, dtype: DType, count: int, seed: int = 1) -> Array:
    """Return elements whose sums, products and quotients are rounded: of floats a third are subnormal or nearly so."""
    draw = np.random.Generator(np.random.PCG64((seed, list(DType).index(dtype), count)))
    if dtype is DType.bool:
        return draw.integers(0, 2, count, np.uint8).view(np.bool_)
    if dtype not in FLOAT_DTYPES:
        return draw.integers(0, 256, count * STORAGE[dtype].itemsize, np.uint8).view(STORAGE[dtype])
    if dtype not in LEAST_EXPONENT:  # of FP8: any that is no NaN
        return draw.integers(0, 0x78, count, np.uint8)
    values = draw.standard_normal(count)
    exponents = draw.integers(-3, 4, count)
    exponents[::3] = LEAST_EXPONENT[dtype] + draw.integers(0, 12, exponents[::3].size)
    made: Array = impl.dtype.cast_array(DType.f64, dtype, np.ldexp(values, exponents))
    return made


def fill_calls(impl: Any) -> dict[str, Call]:
    """Return every fill, with its usual parameters and with those that give subnormals."""
    length, found = 70_001 if quick(impl) else 20, dict[str, Call]()
    for fill in FILLS:
        for kind, values in (("", fill.values), (", subnormal", SMALL_PARAMETERS.get(fill.name))):
            if values is not None:
                found[f"{fill.name}{kind}"] = partial(_filled, impl, fill, length, values)
    return found


def _filled(impl: Any, fill: Fill, length: int, values: tuple[Any, ...]) -> Array:
    return fill(impl, 77, length, *values, first=5 if fill.counted else 0)


def cast_calls(impl: Any, source: DType) -> dict[str, Call]:
    """Return the casts of any patterns of a dtype to every other, and to narrow floats under each switch."""
    found: dict[str, Call] = {}
    width = STORAGE[source].itemsize
    for target in SCALARS:
        length = 1_060_000 // (width + STORAGE[target].itemsize) if quick(impl) else 20
        noise = np.random.default_rng(5).integers(0, 2 if source is DType.bool else 256, length * width, np.uint8)
        cast = partial(impl.dtype.cast_array, source, target, noise.view(STORAGE[source]))
        found[f"{source.name} -> {target.name}"] = cast
        if target in NARROW:
            found[f"{source.name} -> {target.name}, saturate"] = partial(cast, saturate=True)
            found[f"{source.name} -> {target.name}, single rounding"] = partial(cast, single_rounding=True)
            both = partial(cast, saturate=True, single_rounding=True)
            found[f"{source.name} -> {target.name}, saturate, single rounding"] = both
    return found


def block_calls(impl: Any, dtype: DType) -> dict[str, Call]:
    """Return a format's decoders, and its encoder with every option that it has."""
    elements, _ = sizes(dtype)
    rows, columns = (65 if quick(impl) else 1 if dtype in SLOW_ENCODERS else 2), max(256, elements)
    values = gaussian(rows * columns).reshape(rows, columns)
    if dtype not in SLOW_ENCODERS:  # searches take longer on such numbers, and give up on some
        values[::2] *= np.float32(2.0**-130)
    encode = partial(_encoded, impl, dtype, values)
    found: dict[str, Call] = {f"quantize {dtype.name}": encode}
    if quick(impl) or dtype not in SLOW_ENCODERS:
        found[f"error {dtype.name}"] = partial(_error, impl, dtype, values)
    if dtype in WITH_IMPORTANCE:
        importance = np.linspace(0.5, 2.0, columns, dtype=np.float32)
        found[f"quantize {dtype.name}, imatrix"] = partial(encode, imatrix=importance)
    if dtype is DType.iq4_nl:
        found[f"quantize {dtype.name}, no search"] = partial(encode, search=False)
    if dtype is DType.tq2_0:
        found[f"quantize {dtype.name}, scale"] = partial(encode, scale=2.0**-7 / 3)
    many = np.tile(encode(), (9 if quick(impl) else 1, 1))
    blocks = many.reshape(-1).view(impl.dtype.storage(dtype))
    indices = np.arange(blocks.size * elements // columns)[::-1] // 2 * 2
    found[f"dequantize {dtype.name}"] = partial(impl.quant.dequantize, dtype, blocks)
    found[f"dequantize_rows {dtype.name}"] = partial(impl.quant.dequantize_rows, dtype, blocks, columns, indices)
    return found


def _encoded(impl: Any, dtype: DType, values: Array, **options: Any) -> Array:
    return as_bytes(impl.quant.quantize(dtype, values, **options))


def _error(impl: Any, dtype: DType, values: Array) -> tuple[float, float]:
    figures = impl.quant.error(dtype, values)
    return figures.rmse, figures.max_error


def shape_of(impl: Any, dtype: DType) -> tuple[int, int]:
    """Return rows and columns of a matrix that is worth sharing out in bytes and in elements, along and across."""
    return (701, 787 if STORAGE[dtype].itemsize == 1 else 523) if quick(impl) else (5, 4)


def _read(tensor: Any) -> Array:
    return np.array(tensor.data_const())


@contextmanager
def raw_calls(impl: Any, dtype: DType) -> Iterator[dict[str, Call]]:
    """Make every operation on raw tensors of a dtype: moves, conversions, and the arithmetic that it has."""
    rows, cols = shape_of(impl, dtype)
    kind = impl.internal.tensor_mod.TensorOf(dtype)
    one, two = (numbers(impl, dtype, rows * cols, seed) for seed in (1, 2))
    if dtype in INTEGERS:
        two |= 1  # divisors
    with (
        impl.ExecContext() as ctx,
        kind.from_storage_slice((rows, cols), one) as x,
        kind.from_storage_slice((rows, cols), two) as y,
        x.view_with_strides((cols, rows), (1, cols)) as turned,
        y.view_with_strides((cols,), (1,)) as row,
        ctx.broadcast_to(row, (rows, cols)) as repeated,
    ):
        work: dict[str, Call] = {
            "clone": lambda: _read(ctx.clone(x)),
            "clone of a turned one": lambda: _read(ctx.clone(turned)),
            "materialize": lambda: _read(ctx.materialize(repeated)),
            "copy_to": lambda: _copied(x, one.dtype, rows * cols),
            "copy_to of a turned one": lambda: _copied(turned, one.dtype, rows * cols),
            "copy_range_to": lambda: _copied(turned, one.dtype, rows * cols - 3, start=3),
            "copy_range_to of all": lambda: _copied(turned, one.dtype, rows * cols, start=0),
            "cast": lambda: _read(ctx.cast(x, DType.f16)),
            "fill": lambda: _full(ctx.empty((rows, cols), dtype), row.view_with_strides((1,), (1,)).item()),
            "from_storage_slice": lambda: _read(ctx.from_storage_slice((rows, cols), one, dtype)),
        }
        for target in SCALARS:  # of what lies row-major it is cast_array
            work[f"cast of a turned one to {target.name}"] = partial(_computed, ctx.cast, turned, target)
        if dtype in ARITHMETIC:
            for name in ("add", "sub", "mul", "div"):
                work[name] = partial(_computed, getattr(ctx, name), x, y)
            work["add of a turned one"] = lambda: _read(ctx.add(turned, turned))
            work["mul of a row"] = lambda: _read(ctx.mul(x, row))
            work["add_in_place"] = lambda: _changed(x, "add_in_place", y)
        if dtype in ARITHMETIC or dtype is DType.bool:
            work["sum"] = lambda: _read(ctx.sum(x))
            work["sum of a turned one"] = lambda: _read(ctx.sum(turned))
            work["sum down"] = lambda: _read(ctx.sum(x, 0))
            work["sum across"] = lambda: _read(ctx.sum(x, 1))
            work["sum down of a turned one"] = lambda: _read(ctx.sum(turned, 0))
        if dtype in REAL:
            work["scale"] = lambda: _read(ctx.scale(x, 0.3))
            work["scale_in_place"] = lambda: _changed(x, "scale_in_place", 0.3)
        yield work


def _computed(operation: Callable[..., Any], *operands: Any) -> Array:
    return _read(operation(*operands))


def _copied(x: Any, form: Any, count: int, start: int | None = None) -> Array:
    out = np.zeros(count, form)
    if start is None:
        x.copy_to(out)
    else:
        x.copy_range_to(out, start, count)
    return out


def _full(made: Any, value: Any) -> Array:
    made.fill(value)
    return _read(made)


def _changed(x: Any, change: str, by: Any) -> Array:
    made = x.clone()
    getattr(made, change)(by)
    return _read(made)


@contextmanager
def streamed_calls(impl: Any) -> Iterator[dict[str, Call]]:
    """Make calls whose results are too large for caches, which an implementation may write around them."""
    side = 2051 if quick(impl) else 4
    values = numbers(impl, DType.f32, side * side)
    blocks = impl.quant.quantize(DType.q8_0, values[: values.size // 32 * 32].reshape(-1, 32))
    with (
        impl.ExecContext() as ctx,
        ctx.from_storage_slice((side, side), values) as x,
        x.view_with_strides((side, side), (1, side)) as turned,
    ):
        yield {
            "add, large": lambda: _read(ctx.add(x, x)),
            "scale, large": lambda: _read(ctx.scale(x, 0.3)),
            "clone of a turned one, large": lambda: _read(ctx.clone(turned)),
            "f32 -> f16, large": lambda: impl.dtype.cast_array(DType.f32, DType.f16, values),
            "dequantize q8_0, large": lambda: impl.quant.dequantize(DType.q8_0, blocks),
        }
