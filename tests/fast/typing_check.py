"""What a type checker shows of tensors to a program: what C does is not less known than what Python does."""

from __future__ import annotations

from typing import assert_type

import fucina.fast
from fucina.fast._facade_reductions import Selection
from fucina.fast.tensor import RawTensor
from fucina.spec import DType
from fucina.spec.execution import ContextPart, MemoryImplementation
from fucina.spec.facade import CustomOperation, FacadeImplementation, FacadePart, GradientContext, SelectionPart

Tensor = fucina.fast.Tensor
facade: FacadeImplementation = fucina.fast
gradients: type[GradientContext] = fucina.fast.ExecContext
context: type[ContextPart] = fucina.fast.ExecContext
memory: MemoryImplementation = fucina.fast
tensor: type[FacadePart] = fucina.fast.Tensor
selection: type[SelectionPart] = Selection


def cube(ctx: fucina.fast.ExecContext, x: RawTensor) -> RawTensor:
    """Return a power, from raw tensors."""
    with ctx.mul(x, x) as square:
        return ctx.mul(square, x)


def slope(ctx: fucina.fast.ExecContext, g: RawTensor, x: RawTensor) -> list[RawTensor | None]:
    """Return no gradient."""
    return [None]


operation: CustomOperation = fucina.fast.custom_vjp(cube, slope)


def shown(ctx: fucina.fast.ExecContext) -> None:
    """Use tensors as a program does."""
    kind = Tensor("row", "col")
    assert_type(kind, type[fucina.fast.Tensor])
    x = kind.zeros(ctx, (2, 3))
    assert_type(x, fucina.fast.Tensor)
    assert_type(kind.arange(ctx, 0, 3), fucina.fast.Tensor)
    assert_type(kind.variable(ctx, x.as_raw_tensor()), fucina.fast.Tensor)
    for y in (x.add(ctx, x), x.sub(ctx, x), x.mul(ctx, x), x.div(ctx, x), x.scale(ctx, 2.0), x.sum_all(ctx)):
        assert_type(y, fucina.fast.Tensor)
    assert_type(x.dot(ctx, x, "col"), fucina.fast.Tensor)
    assert_type(x.grad(ctx), fucina.fast.Tensor | None)
    assert_type(x.grad_view(ctx), fucina.fast.Tensor | None)
    for z in (x + x, 2.0 + x, x - 1.0, x * x, 2.0 * x, x / x, x @ x, -x):
        assert_type(z, fucina.fast.Tensor)
    assert_type(x.sum(ctx, "row"), fucina.fast.Tensor)
    assert_type(x.to(ctx, DType.f16).item(), int | float | fucina.spec.interface.BitFloat)
    assert_type(x.sort(ctx, "col").values, fucina.fast.Tensor)
    assert_type(x.as_raw_tensor(), RawTensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(fucina.fast.custom_vjp(cube, slope)(ctx, x), fucina.fast.Tensor)
    assert_type(ctx.replace(x, x.scale(ctx, 2.0)), fucina.fast.Tensor)
    assert_type(ctx.replace(x, lambda: x.scale(ctx, 2.0)), fucina.fast.Tensor)
    with x as same:
        assert_type(same, fucina.fast.Tensor)


def refused(ctx: fucina.fast.ExecContext, x: fucina.fast.Tensor) -> None:
    """Do what a checker has to refuse."""
    x.add(x, x)  # type: ignore[arg-type]
    x.scale(ctx, "2")  # type: ignore[arg-type]
    x.sum(x)  # type: ignore[arg-type]
    x.dot(ctx, x, 1.5)  # type: ignore[arg-type]
    x.adds(ctx, x)  # type: ignore[attr-defined]
    fucina.fast.Tensor("d").zeros(x, (2,))  # type: ignore[arg-type]
