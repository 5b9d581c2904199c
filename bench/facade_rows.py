"""Rows of the facade: small operations and a training step, products beside numpy's BLAS, dropout beside torch.

The result is made anew on both sides; in the step both sides fetch the gradient and drop it.  numpy's BLAS has to be
held to one thread before numpy is imported: ``OPENBLAS_NUM_THREADS=1``, and with ``OPENBLAS_CORETYPE`` and
``OPENBLAS_L2_SIZE`` unset, as ``nox -s bench`` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Contestant, Goal, Row
from peers import memcpy, optional

import fucina.fast as fucina

torch = optional("torch")
Tagged: Any = fucina.Tensor

BIG = 1 << 24
OF_NUMPY, OF_STEP, OF_BLAS, OF_DROPOUT = 0.5, 0.35, 1 / 0.9, 0.15
"""Goals: half of numpy's call; 0.35 of torch's training step; 0.9 of the speed of the BLAS; 0.15 of torch's dropout."""

PRODUCTS = {
    "matmul 512": (512, 512, 512),
    "matmul 1024": (1024, 1024, 1024),
    "matmul 64": (64, 64, 64),
    "vector times matrix 4096": (1, 4096, 4096),
    "matrix times vector 4096": (4096, 4096, 1),
}


def rows() -> list[tuple[str, Callable[[], Row]]]:
    """Return the rows, by name and ready to be measured; each makes its own operands."""
    ways = [(name, shape, turned) for name, shape in PRODUCTS.items() for turned in (False, True)]
    made: list[tuple[str, Callable[[], Row]]] = []
    for name, shape, turned in ways:
        label = f"{name}, transposed" if turned else name
        made.append((label, partial(_product, label, shape, turned=turned)))
    small = [(f"add, {n} element{'s' * (n > 1)}", partial(_add, n)) for n in (1, 1024)]
    calls = [(f"{name}, 8 x 16", partial(_call, f"{name}, 8 x 16", *ways)) for name, ways in CALLS.items()]
    return [*small, *calls, ("training step", _step), *made, ("dropout", _dropout)]


def _add(n: int) -> Row:
    ctx, values = fucina.ExecContext(), np.random.default_rng(1).standard_normal(n, np.float32)
    x = Tagged("n").from_slice(ctx, (n,), values)
    add = x.add
    contestants = [
        Contestant("ours", "fucina.fast", lambda: add(ctx, x)),
        Contestant("peer", "numpy", lambda: values + values),
    ]
    if torch:
        tensor = torch.from_numpy(values)
        contestants.append(Contestant("peer", "torch", lambda: tensor + tensor))
    return Row(f"add, {n} element{'s' * (n > 1)}", 1, contestants, [Goal(OF_NUMPY, "numpy")])


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add a row": (lambda ctx, x, y: x.add(ctx, y), lambda a, b: a + b),
    "multiply by a scalar": (lambda ctx, x, y: x.scale(ctx, 2.0), lambda a, b: a * 2.0),
    "matrix times vector": (lambda ctx, x, y: x.dot(ctx, y), lambda a, b: a @ b),
    "sum along an axis": (lambda ctx, x, y: x.sum(ctx, "d"), lambda a, b: a.sum(1)),
    "to f16": (lambda ctx, x, y: x.to(ctx, fucina.DType.f16), lambda a, b: a.astype(np.float16)),
    "narrow": (lambda ctx, x, y: x.narrow(ctx, "b", 1, 3), lambda a, b: a[1:4]),
}


def _call(name: str, ours: Callable[..., Any], theirs: Callable[..., Any]) -> Row:
    ctx, values = fucina.ExecContext(), np.random.default_rng(1).standard_normal((9, 16), np.float32)
    a, b = values[:8], values[8]
    x, y = Tagged("b", "d").from_slice(ctx, (8, 16), a.ravel()), Tagged("d").from_slice(ctx, (16,), b)
    contestants = [
        Contestant("ours", "fucina.fast", lambda: ours(ctx, x, y)),
        Contestant("peer", "numpy", lambda: theirs(a, b)),
    ]
    return Row(name, 1, contestants, [Goal(OF_NUMPY, "numpy")])


def _step() -> Row:
    ctx = fucina.ExecContext()
    w = Tagged("d").variable_from_slice(ctx, (3,), [1, 2, 3])

    def ours() -> None:
        scope = ctx.open_exec_scope()
        w.mul(ctx, w).sum_all(ctx).backward(ctx)
        w.grad(ctx).deinit()
        w.zero_grad()
        ctx.close_exec_scope(scope)

    contestants = [Contestant("ours", "fucina.fast", ours)]
    if torch:
        leaf: Any = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def step() -> None:
            (leaf * leaf).sum().backward()
            leaf.grad.clone()
            leaf.grad = None

        contestants.append(Contestant("peer", "torch", step))
    return Row("training step", 1, contestants, [Goal(OF_STEP, "torch")])


def _product(name: str, shape: tuple[int, int, int], *, turned: bool) -> Row:
    """Return a row for [m, k] times [k, n]; ``turned``: the larger operand lies column by column."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit("OPENBLAS_NUM_THREADS=1 has to be set: the rows are about one thread")
    m, k, n = shape
    rng, ctx = np.random.default_rng(1), fucina.ExecContext()
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    x, y = Tagged("m", "k").from_slice(ctx, (m, k), a), Tagged("k", "n").from_slice(ctx, (k, n), b)
    if turned and n == 1:
        x = Tagged("k", "m").from_slice(ctx, (k, m), np.ascontiguousarray(a.T))
        a = np.asfortranarray(a)
    elif turned:
        y = Tagged("n", "k").from_slice(ctx, (n, k), np.ascontiguousarray(b.T))
        b = np.asfortranarray(b)

    def ours() -> object:
        with x.dot(ctx, y) as out:
            return out.shape

    return Row(
        name,
        m * n * k,
        [Contestant("ours", "fucina.fast", ours), Contestant("peer", "numpy", lambda: a @ b)],
        [Goal(OF_BLAS)],
    )


def _dropout() -> Row:
    ctx, values = fucina.ExecContext(), np.random.default_rng(1).standard_normal(BIG, np.float32)
    x = Tagged("n").from_slice(ctx, (BIG,), values)
    peers: list[Contestant] = []
    if torch:
        apply: Any = torch.nn.functional.dropout
        tensor = torch.from_numpy(values)
        peers.append(Contestant("peer", "torch dropout", lambda: apply(tensor, 0.1, True)))

    def ours() -> object:
        with x.dropout(ctx, 0.1, 1) as out:
            return out.shape

    return Row("dropout", BIG, [Contestant("ours", "fucina.fast", ours), *peers, memcpy(8 * BIG)], [Goal(OF_DROPOUT)])
