"""Views of a wanted shape, made by random chains of permute, narrow, broadcast, split, merge and raw strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fucina.conformance.suite.tagged import NAMES, constant, pattern_noise
from fucina.spec import DType

__all__ = ["view_of"]

Bits = npt.NDArray[Any]
Step = tuple[Callable[[Any, Any], Any], Callable[[Bits], Bits]]
"""The same step on a tensor, with its context, and on an array."""

MOST_ELEMENTS, MOST_AXES = 4000, 7


def view_of(
    impl: Any,
    ctx: Any,
    draw: np.random.Generator,
    dtype: DType,
    shape: Sequence[int],
    tags: Sequence[str] | None = None,
    *,
    steps: int = 3,
    patterns: Callable[[tuple[int, ...]], Bits] | None = None,
    make: Callable[..., Any] = constant,
) -> tuple[Any, Bits]:
    """Return a view of a shape, whose chain ends there, and its elements as numpy has them.

    The chain is found backwards, from the shape to that of a base, which holds noise or what ``patterns`` returns.
    """
    names = NAMES[: len(shape)] if tags is None else tags
    axes = list(zip(names, shape, strict=True))
    chain: list[Step] = []
    for number in range(steps):
        chain.append(_back(draw, axes, number))
    base_shape = tuple(size for _, size in axes)
    seed = int(draw.integers(1 << 30))
    array = pattern_noise(dtype, base_shape, seed) if patterns is None else patterns(base_shape)
    tensor = make(impl, ctx, dtype, array, tags=[tag for tag, _ in axes])
    for on_tensor, on_array in reversed(chain):
        view = on_tensor(tensor, ctx)
        tensor.deinit()
        tensor, array = view, on_array(array)
    assert tensor.shape == tuple(shape)
    assert tensor.axis_tags == tuple(names)
    return tensor, np.ascontiguousarray(array).reshape(tuple(shape))


def _back(draw: np.random.Generator, axes: list[tuple[str, int]], number: int) -> Step:
    """Change the axes to what they are before some step, and return the step."""
    rank, elements = len(axes), math.prod(size for _, size in axes)
    kinds = [_permuted] * 2
    if rank and elements < MOST_ELEMENTS:
        kinds += [_narrowed] * 2
    if rank:
        kinds += [_repeated] * 2
    if rank > 1:
        kinds.append(_split)
    if 0 < rank < MOST_AXES:
        kinds.append(_merged)
    return kinds[int(draw.integers(len(kinds)))](draw, axes, number)


def _permuted(draw: np.random.Generator, axes: list[tuple[str, int]], number: int) -> Step:
    tags = [tag for tag, _ in axes]
    order = draw.permutation(len(axes)).tolist()
    axes[:] = [axes[i] for i in order]
    places = [order.index(i) for i in range(len(order))]
    return lambda t, ctx: t.permute(ctx, tags), lambda a: a.transpose(places)


def _narrowed(draw: np.random.Generator, axes: list[tuple[str, int]], number: int) -> Step:
    at = int(draw.integers(len(axes)))
    tag, size = axes[at]
    before, behind = draw.integers(0, 3, 2).tolist()
    axes[at] = tag, before + size + behind
    return (
        lambda t, ctx: t.narrow(ctx, tag, before, size),
        lambda a: a.take(range(before, before + size), at),
    )


def _repeated(draw: np.random.Generator, axes: list[tuple[str, int]], number: int) -> Step:
    at = int(draw.integers(len(axes)))
    tags, shape = [tag for tag, _ in axes], tuple(size for _, size in axes)
    if draw.integers(2):
        axes[at] = axes[at][0], 1
        return lambda t, ctx: t.broadcast_to(ctx, shape, tags), lambda a: np.broadcast_to(a, shape)
    del axes[at]
    return (
        lambda t, ctx: t.broadcast_to(ctx, shape, tags),
        lambda a: np.broadcast_to(np.expand_dims(a, at), shape),
    )


def _split(draw: np.random.Generator, axes: list[tuple[str, int]], number: int) -> Step:
    at = int(draw.integers(len(axes) - 1))
    (one, m), (other, n) = axes[at : at + 2]
    whole, shape = f"s{number}", tuple(size for _, size in axes)
    axes[at : at + 2] = [(whole, m * n)]
    return lambda t, ctx: t.split(ctx, whole, (m, n), (one, other)), lambda a: a.reshape(shape)


def _merged(draw: np.random.Generator, axes: list[tuple[str, int]], number: int) -> Step:
    at = int(draw.integers(len(axes)))
    tag, size = axes[at]
    m = int(draw.choice([k for k in range(1, size + 1) if size % k == 0]))
    parts, shape = (f"p{number}", f"q{number}"), tuple(n for _, n in axes)
    axes[at : at + 1] = [(parts[0], m), (parts[1], size // m)]
    return lambda t, ctx: t.merge(ctx, parts, tag), lambda a: a.reshape(shape)
