"""Tagged tensors made from patterns and read back as patterns, and everything that can be seen of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.compare import PATTERN, assert_bits
from fucina.conformance.suite import exact
from fucina.conformance.suite.casts import SCALARS, STORAGE
from fucina.conformance.suite.counters import seen
from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.spec import DType
from fucina.spec.errors import FucinaError

__all__ = [
    "NAMES",
    "bits",
    "check",
    "constant",
    "f32",
    "gradient",
    "held",
    "leaf",
    "pattern_noise",
    "state",
    "type_of",
    "watched",
]

Bits = npt.NDArray[Any]

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


def type_of(impl: Any, dtype: DType, rank: int, tags: Sequence[str] | None = None) -> Any:
    """Return the type of a dtype with these tags, or with the first letters."""
    names = NAMES[:rank] if tags is None else tags
    return impl.Tensor(*names, dtype=dtype)


def constant(
    impl: Any, ctx: Any, dtype: DType, patterns: Any, shape: Sequence[int] | None = None, tags: Any = None
) -> Any:
    """Return a constant that holds these patterns, in the shape of the array where none is given."""
    array = np.asarray(patterns, PATTERN[dtype])
    wanted = array.shape if shape is None else tuple(shape)
    return type_of(impl, dtype, len(wanted), tags).from_slice(
        ctx, wanted, np.ascontiguousarray(array).view(STORAGE[dtype])
    )


def leaf(impl: Any, ctx: Any, dtype: DType, patterns: Any, shape: Sequence[int] | None = None, tags: Any = None) -> Any:
    """Return a leaf that holds these patterns."""
    array = np.asarray(patterns, PATTERN[dtype])
    wanted = array.shape if shape is None else tuple(shape)
    kind = type_of(impl, dtype, len(wanted), tags)
    return kind.variable_from_slice(ctx, wanted, np.ascontiguousarray(array).view(STORAGE[dtype]))


def f32(impl: Any, ctx: Any, values: Any, tags: Any = None, *, grad: bool = False) -> Any:
    """Return an f32 tensor of values, a leaf or a constant."""
    patterns = np.asarray(values, np.float32).view(np.uint32)
    return (leaf if grad else constant)(impl, ctx, DType.f32, patterns, tags=tags)


def bits(tensor: Any) -> Bits:
    """Return the patterns of a tensor in its shape, as a copy."""
    out = np.empty(math.prod(tensor.shape), STORAGE[tensor.dtype])
    tensor.as_raw_tensor().copy_to(out)
    return out.view(PATTERN[tensor.dtype]).reshape(tensor.shape)


def gradient(ctx: Any, leaf: Any) -> list[float] | None:
    """Return a leaf's gradient, flat, or None."""
    found = leaf.grad(ctx)
    if found is None:
        return None
    values: list[float] = found.data_const().tolist()
    found.deinit()
    return values


def check(tensor: Any, wanted: Any, what: str, clause_id: str, dtype: DType | None = None) -> None:
    """Compare a result with values, any NaN with any NaN, and end it."""
    assert dtype is None or tensor.dtype is dtype, f"{clause_id}: {what}: {tensor.dtype}, expected {dtype}"
    dtype = tensor.dtype
    got, patterns = bits(tensor), exact.encode(dtype, wanted)
    nan = "any" if dtype in REAL else "exact"
    assert_bits(got, np.array(patterns, order="C"), nan=nan, dtype=dtype, what=what, clause=clause_id)
    tensor.deinit()


def pattern_noise(dtype: DType, shape: Sequence[int], seed: int = 0) -> Bits:
    """Return patterns of ordinary values: floats near 1 of both signs, any integers."""
    draw = np.random.Generator(np.random.PCG64((seed, list(DType).index(dtype), *shape)))
    count = math.prod(shape)
    if dtype is DType.bool:
        found: Bits = draw.integers(0, 2, count, np.uint8)
    elif dtype in REAL:
        values = draw.standard_normal(count) * 2.0 ** draw.integers(-3, 4, count)
        found = exact.encode(dtype, np.array([exact.rounded(dtype, v) for v in values.tolist()]))
    else:
        width = PATTERN[dtype].itemsize
        found = draw.integers(0, 256, count * width, np.uint8).view(PATTERN[dtype])
    return found.reshape(tuple(shape))


def held(ctx: Any) -> tuple[object, ...]:
    """Return what is open and out of a context; how much is cached is its own affair."""
    counters = seen(ctx)
    return counters["depth"], counters["entries"], counters["outstanding"]


def state(ctx: Any, *tensors: Any) -> list[object]:
    """Return what can be seen of a context and of tensors: counters, references, generations, elements."""
    found: list[object] = [held(ctx), ctx.grad_enabled()]
    for tensor in tensors:
        try:
            raw = tensor.as_raw_tensor()
            found.append(
                (raw.buffer.refs, raw.buffer.generation, tensor.scope_owned, tensor.requires_grad, repr(tensor))
            )
            if tensor.dtype in SCALARS:
                found.append(bits(tensor).tobytes())
        except FucinaError as error:
            found.append(type(error).__name__)
    return found


def watched(ctx: Any, *tensors: Any) -> list[object]:
    """Return what can be seen of a context, of tensors and of their gradients."""
    found = state(ctx, *tensors)
    for tensor in tensors:
        gradient = tensor.grad(ctx)
        found.append(None if gradient is None else bits(gradient).tobytes())
        if gradient is not None:
            gradient.deinit()
    return found
