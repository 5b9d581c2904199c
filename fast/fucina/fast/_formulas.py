"""The gradients of each operation (clauses AUTOGRAD-VJP-1 to AUTOGRAD-VJP-7).

A formula is called as ``formula(ctx, g, saved, constants, wanted)`` and returns, for each operand, the gradient that
it gives it, an f32 raw tensor of the operand's raw shape and of any strides, or None where none is wanted.  ``g`` is
the gradient of the result; the formula may take its storage where nobody shares it, and does not end it.

What an operation gives its node.  Shapes and axes are those of *raw* tensors; a scalar's raw shape is ``(1,)``.

*place* of an operand: ``(shape, axes)``, its raw shape, and for each of its raw axes the raw axis of the result on
which it lies, or -1.  It is -1 for the axis of a scalar that meets a tensor with axes, and for an axis that was summed
up, whether it went or stayed with size 1.  ``None`` in place of a place: the operand has the result's axes and sizes,
in the same order (which a scalar does not have where the result has an axis, of size 1 or not).

*saved* are views of operands in their own dtype (clause AUTOGRAD-TRACK-1).  ``add sub mul div`` want them aligned with
the result, as the forward operation read them: as many axes in the result's order, with size 1 or stride 0 where they
are repeated.  None stands for what no wanted gradient needs.

========== =============================================== =========================================================
formula    saved                                           constants
========== =============================================== =========================================================
ADD SUB    ``()``                                          ``()`` where both places are None; else (place, place)
MUL DIV    (a, b); a is for b's gradient, b for a's, and   as ADD
           in DIV for both
SCALE      ``()``                                          (factor,), a float
ADD_SCALAR ``()``                                          ``()``
SUM        ``()``                                          (shape, None) where every axis was summed; else the place
MEAN       ``()``                                          as SUM, and n, an int: (shape, axes or None, n)
RESHAPE    ``()``                                          (shape,) of the operand; also for flatten, contiguous, split
                                                           and merge, whether they made a view or a copy
PERMUTE    ``()``                                          the place; also for transpose
NARROW     ``()``                                          (shape, axis, start)
BROADCAST  ``()``                                          (place,)
TO         ``()``                                          ``()``
DROPOUT    ``()``                                          (seed, p), int and float
ROWS       (indices,), of any integer dtype, of any axes   (shape,) of the operand
DOT        (a, b); a is for b's gradient, b for a's;       (shape of a, shape of b, axis of a, axis of b); the axes are
           views with the operands' own axes               those that are contracted
NLL        (targets,), of any integer dtype, with the      the place of x in the result, n, an int for "mean" and
           other axes of x, or one element                 else None, and the axis: (shape, axes, n, axis); axes is
                                                           None for "mean" and "sum"
NORM       (x,)                                            (axis, eps)
COSINE     (x, y)                                          (axis, eps)
========== =============================================== =========================================================

A list of indices becomes a tensor of i64 that only the node has.  ``eps`` is a float that was rounded to f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._context_core import contexts
from fucina.fast.tensor import RawTensor, TensorOf
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.fast.runtime import ExecContext

__all__ = [
    "ADD",
    "ADD_SCALAR",
    "BROADCAST",
    "COSINE",
    "DIV",
    "DOT",
    "DROPOUT",
    "MEAN",
    "MUL",
    "NARROW",
    "NLL",
    "NORM",
    "PERMUTE",
    "RESHAPE",
    "ROWS",
    "SCALE",
    "SUB",
    "SUM",
    "TO",
    "Formula",
    "contiguous_copy",
    "norm_factor",
    "number_of",
    "one_hot",
    "sum_of_products",
]

Gradients = Sequence[RawTensor | None]
Formula = Callable[["ExecContext", RawTensor, tuple[Any, ...], tuple[Any, ...], tuple[bool, ...]], Gradients]
Side = Callable[["ExecContext", RawTensor, tuple[Any, ...], tuple[Any, ...]], RawTensor]
Shape = tuple[int, ...]
Place = tuple[Shape, Shape]

_SUB, _MUL, _DIV = 1, 2, 3
_F32 = DType.f32
_INFINITY = 0x7F800000


# -- steps


def _written(ctx: ExecContext, shape: Sequence[int], kernel: Callable[..., None], *operands: Any) -> RawTensor:
    """Return a new f32 tensor with what a kernel writes."""
    out = ctx.empty(shape)
    try:
        kernel(*operands, out)
    except BaseException:
        out.deinit()
        raise
    return out


def contiguous_copy(ctx: ExecContext, t: RawTensor) -> RawTensor:
    """Return an f32 tensor with the elements of one of any strides, on storage that it shares with nobody."""
    return _written(ctx, t.shape, contexts.copy, t)


def _into(operation: int, a: RawTensor, b: RawTensor, out: RawTensor) -> None:
    """Write a quotient, product or difference over one of its operands, which is a temporary of ours."""
    contexts.pointwise(operation, a, b, out, True)


def _wide(ctx: ExecContext, x: RawTensor) -> RawTensor:
    """Return the values of an operand in f32, which is exact, to be ended by whoever asks."""
    return x.clone_view() if x.dtype is _F32 else ctx.cast(x, _F32)


def _times(ctx: ExecContext, g: RawTensor, x: RawTensor) -> RawTensor:
    """Return g * x."""
    if x.dtype is _F32:
        return ctx.mul(g, x)
    with ctx.cast(x, _F32) as wide:
        return ctx.mul(g, wide)


def _scaled(ctx: ExecContext, t: RawTensor, factor: float) -> RawTensor:
    """Return t * factor, written over t where nobody else sees it."""
    if t.can_take_in_place():
        t._scale(factor)
        return t.clone_view()
    return _written(ctx, t.shape, _scale_into, factor, t)


def _scale_into(factor: float, t: RawTensor, out: RawTensor) -> None:
    contexts.scale(t, factor, out, False)


@lru_cache(256)
def number_of(n: int, dtype: DType = _F32) -> RawTensor:
    """Return n, rounded to a dtype, as a tensor of one element that no pool knows."""
    return TensorOf(dtype).scalar(float(n))


def _placed(t: RawTensor, shape: Shape, axes: Shape | None) -> RawTensor:
    """Return a view with an operand's shape of what has the result's axes, repeated along those that it has not."""
    if axes is None:
        return t.broadcast_to(shape)
    steps = t.strides
    return t.view_with_strides(shape, tuple([steps[axis] if axis >= 0 else 0 for axis in axes]))


def _reduced(ctx: ExecContext, t: RawTensor, place: Place | None) -> RawTensor:
    """Return R(t): t itself, or one sum for each element of the operand."""
    if place is None:
        return t.clone_view()
    shape, axes = place
    sizes = t.shape
    kept = [axis for size, axis in zip(shape, axes, strict=True) if axis >= 0 and (size > 1 or sizes[axis] == 1)]
    mask = (1 << len(sizes)) - 1
    for axis in kept:
        mask -= 1 << axis
    if not mask:
        return _placed(t, shape, axes)
    left = sorted(kept)
    if kept == left:
        return _written(ctx, shape, contexts.sum_axes, t, mask)
    steps = dict.fromkeys(axes, 0)
    step = 1
    for axis in reversed(left):
        steps[axis] = step
        step *= sizes[axis]
    with _written(ctx, [sizes[axis] for axis in left], contexts.sum_axes, t, mask) as out:
        return out.view_with_strides(shape, tuple([steps[axis] for axis in axes]))


def _reshaped(ctx: ExecContext, t: RawTensor, shape: Shape) -> RawTensor:
    """Return the elements in row-major order in another shape: a view where that may be."""
    if t.is_contiguous():
        return t.reshape(shape)
    if not any(t.strides):
        return t.view_with_strides(shape, (0,) * len(shape))
    with contiguous_copy(ctx, t) as flat:
        return flat.reshape(shape)


def _pair(left: Side, right: Side) -> Formula:
    """Return the formula of an operation with two operands."""

    def formula(
        ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...], wanted: tuple[bool, ...]
    ) -> Gradients:
        if not wanted[0]:
            return None, right(ctx, g, saved, constants)
        first = left(ctx, g, saved, constants)
        if not wanted[1]:
            return first, None
        try:
            return first, right(ctx, g, saved, constants)
        except BaseException:
            first.deinit()
            raise

    return formula


def _of_one(side: Side) -> Formula:
    """Return the formula of an operation with one operand."""

    def formula(
        ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...], wanted: tuple[bool, ...]
    ) -> Gradients:
        return (side(ctx, g, saved, constants),)

    return formula


# -- arithmetic (clause AUTOGRAD-VJP-1)


def _left(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return R(g), for the left operand."""
    return _reduced(ctx, g, constants[0]) if constants else g.clone_view()


def _right(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return R(g), for the right operand."""
    return _reduced(ctx, g, constants[1]) if constants else g.clone_view()


def _negative_right(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return -1 * R(g)."""
    with _right(ctx, g, saved, constants) as summed:
        return _scaled(ctx, summed, -1.0)


def _mul_left(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return R(g * b)."""
    product = _times(ctx, g, saved[1])
    if not constants or constants[0] is None:
        return product
    with product:
        return _reduced(ctx, product, constants[0])


def _mul_right(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return R(g * a)."""
    product = _times(ctx, g, saved[0])
    if not constants or constants[1] is None:
        return product
    with product:
        return _reduced(ctx, product, constants[1])


_mul_placed = _pair(_mul_left, _mul_right)


def _mul(
    ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...], wanted: tuple[bool, ...]
) -> Gradients:
    """Return R(g * b) and R(g * a); the plain case on the shortest way."""
    a, b = saved
    if constants or a is None or b is None or a.dtype is not _F32 or False in wanted:
        return _mul_placed(ctx, g, saved, constants, wanted)
    first = ctx.mul(g, b)
    try:
        return first, ctx.mul(g, a)
    except BaseException:
        first.deinit()
        raise


def _div_left(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return R(g / b)."""
    with _wide(ctx, saved[1]) as b, ctx.div(g, b) as quotient:
        return _left(ctx, quotient, saved, constants)


def _div_right(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return -1 * R((g * a) / (b * b))."""
    with _times(ctx, g, saved[0]) as quotient:
        with _wide(ctx, saved[1]) as b, ctx.mul(b, b) as square:
            _into(_DIV, quotient, square, quotient)
        summed = _right(ctx, quotient, saved, constants)
    with summed:
        return _scaled(ctx, summed, -1.0)


def _scale(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return g * s."""
    return _scaled(ctx, g, constants[0])


def _same(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return g."""
    return g.clone_view()


# -- reductions (clause AUTOGRAD-VJP-2)


def _repeated(
    ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...], wanted: tuple[bool, ...]
) -> Gradients:
    """Return g, at the places of the operand's elements."""
    shape, axes = constants
    return (g.broadcast_to(shape) if axes is None else _placed(g, shape, axes),)


def _mean(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return g / n, repeated."""
    shape, axes, n = constants
    with ctx.div(g, number_of(n)) as share:
        return _placed(share, shape, axes)


# -- views (clause AUTOGRAD-VJP-3)


def _reshape(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return the elements of g in the operand's shape."""
    return _reshaped(ctx, g, constants[0])


def _narrow(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return the elements of g where they came from, +0 elsewhere."""
    shape, axis, start = constants
    part = slice(start, start + g.shape[axis])
    out = ctx.zeros(shape)
    out._exported()[(slice(None),) * axis + (part,)] = g._exported()
    return out


def _broadcast(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return R(g)."""
    return _reduced(ctx, g, constants[0])


# -- dropout and rows (clauses AUTOGRAD-VJP-4, AUTOGRAD-VJP-5)


def _dropout(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return g * dropout_scale(p) where the element was kept, +0 elsewhere."""
    return _written(ctx, g.shape, contexts.dropout, g, *constants)


def _rows(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return the rows of g, added to those that their indices name, in ascending order."""
    shape = constants[0]
    with ctx.cast(saved[0], DType.i64) as indices, _reshaped(ctx, g, (indices.len(), *shape[1:])) as rows:
        return _written(ctx, shape, contexts.scatter_add_rows, rows, indices)


# -- products (clause AUTOGRAD-VJP-6)


def _matrix(ctx: ExecContext, t: RawTensor, axis: int, first: bool) -> RawTensor:
    """Return the view of two axes with one axis of t, in the first or last place, and all others together."""
    sizes, steps = t.shape, t.strides
    others = [k for k in range(len(sizes)) if k != axis]
    count, step = 1, 1
    for k in reversed([k for k in others if sizes[k] > 1]):
        if count == 1:
            step = steps[k]
        elif steps[k] != step * count:
            break
        count *= sizes[k]
    if count == prod([sizes[k] for k in others]):
        if first:
            return t.view_with_strides((sizes[axis], count), (steps[axis], step))
        return t.view_with_strides((count, sizes[axis]), (step, steps[axis]))
    order = [axis, *others] if first else [*others, axis]
    with (
        t.view_with_strides([sizes[k] for k in order], [steps[k] for k in order]) as moved,
        contiguous_copy(ctx, moved) as flat,
    ):
        count = prod([sizes[k] for k in others])
        return flat.reshape((sizes[axis], count) if first else (count, sizes[axis]))


def _unmoved(t: RawTensor, sizes: Shape, axis: int, first: bool) -> RawTensor:
    """Return the view in an operand's shape of what has one of its axes in the first or last place."""
    rest = [k for k in range(len(sizes)) if k != axis]
    order = [axis, *rest] if first else [*rest, axis]
    steps, step = [0] * len(sizes), 1
    for k in reversed(order):
        steps[k] = step
        step *= sizes[k]
    return t.view_with_strides(sizes, steps)


def _dot_left(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return the product of g and the right operand, over all of its other axes."""
    sizes, _, axis, other_axis = constants
    with _wide(ctx, saved[1]) as wide, _matrix(ctx, wide, other_axis, False) as b:
        count, size = b.shape
        with (
            _reshaped(ctx, g, (prod(g.shape) // count, count)) as rows,
            _written(ctx, (rows.shape[0], size), contexts.matmul, rows, b) as out,
        ):
            return _unmoved(out, sizes, axis, False)


def _dot_right(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return the product of the left operand and g, over all of the left one's other axes."""
    _, sizes, other_axis, axis = constants
    with _wide(ctx, saved[0]) as wide, _matrix(ctx, wide, other_axis, True) as a:
        size, count = a.shape
        with (
            _reshaped(ctx, g, (count, prod(g.shape) // count)) as columns,
            _written(ctx, (size, columns.shape[1]), contexts.matmul, a, columns) as out,
        ):
            return _unmoved(out, sizes, axis, True)


# -- composed operations (clause AUTOGRAD-VJP-7)


def one_hot(ctx: ExecContext, targets: RawTensor, shape: Shape, axis: int) -> RawTensor:
    """Return an f32 tensor that is 1 where its index along an axis is the target's, else 0."""
    others = (*shape[:axis], 1, *shape[axis + 1 :])
    with ctx.cast(targets, DType.i64) as indices:
        out = ctx.zeros(shape)
        np.put_along_axis(out._exported(), indices.data_const().reshape(others), np.float32(1), axis)
    return out


def _nll(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return (-1 * e) * h."""
    shape, axes, n, axis = constants
    with (
        g.clone_view() if n is None else ctx.div(g, number_of(n)) as e,
        _scaled(ctx, e, -1.0) as negative,
        _placed(negative, shape, axes) as repeated,
        one_hot(ctx, saved[0], shape, axis) as h,
    ):
        return ctx.mul(repeated, h)


def sum_of_products(ctx: ExecContext, x: RawTensor, y: RawTensor, axis: int) -> RawTensor:
    """Return sum(x * y) along an axis, which stays with size 1."""
    sizes = x.shape
    with ctx.mul(x, y) as product:
        return _written(ctx, (*sizes[:axis], 1, *sizes[axis + 1 :]), contexts.sum_axes, product, 1 << axis)


def norm_factor(ctx: ExecContext, x: RawTensor, axis: int, eps: float) -> RawTensor:
    """Return r = rsqrt(sum(x * x) + eps) along an axis, which stays with size 1 (clause POLICY-NORM-1)."""
    with (
        sum_of_products(ctx, x, x, axis) as total,
        _written(ctx, total.shape, contexts.add_scalar, total, eps) as above,
    ):
        return _written(ctx, total.shape, contexts.unary, contexts.RSQRT, above)


def _norm(ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...]) -> RawTensor:
    """Return r * (g - y * sum(g * y))."""
    (x,), (axis, eps) = saved, constants
    with norm_factor(ctx, x, axis, eps) as r, ctx.mul(x, r) as y:
        with sum_of_products(ctx, g, y, axis) as total:
            _into(_MUL, y, total, y)
        _into(_SUB, g, y, y)
        _into(_MUL, r, y, y)
        return y.clone_view()


def _cosine(
    ctx: ExecContext, g: RawTensor, x: RawTensor, y: RawTensor, parts: tuple[RawTensor, ...], above: Any, axis: int
) -> RawTensor:
    """Return g * ((y / d) - ((c * x) / sx)) where p > eps, else g * (y / d): the gradient of x."""
    sx, c, d = parts
    axes = tuple([k - (k > axis) if k != axis else -1 for k in range(len(x.shape))])
    with _placed(g, c.shape, axes) as along, ctx.div(y, d) as near, ctx.mul(c, x) as t:
        _into(_DIV, t, sx, t)
        _into(_SUB, near, t, t)
        if not above.all():
            np.copyto(t._exported(), near._exported(), where=~above)
        _into(_MUL, along, t, t)
        return t.clone_view()


def _cosine_pair(
    ctx: ExecContext, g: RawTensor, saved: tuple[Any, ...], constants: tuple[Any, ...], wanted: tuple[bool, ...]
) -> Gradients:
    """Return the gradients of x and y, from the same sums."""
    (x, y), (axis, eps) = saved, constants
    with (
        sum_of_products(ctx, x, x, axis) as sx,
        sum_of_products(ctx, y, y, axis) as sy,
        sum_of_products(ctx, x, y, axis) as c,
        _written(ctx, sx.shape, contexts.unary, contexts.SQRT, sx) as root,
        _written(ctx, sy.shape, contexts.unary, contexts.SQRT, sy) as other,
        ctx.mul(root, other) as p,
        _written(ctx, p.shape, contexts.max_scalar, p, eps) as d,
    ):
        _into(_DIV, c, d, c)
        above = _above(p, eps)
        first = _cosine(ctx, g, x, y, (sx, c, d), above, axis) if wanted[0] else None
        try:
            return first, _cosine(ctx, g, y, x, (sy, c, d), above, axis) if wanted[1] else None
        except BaseException:
            if first is not None:
                first.deinit()
            raise


def _above(p: RawTensor, eps: float) -> Any:
    """Return where p, which is not negative, is above eps: by their patterns, whatever the environment."""
    patterns = p._exported().view(np.int32)
    limit = np.float32(eps)
    bound = -1 if limit < 0 else _INFINITY if np.isnan(limit) else int(abs(limit).view(np.int32))
    return (patterns > bound) & (patterns <= _INFINITY)


ADD = _pair(_left, _right)
SUB = _pair(_left, _negative_right)
MUL = _mul
DIV = _pair(_div_left, _div_right)
SCALE = _of_one(_scale)
ADD_SCALAR = TO = _of_one(_same)
SUM = PERMUTE = _repeated
MEAN = _of_one(_mean)
RESHAPE = _of_one(_reshape)
NARROW = _of_one(_narrow)
BROADCAST = _of_one(_broadcast)
DROPOUT = _of_one(_dropout)
ROWS = _of_one(_rows)
DOT = _pair(_dot_left, _dot_right)
NLL = _of_one(_nll)
NORM = _of_one(_norm)
COSINE = _cosine_pair
