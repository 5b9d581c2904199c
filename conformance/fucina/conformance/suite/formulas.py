"""The operations and their gradients on whole arrays, written from the formulas of the clauses with :mod:`exact`.

Arrays hold values; numpy only moves them.  Axes are counted.  What a formula calls one operation is one call of
:mod:`exact` for each element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fucina.conformance.suite import exact
from fucina.conformance.suite.exact import Values
from fucina.conformance.suite.raw_arithmetic import REAL, accumulator
from fucina.conformance.suite.stream import dropout_scale, words
from fucina.spec import DType

__all__ = [
    "add_scalar",
    "aligned",
    "argmax",
    "arithmetic",
    "cosine",
    "cosine_gradients",
    "dot",
    "dot_gradients",
    "dropout",
    "each",
    "kept",
    "mean",
    "nll",
    "nll_gradient",
    "normalize",
    "normalize_gradient",
    "order",
    "repeated_sum",
    "row_gradient",
    "scale",
    "total",
    "vjp",
]

F32 = DType.f32


def each(function: Callable[..., Any], *arrays: Any) -> Values:
    """Apply a function to the elements of arrays that broadcast."""
    wide = np.broadcast_arrays(*(np.asarray(a) for a in arrays))
    rows = zip(*(a.reshape(-1).tolist() for a in wide), strict=True)
    found = [function(*row) for row in rows]
    kind = object if found and isinstance(found[0], int) else np.float64
    return np.array(found, kind).reshape(wide[0].shape)


def _in(function: Callable[..., float], dtype: DType = F32) -> Callable[..., Values]:
    return lambda *arrays: each(lambda *values: function(dtype, *values), *arrays)


_add, _sub, _mul, _div = (_in(f) for f in (exact.add, exact.sub, exact.mul, exact.div))
_neg, _root, _rsqrt = _in(exact.negative), _in(exact.root), _in(exact.inverse_root)


def aligned(values: Values, tags: Sequence[str], wanted: Sequence[str]) -> Values:
    """POLICY-TAGS-1: put the axes of an operand in their places among those of the result, which may have others."""
    there = [tags.index(tag) for tag in wanted if tag in tags]
    shape = [values.shape[tags.index(tag)] if tag in tags else 1 for tag in wanted]
    return values.transpose(there).reshape(shape)


# -- forward


def arithmetic(name: str, dtype: DType, a: Values, b: Values) -> Values:
    """POLICY-ARITH-1, of arrays that broadcast."""
    if dtype not in REAL:
        return each(lambda x, y: exact.wrapped(name, dtype, x, y), a, b)
    one = {"add": exact.add, "sub": exact.sub, "mul": exact.mul, "div": exact.div}[name]
    return each(lambda x, y: exact.rounded(dtype, one(accumulator(dtype), x, y)), a, b)


def scale(dtype: DType, x: Values, number: float) -> Values:
    """POLICY-SCALAR-1."""
    wide = accumulator(dtype)
    factor = exact.rounded(wide, number)
    return each(lambda v: exact.rounded(dtype, exact.mul(wide, v, factor)), x)


def add_scalar(dtype: DType, x: Values, number: float) -> Values:
    """POLICY-SCALAR-1."""
    wide = accumulator(dtype)
    addend = exact.rounded(wide, number)
    return each(lambda v: exact.rounded(dtype, exact.add(wide, v, addend)), x)


def total(dtype: DType, x: Values, axes: Sequence[int] | None = None, *, keep: bool = False) -> Values:
    """POLICY-SUM-1: one tree over the elements of each sum, in row-major order of the axes of x."""
    chosen = sorted(range(x.ndim) if axes is None else axes)
    rest = [axis for axis in range(x.ndim) if axis not in chosen]
    rows = x.transpose(*rest, *chosen).reshape(*(x.shape[axis] for axis in rest), -1) if x.ndim else x.reshape(1)
    flat = rows.reshape(-1, rows.shape[-1]).tolist()
    if dtype in REAL:
        sums: Values = np.array([exact.tree(accumulator(dtype), row) for row in flat], np.float64)
    else:
        sums = np.array([(sum(map(int, row)) + (1 << 63)) % (1 << 64) - (1 << 63) for row in flat], object)
    shape = tuple(1 if i in chosen else n for i, n in enumerate(x.shape)) if keep else tuple(x.shape[i] for i in rest)
    return sums.reshape(shape)


def mean(dtype: DType, x: Values, axes: Sequence[int] | None = None, *, keep: bool = False) -> Values:
    """POLICY-MEAN-1."""
    sums = total(dtype, x, axes, keep=keep)
    wide = accumulator(dtype)
    count = exact.rounded(wide, float(x.size // sums.size))
    return each(lambda v: exact.div(wide, v, count), sums)


def kept(seed: int, count: int, p: float) -> Values:
    """RNG-DROPOUT-1: which of the first elements stay; p is an f32."""
    threshold = int((1 - Fraction(p)) * (1 << 53))
    return np.array([int(word) >> 11 < threshold for word in words(seed, 0, count)])


def dropout(dtype: DType, x: Values, p: float, seed: int) -> Values:
    """POLICY-DROPOUT-1."""
    rate = exact.rounded(F32, p)
    factor = float(dropout_scale(rate))
    stays = kept(seed, x.size, rate).reshape(x.shape)
    return np.where(stays, each(lambda v: exact.rounded(dtype, exact.mul(F32, v, factor)), x), 0.0)


def dot(dtype: DType, a: Values, b: Values, i: int, j: int) -> Values:
    """POLICY-DOT-1: axis i of a with axis j of b."""
    wide = accumulator(dtype)
    left, right = np.moveaxis(a, i, -1), np.moveaxis(b, j, -1)
    rows, columns = (m.reshape(-1, m.shape[-1]).tolist() for m in (left, right))
    found = [exact.rounded(dtype, exact.chain(wide, row, column)) for row in rows for column in columns]
    return np.array(found, np.float64).reshape(left.shape[:-1] + right.shape[:-1])


def argmax(x: Sequence[float]) -> int:
    """POLICY-ARGMAX-1."""
    best = -1
    for i, v in enumerate(x):
        if v == v and (best < 0 or v > x[best]):
            best = i
    return max(best, 0)


def order(x: Sequence[float], *, descending: bool = False) -> list[int]:
    """POLICY-SORT-1, by insertion: an element goes behind all that do not have to come after it."""
    found: list[int] = []
    for i, v in enumerate(x):
        at = len(found)
        while at and _before(v, x[found[at - 1]], descending):
            at -= 1
        found.insert(at, i)
    return found


def _before(v: float, w: float, descending: bool) -> bool:
    """Whether v must come before w."""
    if v != v or w != w:
        return v == v and w != w
    one, other = ((u, math.copysign(1.0, u) if u == 0 else 0.0) for u in (v, w))
    return one > other if descending else one < other


def nll(x: Values, targets: Values, axis: int, reduction: str) -> Values:
    """POLICY-NLL-1; targets have the other axes of x."""
    losses = _neg(total(F32, _mul(x, _one_hot(x, targets, axis)), [axis]))
    if reduction == "none":
        return losses
    return total(F32, losses) if reduction == "sum" else mean(F32, losses)


def _one_hot(x: Values, targets: Values, axis: int) -> Values:
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.where(np.expand_dims(targets, axis) == places, 1.0, 0.0)


def normalize(x: Values, axis: int, eps: float) -> Values:
    """POLICY-NORM-1."""
    return _mul(x, _rsqrt(_add(total(F32, _mul(x, x), [axis], keep=True), exact.rounded(F32, eps))))


def _roots(x: Values, y: Values, axis: int) -> tuple[Values, Values, Values]:
    sx, sy = (total(F32, _mul(v, v), [axis], keep=True) for v in (x, y))
    return sx, sy, _mul(_root(sx), _root(sy))


def cosine(x: Values, y: Values, axis: int, eps: float) -> Values:
    """POLICY-COSINE-1."""
    _, _, p = _roots(x, y, axis)
    d = each(lambda v: exact.greater(v, exact.rounded(F32, eps)), p)
    return _div(total(F32, _mul(x, y), [axis]), d.squeeze(axis))


# -- gradients


def repeated_sum(t: Values, shape: Sequence[int], places: Sequence[int]) -> Values:
    """``R(t)``: to an operand's shape, whose axis k lies at axis ``places[k]`` of the result."""
    gone = [i for i in range(t.ndim) if i not in places]
    gone += [at for n, at in zip(shape, places, strict=True) if n == 1 and t.shape[at] != 1]
    found = total(F32, t, gone, keep=True) if gone else t
    found = found.transpose(*places, *(i for i in range(t.ndim) if i not in places))
    return found.reshape(tuple(shape))


def vjp(
    name: str, g: Values, a: Values, b: Values, of_a: Callable[[Values], Values], of_b: Callable[[Values], Values]
) -> tuple[Values, Values]:
    """AUTOGRAD-VJP-1: a and b already have the shape of g; ``of_a`` and ``of_b`` are R for the one and the other."""
    if name == "add":
        return of_a(g), of_b(g)
    if name == "sub":
        return of_a(g), _neg(of_b(g))
    if name == "mul":
        return of_a(_mul(g, b)), of_b(_mul(g, a))
    return of_a(_div(g, b)), _neg(of_b(_div(_mul(g, a), _mul(b, b))))


def dot_gradients(g: Values, a: Values, b: Values, i: int, j: int) -> tuple[Values, Values]:
    """AUTOGRAD-VJP-6."""
    left, right = np.moveaxis(a, i, -1), np.moveaxis(b, j, -1)
    m, k, n = math.prod(left.shape[:-1]), a.shape[i], math.prod(right.shape[:-1])
    rows, flat, columns = left.reshape(m, k).tolist(), g.reshape(m, n), right.reshape(n, k)
    to_left = [[exact.chain(F32, flat[r].tolist(), columns[:, c].tolist()) for c in range(k)] for r in range(m)]
    to_right = [[exact.chain(F32, [row[c] for row in rows], flat[:, s].tolist()) for c in range(k)] for s in range(n)]
    one = np.moveaxis(np.array(to_left, np.float64).reshape(left.shape), -1, i)
    return one, np.moveaxis(np.array(to_right, np.float64).reshape(right.shape), -1, j)


def row_gradient(g: Values, indices: Sequence[int], shape: Sequence[int]) -> Values:
    """AUTOGRAD-VJP-5; the first axis of g runs over the indices."""
    found = np.zeros(tuple(shape), np.float64)
    for row, index in zip(g, indices, strict=True):
        found[index] = _add(found[index], row)
    return found


def nll_gradient(x: Values, targets: Values, axis: int, reduction: str, g: Values) -> Values:
    """AUTOGRAD-VJP-7, of nll_loss."""
    e = np.asarray(g, np.float64)
    if reduction != "none":
        if reduction == "mean":
            e = each(lambda v: exact.div(F32, v, exact.rounded(F32, float(targets.size))), e)
        e = np.broadcast_to(e, targets.shape)
    return _mul(_neg(np.expand_dims(e, axis)), _one_hot(x, targets, axis))


def normalize_gradient(x: Values, axis: int, eps: float, g: Values) -> Values:
    """AUTOGRAD-VJP-7, of l2_normalize."""
    r = _rsqrt(_add(total(F32, _mul(x, x), [axis], keep=True), exact.rounded(F32, eps)))
    y = _mul(x, r)
    return _mul(r, _sub(g, _mul(y, total(F32, _mul(g, y), [axis], keep=True))))


def cosine_gradients(x: Values, y: Values, axis: int, eps: float, g: Values) -> tuple[Values, Values]:
    """AUTOGRAD-VJP-7, of cosine_similarity."""
    least = exact.rounded(F32, eps)
    sx, sy, p = _roots(x, y, axis)
    d = each(lambda v: exact.greater(v, least), p)
    c = np.expand_dims(cosine(x, y, axis, eps), axis)
    g = np.expand_dims(g, axis)
    one = np.where(p > least, _mul(g, _sub(_div(y, d), _div(_mul(c, x), sx))), _mul(g, _div(y, d)))
    two = np.where(p > least, _mul(g, _sub(_div(x, d), _div(_mul(c, y), sy))), _mul(g, _div(x, d)))
    return one, two
