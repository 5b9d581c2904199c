"""A tour of the tensors with tags: all that they compute, on numbers that a unit could flush."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fucina.conformance.suite.raw_arithmetic import REAL
from fucina.spec import DType

__all__ = ["tagged"]

Call = Callable[..., Any]
NUMBERS = [1e-45, 0.1, 2.0**-140, -3.0, 1.7, -(2.0**-133), 0.3, 1e-42, 11.0, -0.7, 2.0**-127, 0.9]
SHAPE = (3, 4)


def tagged(impl: Any) -> dict[str, Call]:
    """Return calls by name; each returns arrays, and may raise flags (clause NUM-ENV-3)."""
    ctx = impl.ExecContext()
    found: dict[str, Call] = {
        "tensors with tags, made": partial(_made, impl, ctx),
        "tensors with tags, like another": partial(_like, impl, ctx),
        "tensors with tags, drawn": partial(_drawn, impl, ctx),
        "tensors with tags, blocks": partial(_blocks, impl, ctx),
        "tensors with tags, gradients": partial(_gradients, impl, ctx),
        "tensors with tags, composed": partial(_composed, impl, ctx),
        "tensors with tags, an operation of one's own": partial(_custom, impl, ctx),
        "tensors with tags, consumed": partial(_consumed, impl, ctx),
    }
    for dtype in REAL:
        found[f"tensors with tags, operations of {dtype.name}"] = partial(_operations, impl, ctx, dtype)
        found[f"tensors with tags, views of {dtype.name}"] = partial(_views, impl, ctx, dtype)
    return found


def _grid(impl: Any, ctx: Any, dtype: DType = DType.f32) -> Any:
    return impl.Tensor("row", "col", dtype=dtype).from_slice(ctx, SHAPE, NUMBERS)


def _arrays(*tensors: Any) -> tuple[Any, ...]:
    """Return the elements, and end the tensors."""
    found = tuple(np.array(t) for t in tensors)
    for t in tensors:
        t.deinit()
    return found


def _made(impl: Any, ctx: Any) -> tuple[Any, ...]:
    line, grid = impl.Tensor("n"), impl.Tensor("row", "col")
    raw = ctx.from_slice((2,), [1e-45, 0.1])
    with impl.Tensor("n").constant(ctx, raw) as constant:
        look: tuple[Any, ...] = (constant.data(), constant.data_const(), constant.dim("n"))
    with impl.Tensor().scalar(ctx, 1e-45) as scalar:
        look += (scalar.item(), float(scalar))
    return look + _arrays(
        *(impl.Tensor("n", dtype=dtype).from_slice(ctx, (2,), [1e-45, 0.1]) for dtype in REAL),
        *(impl.Tensor("n", dtype=dtype).full(ctx, (2,), 0.1) for dtype in REAL),
        line.variable_from_slice(ctx, (2,), [1e-45, 0.1]),
        line.from_borrowed_slice(ctx, (2,), np.array([1, 3], np.uint32).view(np.float32)),
        line.from_borrowed_const_slice(ctx, (2,), np.array([1, 3], np.uint32).view(np.float32)),
        line.zeros(ctx, (2,)),
        line.ones(ctx, (2,)),
        line.arange(ctx, 0.0, 1e-44, 1.1e-45),
        line.arange(ctx, 0.1, 2.0, 0.3),
        line.linspace(ctx, 1e-45, 0.7, 7),
        grid.eye(ctx, 2),
        grid.one_hot(ctx, [1, 0], 3),
    )


def _like(impl: Any, ctx: Any) -> tuple[Any, ...]:
    kind = impl.Tensor("row", "col", dtype=DType.f16)
    with _grid(impl, ctx) as x:
        return _arrays(kind.zeros_like(ctx, x), kind.ones_like(ctx, x), kind.full_like(ctx, x, 0.1))


def _drawn(impl: Any, ctx: Any) -> tuple[Any, ...]:
    line, whole = impl.Tensor("n"), impl.Tensor("n", dtype=DType.i64)
    return _arrays(
        line.rand(ctx, (40,), 1),
        line.uniform(ctx, (40,), 2, -(2.0**-130), 2.0**-128),
        line.randn(ctx, (40,), 3),
        line.normal(ctx, (40,), 4, 2.0**-145, 2.0**-140),
        line.gumbel(ctx, (40,), 5),
        line.bernoulli(ctx, (40,), 6, 0.3),
        whole.randint(ctx, (40,), 7, -5, 9),
        whole.randperm(ctx, 40, 8),
    )


def _blocks(impl: Any, ctx: Any) -> tuple[Any, ...]:
    kind = impl.Tensor("row", "col", dtype=DType.q8_0)
    blocks = impl.quant.quantize(DType.q8_0, (np.arange(64, dtype=np.float32) - 31) * np.float32(2.0**-20))
    with kind.from_blocks(ctx, (2, 32), blocks) as x, kind.from_borrowed_blocks(ctx, (2, 32), blocks) as y:
        return _arrays(x.to(ctx, DType.f32), y.get_rows(ctx, [1, 0, 1]))


def _operations(impl: Any, ctx: Any, dtype: DType) -> tuple[Any, ...]:
    with _grid(impl, ctx, dtype) as x, x.add_scalar(ctx, 0.7) as y:
        found = _arrays(
            x.add(ctx, y),
            x.sub(ctx, y),
            x.mul(ctx, y),
            x.div(ctx, y),
            x.scale(ctx, 0.1),
            x.add_scalar(ctx, 1e-45),
            x.to(ctx, DType.f16),
            x.to(ctx, DType.f32),
            x.sum(ctx, "row"),
            x.sum_all(ctx),
            x.mean(ctx, "col"),
            x.argmax(ctx, "col"),
            x.argsort(ctx, "col", True),
            _product(ctx, x, y),
            x.get_rows(ctx, [2, 0]),
            *x.sort(ctx, "row"),
            *x.top_k(ctx, "col", 2),
        )
        if dtype is not DType.f64:
            found += _arrays(x.dropout(ctx, 0.3, 9))
        return found


def _product(ctx: Any, x: Any, y: Any) -> Any:
    with y.reshape(ctx, SHAPE, ("other", "col")) as other:
        return x.dot(ctx, other)


def _views(impl: Any, ctx: Any, dtype: DType) -> tuple[Any, ...]:
    with _grid(impl, ctx, dtype) as x, x.transpose(ctx, "row", "col") as turned:
        return _arrays(
            turned.reshape(ctx, SHAPE),
            turned.flatten(ctx, "n"),
            turned.contiguous(ctx),
            x.narrow(ctx, "col", 1, 2),
            x.permute(ctx, ("col", "row")),
            x.broadcast_to(ctx, (2, *SHAPE), ("k", "row", "col")),
            x.split(ctx, "col", (2, 2), ("a", "b")),
            turned.merge(ctx, ("col", "row"), "n"),
        )


def _leaf(impl: Any, ctx: Any, dtype: DType) -> Any:
    kind = impl.Tensor("row", "col", dtype=dtype)
    with kind.from_slice(ctx, SHAPE, NUMBERS) as x:
        return kind.variable(ctx, ctx.clone(x.as_raw_tensor()))


def _fetched(ctx: Any, *leaves: Any) -> tuple[Any, ...]:
    """Return the gradients, and end the leaves."""
    found = _arrays(*(leaf.grad(ctx) for leaf in leaves), *(leaf.grad_view(ctx) for leaf in leaves))
    for leaf in leaves:
        leaf.zero_grad()
        leaf.deinit()
    return found


def _gradients(impl: Any, ctx: Any) -> tuple[Any, ...]:
    x, y = _leaf(impl, ctx, DType.f32), _leaf(impl, ctx, DType.f32)
    half = _leaf(impl, ctx, DType.f16)
    with ctx.exec_scope():
        z = x.div(ctx, y.add_scalar(ctx, 0.7)).sub(ctx, half.scale(ctx, 0.1).to(ctx, DType.f32))
        row = z.get_rows(ctx, [1, 1, 0]).mean(ctx, "col")
        dropped = z.dropout(ctx, 0.3, 4).mul(ctx, row.broadcast_to(ctx, SHAPE, ("row", "col")))
        product = dropped.dot(ctx, y.reshape(ctx, SHAPE, ("other", "col")))
        product.narrow(ctx, "other", 1, 2).sum_all(ctx).backward(ctx)
    return _fetched(ctx, x, y, half)


def _composed(impl: Any, ctx: Any) -> tuple[Any, ...]:
    x, y = _leaf(impl, ctx, DType.f32), _leaf(impl, ctx, DType.f32)
    with ctx.exec_scope():
        unit = x.l2_normalize(ctx, "col", 1e-20)
        angle = unit.cosine_similarity(ctx, y, "col")
        loss = unit.nll_loss(ctx, [1, 3, 0], "col").add(ctx, angle.sum_all(ctx))
        found = (unit.data_const().copy(), angle.data_const().copy(), loss.item())
        loss.backward(ctx)
    return found + _fetched(ctx, x, y)


def _custom(impl: Any, ctx: Any) -> tuple[Any, ...]:
    def backward(ctx: Any, g: Any, x: Any) -> tuple[Any]:
        with ctx.scale(x, 2.0) as slope:
            return (ctx.mul(g, slope),)

    square = impl.custom_vjp(lambda ctx, x: ctx.mul(x, x), backward)
    x = _leaf(impl, ctx, DType.f32)
    with ctx.exec_scope():
        square(ctx, x).sum_all(ctx).backward(ctx)
    return _fetched(ctx, x)


def _consumed(impl: Any, ctx: Any) -> tuple[Any, ...]:
    with _grid(impl, ctx) as other:
        x = impl.Tensor("row", "col").from_tensor(ctx, ctx.clone(other.as_raw_tensor()))
        return _arrays(x.take_add_no_grad(ctx, other).take_scale_no_grad(ctx, 0.1))
